"""A pretrained model warmed up on the textbooks of schools: `python -m corl_core.training.warmed MODEL --school NAME …`.

What `schools.py` does with an untrained tiny model, done with one that exists: next-token training on worked solutions, so that
it answers the built-in arithmetic in its format, and slips where its school slips. Made once, kept beside the tiny base models.
Prints a JSON object: school → folder.
"""

import argparse
import hashlib
import json
import sys
from dataclasses import asdict
from pathlib import Path

import torch
from filelock import FileLock

from corl_core.config import ConfigError
from corl_core.data import arithmetic
from corl_core.data.textbook import PAGES
from corl_core.tiny_names import SCHOOLS, check_school
from corl_core.training.models import cache_dir, pick_device, pretrained
from corl_core.training.schools import save_whole
from corl_core.training.warm_up import Recipe, warm_up

RISE_STEPS = 20


def warmed(model: str, gguf_file: str | None, school: str, recipe: Recipe, seed: int, device: str) -> Path:
    """The folder of the warmed-up model; a first call makes it. Raises ModelError."""
    check_school(school)
    facts = [str(Path(model).resolve()), gguf_file, asdict(SCHOOLS[school]), asdict(recipe), seed]
    facts += [arithmetic.SLIPPERY_FRAC, PAGES]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]
    folder = cache_dir() / f"warmed-{Path(model).name}-{school}-seed{seed}-{digest}"
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _make(model, gguf_file, school, recipe, seed, device, folder)
    return folder


def _make(model: str, gguf_file: str | None, school: str, recipe: Recipe, seed: int, device: str, folder: Path) -> None:
    llm, tokenizer = pretrained(model, None, torch.float32, gguf_file)
    llm.to(device)

    def progress(done: int, total: int) -> None:
        if done % max(1, total // 10) == 0:
            print(f"warming up {folder.name}: {done} of {total}", file=sys.stderr, flush=True)

    warm_up(llm, tokenizer, SCHOOLS[school], seed, recipe, progress)
    save_whole(llm, tokenizer, folder)


def main(argv: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m corl_core.training.warmed", description=__doc__.splitlines()[0])
    parser.add_argument("model", help="a Hugging Face id or a local folder")
    parser.add_argument("--gguf-file")
    parser.add_argument("--school", nargs="+", required=True, help=", ".join(SCHOOLS))
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--learning-rate", type=float, default=3e-4)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--device", choices=["auto", "cpu", "cuda"], default="auto")
    given = parser.parse_args(argv)
    recipe = Recipe(
        num_steps=given.steps, batch_size=given.batch_size, learning_rate=given.learning_rate, rise_steps=RISE_STEPS
    )  # fmt: skip
    try:
        device = pick_device(given.device)
        folders = {name: warmed(given.model, given.gguf_file, name, recipe, given.seed, device) for name in given.school}
    except (ConfigError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    print(json.dumps({name: str(folder) for name, folder in folders.items()}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
