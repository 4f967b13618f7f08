"""Supervision signals: what an agent is rewarded for. One small file each, its rule in the docstring.

`batch` says what a signal sees and gives back. A signal either names one target answer (a pseudo-label) for each question,
which `matching` turns into rewards, or rewards completions directly. Only `ground_truth` is ever handed a true answer.
"""
