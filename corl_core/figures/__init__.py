"""From tables of metrics to figures: one neutral description, drawn twice.

Reading order:
  spec.py      Figure, Series and Style: what a figure is, whoever draws it
  palette.py   colours, dashes and markers, and which slot belongs to whom
  lines.py     history tables to plain lines: mean over agents, over seeds, smoothing
  curves.py    one function a figure of one run
  compare.py   the figure of several runs, alone or grouped over seeds
  gaps.py      where a line breaks: steps that are missing
  thin.py      fewer points for the screen, with every spike kept
  plotly.py    Figure to a Plotly description (a plain dict) for the browser
  ring.py      the ring of a cohort as a Plotly description
  export.py    Figure to PNG, SVG, PDF and CSV, without a browser

Nothing here imports streamlit; matplotlib is imported at the first export.
"""
