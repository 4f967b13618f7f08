"""Which cleaned texts are mathematics beyond numbers, and the LaTeX that math-verify reads.

A formula is made of known commands, letters and digits. Everything else (words, units in the middle, vectors, primes, sums
and integrals, which would have to be evaluated) is compared as text. Plain text is put into LaTeX: 3*sqrt(2), pi/2,
x^(1/2), arctan(1). Decimals become fractions, so no value is ever rounded. Nothing is ever given to `eval`.
"""

import re

MAX_CHARS = 400

_GREEK = "alpha|beta|gamma|delta|epsilon|varepsilon|zeta|eta|theta|kappa|lambda|mu|nu|xi|rho|sigma|tau|phi|varphi|chi|psi|omega"
_NAMES = "sin|cos|tan|cot|sec|csc|arcsin|arccos|arctan|sinh|cosh|tanh|ln|log|exp"
_SHORT = {"oo": r"\infty ", "asin": r"\arcsin ", "acos": r"\arccos ", "atan": r"\arctan "}
_AROUND = {"sqrt": (r"\sqrt{", "}"), "Abs": ("|", "|"), "abs": ("|", "|"), "floor": (r"\lfloor ", r"\rfloor "),
           "ceiling": (r"\lceil ", r"\rceil ")}  # fmt: skip
_PLAIN = re.compile(rf"(?<![\\A-Za-z])({'|'.join([*_AROUND, *_SHORT])}|pi|{_NAMES}|{_GREEK})(?![A-Za-z])")

_COMMANDS = f"frac|sqrt|binom|pi|infty|cdot|times|div|lfloor|rfloor|lceil|rceil|ge|le|{_GREEK}|{_NAMES}"
_COMMAND = re.compile(rf"\\(?:{_COMMANDS})(?![A-Za-z])")
_CHARACTERS = re.compile(r"[0-9A-Za-z\s+\-*/^_(){}\[\]|!.=<>\\]+")
_MORE_THAN_NUMBERS = re.compile(r"[A-Za-z]|\^\{[^{}]*[/.]")  # 2^{1/2}; what else has digits only was arithmetic
_OPERATOR = re.compile(r"[\\0-9+*/^=()_]")
_PROSE = re.compile(r"[A-Za-z]{3}|[A-Za-z]\s+[A-Za-z]|[Nn][Oo]")  # where there is no operator
_WORD = re.compile(r"[A-Za-z]{5}|(?<![\\A-Za-z])[A-Za-z]{3,}\s+\w|\w\s+[A-Za-z]{3}|(?<!_)\d\s+\d|\d_")  # in any formula
_DEGREES = re.compile(r"(\d+)\s*\^\\circ")  # left only inside sine and the like
_DECIMAL = re.compile(r"(\d*)\.(\d+)")


def to_latex(text: str) -> str:
    """Plain function names, bracketed exponents and degrees as LaTeX of their value; LaTeX stays as it is."""
    text = _DEGREES.sub(r"(\\frac{\1\\pi}{180})", text)
    text = _PLAIN.sub(lambda match: _SHORT.get(match[1], rf"\{match[1]}" + ("" if match[1] in _AROUND else " ")), text)
    for name, (before, after) in _AROUND.items():
        while (start := text.find(rf"\{name}(")) >= 0:
            text = _rewrapped(text, start, start + len(name) + 1, before, after)
    start = 0
    while (start := text.find("^(", start)) >= 0:
        text, start = _rewrapped(text, start, start + 1, "^{", "}"), start + 2
    return text


def _rewrapped(text: str, start: int, opening: int, before: str, after: str) -> str:
    """`before` … `after` instead of everything from `start` to the bracket at `opening`, and of the one that closes it."""
    level = 0
    for index in range(opening, len(text)):
        level += (text[index] == "(") - (text[index] == ")")
        if level == 0:
            return text[:start] + before + text[opening + 1 : index] + after + text[index + 1 :]
    return text[:start] + before + text[opening + 1 :] + after


def formula(text: str) -> str | None:
    """LaTeX for the parser; None when the text is not a formula."""
    if len(text) > MAX_CHARS or not _CHARACTERS.fullmatch(text) or not _MORE_THAN_NUMBERS.search(text):
        return None
    rest = _COMMAND.sub("+", text)
    if "\\" in rest or _WORD.search(rest) or (not _OPERATOR.search(text) and _PROSE.search(text)):
        return None
    return _DECIMAL.sub(lambda match: rf"(\frac{{{int(match[1] + match[2])}}}{{1{'0' * len(match[2])}}})", text)
