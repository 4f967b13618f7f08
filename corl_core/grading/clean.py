"""One spelling for what LaTeX, Unicode and plain text write in many ways; what an answer says is never changed."""

import re
import unicodedata
from collections.abc import Callable

_UNICODE = {
    **dict.fromkeys("−–—‒﹣", "-"),
    **dict.fromkeys("\u00a0\u2009\u202f\u3000\t\r\n", " "),
    **dict.fromkeys("×✕✖", r"\times "),
    **dict.fromkeys("·⋅", r"\cdot "),
    **dict.fromkeys("°º", r"^\circ "),
    **dict.fromkeys("‘’", "'"),
    **dict.fromkeys("“”", '"'),
    **dict.fromkeys(
        "\u200b\u2060\ufeff\u00ad\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069", ""
    ),  # marks nobody sees
    **{chr(0xFF01 + offset): chr(0x21 + offset) for offset in range(94)},  # full-width ASCII
    "∠": r"\angle ", "÷": r"\div ", "∗": "*", "⁄": "/", "√": r"\sqrt ", "±": r"\pm ", "∓": r"\mp ", "π": r"\pi ", "θ": r"\theta ",
    "≤": r"\le ", "≥": r"\ge ", "≠": r"\ne ", "≈": r"\approx ", "∪": r"\cup ", "∈": r"\in ", "∅": r"\emptyset ",
    "∞": r"\infty ", "ℝ": r"\mathbb{R}",
}  # fmt: skip
_TABLE = str.maketrans(_UNICODE)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻", "0123456789-")
_VULGAR = re.compile(r"[¼½¾⅐-⅞]")

_TEXT_COMMANDS = "underline|emph|mathrm|mathbf|mathit|mathsf|textbf|textit|textrm|textsf|texttt|mbox|hbox|operatorname|bf|rm"
_COLOR = r"\\(?:text)?color\s*(?:\[[^\[\]]*\]\s*)?\{[^{}]*\}"
_INSIDE = r"(?:[^{}]|\{(?:[^{}]|\{[^{}]*\})*\})*"
_SPACE = r"\\(?:[,;:> ]|q?quad(?![a-z])|displaystyle|textstyle|limits)|~"
_RULES: list[tuple[str, str | Callable[[re.Match[str]], str]]] = [
    (r"[⁰¹²³⁴⁵⁶⁷⁸⁹⁻]+", lambda match: "^{" + match[0].translate(_RAISED) + "}"),
    (rf"{_COLOR}\s*\{{({_INSIDE})\}}", r"\1"),
    (rf"(?<![A-Za-z\]}}])\{{\s*{_COLOR}\s*({_INSIDE})\}}", r"\1"),
    (_COLOR, ""),
    (r"(?<=\d)(?:\{,\}|,\\!)\s*(?=\d{3}(?!\d))", ""),  # a comma that separates thousands and nothing else
    (r"\\(?:left|right|[bB]igg?[lrm]?)(?![a-zA-Z])\s*\.?", ""),
    (rf"(\\\\)|\\!|{_SPACE}", lambda match: match[1] or ("" if match[0] == r"\!" else " ")),  # \\ ends a matrix row
    (r"\\[dtc]frac", r"\\frac"),
    (r"\\[dt]binom", r"\\binom"),
    (rf"\\(?:{_TEXT_COMMANDS})\*?\s*\{{", r"\\text{"),
    (r"\{\\(?:bf|it|rm)\s+([^{}]*)\}", r"\1"),
    (r"\\text\s*\{\s*,?\s*(and|or)\s*\}", r" \1 "),
    (r"\\([lr])brace(?![a-z])", lambda match: r"\{" if match[1] == "l" else r"\}"),
    (r"\\[lr]?vert(?![a-z])", "|"),
    (r"\\geq(?:q|slant)?(?![a-z])", r"\\ge "),
    (r"\\leq(?:q|slant)?(?![a-z])", r"\\le "),
    (r"\\neq(?![a-z])", r"\\ne "),
    (r"\\ast(?![a-z])", "*"),
    (r"\\varnothing(?![a-z])", r"\\emptyset "),
    (r"\^\s*\{?\s*\\(?:circ|degree)(?![a-z])\s*\}?|\\degree(?![a-z])", r"^\\circ "),
    (r"\\frac\s*([0-9A-Za-z]|\\pi)", r"\\frac{\1}"),
    (r"(\\frac\s*\{[^{}]*\})\s*([0-9A-Za-z]|\\pi)", r"\1{\2}"),
    (r"\\sqrt\s*(\d+|[A-Za-z])", r"\\sqrt{\1}"),
    (r"(?<=[\w)}\]])\*\*(?=[-\w({\\.])", "^"),
    (r"\^\s*(-?\d*\.?\d+)", r"^{\1}"),  # x^12 means x^{12}
    (r"(?<=\d)_\{(\d+)\}", r"_\1"),
    (r"(?<=\d)\s+(\d+)\s*/\s*(\d+)(?![\d.])", r"\\frac{\1}{\2}"),  # a mixed number: 1 1/2
    (r"(?<=\d)\s*[xX]\s*(?=10\s*\^)", r"\\cdot "),  # 3.7 x 10^5
    (r"\s+", " "),
    (r"(?<!\.)[.,;:]\s*$|(?<!\\)\\{1,2}\s*$", ""),
]
_COMPILED = [(re.compile(pattern), replacement) for pattern, replacement in _RULES]
_ANNOUNCED = r"(?i:(?:the )?(?:final )?(?:answer|option|choice)(?: is)?\s*:?)"
_WRAPPERS = [
    re.compile(pattern, re.DOTALL)
    for pattern in (
        r"\$\$(.+)\$\$", r"\$([^$]*[^$\\])\$", r"\\\((.+)\\\)", r"\\\[(.+)\\\]", r"\*\*(.+)\*\*",
        r"\\text\s*\{([^{}]*)\}", r"\\boxed\s*\{(.*)\}", r"\\boxed\s*([-+]?\d[\d.,]*|[A-Za-z])", r"(?:=|\\approx)\s*([^=]+)",
        rf"{_ANNOUNCED}\s+(.+)", rf"\\text\s*\{{\s*{_ANNOUNCED}\s*\}}(.+)",
    )
]  # fmt: skip
_NOTHING = re.compile(r"(?:\\text\s*\{\s*\}|\\?[$%]|\{\s*\}|[\s.,;:])*")


def clean(text: str) -> str:
    """The text in the one spelling, without what merely wraps it; '' when it says nothing."""
    text = _VULGAR.sub(_fraction, text).translate(_TABLE).strip()
    previous = None
    while previous != text:
        previous = text
        for pattern, replacement in _COMPILED:
            text = pattern.sub(replacement, text)
        text = text.strip()
        for wrapper in _WRAPPERS:
            if match := wrapper.fullmatch(text):
                text = match[1].strip()
    return "" if _NOTHING.fullmatch(text) else text


def _fraction(match: re.Match[str]) -> str:
    top, bottom = unicodedata.normalize("NFKC", match[0]).split("⁄")
    return rf"\frac{{{top}}}{{{bottom}}}"
