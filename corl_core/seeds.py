"""Seeds derived from names, so that nothing depends on how often some other random draw was made.

What agents share (question order) is derived without the agent's name; what must differ (sampling) is derived with it,
so that equal models still give different rollouts. A step's rollouts follow from (run seed, agent, step) alone.
"""

import hashlib


def derive(*parts: str | int) -> int:
    """A 63-bit seed that depends on every part and on their order."""
    text = "/".join(str(part) for part in parts)
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8]) >> 1
