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
    inside = _inside(completion)
    if not isinstance(inside, slice):
        return None, inside
    text = completion[inside].strip()
    return (text, None) if text else (None, "empty")


def num_boxes(completion: str) -> int:
    """How many boxes are opened, nested ones included."""
    return len(_BOX.findall(_MARKS.sub("", completion)))


def box_span(completion: str) -> tuple[int, int] | None:
    """Where the inside of the last box stands in the completion as it was written, without blanks around it: start and
    end. None where there is no answer."""
    kept = [at for at, letter in enumerate(completion) if not _MARKS.match(letter)]  # what last_box looks at
    text = "".join(completion[at] for at in kept)
    inside = _inside(text)
    if not isinstance(inside, slice) or not (answer := text[inside].strip()):
        return None
    start = text.index(answer, inside.start)
    return kept[start], kept[start + len(answer) - 1] + 1


def _inside(text: str) -> slice | NoBox:
    """The place of the last box's inside; or why there is none."""
    boxes = list(_BOX.finditer(text))
    if not boxes:
        return "no_box"
    if (last := boxes[-1])[1]:
        return slice(*last.span(1))
    end = _closing(text, last.end())
    return "unclosed" if end is None else slice(last.end(), end)


def _closing(text: str, start: int) -> int | None:
    """The place of the brace that closes what is open at `start`; escaped braces are not counted."""
    depth = 1
    for edge in _EDGE.finditer(text, start):
        depth += {"{": 1, "}": -1}.get(edge[0], 0)
        if depth == 0:
            return edge.start()
    return None
