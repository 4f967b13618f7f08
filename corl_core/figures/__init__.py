"""From tables of metrics to figures: one neutral description, drawn twice.

Reading order:
  spec.py      Figure, Series and Style: what a figure is, whoever draws it
  palette.py   colours, dashes and markers, and which slot belongs to whom
  lines.py     history tables to plain lines: mean over agents, smoothing
  curves.py    one function a figure of one run
  compare.py   the figure of several runs, alone or grouped; seeds.py centre and band, axes.py what stands under the lines,
               grid.py runs at common places, ranges.py log and robust axes, paired.py differences by seed, ends.py the table
  rollouts.py  agreement against the truth, one question through training, what-if replay
  gaps.py      where a line breaks: steps that are missing
  thin.py      fewer points for the screen, with every spike kept
  plotly.py    Figure to a Plotly description (a plain dict) for the browser: traces.py its lines and marks, encode.py their
               numbers, settled.py what of a growing chart need not be sent again
  ring.py      the ring of a cohort as a Plotly description
  theory.py    the plane of two agents' accuracies: field, basins, paths (theory_run.py puts a run's questions on it)
  export.py    Figure to PNG, SVG, PDF, HTML, CSV and LaTeX, without a browser: paint.py draws (svg_fonts.py puts the letters
               into an SVG), html.py and latex.py write, venues.py knows the sizes, stamp.py what a file tells of itself
  bars.py      a bar chart as a description
  paper/       the figures of the paper, and the command that makes each
  bundle.py    a zip to share: figures, data, configs, votes, and a page (bundle_index.py, bundle_votes.py)
  text.py      names made fit for a file's own language; errors.py what a person can get wrong

Nothing here imports streamlit; matplotlib is imported at the first export.
"""
