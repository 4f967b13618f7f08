"""What a person can get wrong about a figure."""


class FigureError(ValueError):
    """A figure that can't be made as asked; the text says which field, which rule, and what to do."""
