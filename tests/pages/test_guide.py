"""The guide names what the picker and the theory show, and its example is the one worked out by hand here."""

import pytest

from corl_core.diversity.measures import MEASURES
from corl_core.diversity.pairs import pairs
from pages.components import guide


def test_it_explains_every_measure_the_predictions_the_planes_and_the_replay(app, empty_store, said):
    at = app(empty_store, "guide")
    words = said(at)
    assert not at.exception
    for measure in MEASURES.values():
        assert measure.label in words and len(measure.doc) > 20
    terms = "vote pseudo-label ring interval rights misleads separatrix basins calibration pooled"
    for term in terms.split():
        assert f"*{term}" in words or f" {term}" in words.lower(), term


def test_the_example_is_right():
    """A is right on questions 1 to 4, B on 1, 2 and 5; on 6 both say 4."""
    (pair,) = pairs(guide.answers())
    by_hand = {
        "exactly_one_right": 3 / 6, "same_wrong": 1 / 6, "union": 5 / 6, "both_wrong": 1 / 6, "agreement": 3 / 6,
        "jaccard": 1 / 4,  # errors {5, 6} and {3, 4, 6}
        "kappa": 0.0,  # alike on 3 of 6; by chance 4/6 · 3/6 + 2/6 · 3/6 = 1/2
        "excess_overlap": 1 / 6 - 2 / 6 * 3 / 6,
        "b_wrong_if_a_wrong": 1 / 2, "a_wrong_if_b_wrong": 1 / 3,
    }  # fmt: skip
    assert {name: pair[name] for name in MEASURES} == pytest.approx(by_hand)


@pytest.mark.parametrize("page", ["picker", "theory"])
def test_both_pages_lead_to_it(page, app, empty_store):
    links = [link.page for link in app(empty_store, page).get("page_link")]
    assert any("guide" in target for target in links), links
