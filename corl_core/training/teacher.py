"""Co-rewarding-II's teacher: a moving average of the agent that samples and votes, and is never trained.

The rule is in `rewards/co_rewarding_2.py`. TRL's `sync_ref_model` will not do: its share is constant, and its reference model
exists only for a KL penalty and never generates.
"""

import copy
from collections.abc import Callable, Sequence
from pathlib import Path

import torch
from safetensors.torch import load_file, save_file
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corl_core.answers import parse
from corl_core.config import RunConfig
from corl_core.rewards.co_rewarding_2 import alpha
from corl_core.seeds import derive
from corl_core.training import adapters
from corl_core.training.rollout import Sampler
from corl_core.votes import Vote, vote

FILE = "teacher.safetensors"


class Teacher:
    """Holds a copy of the weights that the agent trains, without gradients. Frozen ones are the agent's own, so with LoRA a
    teacher costs only its adapters, and it is their factors A and B that are averaged, not the products B A."""

    def __init__(
        self, policy: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, config: RunConfig, agent: str, templated: bool = False,
        tick: Callable[..., None] | None = None,
    ):  # fmt: skip
        """`tick` is called while the teacher samples: at every call of its model, or of a decode step in place of one."""
        self.policy, self.config, self._agent = policy, config, agent
        frozen = {id(weight): weight for weight in policy.parameters() if not weight.requires_grad}
        self._trained = [name for name, weight in policy.named_parameters() if weight.requires_grad]
        self.model = copy.deepcopy(policy, frozen).requires_grad_(False)
        grpo, sampled = config.grpo, adapters.plain(self.model)
        self._sampler = Sampler(
            sampled, tokenizer, grpo.max_completion_length, grpo.temperature, templated,
            bf16=grpo.bf16, keep=config.rollouts.keep_cache, tick=tick,
        )  # fmt: skip
        if tick is not None:
            sampled.register_forward_hook(lambda *_: tick())

    def votes(self, step: int, prompts: Sequence[str]) -> list[Vote]:
        """Follows the agent, whose weights are those before update `step`, and votes on each prompt."""
        config, num_votes = self.config, self.config.num_votes
        self.follow(alpha(step, config.grpo.max_steps, config.signal.alpha_start, config.signal.alpha_end))
        seed = derive("teacher", config.seed, self._agent, step)
        answers = [parse(text) for text in self._sampler.sample(list(prompts), num_votes, seed).texts]
        return [vote(answers[i : i + num_votes], config.vote.tie) for i in range(0, len(answers), num_votes)]

    def save(self, folder: Path) -> None:
        save_file({name: weight.contiguous() for name, weight in self._weights(self.model).items()}, folder / FILE)

    @torch.no_grad()
    def load(self, folder: Path) -> None:
        kept = load_file(folder / FILE)
        for name, weight in self._weights(self.model).items():
            weight.copy_(kept[name])

    @torch.no_grad()
    def follow(self, share: float) -> None:
        """Moves the teacher's weights towards the agent's by that share of the difference."""
        mine, its = self._weights(self.model), self._weights(self.policy)
        torch._foreach_lerp_(list(mine.values()), list(its.values()), share)

    def _weights(self, model: PreTrainedModel) -> dict[str, torch.Tensor]:
        """The weights that the agent trains, by name, in one order."""
        found = dict(model.named_parameters())
        return {name: found[name].detach() for name in self._trained}
