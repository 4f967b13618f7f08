"""The key of an answer by its shape; the first that fits decides, and the keys of parts make the key of the whole.

    letter     C, (C), C. 12                      → C
    constant   -\\infty, \\mathbb{R}, \\{\\}       → -oo, (-oo,oo), \\emptyset
    number     0.5, \\frac{1}{2}, 2^{10}          → 1/2, 1/2, 1024
    both signs 1 \\pm \\sqrt{2}                   → {1+sqrt(2),1-sqrt(2)}
    union      (2,3) \\cup (0,1)                  → (0,1)U(2,3)
    relation   x=5, f(x)=x^2, 2 < x \\le 3        → 5, x^2, (2,3]
    matrix     \\begin{pmatrix}1\\\\2\\end{pmatrix} → [[1],[2]]
    list, set  2, 1 · 1 and 2 · \\{2,1\\}         → {1,2}
    tuple      (1,2) · [0,1) · [1,2]              → as it stands
    words      it is 5, 17 R 2, LA, 7th       → text: phrases.py says what is words
    formula    3\\sqrt{2}, a+b, 3x-y=0            → what math-verify and sympy make of it
    text       everything else                    → lower case, single spaces

Letters with an option's text, and thousands separated by commas, are read at the top only, not inside brackets.
"""

import re

from corl_core.grading import lists, relations, workers
from corl_core.grading.bounded import TooBig
from corl_core.grading.formulas import formula, to_latex
from corl_core.grading.numbers import spell, value
from corl_core.grading.parts import Keyed, text_key
from corl_core.grading.phrases import is_amounts, is_congruence, is_words
from corl_core.grading.units import trim

MAX_DEPTH = 6

_LETTER = re.compile(r"\(?([A-Z])\)?[.:)]?")
_OPTION = re.compile(r"(?:\(([A-J])\)[.:]?\s*|([A-J])[.:)]\s+)(?!(?:and|or)\b)[^\s(),+*/^=].*", re.DOTALL)
_GROUPED = re.compile(r"[+-]?\d{1,3}(?: \d{3})+(?:\.\d+)?")
_CONSTANTS = {
    r"\infty": "oo", "oo": "oo", "inf": "oo", "infinity": "oo", r"-\infty": "-oo", "-oo": "-oo", r"\mathbb{R}": "(-oo,oo)",
    r"\emptyset": r"\emptyset", r"\{\}": r"\emptyset",
}  # fmt: skip
_SHAPES = (
    lists.both_signs, lists.union, relations.membership, relations.equation, relations.inequality, lists.matrix, lists.listed,
)  # fmt: skip


def keyed(text: str, depth: int = 0) -> Keyed:
    """The key of a cleaned text."""
    if is_amounts(text) or is_congruence(text):
        return Keyed(_whole(text))
    text = trim(text)
    if depth > MAX_DEPTH:
        return Keyed(text_key(text))
    if (simple := _letter(text, depth == 0) or _number(text, depth == 0)) is not None:
        return simple
    if is_words(text) and not lists.is_joined(text):
        return Keyed(_words(text))

    def part(piece: str) -> Keyed:
        return keyed(piece, depth + 1)

    for shape in _SHAPES:
        if (found := shape(text, part)) is not None:
            return found
    return lists.bracketed(text, part, top=depth == 0) or _formula(text)


def _whole(text: str) -> str:
    """The key of amounts and congruences: \\pmod 7 is \\pmod{7}, and 3ft is 3 ft."""
    text = re.sub(r"(mod|equiv)\s*(?=[^\s{A-Za-z])", r"\1 ", re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text))
    text = re.sub(r"(\\[pb]?mod)\s*(\w+)", r"\1{\2}", text)
    return text_key(text if is_congruence(text) else re.sub(r"(?<=\d)(?=[A-Za-z])|(?<=[A-Za-z])(?=\d)", " ", text))


def _words(text: str) -> str:
    """The key of words, without brackets around them; with their case where small letters would be a formula: LA is not la."""
    if bracket := re.fullmatch(r"\(([^()]*)\)", text):
        text = bracket[1]
    text = re.sub(r"(?<=\d)\s*[rR]\s*(?=\d)", " r ", text)
    folded = text_key(text)
    return " ".join(text.split()) if not is_words(folded) and formula(to_latex(folded)) else folded


def _letter(text: str, top: bool) -> Keyed | None:
    if match := _LETTER.fullmatch(text):
        return Keyed(match[1])
    match = _OPTION.fullmatch(text) if top else None
    return Keyed(match[1] or match[2]) if match else None


def _number(text: str, top: bool) -> Keyed | None:
    compact = text.replace(" ", "")
    if constant := _CONSTANTS.get(compact.removeprefix("+")):
        return Keyed(constant)
    if top:
        text = lists.THOUSANDS.sub(lambda match: match[1].replace(",", ""), text)
    try:
        number = value(compact if _GROUPED.fullmatch(text) else to_latex(text))
    except TooBig:
        return Keyed(text_key(text))
    return Keyed(spell(number)) if number is not None else None


def _formula(text: str) -> Keyed:
    latex = formula(to_latex(text))
    if latex is None:
        return Keyed(text_key(text))
    key, outcome = workers.canonical(latex)
    return Keyed(text_key(text) if key is None else key, outcome)
