"""The engine of Co-RL Lab: cohorts of language models that learn from each other's votes.

Reading order (each file says what it holds and what it promises):

1. `answers`, `votes`, `ring`, `rewards/` — the algorithm: pure functions on frozen records.
   `grading/`                           — how `answers` makes the canonical key of an answer.
2. `diagnostics`, `metrics`              — what is measured, and what each name means.
3. `config`, `config_sections`, `presets/` — everything a person can set.
4. `data/`                               — where questions come from.
5. `training/agent`, `training/trainer`  — one agent: TRL's GRPO with votes from outside.
6. `training/exchange`                   — how votes travel between agents.
7. `runs/`                               — run folders, the supervisor, starting and stopping.
8. `tracking/`                           — journal → MLflow → tables.
9. `figures/`                            — tables → figures and files.
10. `cli/`                               — `python -m corl_core …`, one file a verb.

Only `training/` imports torch, transformers or trl; only `tracking/` imports mlflow.
"""

__version__ = "0.1.0"
