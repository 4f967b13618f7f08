"""How long a run's prompts are, in characters, from questions that lie on this machine."""

from pathlib import Path

from corl_core.config import RunConfig
from corl_core.data.hub import is_dataset_id
from corl_core.data.preflight import load
from corl_core.data.sources import ARITHMETIC


def longest(config: RunConfig) -> int | None:
    """Characters of the longest training or held-out prompt of any agent, without a chat template; None for a dataset that may
    have to be downloaded. Raises DataError when the data cannot be read."""
    sources = [source for source in (config.data.train, config.data.eval) if source]
    if any(source != ARITHMETIC and not Path(source).expanduser().is_file() and is_dataset_id(source) for source in sources):
        return None
    train, held_out = load(config)
    questions = [*train.questions, *(held_out.questions if held_out else ())]
    data = [config.for_agent(agent.name).data for agent in config.agents]
    frames = [len(own.prompt_template.format(question="")) + len(own.system_prompt or "") for own in data]
    return max(frames) + max(len(question.asked(other)) for question in questions for other in (False, True))
