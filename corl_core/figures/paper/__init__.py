"""The figures of the Co-RL paper (arXiv 2608.17253) from one's own runs: one function a figure.

Reading order:
  catalogue.py  which figures there are, and what each needs
  dynamics.py   curves over training: 2a–c, 4a–c, 5a–c
  overlap.py    2d, error overlap before RL
  diverged.py   the range of a chart, and where lines leave it
  groups.py     runs to lines: seeds of one config, each run, or the values of a config key
  table.py      the table of results, mean ± standard deviation, the best in bold
  recipe.py     all that a person may set of a file, the command that makes it again, and the file itself

A figure is a `Figure` or `Bars` (corl_core/figures/spec.py, bars.py), so it is drawn and exported like any other.
"""
