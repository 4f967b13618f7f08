"""Alarms when training goes wrong: pure functions over journal lines, in the standard library alone.

lock_in.py          label_lock_in: sure of wrong votes, with and without ground truth
reward_gap.py       reward_up_accuracy_down
lengths.py          length_collapse, length_blow_up
entropy.py          entropy_collapse
constant_answer.py  constant_answer: one answer to different questions
zero_signal.py      zero_signal: no group teaches anything
parse_drop.py       parse_drop
non_finite.py       non_finite
seen.py             what a detector looks at: the window, the first steps, the last evaluations
watch.py            lines → alarms as they come; `runs/alarms.py` feeds it
record.py           an alarm as it is written down
"""
