"""Ray as far as one agent's handle needs it: actors in this process, whose calls are done at once."""

from types import SimpleNamespace


class RayError(Exception):
    pass


class RayTaskError(RayError):
    pass


class Reference:
    """To what a call gave, or raised."""

    def __init__(self, value=None, error: RayError | None = None):
        self.value, self.error = value, error


class Actor:
    """`actor.method.remote(...)` of a plain object; what it raises comes out of `get`, as with Ray."""

    def __init__(self, node):
        self._node = node

    def __getattr__(self, name):
        def remote(*arguments):
            try:
                return Reference(getattr(self._node, name)(*arguments))
            except RayError as error:
                return Reference(error=error)

        return SimpleNamespace(remote=remote)


def get(reference, timeout=None):
    if reference.error is not None:
        raise reference.error
    return reference.value


def fake(killed: list) -> SimpleNamespace:
    """The module; `killed`: takes the actors that are killed."""
    return SimpleNamespace(
        get=get, wait=lambda references, timeout=None, num_returns=1: (references, []), kill=killed.append,
        exceptions=SimpleNamespace(RayError=RayError, RayTaskError=RayTaskError),
    )  # fmt: skip
