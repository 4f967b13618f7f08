"""Equations, inequalities and membership, as far as their form decides; the rest is a formula.

    x=5, P(A)=5, 2+3=5, x=2+3=5     → 5        a name says nothing, nor does a calculation before its result
    f(x)=x^2, y(t)=2t               → x^2, 2*t a function's name and argument neither
    x>2, 2<x \\le 3, x \\in S        → (2,oo), (2,3], S

A range in two pieces, x<1 or x>2, is their union (`lists.union`).
"""

import re

from corl_core.grading.parts import Keyed, Part, split

_WORDS = "e|i|pi|sqrt|oo|inf|ln|log|sin|cos|tan|exp"
_GREEK = "alpha|beta|gamma|theta|lambda|mu|phi|omega"
NAME = (
    rf"(?:[a-zA-Z]'*(?:_\{{?\w+\}}?)?|\\(?:{_GREEK})(?:_\{{?\w+\}}?)?|(?:m?\\angle\s*)?[A-Z]{{1,4}}|\\overline\{{[A-Z]+\}}"
    r"|[A-Za-z][A-Za-z ]{2,}|\([a-zA-Z](?:,\s*[a-zA-Z])+\))"
)
NAMED = re.compile(rf"({NAME}|[A-Za-z]+\s*\([^()=]*\))\s*(?:=|\\approx)\s*([^=]+)", re.DOTALL)
_FUNCTION = re.compile(r"[A-Za-z]+\s*\([^()=]*\)")
_UNKNOWN = re.compile(rf"(?<![A-Za-z\\])(?!(?:{_WORDS})(?![A-Za-z]))[A-Za-z]+|\\(?:{_GREEK})(?![a-z])")
_MEMBER = re.compile(rf"{NAME}\s*\\in(?![a-z])(.+)", re.DOTALL)
_SIGN = re.compile(r"\\(?:le|ge)(?![a-z])|<=|>=|<|>")


def membership(text: str, part: Part) -> Keyed | None:
    match = _MEMBER.fullmatch(text)
    return part(match[1]) if match else None


def equation(text: str, part: Part) -> Keyed | None:
    """The right side alone, when the left one names it or there is nothing to solve for."""
    sides = split(text, r"=")
    if len(sides) < 2 or not all(sides) or len(split(text, "[,;]")) > 1:
        return None
    named = NAMED.fullmatch("=".join(sides[-2:]))
    is_function = named is not None and _FUNCTION.fullmatch(named[1]) is not None
    known = not _UNKNOWN.search(sides[-1])
    if is_function or (known and (named or not _UNKNOWN.search(sides[-2]))):
        return part(sides[-1])
    return None


def inequality(text: str, part: Part) -> Keyed | None:
    """The interval of one name, between or beside bounds without unknowns."""
    signs = _SIGN.findall(text)
    bounds = [bound.strip() for bound in _SIGN.split(text)]
    if not 1 <= len(signs) <= 2 or len({sign in ("<", "<=", r"\le") for sign in signs}) > 1:
        return None
    strict = [sign in "<>" for sign in signs]
    if signs[0] not in ("<", "<=", r"\le"):
        bounds, strict = bounds[::-1], strict[::-1]
    if len(bounds) == 2:
        at_start = re.fullmatch(NAME, bounds[0]) is not None
        bounds, strict = ([r"-\infty", *bounds], [True, *strict]) if at_start else ([*bounds, r"\infty"], [*strict, True])
    low, name, high = bounds
    if not re.fullmatch(NAME, name) or _UNKNOWN.search(f"{low} {high}"):
        return None
    return part(f"{'(' if strict[0] else '['}{low},{high}{')' if strict[1] else ']'}")


def is_inequality(text: str) -> bool:
    return _SIGN.search(text) is not None
