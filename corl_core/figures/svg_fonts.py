"""Fonts inside an SVG: the letters it uses, as @font-face, so that its text is selectable and looks alike everywhere."""

import base64
import io
import re
from functools import lru_cache
from xml.etree import ElementTree

STYLE = b'<style type="text/css">'


def with_fonts(svg: bytes, families: list[str]) -> bytes:
    """The SVG with a subset of each family that it needs, in order of preference. Its text stays text."""
    root = ElementTree.fromstring(svg)
    left = {letter for text in root.iter("{http://www.w3.org/2000/svg}text") for letter in "".join(text.itertext())}
    rules = []
    for family in families:
        data, found = _subset(family, "".join(sorted(left)))
        left -= set(found)
        if data:
            source = f"url(data:font/woff;base64,{data}) format('woff')"
            rules.append(f"@font-face{{font-family:'{family}';src:{source};}}")
    return svg.replace(STYLE, STYLE + "".join(rules).encode(), 1)


@lru_cache(maxsize=64)
def _subset(family: str, letters: str) -> tuple[str, str]:
    """The font with only these letters, as base64 of a WOFF, and the letters that it has; '' when it has none."""
    from fontTools import subset
    from matplotlib.font_manager import FontProperties, findfont

    options = subset.Options(layout_features=["kern"], notdef_outline=True, flavor="woff", recalc_timestamp=False)
    options.drop_tables += ["FFTM"]  # FontForge's time of making
    font = subset.load_font(findfont(FontProperties(family=family), fallback_to_default=True), options)
    found = "".join(letter for letter in letters if ord(letter) in font.getBestCmap())
    if not re.search(r"\S", found):
        return "", ""
    maker = subset.Subsetter(options)
    maker.populate(text=found)
    maker.subset(font)
    buffer = io.BytesIO()
    subset.save_font(font, buffer, options)
    return base64.b64encode(buffer.getvalue()).decode(), found
