"""Whom to pair, before any training: from sampled answers to measures of pairs, predictions and ranks.

answers.py    the answers of several models to the same questions, as codes in arrays
reading.py    files of answers: long or wide, JSON Lines, CSV and the like
columns.py    which column of such a file holds what
measures.py   the measures of a pair, each by its definition, over arrays of counts
pairs.py      a pair's measures with intervals, and a reason where one is undefined
edges.py      what each model would receive as pseudo-labels from each other one
cohorts.py    accuracy after training that the theory predicts for pairs and rings, ranked, with warnings
cells.py      the questions behind a cell of a matrix: who answered what, who was right
reference.py  the paper's table of pairs
report.py     everything above as one value for the command and the page
request.py    which candidates to sample on which questions, as a configuration
jobs.py       sampling in the background: folders, progress, what is kept

Standard library, numpy, pandas and scipy; candidates are sampled by `corl_core/training/candidates.py`.
"""
