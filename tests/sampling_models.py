"""Models and samplers for the tests of sampling at fixed addresses, and what their measures are held against."""

import torch
from transformers import AutoModelForCausalLM, AutoTokenizer, Qwen3Config

from corl_core.bench.rollouts import Ids
from corl_core.training.rollout import Sampler
from corl_core.training.sampling.static import StaticDecoder


def make(folder, tokens: int = 24, temperature: float = 0.7, **settings) -> Sampler:
    model = AutoModelForCausalLM.from_pretrained(folder)
    sampler = Sampler(model, AutoTokenizer.from_pretrained(folder), tokens, temperature, path="static")
    sampler.decoder = StaticDecoder(model, **settings)
    return sampler


def grouped(seed: int = 0):
    """A model with two key heads for six query heads, and no end token."""
    config = Qwen3Config(
        vocab_size=40, hidden_size=48, intermediate_size=64, num_hidden_layers=2, num_attention_heads=6, num_key_value_heads=2,
        head_dim=16, eos_token_id=None, pad_token_id=0, max_position_embeddings=1024,
    )  # fmt: skip
    torch.manual_seed(seed)
    return AutoModelForCausalLM.from_config(config).eval()


def ids_of(*lengths: int) -> list[str]:
    return [" ".join(str(3 + (7 * place + length) % 37) for place in range(length)) for length in lengths]


def ids_sampler(model, tokens: int, temperature: float = 1.0, **settings) -> Sampler:
    sampler = Sampler(model, Ids(), tokens, temperature, path="static")
    sampler.decoder = StaticDecoder(model, **settings)
    return sampler


def errors(sampler: Sampler, samples, temperature: float, model=None) -> float:
    """The largest difference of the log-probabilities, entropies and self-certainties from those of a separate forward pass."""
    worst = 0.0
    for row, (prompt, completion) in enumerate(zip(samples.prompt_ids, samples.completion_ids, strict=True)):
        with torch.no_grad():
            logits = (model or sampler.model)(torch.tensor([prompt + completion])).logits[0, len(prompt) - 1 : -1].float()
        p = torch.softmax(logits / temperature, -1)
        drawn = p.gather(1, torch.tensor(completion)[:, None])[:, 0].log()
        uniform = torch.full_like(p, 1 / p.shape[-1])
        expected = (drawn, torch.distributions.Categorical(p).entropy(), (uniform * (uniform / p).log()).sum(-1))
        got = (samples.logprobs[row], samples.entropies[row], samples.self_certainties[row])
        worst = max(worst, *(float((torch.tensor(a) - b).abs().max()) for a, b in zip(got, expected, strict=True)))
    return worst
