"""A model of a real architecture that is small enough to train in a test."""

from corl_core.bench import shapes
from corl_core.config import AgentConfig

SMALL = dict(  # a real architecture, grouped queries and all, small enough to train here
    shapes.SHAPES["qwen2.5-0.5b"], hidden_size=256, num_hidden_layers=4, num_attention_heads=8, num_key_value_heads=2,
    intermediate_size=1024, vocab_size=64,
)  # fmt: skip


def agent(model: str) -> AgentConfig:
    return AgentConfig(name="a", model=model)
