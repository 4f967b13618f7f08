"""The ring: each agent's peer is the one before it."""

import pytest

from corl_core.ring import check, peers


def test_two_agents_reward_each_other():
    assert peers(["a", "b"]) == {"a": "b", "b": "a"}


def test_three_agents_each_hear_their_predecessor():
    assert peers(["a", "b", "c"]) == {"a": "c", "b": "a", "c": "b"}


def test_a_ring_of_one_is_its_own_peer():
    assert peers(["a"]) == {"a": "a"}


@pytest.mark.parametrize("size", range(2, 9))
def test_a_ring_has_no_fixed_point_and_is_one_cycle(size):
    names = [f"agent{i}" for i in range(size)]
    heard, seen, here = peers(names), [], names[0]
    while here not in seen:
        seen.append(here)
        here = heard[here]
    assert len(seen) == size


def test_the_order_must_name_every_agent_once():
    check(["b", "a"], ["a", "b"])
    with pytest.raises(ValueError, match="'c' is not an agent; the agents are a, b"):
        check(["a", "c"], ["a", "b"])
    with pytest.raises(ValueError, match="exactly once"):
        check(["a", "a"], ["a", "b"])
