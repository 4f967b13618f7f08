"""Votes between agents: delivered, checked, and never waited for in vain."""

import threading
import time

import pytest

from corl_core.training.exchange import ABORT, CohortError, Exchange, RunStopped, digest, host_store


@pytest.fixture
def store():
    return host_store()


def ends(store, timeout_s=20.0, **options):
    return (
        Exchange("a", "b", store.port, timeout_s, **options),
        Exchange("b", "a", store.port, timeout_s, **options),
    )


def together(*calls):
    results = [None] * len(calls)

    def run(index, call):
        try:
            results[index] = call()
        except CohortError as error:
            results[index] = error

    threads = [threading.Thread(target=run, args=item) for item in enumerate(calls)]
    [thread.start() for thread in threads]
    [thread.join(30) for thread in threads]
    return results


def test_each_end_receives_what_the_other_sent(store):
    a, b = ends(store)
    questions = ["q1", "q2", "q3"]
    got = together(lambda: a.swap(0, questions, ["85", None, "½ é"]), lambda: b.swap(0, questions, ["75", "2", None]))
    assert got == [["75", "2", None], ["85", None, "½ é"]]


def test_different_questions_are_an_error_that_names_both_agents_and_the_round(store):
    a, b = ends(store)
    errors = together(lambda: a.swap(7, ["q1", "q2"], ["1", "2"]), lambda: b.swap(7, ["q2", "q1"], ["1", "2"]))
    for error, me, peer in zip(errors, "ab", "ba", strict=True):
        assert isinstance(error, CohortError)
        assert str(error).startswith(f"round 7: agent '{me}' and its peer '{peer}' drew different questions")


def test_the_digest_depends_on_order_and_on_where_ids_end():
    assert len({digest(["a", "b"]), digest(["b", "a"]), digest(["ab"]), digest(["a"])}) == 4


def test_a_peer_that_is_too_late_is_named_with_the_round(store):
    a, _ = ends(store, timeout_s=1.0)
    start = time.monotonic()
    with pytest.raises(CohortError, match="round 3: agent 'a' had no votes from its peer 'b' within 1 s"):
        a.swap(3, ["q"], ["1"])
    assert time.monotonic() - start < 5


def test_a_slow_peer_within_the_limit_is_waited_for(store):
    a, b = ends(store)

    def late():
        time.sleep(1.2)  # longer than one look
        return b.swap(0, ["q"], ["2"])

    assert together(lambda: a.swap(0, ["q"], ["1"]), late) == [["2"], ["1"]]


def test_an_aborted_run_ends_the_wait_with_the_reason(store):
    a, _ = ends(store)
    store.set(ABORT, "the run was aborted: agent 'b' was killed by SIGKILL in round 4")
    with pytest.raises(CohortError, match=r"round 4: .*agent 'b' was killed by SIGKILL"):
        a.swap(4, ["q"], ["1"])


def test_a_stop_ends_the_wait_for_a_peer_that_is_not_ready_or_has_left(store):
    a, b = ends(store, stopping=lambda: True)
    with pytest.raises(RunStopped):
        a.ready()
    b.leave()
    with pytest.raises(RunStopped):
        a.swap(0, ["q"], ["1"])


def test_a_ring_agrees_on_one_step_to_stop_at_wherever_the_wish_began(store):
    """Three agents, a's peer is c, b's is a, c's is b; only b is asked to stop, in round 5. It names step 5 + 3; c hears of it in
    round 5, a in round 6: before step 8 everybody knows."""
    asked = {"b": False}
    ring = {name: Exchange(name, peer, store.port, 5.0, lambda name=name: asked.get(name, False), notice=3)
            for name, peer in (("a", "c"), ("b", "a"), ("c", "b"))}  # fmt: skip

    def round_of_all(number: int) -> dict[str, int | None]:
        together(*(lambda end=end: end.swap(number, ["q"], ["1"]) for end in ring.values()))
        return {name: end.stop_step for name, end in ring.items()}

    assert round_of_all(4) == {"a": None, "b": None, "c": None}
    asked["b"] = True
    assert round_of_all(5) == {"a": None, "b": 8, "c": 8}
    asked["a"] = True  # a later wish, or one of another agent, moves nothing
    assert round_of_all(6) == {"a": 8, "b": 8, "c": 8}


def test_old_rounds_can_be_read_again(store):
    a, b = ends(store)
    together(lambda: a.swap(0, ["q"], ["1"]), lambda: b.swap(0, ["q"], ["2"]))
    assert a.swap(0, ["q"], ["1"]) == ["2"]
