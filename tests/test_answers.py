"""From completion to answer to canonical key."""

import pytest

from corl_core.answers import Reading, answer, parse, read, read_answer, same


@pytest.mark.parametrize(
    ("completion", "key"),
    [
        ("7+8=15;4+3+1=8;\\boxed{85}", "85"),
        ("First \\boxed{3}. Wait: \\boxed{5}", "5"),
        ("Therefore boxed{7}.", "7"),
        ("\\boxed{\\boxed{8}}", "8"),
        ("\\boxed{\\frac{1}{2}}", "1/2"),
        ("\\boxed{12\\,\\text{cm}}", "12"),
        ("\\boxed{a+b}", "a+b"),
        ("\\boxed{\\{1, 2\\}}", "{1,2}"),
        ("\\boxed{\\begin{pmatrix} 1 \\\\ 2 \\end{pmatrix}}", "[[1],[2]]"),
    ],
)
def test_the_last_box_is_the_answer(completion, key):
    assert parse(completion).key == key


@pytest.mark.parametrize(
    ("completion", "outcome"),
    [
        ("It is 12, surely", "no_box"),
        ("3 cases and then 17 more", "no_box"),
        ("put your final answer in boxed form. It is 7.", "no_box"),
        ("", "no_box"),
        ("\\boxed{", "unclosed"),
        ("\\boxed{12", "unclosed"),
        ("\\boxed{3} and then \\boxed{12", "unclosed"),
        ("\\boxed{\\frac{1}{2}", "unclosed"),
        ("\\boxed{}", "empty"),
        ("\\boxed{  }", "empty"),
        ("\\boxed{\\text{}}", "empty"),
        ("Put it in \\boxed{}. My answer: 7", "empty"),
    ],
)
def test_without_an_answer_it_says_why(completion, outcome):
    assert read(completion) == Reading(None, outcome)
    assert parse(completion) is None


SAME = {
    "integers": ["1,000", "1000", "1{,}000", "1,\\!000", "1000.0", "+1000", " 1 000 ", "10^3", "1e3", "１０００"],
    "decimals and fractions": ["0.5", ".5", "\\frac12", "\\dfrac{1}{2}", "2/4", "0.50", "½", "\\frac{-1}{-2}"],
    "negative numbers": ["-3", "−3", "-3.0", "-6/2", "-\\frac{6}{2}", "\\frac{-6}{2}"],
    "large numbers": ["3.74 \\times 10^{24}", "3.74e+24", "3.74\\cdot10^{24}", "3.74 x 10^24"],
    "repeating decimals": ["0.\\overline{3}", "\\frac{1}{3}", "0.\\bar{3}"],
    "mixed numbers": ["1\\frac{4}{5}", "1 4/5", "9/5", "1.8"],
    "negative mixed numbers": ["-1\\frac12", "-1.5", "-\\frac{3}{2}"],
    "powers and factorials": ["2^{10}", "1024", "2^10", "2**10", "2 \\cdot 512", "\\binom{1024}{1}"],
    "degrees": ["90^\\circ", "90°", "90", "90^{\\circ}", "90\\text{ degrees}"],
    "currency": ["\\$18", "$18", "18", "$18.00", "18 dollars", "€18"],
    "percent": ["50\\%", "50", "50%", "50 percent", "50\\text{ percent}"],
    "units": ["12\\,\\text{cm}", "12 cm", "12cm", "12", "12 \\mbox{ inches}^2", "12 apples", "12\\ \\mathrm{m}/\\mathrm{s}^2"],
    "units of words": ["5 \\text{ miles per hour}", "5 miles per hour", "5"],
    "millions": ["5 million", "5{,}000{,}000", "\\$5 \\text{ million}", "5\\times10^6"],
    "choices": ["C", "(C)", "\\text{C}", "C. 12", "\\textbf{(C)}", "\\textbf{(C)}\\ 12", "C)", "$C$", "**C**", "Option C"],
    "roots": ["\\sqrt{18}", "3\\sqrt{2}", "3\\sqrt2", "3*sqrt(2)", "3√2", "\\frac{6}{\\sqrt{2}}", "18^{1/2}", "18^(0.5)"],
    "nested roots": ["\\sqrt{3+2\\sqrt{2}}", "1+\\sqrt{2}", "\\frac{1}{\\sqrt{2}-1}"],
    "multiples of pi": ["\\frac{\\pi}{2}", "pi/2", "\\pi/2", "0.5\\pi", "π/2", "\\tfrac\\pi2"],
    "logarithms": ["\\log_2 8", "3", "\\frac{\\ln 27}{\\ln 3}", "\\log 1000"],
    "angles": ["\\cos\\frac{\\pi}{6}", "\\frac{\\sqrt{3}}{2}", "\\sin(\\pi/3)"],
    "complex numbers": ["6-5i", "-5i+6", "6 - 5i"],
    "sums": ["a+b", "b+a", " a + b "],
    "products": ["(a+5)(b+2)", "ab+2a+5b+10", "(b+2)(5+a)"],
    "quotients": ["\\frac{x^2-1}{x-1}", "x+1", "1+x"],
    "powers of x": ["x^2", "x**2", "x²", "x\\cdot x", "\\frac{x^3}{x}"],
    "trigonometric functions": ["\\tan x", "\\frac{\\sin x}{\\cos x}", "tan(x)"],
    "sine and cosine squared": ["\\sin^2 x+\\cos^2 x", "1"],
    "one unknown": ["x=5", "5", "x = 5.0", "2x=10", "x-5=0", "k=5", "P(A)=5", "2+3=5", "x=2+3=5"],
    "functions": ["f(x)=x^2", "x^2", "f(x) = x\\cdot x"],
    "lines": ["3x-y+13=0", "y=3x+13", "6x-2y+26=0", "y-3x = 13"],
    "intervals": ["(3,4]", "\\left(3,4\\right]", "3<x\\le 4", "x \\in (3, 4]", "3 < x <= 4"],
    "half lines": ["(5,\\infty)", "x>5", "5<x", "x\\in(5,+\\infty)"],
    "unions": ["(-\\infty,2)\\cup(3,\\infty)", "(3,\\infty) \\cup (-\\infty,2)", "x<2 or x>3"],
    "tuples": ["(1,2)", "( 1, 2 )", "\\left(1,\\frac{4}{2}\\right)", "(x,y)=(1,2)"],
    "sets": ["\\{1,2\\}", "\\left\\{2,1\\right\\}", "1, 2", "2 and 1", "1 \\text{ or } 2", "x=1 or x=2", "\\{1,2,2\\}"],
    "both signs": ["1 \\pm \\sqrt{19}", "1+\\sqrt{19}, 1-\\sqrt{19}", "\\{1\\pm\\sqrt{19}\\}"],
    "two unknowns": ["x=1,y=2", "y=2, x=1", "x=1 and y=2"],
    "matrices": ["\\begin{pmatrix}1\\\\2\\end{pmatrix}", "\\begin{bmatrix} 1 \\\\ \\frac{4}{2} \\end{bmatrix}"],
    "words": ["\\text{Even}", "even", "\\textbf{even}", "Even."],
    "no solution": ["\\emptyset", "\\varnothing", "\\{\\}", "∅"],
    "the reals": ["\\mathbb{R}", "(-\\infty,\\infty)", "x\\in\\mathbb{R}"],
    "bases": ["52_8", "52_{8}"],
    "wrapped": ["7", "$7$", "\\(7\\)", "\\[7\\]", "\\boxed{7}", "The answer is 7.", "(7)"],
}


@pytest.mark.parametrize("spellings", SAME.values(), ids=SAME)
def test_spellings_of_one_answer_have_one_key(spellings):
    assert len({answer(text).key for text in spellings}) == 1
    assert all(read_answer(text).outcome == "parsed" for text in spellings)


@pytest.mark.parametrize("spellings", SAME.values(), ids=SAME)
def test_a_key_is_an_answer_with_that_key_and_so_is_what_people_see(spellings):
    for text in spellings:
        assert same(answer(text).key, text)
        assert same(answer(text).shown, text)


DIFFERENT = {
    "numbers": ["1", "-1", "1/3", "0.3333", "10", "1/0", "2/0", "0"],
    "irrational numbers": ["\\pi", "3.14", "22/7", "3.14159265358979", "\\sqrt{2}", "1.41421356", "4\\sqrt{2}", "4"],
    "formulas": ["a+b", "+b", "a-b", "ab", "x+1", "x-1", "3R^2", "3r^2", "1-\\frac{1}{e}", "1+\\frac{1}{e}", "a'", "\\sqrt{x^2}"],
    "choices": ["C", "D", "c"],
    "order": ["(1,2)", "(2,1)", "[1,2]", "(1,2]", "\\{1,2\\}", "12", "1.2"],
    "intervals": ["(0,1)", "[0,1)", "(0,1]", "[0,1]"],
    "bases": ["52_8", "52", "42", "52_9", "1011_2", "1011", "11"],
    "equations": ["3x-y+13=0", "3x+4y+14=0", "y=2x+3", "y=2x", "z=2x+3", "2x+3", "x^2=4", "x^2=9"],
    "unknowns": ["x=1,y=2", "x=2,y=1"],
    "lists": ["1,2", "1,2,2", "1,2,3", "1 and 3", "13"],
    "times": ["10:30", "10:31", "1030", "10:30 a.m.", "10:30 p.m."],
    "amounts": ["3 hours and 20 minutes", "20 hours and 3 minutes", "5 million", "5"],
    "imaginary or not": ["2j", "2i", "2", "j"],
    "words": ["even", "odd", "Evelyn", "twelve", "12", "no"],
    "inequalities": ["x>2", "x<2", "x\\ge 2", "2"],
    "huge numbers": ["10^{2000}", "10^{2001}", "2003^{2002^{2001}}", "2003^{2002^{2002}}"],
    "sums": ["\\sum_{k=1}^{10} k", "\\sum_{k=1}^{11} k"],
    "matrices": [
        "\\begin{pmatrix}1\\\\2\\end{pmatrix}",
        "\\begin{pmatrix}1&2\\end{pmatrix}",
        "\\begin{pmatrix}2\\\\1\\end{pmatrix}",
    ],
}


@pytest.mark.parametrize("texts", DIFFERENT.values(), ids=DIFFERENT)
def test_different_answers_keep_different_keys(texts):
    assert len({answer(text).key for text in texts}) == len(texts)


@pytest.mark.parametrize("text", ["", "  ", "$", "\\text{}", "{}", ".", "\\$"])
def test_an_answer_that_says_nothing_is_none_and_equals_nothing(text):
    assert answer(text) is None
    assert not same(text, text) and not same(text, "") and not same("0", text)


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("\\frac{1}{2}", "0.5"),
        ("0.50", "0.5"),
        ("\\dfrac{14}{3}", "\\frac{14}{3}"),
        ("-\\frac{14}{3}", "-\\frac{14}{3}"),
        ("1,000", "1000"),
        ("\\left( 3, \\frac{\\pi}{2} \\right)", "(3,\\frac{\\pi}{2})"),
        ("2a + 3b", "2a+3b"),
        ("12\\,\\text{cm}", "12"),
        ("12\\pi\\text{ cm}", "12\\pi"),
        ("(C) 12", "C"),
        ("\\text{Navin}", "Navin"),
        ("two apples", "two apples"),
    ],
)
def test_an_answer_is_shown_in_plain_latex(text, shown):
    assert answer(text).shown == shown


WORDS = {  # letters that are words and units, not variables
    "two amounts": ["3 ft 4 in", "4 ft 3 in", "3 ft", "12"],
    "glued amounts": ["2h30m", "30h2m", "2h30min", "60hm"],
    "hours and minutes": ["2 h 3 m", "3 h 2 m", "6hm"],
    "days and hours": ["2 d 5 h", "5 d 2 h", "2 h 5 d"],
    "kilograms and grams": ["5 kg 3 g", "3 kg 5 g"],
    "amounts with commas": ["3 ft, 4 in", "4 ft, 3 in", "3, 4"],
    "amounts with and": ["3 ft and 4 in", "4 ft and 3 in"],
    "amounts in LaTeX": ["3\\text{ ft }4\\text{ in}", "4\\text{ ft }3\\text{ in}"],
    "remainders": ["17 R 2", "2 R 17", "34R", "17 R 3"],
    "states": ["LA", "AL", "la", "MA", "AM", "CO", "OC"],
    "truth of two": ["ON", "NO"],
    "codes": ["8C3", "3C8", "24C", "C24"],
    "sentences": ["it is 5 km", "is it 5 km", "5"],
    "words before a number": ["at 5", "at 6", "to 5"],
    "congruences": ["5 \\pmod 7", "7 \\pmod 5", "5", "5 \\pm 7"],
    "relations of congruence": ["3 \\equiv 1 \\pmod 2", "1 \\equiv 3 \\pmod 2", "x \\equiv 3 \\pmod{2}", "3 \\bmod 2"],
    "ordinals": ["7th", "7", "8th", "7ht"],
    "explained": ["5 (five)", "5 (fief)", "5 (nine)"],
}


@pytest.mark.parametrize("texts", WORDS.values(), ids=WORDS)
def test_words_and_amounts_are_not_products_of_their_letters(texts):
    assert len({answer(text).key for text in texts}) == len(texts)
    assert all(same(answer(text).key, text) for text in texts)


@pytest.mark.parametrize(
    "spellings",
    [
        *([f"10 {unit}", "10", f"10\\text{{ {unit}}}"] for unit in ("L", "s", "m", "h", "kg", "km", "ft", "in", "min", "g")),
        ["\\frac{1}{2} h", "1/2 h", "0.5"], ["5 m^2", "5 cm^2", "5"], ["5 sq ft", "5"],
        ["3  ft 4   in", "3 ft 4 in", "3ft 4in"], ["17 R 2", "17R2", "17 r 2"], ["LA", "\\text{LA}", "(LA)"],
        ["5 \\pmod 7", "5 \\pmod{7}", "5\\pmod7"], ["xy", "yx"], ["2ab", "2ba", "2 a b"], ["2x", "x*2", "2 x"],
        ["3 cm, 5 cm", "5 cm, 3 cm"], ["1 \\pm 2", "3, -1"],
        ["\\color{red}{5}", "\\textcolor{red}{5}", "{\\color{red} 5}", "\\color{red}5", "5"],
        ["\\textcolor{blue}{\\frac{1}{2}}", "0.5"],
        *([f"{mark}5", f"5{mark}", "5"] for mark in "\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069"),
    ],
    ids=lambda spellings: ascii(spellings[0]),
)  # fmt: skip
def test_units_colors_and_marks_change_no_answer(spellings):
    assert len({answer(text).key for text in spellings}) == 1


@pytest.mark.parametrize(
    ("text", "key"), [("3m", "3*m"), ("2x", "2*x"), ("34R", "34*R"), ("2\\pi r", "2*pi*r"), ("7th", "7th"), ("17 R 2", "17 r 2")]
)
def test_what_is_a_formula_and_what_is_text(text, key):
    assert answer(text).key == key


@pytest.mark.parametrize(
    ("completion", "key"),
    [("\\boxed 7", "7"), ("\\boxed7", "7"), ("so $\\boxed 7$.", "7"), ("\\boxed -3", "-3"), ("\\boxed x", "x"),
     ("\\boxed{\\boxed 7}", "7"), ("\\boxed{1} in \\boxed format", "1"), ("\\boxed\u200e{5}", "5")],
)  # fmt: skip
def test_a_box_may_have_no_braces(completion, key):
    assert parse(completion).key == key
