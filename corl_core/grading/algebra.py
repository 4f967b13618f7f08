"""A formula's canonical spelling, by math-verify's parser and sympy. Only a worker imports this.

Constants are written as sums of roots and powers of pi and e with exact coefficients; where that form is not unique
(logarithms, angles, nested roots), by their first DIGITS digits and "…". Expressions are expanded fractions of
polynomials, with tan, cot, sec and csc as sin and cos, and sin^2 as 1-cos^2. An equation is a polynomial without common
factor that is zero; linear in one unknown, it is its solution. Symbols are real; i is the imaginary unit, e Euler's number.
"""

from fractions import Fraction

import sympy
from latex2sympy2_extended.latex2sympy2 import ConversionConfig
from math_verify.parser import NormalizationConfig, latex2sympy, normalize_latex
from sympy.core.relational import Relational
from sympy.functions.elementary.trigonometric import TrigonometricFunction
from sympy.printing.str import StrPrinter
from sympy.simplify.fu import TR1, TR2

DIGITS = 40
MAX_MULTIPLE = 12
_NUMBERS = (sympy.pi, sympy.E, sympy.I)
_CLEANING = NormalizationConfig(
    basic_latex=True, units=False, malformed_operators=True, nits=False, boxed="", equations=False
)  # fmt: skip
_CASE = ConversionConfig(lowercase_symbols=False)


class _Printer(StrPrinter):
    """sympy's plain text, in the words that answers use: e, i and ln."""

    def _print_Exp1(self, expr: sympy.Expr) -> str:
        return "e"

    def _print_ImaginaryUnit(self, expr: sympy.Expr) -> str:
        return "i"

    def _print_log(self, expr: sympy.Expr) -> str:
        return f"ln({self._print(expr.args[0])})"


def canonical(latex: str) -> str | None:
    """The canonical spelling, itself an answer with that key; None when the parser cannot read it."""
    try:
        parsed = latex2sympy(normalize_latex(latex, _CLEANING), is_real=True, normalization_config=None, conversion_config=_CASE)
    except Exception:  # the parser raises many types on text that is no formula
        return None
    sides = parsed.args if isinstance(parsed, Relational) else (parsed,)
    if not all(isinstance(side, sympy.Expr) for side in sides):
        return None
    sides = [_exact(side) for side in sides]
    if any(side.has(sympy.zoo, sympy.nan, sympy.AccumBounds) for side in sides):
        return None
    if isinstance(parsed, sympy.Eq):
        return _equation(*sides)
    return parsed.rel_op.join(map(_normal, sides)) if isinstance(parsed, Relational) else _normal(sides[0])


def _exact(expression: sympy.Expr) -> sympy.Expr:
    """Evaluated, without floats, and with i as the imaginary unit."""
    symbols = {symbol: sympy.I for symbol in expression.free_symbols if symbol.name == "i"}
    expression = expression.subs(symbols).doit()
    return sympy.nsimplify(expression, rational=True) if expression.has(sympy.Float) else expression


def _equation(left: sympy.Expr, right: sympy.Expr) -> str:
    zero = sympy.fraction(_reduced(left - right))[0]
    unknowns = sorted(zero.free_symbols, key=str)
    if not unknowns or not zero.is_polynomial(*unknowns):
        return _spell(zero) + "=0"
    polynomial = sympy.Poly(zero, *unknowns)
    if len(unknowns) == 1 and polynomial.degree() == 1:
        return _normal(-polynomial.nth(0) / polynomial.nth(1))
    polynomial = polynomial.primitive()[1] if polynomial.domain.is_ZZ or polynomial.domain.is_QQ else polynomial.monic()
    return _spell((-polynomial if polynomial.LC().is_negative else polynomial).as_expr()) + "=0"


def _normal(expression: sympy.Expr) -> str:
    if expression.free_symbols:
        return _spell(_reduced(expression))
    expression = sympy.sqrtdenest(sympy.expand(expression, complex=True) if expression.has(sympy.I) else sympy.expand(expression))
    expression = sympy.expand(sympy.radsimp(expression))
    return _spell(expression) if _is_unique(expression) or not expression.is_real else _digits(expression)


def _reduced(expression: sympy.Expr) -> sympy.Expr:
    """One fraction of expanded polynomials, in lowest terms."""
    if expression.has(TrigonometricFunction):
        expression = TR2(TR1(expression)).replace(_is_small_multiple, sympy.expand_trig)
        expression = sympy.expand(expression).replace(_is_sine_power, _without_square)
    return sympy.cancel(sympy.together(sympy.expand(expression)))


def _is_small_multiple(part: sympy.Basic) -> bool:
    """An angle such as 2*x+y, whose sine is a short polynomial in the sines and cosines of x and y."""
    return isinstance(part, TrigonometricFunction) and all(abs(number) <= MAX_MULTIPLE for number in part.atoms(sympy.Integer))


def _is_sine_power(part: sympy.Basic) -> bool:
    return part.is_Pow and isinstance(part.base, sympy.sin) and part.exp.is_Integer and part.exp > 1


def _without_square(power: sympy.Pow) -> sympy.Expr:
    return (1 - sympy.cos(power.base.args[0]) ** 2) ** (power.exp // 2) * power.base ** (power.exp % 2)


def _is_unique(constant: sympy.Expr) -> bool:
    """Whether equal constants of this form are written equally: sums of rational multiples of roots, pi^k and e^q."""
    parts = list(sympy.preorder_traversal(constant))
    roots = [part for part in parts if part.is_Pow and part.exp.is_Rational and not part.exp.is_Integer]
    square = all(part.exp.q == 2 for part in roots)
    single = len({part.base for part in roots}) == 1 and roots[0].base.is_prime
    return (square or single) and all(_is_plain(part) for part in parts)


def _is_plain(part: sympy.Basic) -> bool:
    if part.is_Pow:
        return part.exp.is_Rational and ((part.base.is_Integer and part.base > 0) or part.base in _NUMBERS)
    return part.is_Add or part.is_Mul or part.is_Rational or part in _NUMBERS or _is_e_power(part)


def _is_e_power(part: sympy.Basic) -> bool:
    return isinstance(part, sympy.exp) and part.args[0].is_Rational


def _digits(constant: sympy.Expr) -> str:
    """The number as a fraction where it is one as far as can be seen, else its leading digits."""
    seen = Fraction(str(sympy.N(constant, DIGITS + 20)))
    near = seen.limit_denominator(10**6)
    if abs(seen - near) < Fraction(1, 10 ** (DIGITS + 5)):
        return _spell(sympy.Rational(near.numerator, near.denominator))
    return f"{sympy.N(constant, DIGITS)}…"


def _spell(expression: sympy.Expr) -> str:
    return _Printer().doprint(expression).replace("**", "^").replace(" ", "")
