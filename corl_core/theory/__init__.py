"""What should happen: the mean-field theory of self- and peer-supervision (arXiv 2608.17253, section 5 and App. B).

Reading order:
  binomial.py      right or wrong: the vote of K answers, and how hard it pulls
  expected.py      expected rewards, groups without a signal, reward accuracy
  advantages.py    GRPO's advantages for 0/1 rewards
  meanfield.py     the flow of accuracies: own votes, a ring of N, ground truth, a slow teacher
  phase.py         what the flow keeps, where it splits, and which side a start is on
  plurality.py     several answers: which one wins the vote
  replicator.py    several answers: the flow
  simulate.py      GRPO with K sampled answers, beside the flow
  predict.py       accuracy after training, from the answers that models give today
  against_run.py   a run's questions as paths in the plane, beside what was predicted

Pure numpy and scipy; against_run also reads Parquet. Every question is on its own here: the theory has no generalisation.
"""
