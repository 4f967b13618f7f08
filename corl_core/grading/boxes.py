"""From a completion to the inside of its last box.

The *last* box counts, since a model that corrects itself boxes again; when that one never closes, the completion was cut
off and gives no answer. The backslash of `\\boxed` may be missing (or be the backspace that an unescaped "\\b" makes).
Without braces, as in `\\boxed 7`, the box holds the number or the one letter that follows.
"""

import re
from typing import Literal

NoBox = Literal["no_box", "unclosed", "empty"]

_BARE = r"([-+]?\d+(?:[.,]\d+)*|[A-Za-z](?![A-Za-z]|\s+[A-Za-z]))"
_BOX = re.compile(
    rf"(?:\\boxed|\\fbox|\x08oxed|(?<![A-Za-z\\])boxed)\s*\{{|(?:\\boxed|\\fbox|\x08oxed)(?:\s*(?=[-+\d])|\s+){_BARE}"
)
_MARKS = re.compile(r"[\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069]")
_EDGE = re.compile(r"\\.|[{}]", re.DOTALL)


def last_box(completion: str) -> tuple[str, None] | tuple[None, NoBox]:
    """The inside of the last box and None; or None and why there is none. A box in a box is unwrapped."""
    completion = _MARKS.sub("", completion)
    starts = list(_BOX.finditer(completion))
    if not starts:
        return None, "no_box"
    inside = starts[-1][1] or _balanced(completion, starts[-1].end())
    if inside is None:
        return None, "unclosed"
    return (inside.strip(), None) if inside.strip() else (None, "empty")


def _balanced(text: str, start: int) -> str | None:
    """The text from `start` to the brace that closes it; escaped braces are not counted."""
    depth = 1
    for edge in _EDGE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(edge[0], 0)
        if depth == 0:
            return text[start : edge.start()]
    return None
