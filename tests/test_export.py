"""Files without a browser: sizes, fonts, text, white ground, metadata, and numbers that are those drawn."""

import base64
import io
import re
import struct
import zlib
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from corl_core.figures import palette
from corl_core.figures.bars import Bar, Bars
from corl_core.figures.export import ALL_FORMATS, export, to_csv, to_table
from corl_core.figures.spec import Band, Figure, Mark, Series
from corl_core.figures.stamp import Stamp
from corl_core.figures.venues import look

COMMAND = "python -m corl_core figure 2a 20261130-demo-0000 'a b' -o x.pdf"
STAMP = Stamp("Figure 2a: Agreement", COMMAND, ("20261130-demo-0000", "20261130-ttrl-0001"))
SVG = "{http://www.w3.org/2000/svg}"


def line(y, label="llama & co", **more) -> Series:
    return Series(label, np.arange(len(y)), np.array(y, float), palette.style(0), **more)


def figure(*series: Series, **more) -> Figure:
    return Figure("agreement", "Agreement", "Step", "Agreement", series or (line([0.1, 0.4, 0.3]),), **more)


def bars() -> Bars:
    blue, orange = palette.style(0), palette.style(1)
    first = Bar("llama × qwen2", 0.3, blue, "different families", 0.1, 3)
    return Bars("error-overlap", "Error overlap", "Kappa", (first, Bar("=x × y", 0.6, orange, "same family", hatched=True)))


def pdf_text(content: bytes) -> str:
    """The letters that a PDF's pages show, in order of drawing."""
    found = []
    for stream in re.findall(rb"stream\r?\n(.*?)\r?\nendstream", content, re.S):
        try:
            page = zlib.decompress(stream)
        except zlib.error:
            continue
        for block in re.findall(rb"BT(.*?)ET", page, re.S):
            codes = b"".join(re.findall(rb"\(((?:\\.|[^\\)])*)\)", block))  # two bytes a letter
            found.append(codes.decode("utf-16-be", errors="replace"))
    return "\n".join(found)


def png_chunks(content: bytes) -> dict[bytes, list[bytes]]:
    chunks, place = {}, 8
    while place < len(content):
        (size,) = struct.unpack(">I", content[place : place + 4])
        chunks.setdefault(content[place + 4 : place + 8], []).append(content[place + 8 : place + 8 + size])
        place += 12 + size
    return chunks


@pytest.mark.parametrize("font", ["sans", "serif"])
def test_a_pdf_has_embedded_truetype_and_its_text_as_text(font):
    content = export(figure(), "pdf", look("icml", font=font), STAMP)
    assert b"/FontFile2" in content and b"/Type3" not in content and b"/ToUnicode" in content
    shown = pdf_text(content)
    for words in ("Agreement", "Step", "llama & co"):
        assert words in shown


def test_an_svg_has_text_nodes_an_embedded_font_and_a_white_ground():
    root = ElementTree.fromstring(export(figure(), "svg", look("icml"), STAMP))
    words = {"".join(node.itertext()) for node in root.iter(f"{SVG}text")}
    assert {"Agreement", "Step", "llama & co"} <= words
    style = "".join(node.text or "" for node in root.iter(f"{SVG}style"))
    assert "@font-face{font-family:'DejaVu Sans';src:url(data:font/woff;base64," in style
    ground = next(root.iter(f"{SVG}path"))
    assert "fill: #ffffff" in ground.get("style")
    assert root.get("width") == "234pt"  # 3.25 in


def test_the_font_inside_an_svg_has_the_letters_it_shows_and_few_others():
    from fontTools.ttLib import TTFont

    svg = export(figure(), "svg", look("icml")).decode()
    data = re.search(r"base64,([^)]+)\)", svg)[1]
    letters = {chr(code) for code in TTFont(io.BytesIO(base64.b64decode(data))).getBestCmap()}
    assert set("Agreementllama&coStep") <= letters and len(letters) < 60


def test_letters_that_the_serif_lacks_come_from_the_second_font():
    svg = export(figure(line([0.1], "Ընկեր")), "svg", look("icml", font="serif")).decode()
    assert "font-family:'STIXGeneral'" in svg and "font-family:'DejaVu Sans'" in svg


def test_a_png_has_its_dpi_size_and_a_white_opaque_ground():
    from PIL import Image

    content = export(figure(), "png", look("icml", dpi=200), STAMP)
    with Image.open(io.BytesIO(content)) as image:
        assert image.info["dpi"] == pytest.approx((200, 200), abs=0.1)
        assert image.width == 650  # 3.25 in
        assert image.convert("RGBA").getpixel((1, 1)) == (255, 255, 255, 255)


def test_every_format_says_its_command_and_its_runs():
    made = {kind: export(figure(), kind, look("icml"), STAMP) for kind in ALL_FORMATS}
    info = re.search(rb"/Info (\d+) 0 R", made["pdf"])[1]
    entry = re.search(info + rb" 0 obj\n(.*?)endobj", made["pdf"], re.S)[1]
    assert b"corl_core figure 2a 20261130-demo-0000" in entry and b"20261130-ttrl-0001" in entry and b"CreationDate" not in entry
    texts = dict(chunk.split(b"\0", 1) for chunk in png_chunks(made["png"])[b"tEXt"])
    assert texts[b"Description"].decode() == COMMAND and b"20261130-ttrl-0001" in texts[b"Comment"]
    root = ElementTree.fromstring(made["svg"])
    told = [node.text for node in root.iter() if node.tag.startswith("{http://purl.org/dc/")]
    assert COMMAND in told and "date" not in str([node.tag for node in root.iter()])
    assert "20261130-ttrl-0001" in [node.text for node in root.iter("{http://www.w3.org/1999/02/22-rdf-syntax-ns#}li")]
    page = made["html"].decode()
    assert 'name="corl-command" content="python -m corl_core figure 2a 20261130-demo-0000 &#x27;a b&#x27; -o x.pdf"' in page
    assert 'name="corl-runs" content="20261130-demo-0000, 20261130-ttrl-0001"' in page
    assert made["csv"].decode().splitlines()[1] == f"# command: {COMMAND}"
    assert made["tex"].decode().splitlines()[2] == "% runs: 20261130-demo-0000, 20261130-ttrl-0001"


def test_control_characters_in_a_name_break_no_file():
    odd = Stamp("a\nb\0c", "x\ty", ("r\n% \x1b",))
    for kind in ALL_FORMATS:
        export(figure(line([0.1, 0.2], "a\nb\x07c\ud800")), kind, look("icml"), odd)
    assert odd.lines("#").count("\n") == 3


@pytest.mark.parametrize("kind", ALL_FORMATS)
@pytest.mark.parametrize("drawn", [figure(), bars()], ids=["lines", "bars"])
def test_the_same_figure_is_the_same_bytes_whatever_theme_is_set(kind, drawn):
    import matplotlib

    first = export(drawn, kind, look("icml"), STAMP)
    dark = {"figure.facecolor": "black", "axes.facecolor": "black", "text.color": "white", "font.family": "monospace",
            "axes.labelcolor": "white", "savefig.bbox": "tight", "lines.linewidth": 9}  # fmt: skip
    with matplotlib.rc_context(dark):
        assert export(drawn, kind, look("icml"), STAMP) == first
        assert matplotlib.rcParams["lines.linewidth"] == 9  # and nobody's settings are changed


def test_two_threads_draw_what_one_does():
    from concurrent.futures import ThreadPoolExecutor

    looks = [look("icml"), look("neurips", font="serif")] * 2
    alone = [export(figure(), "svg", each, STAMP) for each in looks]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(lambda each: export(figure(), "svg", each, STAMP), looks)) == alone


def test_the_csv_is_what_is_drawn_and_pandas_reads_it_past_the_comments():
    band = line([0.1, 0.25], "a #1", low=np.array([0.0, 0.2]), high=np.array([0.2, 0.3]), count=np.array([2, 1]))
    drawn = figure(band, line([1 / 3, np.nan], "b"))
    read = pd.read_csv(io.BytesIO(export(drawn, "csv", stamp=STAMP)), comment="#")
    assert read.columns.tolist() == ["series", "x", "y", "low", "high", "n", "lost"]
    assert read.series.tolist() == ["a #1", "a #1", "b", "b"]
    expected = to_table(drawn)
    for column in ("x", "y", "low", "high", "n"):
        np.testing.assert_array_equal(read[column].to_numpy(float), expected[column].to_numpy(float))


def test_points_beyond_the_range_stay_in_the_csv_and_are_told():
    style = palette.style(0)
    drawn = figure(line([0.5, 7.0]), bounds=(0.0, 1.0), marks=(Mark(1.0, True, style, True),))
    assert to_table(drawn).outside.tolist() == [0, 1]
    assert "outside" not in to_table(figure())


@pytest.mark.parametrize("start", ["=", "+", "-", "@", "\t", "\r"])
def test_no_text_cell_is_a_formula(start):
    table = pd.DataFrame({"text": [f"{start}cmd", "plain"], "y": [-1.5, 2.0]})
    lines = to_csv(table).decode()
    assert f"\"'{start}cmd\",-1.5" in lines and '"plain",2.0' in lines


def test_the_bars_csv_has_each_bar_with_its_spread():
    table = pd.read_csv(io.BytesIO(export(bars(), "csv")))
    assert table["bar"].tolist() == ["llama × qwen2", "'=x × y"]
    assert table.y.tolist() == [0.3, 0.6] and table.n.tolist() == [3, 1] and table.spread[0] == 0.1


def test_bars_are_told_apart_without_colour_and_carry_their_value():
    root = ElementTree.fromstring(export(bars(), "svg", look("icml")))
    words = {"".join(node.itertext()) for node in root.iter(f"{SVG}text")}
    assert {"0.30", "0.60", "same family", "different families"} <= words
    assert list(root.iter(f"{SVG}pattern"))  # the hatch


def test_the_html_opens_alone_on_white_and_takes_names_as_text():
    nasty = "</script><script>alert(1)</script>"
    page = export(figure(line([0.1, 0.2], nasty)), "html", stamp=Stamp(nasty, nasty, (nasty,))).decode()
    assert page.count("<script>") == 2 and "alert(1)</script>" not in page
    assert not re.search(r"<(?:script|link|img)[^>]+(?:src|href)=", page)
    assert "default-src 'none'" in page and "background: #ffffff" in page and '"paper_bgcolor": "#ffffff"' in page


def test_marks_at_the_edge_are_drawn_where_lines_leave():
    from matplotlib.figure import Figure as Canvas

    from corl_core.figures.paint import _draw_lines

    style = palette.style(0)
    axes = Canvas().subplots()
    marks = (Mark(1.0, True, style, True), Mark(0.0, False, style, False))
    _draw_lines(axes, figure(line([0.5, 7.0]), bounds=(0.0, 1.0), marks=marks))
    up, down = axes.lines[-2:]
    assert (up.get_marker(), up.get_xdata()[0], up.get_ydata()[0]) == ("^", 1.0, 1.0)
    assert up.get_markerfacecolor() == style.color and not up.get_clip_on()
    assert (down.get_marker(), down.get_ydata()[0], down.get_markerfacecolor()) == ("v", 0.0, "white")


def test_values_that_are_not_finite_stand_at_the_edge_of_a_file_too():
    from matplotlib.figure import Figure as Canvas

    from corl_core.figures.paint import draw_line

    axes = Canvas().subplots()
    draw_line(axes, line([0.1, np.inf, -np.inf, np.nan, 0.2]))
    found = {drawn.get_marker(): (list(drawn.get_xdata()), list(drawn.get_ydata())) for drawn in axes.lines[-3:]}
    assert found == {"^": ([1], [1]), "v": ([2], [0]), "x": ([3], [0])}


def test_alarms_a_log_axis_and_a_range_reach_the_file():
    from matplotlib.figure import Figure as Canvas

    from corl_core.figures.paint import _draw_lines

    axes = Canvas().subplots()
    _draw_lines(axes, figure(bands=(Band(0, 1, "Reward $up$"),), log=True, y_range=(0.01, 1.0)))
    assert axes.get_yscale() == "log" and axes.get_ylim() == pytest.approx((0.01, 1.0))
    assert [words.get_text() for words in axes.texts] == [r"Reward \$up\$"]


def test_a_long_title_of_an_axis_is_wrapped_and_not_cut():
    drawn = Figure("x", "t", "Step", "Reward std, relative to the first step of each run", (line([0.1]),))
    root = ElementTree.fromstring(export(drawn, "svg", look("icml")))
    words = ["".join(node.itertext()) for node in root.iter(f"{SVG}text")]
    assert "Reward std, relative to the first step of each run" not in words
    assert any(word.startswith("Reward std,") for word in words)


def test_an_empty_figure_exports_in_every_format():
    empty = Figure("x", "t", "Step", "y", ())
    for kind in ALL_FORMATS:
        assert export(empty, kind, look("icml"))
        assert export(Bars("x", "t", "y", ()), kind, look("icml"))
