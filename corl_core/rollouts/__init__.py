"""What a run's rollouts say, read from the Parquet shards that its agents write.

Reading order:
  shards.py     which files, which steps; rows of a few columns without reading the rest
  tally.py      many groups at once become votes
  index.py      a run's ballots on disk, extended by new shards alone, so that a page opens at once
  ballots.py    the ballots of all agents, aligned question by question, and the facts that follow
  filters.py    which questions to look at
  groups.py     one question at one step: every rollout with its reward, advantage and text
  agreement.py  agreement with the truth over steps; one question through training
  whatif.py     the pseudo-labels that another rule would have given

Nothing here imports torch, streamlit or mlflow.
"""
