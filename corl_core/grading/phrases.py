"""Which cleaned texts are words and amounts, not formulas, though their letters could be multiplied.

    amounts      3 ft 4 in · 2 h 3 m · 3 ft, 4 in      several numbers, each with its own unit
    congruences  5 \\pmod 7 · 3 \\equiv 1 \\pmod 2
    words        LA · it is 5 · 17 R 2 · 7th · C3 · 5 (five)

Plain text without operators and relations is a formula only as small letters side by side, after at most one number: xy,
2ab, 2 x. A name of mathematics (sqrt, pi) in it makes it a formula too.
"""

import re

_CONGRUENCE = re.compile(r"\\(?:[pb]?mod|equiv)(?![A-Za-z])|≡|(?<![A-Za-z\\])mod(?![A-Za-z])")
_AMOUNT = r"\d[\d.]*(?:\s*[A-Za-z]{2,}\.?|\s+[mshdgtLlNJWVK]\b)"
_AMOUNTS = re.compile(rf"{_AMOUNT}(?:(?:\s*,)?(?:\s*\band\b)?\s*{_AMOUNT})+")
_GLUED = re.compile(r"(?:\d[\d.]*\s*(?:[mshdgtLlNJWVK](?![A-Za-z])|[A-Za-z]{2,})\s*){2,}")  # 2h30m
_UNIT = re.compile(r"[A-Za-z]+")
_PLAIN = re.compile(r"[A-Za-z0-9\s.'()]+")
_MATHEMATICS = re.compile(
    r"(?<![A-Za-z])(?:sqrt|abs|Abs|floor|ceiling|oo|inf|infinity|pi|a?sin|a?cos|a?tan|cot|sec|csc|arc(?:sin|cos|tan)|sinh|cosh|tanh|"
    r"ln|log|exp|alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|varphi|chi|psi|"
    r"omega)(?![A-Za-z])"
)  # fmt: skip
_SHORT_WORDS = "am|an|as|at|be|by|do|go|he|if|in|is|it|me|my|no|of|on|or|so|to|up|us|we|ft|km|cm|mm|kg|st|nd|rd|th"
_WORDS = (
    re.compile(r"[A-Za-z][.)]?\s*\d|[A-Za-z]{2,}\s*\(\d"),  # a number after letters: C3, 17 R 2, five (5)
    re.compile(r"\d\s*(?:st|nd|rd|th)(?![A-Za-z])"),
    re.compile(r"\w\s*\([A-Za-z]{3,}[A-Za-z ]*\)"),  # 5 (five)
    re.compile(r"[A-Z][A-Za-z]|[a-z][A-Z]"),
    re.compile(rf"(?<![A-Za-z])(?:{_SHORT_WORDS})(?![A-Za-z])"),
    re.compile(r"[A-Za-z]{2,}\s+[A-Za-z]|[A-Za-z]\s+[A-Za-z]{2,}"),
)


def is_congruence(text: str) -> bool:
    return _CONGRUENCE.search(text) is not None


def is_amounts(text: str) -> bool:
    """Several amounts in different units; lengths in one unit (3 cm, 5 cm) are a list."""
    text = re.sub(r"\\text\s*\{([^{}]*)\}", r" \1 ", text).strip()
    names = [name for name in _UNIT.findall(text) if name != "and"]
    return (_AMOUNTS.fullmatch(text) or _GLUED.fullmatch(text)) is not None and len(set(names)) > 1


def is_words(text: str) -> bool:
    """Whether plain text that is no number is words, not a product of variables."""
    if not _PLAIN.fullmatch(text) or _MATHEMATICS.search(text):
        return False
    return any(rule.search(text) for rule in _WORDS)
