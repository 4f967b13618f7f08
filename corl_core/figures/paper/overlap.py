"""Fig. 2d: how much two agents' errors overlap before RL, one bar a pair, from the evaluation at step 0.

The paper (arXiv 2608.17253, App. A) does not define the figure's error overlap; its table of pairs has Cohen's kappa and
the share of questions with the same wrong answer, and its bars are in the order of kappa. We measure the votes on the held-out
questions of step 0 (`eval/error_overlap/<measure>/a.b`), with whichever measure is asked for.

The same two base models with the same seed and questions are one measurement, in however many runs they appear: they count
once. Pairs that differ by the run's seed alone are one bar: mean, and sample standard deviation over seeds. A pair is of one
family when its models' names begin with the same word ('Qwen2.5-7B' and 'Qwen3-1.7B' do).
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass

import pandas as pd

from corl_core.config import AgentConfig, RunConfig
from corl_core.figures.bars import Bar, Bars
from corl_core.figures.palette import style
from corl_core.figures.paper.dynamics import Choice
from corl_core.metrics import describe

SAME, DIFFERENT = "same family", "different families"
SLOTS = {DIFFERENT: 0, SAME: 1}


@dataclass(frozen=True)
class _Measured:
    pair: tuple
    seed: int
    value: float
    names: tuple[str, str]
    family: str


def error_overlap(history: pd.DataFrame, configs: Mapping[str, RunConfig], choice: Choice) -> Bars:
    """One bar a pair of base models, the least overlap first."""
    metric = f"error_overlap/{choice.overlap}"
    found = _measured(history, configs, f"eval/{metric}/")
    pairs: dict[tuple, list[_Measured]] = {}
    for one in {(one.pair, one.seed): one for one in reversed(found)}.values():
        pairs.setdefault(one.pair, []).append(one)
    bars = sorted((_bar(own) for own in pairs.values()), key=lambda bar: (bar.value, bar.label))
    about = describe(metric)
    return Bars(f"error-overlap-{choice.overlap}".replace("_", "-"), f"{about.label}, before RL", about.label, tuple(bars))


def _measured(history: pd.DataFrame, configs: Mapping[str, RunConfig], prefix: str) -> list[_Measured]:
    start = history[(history["step"] == 0) & history["metric"].str.startswith(prefix)].dropna(subset=["value"])
    found = []
    for row in start.itertuples():
        config = configs.get(row.run_id)
        names = row.metric.removeprefix(prefix).split(".")
        if config is None or not set(names) <= {agent.name for agent in config.agents}:
            continue
        agents = sorted((config.agent(name) for name in names), key=_base)
        asked = (config.data.model_dump_json(), config.eval.num_questions, config.eval.num_samples)
        words = (_word(agents[0]), _word(agents[1]))
        family = SAME if _family(agents[0]) == _family(agents[1]) else DIFFERENT
        found.append(_Measured((_base(agents[0]), _base(agents[1]), asked), config.seed, float(row.value), words, family))
    return found


def _bar(own: list[_Measured]) -> Bar:
    values = pd.Series([one.value for one in own])
    spread = float(values.std()) if len(values) > 1 else None
    first = own[0]
    kind = first.family
    label = " × ".join(first.names)
    return Bar(label, float(values.mean()), style(SLOTS[kind]), kind, spread, len(values), hatched=kind == SAME)


def _base(agent: AgentConfig) -> tuple[str, str, str, int]:
    return (agent.model, agent.revision or "", agent.school or "", agent.seed)


def _short(agent: AgentConfig) -> str:
    return agent.model.removeprefix("tiny:").rstrip("/").rsplit("/", 1)[-1]


def _word(agent: AgentConfig) -> str:
    """The model, with its school and seed where these tell apart two agents of one model."""
    return _short(agent) + (f" {agent.school}" if agent.school else "") + (f" {agent.seed}" if agent.seed else "")


def _family(agent: AgentConfig) -> str:
    found = re.match(r"[^\W\d]+", _short(agent))
    return found[0].casefold() if found else _short(agent)
