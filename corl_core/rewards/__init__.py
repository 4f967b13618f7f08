"""Supervision signals: where an agent's reward target comes from. One small file each.

A signal names one target answer (a pseudo-label) for each question, or None; `matching` turns a target into rewards. Only
`ground_truth` is ever handed a true answer.
"""
