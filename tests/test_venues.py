"""Sizes and type for the venues, LaTeX tables, and names made fit for a file's own language."""

import re

import numpy as np
import pytest

from corl_core.figures import palette, text
from corl_core.figures.errors import FigureError
from corl_core.figures.export import export
from corl_core.figures.latex import Column, Value, table_tex
from corl_core.figures.spec import Figure, Series
from corl_core.figures.venues import VENUES, look, with_height


def line(y, label="llama & co", **more) -> Series:
    return Series(label, np.arange(len(y)), np.array(y, float), palette.style(0), **more)


def figure(*series: Series, **more) -> Figure:
    return Figure("agreement", "Agreement", "Step", "Agreement", series or (line([0.1, 0.4, 0.3]),), **more)


@pytest.mark.parametrize("venue", VENUES)
@pytest.mark.parametrize("span", ["column", "text"])
def test_a_pdf_page_is_as_wide_as_the_venues_column(venue, span):
    given = look(venue, span)
    width, height = map(float, re.search(rb"/MediaBox \[ ?0 0 ([\d.]+) ([\d.]+)", export(figure(), "pdf", given)).groups())
    assert width / 72 == pytest.approx(given.width, abs=0.005)
    assert height > 72  # and not a strip


def test_the_widths_are_those_of_the_styles():
    # ACL: A4 is 21 cm, margins 2.5 cm: 16 cm = 6.299 in; (16 - 0.6) / 2 = 7.7 cm = 3.031 in. IEEE: 252 pt / 72.27 = 3.487 in
    assert look("icml", "column").width == 3.25 and look("icml", "text").width == 6.75
    assert look("neurips").width == look("iclr").width == 5.5
    assert look("acl", "text").width == pytest.approx(6.299, abs=0.001)
    assert look("acl", "column").width == pytest.approx(3.031, abs=0.001)
    assert look("cvpr", "column").width == pytest.approx((6.875 - 0.3125) / 2)
    assert look("ieee", "column").width == pytest.approx(3.487, abs=0.001)
    assert look("neurips", "half").width == pytest.approx(0.49 * 5.5)


def test_type_is_one_and_two_points_under_the_captions_and_never_under_six():
    assert (look("icml").text_pt, look("icml").small_pt) == (8, 7)
    assert (look("ieee").text_pt, look("ieee").small_pt) == (7, 6)
    assert look("neurips", "third").small_pt == 6


def test_a_long_legend_makes_the_file_higher_and_not_the_axes_smaller():
    # a line of 7 pt type is 1.45 × 7 / 72 in = 0.141 in high
    given = look("icml")
    assert with_height(given, 5).height - with_height(given, 2).height == pytest.approx(3 * 1.45 * 7 / 72)
    assert with_height(look("icml", height=2.0), 5).height == 2.0


@pytest.mark.parametrize(
    ("field", "value", "rule"),
    [
        ("venue", "nature", "choose one of neurips"),
        ("span", "page", "choose one of column"),
        ("font", "comic", "sans, serif"),
        ("width", 0.5, "1 to 20 inches"),
        ("height", 40, "1 to 20 inches"),
        ("dpi", 10_000, "50 to 1200"),
    ],
)
def test_a_size_that_cannot_be_names_the_field_and_the_rule(field, value, rule):
    with pytest.raises(FigureError, match=rule) as raised:
        look(**{field: value})
    assert str(raised.value).startswith(field)


def test_too_many_pixels_are_refused_before_they_are_drawn():
    with pytest.raises(FigureError, match="24,000 pixels"):
        look(width=20, dpi=1200)


def test_a_latex_table_has_plus_minus_and_the_best_in_bold():
    values = (Value(0.912, 0.01), Value(0.9124), Value(0.5, 0.2), None)
    tex = table_tex(["a_b", "50%", "$x$", "none"], ["3", "1", "2", "0"], [Column("Acc & co", values, "highest")]).decode()
    assert r"a\_b & 3 & \textbf{0.912 $\pm$ 0.010} \\" in tex
    assert r"50\% & 1 & \textbf{0.912} \\" in tex  # equal as printed
    assert r"\$x\$ & 2 & 0.500 $\pm$ 0.200 \\" in tex and r"none & 0 &  \\" in tex
    assert r"Acc \& co" in tex and r"\toprule" in tex


@pytest.mark.parametrize("best", [None, "lowest"])
def test_bold_goes_to_the_end_that_is_better_or_to_none(best):
    tex = table_tex(["a", "b"], ["1", "1"], [Column("x", (Value(1.0), Value(2.0)), best)]).decode()
    assert tex.count(r"\textbf") == (best is not None) and (r"\textbf{1.000}" in tex) == (best is not None)


def test_one_row_alone_is_not_the_best():
    assert b"textbf" not in table_tex(["a"], ["1"], [Column("x", (Value(1.0),), "highest")])


def test_the_table_under_a_figure_says_where_each_line_ends():
    mean = line([0.2, 0.5], "demo (N=2–3)", low=np.array([0.1, 0.4]), high=np.array([0.3, 0.6]), count=np.array([3, 2]))
    tex = export(figure(mean, line([0.4, np.nan], "b"), higher_is_better=True), "tex").decode()
    assert r"demo & 2 & 1 & \textbf{0.500 $\pm$ 0.100} \\" in tex and r"b & 1 & 0 & 0.400 \\" in tex


@pytest.mark.parametrize(
    ("given", "name"),
    [("../../etc/passwd", "etc-passwd"), ("a b<c>", "a-b-c"), ("...", "unnamed"), ("é=1", "1"), ("x" * 200, "x" * 80)],
)
def test_a_file_name_holds_safe_letters_only(given, name):
    assert text.for_file_name(given) == name
