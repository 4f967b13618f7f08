"""What an answer is measured in, dropped: currency, percent and degree signs, and units.

A unit stands at the end: a \\text{…}, a known abbreviation (12 cm) or words of three letters and more (12 apples, 12个). A
letter that abbreviates a unit is one after a space and a bare number (5 m); 5m and 5 x have variables. Thousand, million,
billion and trillion are part of the number; a.m. and p.m. are kept.
"""

import re

_ABBREVIATIONS = (
    "sq|cu|mm|cm|dm|km|kg|mg|lb|lbs|oz|ft|in|yd|mi|ml|mL|cl|dl|kl|hr|hrs|min|mins|sec|secs|ms|Hz|kHz|kW|kWh|mph|kmh|kph|rpm|MB|GB|KB|"
    "m/s|km/h|m/min|ft/s|USD|EUR|GBP"
)
_NO_UNIT = (  # words that say something about the number, or are mathematics
    "sqrt|sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|log|exp|pi|infty|infinity|theta|alpha|beta|abs|floor|ceil|gcd|lcm|max|min|"
    "mod|and|or|to|if|choose|plus|minus|times|half|halves|thirds?|quarters?|dozens?|hundred|thousand|million|billion|trillion"
)
_WORD = rf"(?!(?:{_NO_UNIT})\b)[A-Za-z]"
_PLAIN = re.compile(
    rf"(?<=[\d)}}])\s*(?:[\u3400-\u9fff]+|(?:(?:{_ABBREVIATIONS})\b|{_WORD}{{3,}})"
    rf"(?:(?:\s+|-|\s*/\s*){_WORD}+\.?)*(?:\s*\^\{{-?\d\}})?)\s*"
)
_ONE_LETTER = re.compile(
    r"([-+]?(?:[\d.,/ ]*\d|\d*\s*\\frac\s*\{-?\d+\}\s*\{\d+\}))(?:\s+|(?<=\})\s*)[mshdgtLlNJWVK](?:\s*\^\{-?\d\})?\s*"
)
_NOT_IN_TEXT = r"(?!\s*(?:if|for|where|when|and|or|is)\b|\s*[aApP]\.?[mM]\b)"
_IN_TEXT = re.compile(rf"(?:\s*[/*]?\s*\\text\s*\{{{_NOT_IN_TEXT}[^{{}}0-9]*\}}(?:\^\{{-?\d\}})?)+\s*")
_MEASURED = re.compile(r"(?:\d|\\(?:frac|sqrt|pi)(?![a-z])).*[\dA-Za-z})]\s*|.*\d\s*", re.DOTALL)
_TEXT = re.compile(r"\\text\s*\{([^{}]*)\}")

_MONEY = re.compile(r"(?:US|A|C)?\\?\$|[€£¥₹]|\\(?:pounds|euro|yen)(?![a-z])|\\text\s*\{(?:USD|EUR|GBP|Rs\.?)\s*\}")
_PERCENT = re.compile(r"(?<=[\d)}])\s*(?:\\?%|(?:percent|per cent)\b|\\text\s*\{\s*(?:percent|\\?%)\s*\})")
_DEGREES = re.compile(r"(?<=[\d)}])\s*\^\\circ\s*(?:[CF]\b)?")
_TRIGONOMETRY = re.compile(r"\\?(?:sin|cos|tan|cot|sec|csc)(?![a-z])")  # of an angle in degrees: not what it is in radians
_POWERS = {"thousand": 3, "million": 6, "billion": 9, "trillion": 12}
_LARGE = re.compile(rf"(?<=\d)\s*(\\text\s*\{{)?\s*({'|'.join(_POWERS)})\b(?(1)([^{{}}]*)\}})")


def trim(text: str) -> str:
    """A cleaned text without what it is measured in."""
    text = _LARGE.sub(_multiplied, _MONEY.sub("", text))
    text = _PERCENT.sub("", text)
    if not _TRIGONOMETRY.search(text):
        text = _DEGREES.sub("", text)
    if match := _ONE_LETTER.fullmatch(text):
        text = match[1]
    for unit in (_IN_TEXT, _PLAIN):
        match = unit.search(text)
        if match and match.end() == len(text) and _MEASURED.search(text, 0, match.start()):
            text = text[: match.start()]
    return _TEXT.sub(r"\1", text).strip()


def _multiplied(match: re.Match[str]) -> str:
    rest = rf"\text{{{match[3]}}}" if match[3] and match[3].strip() else ""
    return rf"\cdot 10^{{{_POWERS[match[2]]}}}{rest}"
