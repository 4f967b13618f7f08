"""Base models of the demo: a tiny model of one family, warmed up by one school, made once and cached.

A cached model is a folder that `AutoModelForCausalLM.from_pretrained` and `AutoTokenizer.from_pretrained` load.
Its name ends in a hash of everything the weights follow from, so a changed school or recipe makes a new folder.
Equal arguments give equal weights on one machine.
"""

import hashlib
import json
import shutil
import tempfile
from dataclasses import asdict
from pathlib import Path

from filelock import FileLock
from transformers import PreTrainedModel, PreTrainedTokenizerBase

from corl_core.data import arithmetic
from corl_core.data.textbook import PAGES
from corl_core.tiny_names import DEFAULT_SCHOOL, SCHOOLS, School, find_school
from corl_core.training.families import make_model, make_tokenizer
from corl_core.training.warm_up import RECIPE, Progress, Recipe, warm_up

__all__ = ["DEFAULT_SCHOOL", "RECIPE", "SCHOOLS", "Recipe", "School", "base_model"]


def base_model(
    family: str,
    *,
    width: int,
    seed: int,
    school: str | None,
    cache_dir: Path,
    progress: Progress | None = None,
    recipe: Recipe = RECIPE,
) -> Path:
    """The folder of the warmed-up model: made by the first call, found in the cache by the later ones.

    `school` None means the family's own. `progress` gets (warm-up steps done, steps in all); a cached model calls
    it not at all. Several processes may ask for one model at once: one makes it, the others wait for it.
    """
    chosen = find_school(family, school)
    folder = Path(cache_dir) / folder_name(family, width, seed, chosen, recipe)
    if folder.exists():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    with FileLock(f"{folder}.lock"):
        if not folder.exists():
            _make(family, width, seed, chosen, recipe, folder, progress)
    return folder


def folder_name(family: str, width: int, seed: int, school: School, recipe: Recipe) -> str:
    """Family, school and seed to read, and a hash of every number that the weights follow from."""
    facts = [family, width, seed, asdict(school), asdict(recipe), arithmetic.SLIPPERY_FRAC, PAGES]
    digest = hashlib.sha256(json.dumps(facts, sort_keys=True).encode()).hexdigest()[:10]
    return f"{family}-{school.name}-seed{seed}-{digest}"


def save_whole(model: PreTrainedModel, tokenizer: PreTrainedTokenizerBase, folder: Path) -> None:
    """Model and tokenizer in `folder`, whole or not at all: written beside it, and renamed as the last act."""
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        model.save_pretrained(unfinished)
        tokenizer.save_pretrained(unfinished)
        unfinished.chmod(0o755)
        unfinished.rename(folder)
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)


def _make(family: str, width: int, seed: int, school: School, recipe: Recipe, folder: Path, progress: Progress | None) -> None:
    """Warm up the model and put it in place whole."""
    model, tokenizer = make_model(family, width, seed), make_tokenizer()
    warm_up(model, tokenizer, school, seed, recipe, progress)
    save_whole(model, tokenizer, folder)
