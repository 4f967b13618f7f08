"""Arithmetic whose every size is known before it is computed: beyond MAX_BITS it raises TooBig.

A value of None is that of a formula, which only has a form; its powers are bounded too, for they would be expanded.
"""

import math
from fractions import Fraction

MAX_BITS = 4_096  # of a numerator or a denominator: 1,233 digits
MAX_FACTORIAL = 400
MAX_SYMBOL_POWER, MAX_FORMULA_POWER = 1_000, 30  # x^{999} stands; (x+y)^{31} would be expanded


class TooBig(Exception):
    """A number that nobody should write out."""


def literal(token: str) -> Fraction:
    mantissa, _, exponent = token.lower().partition("e")
    if len(mantissa) > MAX_BITS // 4 or len(exponent) > 5 or abs(int(exponent or "0")) > MAX_BITS // 4:
        raise TooBig
    return Fraction(token)


def sized(number: Fraction) -> Fraction:
    if max(number.numerator.bit_length(), number.denominator.bit_length()) > MAX_BITS:
        raise TooBig
    return number


def power(base: Fraction | None, exponent: Fraction | None, largest: int) -> Fraction | None:
    if base is None or exponent is None:
        return None if exponent is None or abs(exponent) <= largest else _too_big()
    bits = max(base.numerator.bit_length(), base.denominator.bit_length())
    if (bits - 1) * abs(exponent) > MAX_BITS:  # the least size that the power can have
        raise TooBig
    return sized(base ** int(exponent)) if exponent.denominator == 1 else None


def factorial(number: Fraction | None) -> Fraction | None:
    if number is None or number.denominator != 1 or number < 0:
        return None
    return Fraction(math.factorial(int(number))) if number <= MAX_FACTORIAL else _too_big()


def binomial(n: Fraction | None, k: Fraction | None) -> Fraction | None:
    if n is None or k is None or n.denominator != 1 or k.denominator != 1 or min(n, k) < 0:
        return None
    return sized(Fraction(math.comb(int(n), int(k)))) if n <= MAX_BITS else _too_big()


def _too_big() -> Fraction:
    raise TooBig
