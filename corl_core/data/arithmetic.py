"""Two-digit arithmetic, with a worked solution done right and one with the classic slip of its operation.

| kind | question | right solution                 | slip                                | the slip's solution        |
|------|----------|--------------------------------|-------------------------------------|----------------------------|
| add  | `47+38=` | `7+8=15;4+3+1=8;\\boxed{85}`   | the carry is forgotten              | `7+8=15;4+3=7;\\boxed{75}` |
| sub  | `52-38=` | `12-8=4;5-1-3=1;\\boxed{14}`   | the smaller digit leaves the larger | `8-2=6;5-3=2;\\boxed{26}`  |
| mul  | `47*3=`  | `7*3=21;4*3+2=14;\\boxed{141}` | the carry is dropped                | `7*3=21;4*3=12;\\boxed{121}` |

A question is *slippery* when the slip changes its answer (it needs a carry or a borrow). Nine questions in ten are.
Every question belongs to one split for ever, by a hash of its id: a quarter is for evaluation and is never trained on.
An addition's paraphrase is the sum the other way round (`38+47=`), where that belongs to the same split. The other kinds
have none: base models that answer `47*3=` in 87% of samples answer `3*47=` in 2%, for no textbook writes it so.
"""

import random
import zlib
from functools import cache
from typing import Literal

from corl_core.data.questions import Question

KINDS = ("add", "sub", "mul")
MULTIPLIERS = range(2, 7)
SLIPPERY_FRAC = 0.9
Split = Literal["train", "eval"]
_SIGNS = {"add": "+", "sub": "-", "mul": "*"}


def split_of(question_id: str) -> Split:
    """The split that a question belongs to, whatever the seed."""
    return "eval" if zlib.crc32(question_id.encode()) % 4 == 0 else "train"


def questions(num: int, seed: int, split: Split) -> list[Question]:
    """`num` questions of one split, the three kinds in turn; those of "eval" are distinct, those of "train" may repeat."""
    rng = random.Random(f"{split}-{seed}")
    if split == "train":
        return [draw(rng, KINDS[i % 3], rng.random() < SLIPPERY_FRAC) for i in range(num)]
    if split != "eval":
        raise ValueError(f"split={split!r}: must be 'train' or 'eval'")
    limit = max_eval_questions()
    if num > limit:
        raise ValueError(f"num={num} evaluation questions: arithmetic has {limit} distinct ones; ask for at most {limit}")
    num_of_kind = {kind: len(range(i, num, 3)) for i, kind in enumerate(KINDS)}
    drawn = {kind: iter(_distinct(rng, kind, num_of_kind[kind])) for kind in KINDS}
    return [next(drawn[KINDS[i % 3]]) for i in range(num)]


def draw(rng: random.Random, kind: str, slippery: bool) -> Question:
    """One training question of a kind, uniform among those that are (or are not) slippery."""
    return rng.choice(_pool(kind, slippery, "train"))


def max_eval_questions() -> int:
    """How many distinct evaluation questions there are with the kinds in turn and the usual share of slippery ones."""
    return 3 * min(int(len(_pool(kind, True, "eval")) / SLIPPERY_FRAC) for kind in KINDS)


def solution(question: Question, slip: bool) -> str:
    """The worked solution that ends in `\\boxed{N}`: the right one, or the one with the slip of the question's kind."""
    kind, a, b = question.id.split("-")
    working, result = _WORK[kind](int(a), int(b), slip)
    return f"{working}\\boxed{{{result}}}"


def is_slippery(question: Question) -> bool:
    """Whether the slip changes the answer."""
    return solution(question, slip=True) != solution(question, slip=False)


def _distinct(rng: random.Random, kind: str, num: int) -> list[Question]:
    """`num` different evaluation questions of a kind, the usual share of them slippery, shuffled."""
    easy = _pool(kind, False, "eval")
    num_easy = min(round(num * (1 - SLIPPERY_FRAC)), len(easy))
    chosen = rng.sample(easy, num_easy) + rng.sample(_pool(kind, True, "eval"), num - num_easy)
    rng.shuffle(chosen)
    return chosen


@cache
def _pool(kind: str, slippery: bool, split: Split) -> tuple[Question, ...]:
    """Every question of a kind in one split that is (or is not) slippery."""
    second = MULTIPLIERS if kind == "mul" else range(11, 100)
    made = (_make(kind, a, b) for a in range(11, 100) for b in second if kind != "sub" or a // 10 > b // 10)
    return tuple(q for q in made if split_of(q.id) == split and is_slippery(q) == slippery)


def _make(kind: str, a: int, b: int) -> Question:
    answer, own_id = _WORK[kind](a, b, False)[1], f"{kind}-{a}-{b}"
    swaps = kind == "add" and a != b and split_of(f"add-{b}-{a}") == split_of(own_id)
    return Question(own_id, f"{a}{_SIGNS[kind]}{b}=", str(answer), kind, paraphrase=f"{b}+{a}=" if swaps else None)


def _add(a: int, b: int, slip: bool) -> tuple[str, int]:
    (a_tens, a_units), (b_tens, b_units) = divmod(a, 10), divmod(b, 10)
    carry, units = divmod(a_units + b_units, 10)
    tens, plus_carry = a_tens + b_tens, ""
    if carry and not slip:
        tens, plus_carry = tens + 1, "+1"
    return f"{a_units}+{b_units}={a_units + b_units};{a_tens}+{b_tens}{plus_carry}={tens};", 10 * tens + units


def _sub(a: int, b: int, slip: bool) -> tuple[str, int]:
    (a_tens, a_units), (b_tens, b_units) = divmod(a, 10), divmod(b, 10)
    tens, minus_borrow = a_tens - b_tens, ""
    if a_units < b_units and slip:
        a_units, b_units = b_units, a_units
    elif a_units < b_units:
        a_units, tens, minus_borrow = a_units + 10, tens - 1, "-1"
    units = a_units - b_units
    return f"{a_units}-{b_units}={units};{a_tens}{minus_borrow}-{b_tens}={tens};", 10 * tens + units


def _mul(a: int, b: int, slip: bool) -> tuple[str, int]:
    a_tens, a_units = divmod(a, 10)
    carry, units = divmod(a_units * b, 10)
    tens, plus_carry = a_tens * b, ""
    if carry and not slip:
        tens, plus_carry = tens + carry, f"+{carry}"
    return f"{a_units}*{b}={a_units * b};{a_tens}*{b}{plus_carry}={tens};", 10 * tens + units


_WORK = {"add": _add, "sub": _sub, "mul": _mul}
