"""The directed ring: whose vote rewards whom (arXiv 2608.17253, section 4).

With agents in ring order a → b → c → a, an agent's peer is its predecessor: a's vote is b's
pseudo-label. Two agents reward each other; a ring of one is self-rewarding (TTRL). For N > 2 an agent
still has exactly one peer, never a majority of the other N - 1.
"""

from collections.abc import Sequence


def peers(order: Sequence[str]) -> dict[str, str]:
    """agent → the agent whose vote is its pseudo-label. `order` is the ring, each name once."""
    return {name: order[index - 1] for index, name in enumerate(order)}


def check_order(order: Sequence[str], agents: Sequence[str]) -> None:
    """Raises ValueError unless `order` names every agent exactly once."""
    unknown = [name for name in order if name not in agents]
    if unknown:
        raise ValueError(f"ring: '{unknown[0]}' is not an agent; the agents are {', '.join(agents)}")
    if sorted(order) != sorted(agents):
        raise ValueError(
            f"ring={list(order)}: every agent must stand on the ring exactly once; the agents are {', '.join(agents)}"
        )
