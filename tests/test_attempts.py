"""One line out of a resumed run's attempts."""

import numpy as np
import pytest

from corl_core.tracking.attempts import last_attempt
from corl_core.tracking.reader_rows import Written, table, written


@pytest.mark.parametrize(
    ("steps", "places", "attempts"),
    [
        ([0, 1, 2, 3, 2, 3, 4], [0, 1, 4, 5, 6], [0, 0, 1, 1, 1]),
        ([0, 1, 2, 3, 1], [0, 4], [0, 1]),  # resumed at 1, and no further yet: what was beyond is cut
        ([0, 1, 2, 3, 2, 3, 1, 2], [0, 6, 7], [0, 2, 2]),  # resumed twice
        ([5, 5], [1], [1]),  # one step written again
        ([0, 10, 20], [0, 1, 2], [0, 0, 0]),
        ([3], [0], [0]),
        ([], [], []),
    ],
)
def test_the_later_attempt_wins_and_the_overlap_is_cut(steps, places, attempts):
    kept, attempt = last_attempt(np.array(steps, dtype=np.int64))
    assert kept.tolist() == places and attempt.tolist() == attempts
    assert (np.diff(np.array(steps)[kept]) > 0).all()


def test_a_table_holds_the_last_attempt_of_each_line_in_order():
    once = Written(np.array([0, 1]), np.array([0.5, 0.6]), np.array([1.0, 2.0]))
    again = Written(np.array([0, 1, 1]), np.array([0.1, 0.2, 0.3]), np.array([1.0, 2.0, 9.0]))
    frame = table([(("r", "b", "reward"), again), (("r", "a", "reward"), once)])
    assert frame.agent.tolist() == ["a", "a", "b", "b"]
    assert frame.value.tolist() == [0.5, 0.6, 0.1, 0.3] and frame.attempt.tolist() == [0, 0, 0, 1]


def test_what_mlflow_stores_for_infinity_and_nan_is_what_was_logged():
    largest = 1.7976931348623157e308
    found = written([0, 1, 2, 3], [largest, -largest, 0.0, 0.5], [False, False, True, False], [0] * 4)
    assert found.values[:2].tolist() == [np.inf, -np.inf] and np.isnan(found.values[2]) and found.values[3] == 0.5


def test_an_empty_table_has_its_columns():
    frame = table([])
    assert frame.empty and frame.columns.tolist() == ["run_id", "agent", "metric", "step", "value", "time", "attempt"]
    assert frame.step.dtype == "int64"
