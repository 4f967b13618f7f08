"""The engine of Co-RL Lab: cohorts of language models that learn from each other's votes.

Reading order (each file says what it holds and what it promises):

1. `answers`, `votes`, `ring`, `rewards/`, `methods` — the algorithm: pure functions on frozen records.
   `grading/`                            — how `answers` makes the canonical key of an answer.
2. `diagnostics`, `metrics`, `alarms/`   — what is measured, what each name means, and what goes wrong.
   `theory/`, `diversity/`               — what should happen, and whom to pair.
3. `config`, `config_sections`, `config_placement`, `config_signals`, `presets/` — everything a person can set.
4. `data/`                               — where questions come from.
5. `training/agent`, `training/supervision`, `training/trainer` — one agent: TRL's GRPO with a signal from outside.
   `training/models`, `stops`, `adapters`, `model_card` — any causal LM, how its turn ends, LoRA, what is left of it.
6. `training/exchange`                   — how votes travel between agents.
7. `runs/`, `extras`                     — run folders, the supervisor, checkpoints, the queue; packages that only some runs need.
8. `rollouts/`                           — what the agents said: votes, filters, replay.
9. `tracking/`                           — journal → MLflow → tables.
10. `figures/`                           — tables → figures and files.
11. `doctor/`, `security`                — what is wrong and how to mend it; who may do what.
12. `cli/`                               — `python -m corl_core …`, one file a verb.

Only `training/` imports torch, transformers or trl; only `tracking/` imports mlflow.
"""

__version__ = "0.1.0"
