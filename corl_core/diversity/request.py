"""Which candidates to sample, on which questions, how often: told as a configuration, so that models, questions and prompts mean
what they mean for a run. Its agents are the candidates; `eval.num_questions` and `eval.num_samples` say how much is sampled.

A candidate is written `tiny:llama`, `tiny:qwen2:96`, a Hugging Face id or a local folder; `@` adds a tiny model's school or a
revision: `tiny:llama@careless`, `Qwen/Qwen2.5-0.5B@main`.
"""

import re
from collections.abc import Sequence

from corl_core.config import RunConfig, from_values
from corl_core.config_errors import ConfigError
from corl_core.data.sources import ARITHMETIC
from corl_core.tiny_names import is_tiny

MAX_CANDIDATES = 16
DEFAULT_QUESTIONS, DEFAULT_SAMPLES = 200, 8
TINY_TOKENS = 24


def request(
    models: Sequence[str], questions: str = ARITHMETIC, num_questions: int = DEFAULT_QUESTIONS,
    num_samples: int = DEFAULT_SAMPLES, seeds: Sequence[int] = (0,), paraphrases: bool = False, overrides: Sequence[str] = (),
) -> RunConfig:  # fmt: skip
    """A candidate for each model and seed, and with `paraphrases` one more that reads the reworded questions. Seeds give other
    base models of a tiny family, and other samples of any other model. Raises ConfigError."""
    candidates = [
        _candidate(model, seed, reworded)
        for model in dict.fromkeys(models)
        for seed in dict.fromkeys(seeds)
        for reworded in ((False, True) if paraphrases else (False,))
    ]
    return of_agents(_named(candidates), questions, num_questions, num_samples, overrides)


def of_agents(
    agents: list[dict], questions: str, num_questions: int, num_samples: int, overrides: Sequence[str] = ()
) -> RunConfig:
    """The request for candidates given as a configuration's agents. Raises ConfigError."""
    if not 2 <= len(agents) <= MAX_CANDIDATES:
        raise ConfigError(f"{len(agents)} candidates: give between 2 and {MAX_CANDIDATES} (models × seeds × wordings)")
    if num_questions < 1:
        raise ConfigError(f"num-questions={num_questions}: ask at least one question")
    tiny = questions == ARITHMETIC and all(is_tiny(agent["model"]) for agent in agents)
    values = {
        "name": "candidates",
        "method": "ttrl",
        "agents": agents,
        "data": {"train": questions} | ({"prompt_template": "{question}"} if tiny else {}),
        "grpo": {"max_completion_length": TINY_TOKENS} if tiny else {},
        "eval": {"num_questions": num_questions, "num_samples": num_samples},
    }
    return from_values(values, list(overrides), "candidates")


def _candidate(text: str, seed: int, paraphrase: bool) -> dict:
    model, at, detail = text.rpartition("@") if "@" in text else (text, "", "")
    values = {"model": model, "seed": seed, "paraphrase": paraphrase}
    return values | ({"school" if is_tiny(model) else "revision": detail} if at else {})


def _named(candidates: list[dict]) -> list[dict]:
    """With a short name each: the model's own, and what tells it apart from the others."""
    stems = [_stem(candidate) for candidate in candidates]
    seeds = {candidate["seed"] for candidate in candidates}
    named: list[dict] = []
    for candidate, stem in zip(candidates, stems, strict=True):
        name = stem + (f"-s{candidate['seed']}" if len(seeds) > 1 else "") + ("-re" if candidate["paraphrase"] else "")
        taken = {other["name"] for other in named}
        name = next(n for i in range(1, 99) if (n := name if i == 1 else f"{name[:29]}-{i}") not in taken)
        named.append({"name": name, **candidate})
    return named


def _stem(candidate: dict) -> str:
    """'llama' of tiny:llama, 'llama-careless' with that school, 'qwen2-5-0-5b' of Qwen/Qwen2.5-0.5B."""
    own = candidate["model"].removeprefix("tiny:").replace(":", "-").rstrip("/").rsplit("/", 1)[-1]
    text = "-".join(filter(None, [own, candidate.get("school") or ""]))
    return re.sub(r"[^a-z0-9_]+", "-", text.lower()).strip("-_")[:24] or "model"
