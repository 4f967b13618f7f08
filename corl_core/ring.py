"""The directed ring: whose vote rewards whom (arXiv 2608.17253, section 4).

With agents in ring order a → b → c → a, an agent's peer is its predecessor: a's vote is b's pseudo-label. Two agents reward
each other; a ring of one is self-rewarding (TTRL). For N > 2 an agent still has exactly one peer, never a majority of the
other N - 1. A cohort may also hold several rings: any assignment that gives each agent one peer other than itself, and makes
it the peer of one other, is a set of rings (a permutation without fixed points).
"""

from collections.abc import Mapping, Sequence

Ring = Sequence[str] | Mapping[str, str]  # the agents in order, or each agent's peer


def peers(ring: Ring) -> dict[str, str]:
    """agent → the agent whose vote is its pseudo-label. `ring` names each agent once."""
    if isinstance(ring, Mapping):
        return dict(ring)
    return {name: ring[index - 1] for index, name in enumerate(ring)}


def check(ring: Ring, agents: Sequence[str]) -> None:
    """Raises ValueError unless every agent has one peer, is one agent's peer, and none is its own."""
    known = ", ".join(agents)
    named = [*ring, *ring.values()] if isinstance(ring, Mapping) else [*ring]
    if unknown := [name for name in named if name not in agents]:
        raise ValueError(f"ring: '{unknown[0]}' is not an agent; the agents are {known}")
    if sorted(ring) != sorted(agents):
        raise ValueError(f"ring={list(ring)}: every agent must stand on the ring exactly once; the agents are {known}")
    if isinstance(ring, Mapping):
        if own := [name for name, peer in ring.items() if name == peer]:
            raise ValueError(f"ring: '{own[0]}' would reward itself; give it another peer, or use method 'ttrl'")
        if sorted(ring.values()) != sorted(agents):
            raise ValueError(f"ring={dict(ring)}: every agent must be the peer of exactly one other; the agents are {known}")
