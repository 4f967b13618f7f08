"""Prompt lengths in tokens, for preflight: of an agent that is loaded, or of the models that are on this machine."""

from collections.abc import Callable, Sequence
from functools import partial

from transformers import AutoConfig, LlamaConfig, PreTrainedConfig, PreTrainedTokenizerBase

from corl_core.config import AgentConfig, DataConfig, RunConfig
from corl_core.data.checks import Lengths
from corl_core.data.questions import Question
from corl_core.tiny_names import is_tiny
from corl_core.training import families, models


def measure(
    agent: str, model: PreTrainedConfig, tokenizer: PreTrainedTokenizerBase, data: DataConfig,
    prompt: Callable[[Question], str], questions: Sequence[Question],
) -> list[Lengths]:  # fmt: skip
    """The tokens of every question's prompt, and how many the model can read, for one agent."""
    texts = [prompt(question) for question in questions]
    encoded = tokenizer(texts, add_special_tokens=not models.is_templated(data, tokenizer))
    tokens = [len(ids) for ids in encoded.input_ids]
    text = model.get_text_config()
    return [Lengths(agent, tokens, getattr(text, "max_position_embeddings", None), ends=_has_table(text))]


def _has_table(config: PreTrainedConfig) -> bool:
    """Whether positions are looked up, as GPT-2 and OPT do, so that they end with the table: neither rotary nor ALiBi."""
    return not getattr(config, "rope_parameters", None) and not getattr(config, "alibi", False)


def at_hand(config: RunConfig, questions: Sequence[Question]) -> list[Lengths]:
    """Lengths for every agent whose tokenizer is on this machine; nothing is downloaded."""
    found = []
    for agent in config.agents:
        if (loaded := _local(agent)) is not None:
            data = config.for_agent(agent.name).data
            found += measure(agent.name, *loaded, data, partial(_prompt, data, agent, loaded[1]), questions)
    return found


def _prompt(data: DataConfig, agent: AgentConfig, tokenizer: PreTrainedTokenizerBase, question: Question) -> str:
    return models.prompt(question.asked(agent.paraphrase), data, tokenizer)


def _local(agent: AgentConfig) -> tuple[PreTrainedConfig, PreTrainedTokenizerBase] | None:
    if is_tiny(agent.model):
        return LlamaConfig(max_position_embeddings=families.MAX_TOKENS), families.make_tokenizer()
    try:
        packed = {"gguf_file": agent.gguf_file} if agent.gguf_file else {}
        model = AutoConfig.from_pretrained(
            agent.model, revision=agent.revision, trust_remote_code=False, local_files_only=True, **packed
        )  # fmt: skip
        words = models.load_tokenizer(agent.model, agent.revision, agent.gguf_file, agent.tokenizer, local_files_only=True)
        return model, words
    except (OSError, ValueError, ImportError):
        return None
