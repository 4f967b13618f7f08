"""What the pages share.

serve.py      starts the server, with what its first page needs imported meanwhile
ending.py     the server ends when it is told to
heap.py       gives memory back that pages have freed
frame.py      navigation, and the guarantee that app.py drew it
boundary.py   where errors end and become sentences
data.py       cached queries: runs, their configs, their metrics
text.py       times, durations, states and names as plain text
chart.py      a chart card: live chart, explanation, downloads (chart.js draws, and chart_canvas.js where lines are many)
plotly_js.py  the scripts that the browser fetches: Plotly's out of the installed wheel, and ours
link.py       what a link asks for that is not there, told once
zoom.py       what each chart is zoomed to, kept in the link
access.py     who may open the dashboard and act in it: the one place where actions are allowed or refused
actions.py    launch once, stop, delete: with confirmation
labels.py     Run: name, note, tags
keeping.py    Run: size, archive, checkpoints; the import of an archive
trash.py      deleting with a way back
doctor.py     Doctor: what was found, and the repair
live.py       what refreshes itself while something runs
table.py      Runs: the table, and what can be done with the rows picked
welcome.py    Runs: what a first visit shows
curves.py     Run: the charts
ring_view.py  Run: the ring with agreement and accuracy, and a slider over its steps
alarm_list.py  Run: the alarms in words
choice.py     Compare: which runs and metrics, kept in the URL
view.py       Compare: the controls; grouping.py makes the groups, compared.py draws the charts
diff.py       Compare: how configs differ
results.py    Compare: the table of first, final and best values
guide.py      Guide: the picker and the theory in words, with a worked example
theory.py     Theory: what a person sets (theory_flow.py draws it, theory_run.py holds a run against it)
votes.py      Votes: which run, which question (votes_question.py shows it, votes_curves.py the run over steps)
draft.py      New run: the configuration that the form is filling
fields.py     New run: one form field out of one config field
answer_check.py  New run: how an answer is read
signals.py    New run: how rewards come about
cohort.py     New run: the agents and their ring (agents.py edits them)
questions.py  New run: where questions come from (preview.py shows what is in them)
queue_add.py  New run: the button that queues instead of starting
queue_view.py Queue: slots, and the runs that wait
grid_form.py  Queue: a new ablation grid
grid_view.py  Queue: a grid's coverage, and queueing what is missing
picker.py     Cohort picker: which answers (picker_sampling.py samples them), picker_matrix.py heat maps and questions,
              picker_cohorts.py edges, ranks and the paper's pairs
figures_form.py   Figures: which figure, for which venue, drawn how
figures_files.py  Figures: the file, its download and its command; the table; the bundle
"""
