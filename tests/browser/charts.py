"""Charts as a browser finds them: by name, since one that gets its first values moves those after it."""


def chart(page, name: str):
    """The chart of the Run page with this name, for example "agreement"."""
    return page.locator(f'[class*="st-key-curve-{name}"] .corl-chart, [class*="st-key-run-{name}"] .corl-chart').first
