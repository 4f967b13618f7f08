"""Questions that are there twice: within the training set, and in training and evaluation both.

Two questions are the same when their texts are, after Unicode's compatibility form, case and white space are evened out. A
held-out question overlaps when it is the same as a training question, or when at least `OVERLAP_SHARE` of its word 8-grams
occur in the training questions (the rule of PaLM, arXiv 2204.02311, section 8). A question shorter than eight words has no
8-gram and can only be the same. Every Chinese, Japanese or Korean character and every symbol is a word of its own.
"""

import re
import unicodedata
from collections import defaultdict
from collections.abc import Iterator, Sequence

NGRAM = 8
OVERLAP_SHARE = 0.7
_WORD = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+|[^\w\s]")


def normalised(text: str) -> str:
    """The text with its form, case and white space evened out."""
    return " ".join(unicodedata.normalize("NFKC", text).casefold().split())


def duplicates(texts: Sequence[str]) -> list[list[int]]:
    """The indices of each text that is there more than once, in order of first appearance."""
    groups: dict[str, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        groups[normalised(text)].append(index)
    return [group for group in groups.values() if len(group) > 1]


def overlaps(held_out: Sequence[str], training: Sequence[str]) -> dict[int, float]:
    """Index of each held-out text that overlaps with training → share of its n-grams found there (1 when it is the same)."""
    same = set(map(normalised, training))
    grams = [set(_ngrams(text)) for text in held_out]
    wanted = set().union(*grams)
    found = {gram for text in training for gram in _ngrams(text) if gram in wanted}
    shares = {}
    for index, (text, own) in enumerate(zip(held_out, grams, strict=True)):
        share = 1.0 if normalised(text) in same else len(own & found) / len(own) if own else 0.0
        if share >= OVERLAP_SHARE:
            shares[index] = share
    return shares


def _ngrams(text: str) -> Iterator[tuple[str, ...]]:
    words = _WORD.findall(normalised(text))
    return (tuple(words[start : start + NGRAM]) for start in range(len(words) - NGRAM + 1))
