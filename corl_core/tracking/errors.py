"""What goes wrong with a tracking store, apart from the modules that read it, which take a second to import."""


class TrackingUnavailable(RuntimeError):
    """The tracking store can't be read; the text says which and what to do."""
