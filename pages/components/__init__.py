"""What the pages share.

frame.py      navigation, and the guarantee that app.py drew it
boundary.py   where errors end and become sentences
data.py       cached queries: runs, their configs, their metrics
text.py       times, durations, states and names as plain text
chart.py      a chart card: live chart, explanation, downloads (chart.js draws)
plotly_js.py  Plotly's script, copied out of the installed wheel
actions.py    launch once, stop, delete: with confirmation
live.py       what refreshes itself while something runs
table.py      Runs: the table, and what can be done with the rows picked
welcome.py    Runs: what a first visit shows
curves.py     Run: the charts
choice.py     Compare: which runs, kept in the URL
diff.py       Compare: how configs differ, and runs that differ by seed only
results.py    Compare: the table of first and last values
draft.py      New run: the configuration that the form is filling
fields.py     New run: one form field out of one config field
answer_check.py  New run: how an answer is read
cohort.py     New run: the agents and their ring (agents.py edits them)
questions.py  New run: where questions come from (preview.py shows what is in them)
"""
