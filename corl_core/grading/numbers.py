"""Exact arithmetic on cleaned text: 1/2, 0.5, 3.74e+24, 2^{10}, 1\\frac{1}{2}, 5!, \\binom{5}{2} and what they make up.

Nothing is computed before its size is known (`bounded`): what is too large raises TooBig, whatever surrounds it, so
`2003^{2002^{2001}}` returns at once. Letters and functions are read, to find such a power inside a formula, but have no
value: a formula's value is None. An integer before a proper fraction is a mixed number.
"""

import re
from fractions import Fraction

from corl_core.grading import bounded
from corl_core.grading.bounded import TooBig

MAX_DEPTH = 40  # of nested brackets, signs and powers
MAX_POWERS = 3  # a power in a power in a power

_SCIENTIFIC = r"\d*\.\d+[eE][+-]?\d+|\d+[eE]\d+|\d+[eE][+-]\d\d+|1[eE][+-]\d"  # 2e+3 is 2·e + 3, but 2e+03 is 2000
_NUMBER = rf"{_SCIENTIFIC}|\d+\.?\d*|\.\d+"
_TOKEN = re.compile(rf"\s*({_NUMBER}|\\[A-Za-z]+|[A-Za-z]|[-+*/^_!(){{}}\[\]|])")
_REPEATING = re.compile(r"([+-]?)(\d*)\.(\d*)\\(?:overline|bar)\s*\{(\d+)\}")
_TIMES, _OVER = {"*", r"\cdot", r"\times"}, {"/", r"\div"}
_OPEN = {"(": ")", "{": "}", "[": "]", "|": "|"}


class NotArithmetic(Exception):
    """Text that these rules do not read."""


def value(text: str) -> Fraction | None:
    """The exact value; None when the text is no number. Raises TooBig, for a formula too."""
    if match := _REPEATING.fullmatch(text.replace(" ", "")):
        return _repeating(*match.groups()) if len(text) < 100 else None
    try:
        return _Reader(_tokens(text)).whole()
    except (NotArithmetic, ZeroDivisionError):
        return None


def spell(number: Fraction) -> str:
    """The canonical spelling: an integer, or a reduced fraction."""
    return str(number.numerator) if number.denominator == 1 else f"{number.numerator}/{number.denominator}"


def _repeating(sign: str, whole: str, start: str, cycle: str) -> Fraction:
    scale = 10 ** len(start)
    number = Fraction(int(whole + start or "0"), scale) + Fraction(int(cycle), scale * (10 ** len(cycle) - 1))
    return -number if sign == "-" else number


def _tokens(text: str) -> list[str]:
    tokens, position, text = [], 0, text.rstrip()
    while position < len(text):
        match = _TOKEN.match(text, position)
        if not match:
            raise NotArithmetic
        tokens.append(match[1])
        position = match.end()
    return tokens


class _Reader:
    """Recursive descent over tokens; each method returns the value of what it read, None for a formula."""

    def __init__(self, tokens: list[str]):
        self.tokens, self.position, self.depth, self.powers = tokens, 0, 0, 0

    def whole(self) -> Fraction | None:
        result = self.sum()
        if self.position < len(self.tokens):
            raise NotArithmetic
        return result

    def peek(self) -> str:
        return self.tokens[self.position] if self.position < len(self.tokens) else ""

    def take(self) -> str:
        self.position += 1
        return self.tokens[self.position - 1] if self.position <= len(self.tokens) else ""

    def sum(self) -> Fraction | None:
        total = self.product()
        while self.peek() in ("+", "-"):
            sign, term = self.take(), self.product()
            total = None if total is None or term is None else bounded.sized(total + term if sign == "+" else total - term)
        return total

    def product(self) -> Fraction | None:
        total = self.factor()
        while True:
            if self.peek() in _TIMES | _OVER:
                over, factor = self.take() in _OVER, self.factor()
            elif self._starts_factor():
                over, factor = False, self.factor()
            else:
                return total
            total = None if total is None or factor is None else bounded.sized(total / factor if over else total * factor)

    def _starts_factor(self) -> bool:
        token, before = self.peek(), self.tokens[self.position - 1]
        if token[:1].isdigit() or token[:1] == ".":
            if before[-1:].isdigit():
                raise NotArithmetic  # two numbers side by side
            return True
        return token[:1].isalpha() or token in ("(", "{") or token[:1] == "\\"

    def factor(self) -> Fraction | None:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            raise TooBig
        result = self._signed() if self.peek() in ("+", "-") else self._unsigned()
        self.depth -= 1
        return result

    def _signed(self) -> Fraction | None:
        sign, number = self.take(), self.factor()
        return number if number is None or sign == "+" else -number

    def _unsigned(self) -> Fraction | None:
        largest = bounded.MAX_SYMBOL_POWER if self.peek() == r"\pi" or self.peek().isalpha() else bounded.MAX_FORMULA_POWER
        base = self.atom()
        while self.peek() == "!":
            self.take()
            base = bounded.factorial(base)
        return self._raised(base, largest) if self.peek() == "^" else base

    def _raised(self, base: Fraction | None, largest: int) -> Fraction | None:
        self.take()
        self.powers += 1
        exponent = self.factor()
        if base is None and self.powers > MAX_POWERS:
            raise TooBig
        self.powers -= 1
        return bounded.power(base, exponent, largest)

    def atom(self) -> Fraction | None:
        token = self.take()
        if token in _OPEN:
            return self._inside(token)
        if token[:1].isdigit() or token[:1] == ".":
            return self._mixed(bounded.literal(token))
        if token in (r"\frac", r"\binom"):
            top, bottom = self._argument(), self._argument()
            if token == r"\binom":
                return bounded.binomial(top, bottom)
            return None if top is None or bottom is None else bounded.sized(top / bottom)
        if not (token[:1].isalpha() or token[:1] == "\\"):
            raise NotArithmetic
        if self.peek() == "_" or (token == r"\sqrt" and self.peek() == "["):
            self.position += self.peek() == "_"
            self.factor()
        return None

    def _mixed(self, number: Fraction) -> Fraction | None:
        """A number, with the proper fraction that follows an integer added; `52_8` is not arithmetic."""
        if self.peek() == "_":
            raise NotArithmetic
        if self.peek() != r"\frac" or number.denominator != 1:
            return number
        part = self.atom()
        if self.peek() == "^":
            raise NotArithmetic
        if part is None:
            return None
        return number + part if number and 0 < part < 1 else bounded.sized(number * part)

    def _argument(self) -> Fraction | None:
        if self.peek() != "{":
            raise NotArithmetic
        return self.atom()

    def _inside(self, opening: str) -> Fraction | None:
        result = self.sum()
        if self.take() != _OPEN[opening]:
            raise NotArithmetic
        return None if result is None or opening == "[" else abs(result) if opening == "|" else result
