"""Which question, in which wording, each group of a run is about: the same for every agent and every method.

Laid out at once before training, because TRL's sampler would replay the first epoch's order after a resume.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from corl_core.config import AgentConfig, RunConfig
from corl_core.data.questions import Question
from corl_core.data.sources import question_order


@dataclass(frozen=True)
class Asked:
    """A question as one group reads it."""

    question: Question
    paraphrased: bool

    @property
    def text(self) -> str:
        return self.question.asked(self.paraphrased)


def lay_out(config: RunConfig, agent: AgentConfig, questions: Sequence[Question]) -> list[Asked]:
    """grpo.questions_per_step groups for each step. With Co-rewarding-I two neighbours are one question in two wordings, so
    a step has half as many questions and costs the same."""
    num = config.grpo.max_steps * config.grpo.questions_per_step
    if "co_rewarding_1" in config.signals:
        return [Asked(q, other) for q in question_order(questions, num // 2, config.seed) for other in (False, True)]
    return [Asked(question, agent.paraphrase) for question in question_order(questions, num, config.seed)]
