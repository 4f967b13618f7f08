"""Lists, sets, tuples, intervals, unions and matrices: their keys out of their elements' keys."""

import re

from corl_core.grading.parts import Keyed, Part, enclosed, split, worst
from corl_core.grading.relations import NAMED, is_inequality

MAX_PARTS = 200
THOUSANDS = re.compile(r"(?<![\d.,])(\d{1,3}(?:,\d{3})+)(?![\d,]*\d)")

_BRACES = re.compile(r"\\\{(.+)\\\}|\{(.+)\}", re.DOTALL)
_JOINED = re.compile(r",?\s+(?:and|or)\s+")
_AMOUNTS = re.compile(r"\d\s*[a-zA-Z]{3,}")
_PM, _MP = re.compile(r"\\pm(?![A-Za-z])"), re.compile(r"\\mp(?![A-Za-z])")
_BOTH_SIGNS = re.compile(r"\\(?:pm|mp)(?![A-Za-z])")
_UNION = re.compile(r"\\cup(?![a-z])|(?<=[\])}])\s*U\s*(?=[\[({\\])")
_MATRIX = re.compile(r"\\begin\{([pbB]?matrix|array)\}(?:\{[clr|]*\})?(.*)\\end\{\1\}", re.DOTALL)


def union(text: str, part: Part) -> Keyed | None:
    pieces = re.split(r"\s+or\s+", text) if is_inequality(text) else _UNION.split(text)
    if len(pieces) == 1:
        return None
    found = [part(piece) for piece in pieces]
    return Keyed("U".join(sorted({piece.key for piece in found})), worst(found))


def both_signs(text: str, part: Part) -> Keyed | None:
    """The list of what the upper and the lower signs give."""
    if not _BOTH_SIGNS.search(text):
        return None
    found = [part(_PM.sub(plus, _MP.sub(minus, text))) for plus, minus in ("+-", "-+")]
    keys = {key for piece in found for key in _elements(piece.key)}
    return Keyed(_set(keys), worst(found))


def is_joined(text: str) -> bool:
    """Whether 'and' or 'or' stands in it, which makes a list."""
    return _JOINED.search(text) is not None


def listed(text: str, part: Part) -> Keyed | None:
    """Elements between commas, 'and' or 'or', or in braces. Amounts (3 hours and 20 minutes) are no list."""
    braces = _BRACES.fullmatch(text) if enclosed(text.replace("\\", "")) else None
    if braces and (braces[1] or "," in braces[2]):
        found = _found(braces[1] or braces[2], part)
        return Keyed(_set({piece.key for piece in found}), worst(found)) if found else None
    joined = _JOINED.sub(",", text)
    if len(split(joined, "[,;]")) == 1 or _AMOUNTS.search(joined):
        return None
    found = _found(THOUSANDS.sub(lambda match: match[1].replace(",", ""), joined), part)
    keys = [piece.key for piece in found]
    return Keyed(_set(set(keys)) if len(set(keys)) == len(keys) else ",".join(sorted(keys)), worst(found)) if found else None


def _found(body: str, part: Part) -> list[Keyed]:
    """The elements; [] when that is not what the text has. Names stay where they differ: x=1, y=2."""
    pieces = split(body, "[,;]")
    if len(pieces) > MAX_PARTS or not all(pieces):
        return []
    named = [NAMED.fullmatch(piece) for piece in pieces]
    if len({match[1] for match in named if match}) < 2:
        return [part(piece) for piece in pieces]
    right = [part(match[2] if match else piece) for piece, match in zip(pieces, named, strict=True)]
    return [Keyed(f"{match[1]}={key}", how) if match else Keyed(key, how) for match, (key, how) in zip(named, right, strict=True)]


def bracketed(text: str, part: Part, top: bool) -> Keyed | None:
    """A tuple, a vector or an interval, as it stands. Brackets around one thing are a matrix row, at the top nothing."""
    if text[:1] not in ("(", "[") or text[-1:] not in (")", "]") or not enclosed(text):
        return None
    pieces = split(text[1:-1], "[,;]")
    if len(pieces) > MAX_PARTS or not all(pieces) or (len(pieces) == 1 and (top or text[0] == "(")):
        return None
    found = [part(piece) for piece in pieces]
    return Keyed(text[0] + ",".join(piece.key for piece in found) + text[-1], worst(found))


def matrix(text: str, part: Part) -> Keyed | None:
    """Row by row; a matrix of one is its entry."""
    match = _MATRIX.fullmatch(text)
    if not match:
        return None
    rows = [[part(cell) for cell in row.split("&")] for row in re.split(r"\\\\", match[2]) if row.strip()]
    cells = [cell for row in rows for cell in row]
    if len(cells) < 2:
        return cells[0] if cells else None
    return Keyed("[" + ",".join("[" + ",".join(cell.key for cell in row) + "]" for row in rows) + "]", worst(cells))


def _elements(key: str) -> list[str]:
    return split(key[1:-1], ",") if key[:1] == "{" and enclosed(key) else [key]


def _set(keys: set[str]) -> str:
    return "{" + ",".join(sorted(keys)) + "}" if len(keys) > 1 else next(iter(keys))
