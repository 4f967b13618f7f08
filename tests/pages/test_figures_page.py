"""Figures page: the file as it will be, the command that makes the same, links, and what is missing."""

import io
import shlex

import pytest

from corl_core.cli import main


def ids(store) -> list[str]:
    return sorted(path.name for path in store.iterdir() if (path / "run.yaml").exists())


def seeds(store) -> str:
    return ",".join(ids(store)[:4])


def preview(at):
    """The page's image and what it says to those who don't see it."""
    (image,) = [element.proto for element in at.get("image")]
    return image.imgs[0]


def test_nothing_to_draw_points_to_new_run(app, empty_store, said):
    at = app(empty_store, "figures")
    assert "no run to draw" in said(at) and not at.exception


def test_the_page_shows_the_figure_and_its_command(app, finished_store):
    at = app(finished_store, "figures", runs=seeds(finished_store))
    assert not at.exception and not at.error
    assert "demo (N=3) ends at" in preview(at).alt and "Figure 2a: Agreement" in preview(at).alt
    command = shlex.split(at.code[0].value)
    assert command[:5] == ["python", "-m", "corl_core", "figure", "2a"] and command[-2:] == ["-o", "2a-agreement.pdf"]
    assert command[5:9] == ids(finished_store)[:4]


def test_the_choice_is_in_the_link_and_in_the_command(app, finished_store):
    query = {"figure": "4b: Reward std, relative to its first step", "venue": "ICML", "span": "Whole text width",
             "format": "SVG", "smooth": "None", "font": "Serif"}  # fmt: skip
    at = app(finished_store, "figures", runs=seeds(finished_store), **query)
    assert not at.exception and not at.error and not at.warning
    command = at.code[0].value
    for words in ("figure 4b", "--venue icml", "--span text", "--smooth 0 ", "--font serif", "-o 4b-reward-std.svg"):
        assert words in command


@pytest.mark.parametrize("kind", ["PDF", "CSV"])
def test_the_command_of_the_page_makes_the_file_of_the_page(app, finished_store, tmp_path, monkeypatch, kind):
    from pages.components import figures_files

    offered = {}
    take = lambda label, data, name, *rest, **more: offered.update({name: data})  # noqa: E731
    monkeypatch.setattr(figures_files.st, "download_button", take)
    at = app(finished_store, "figures", runs=seeds(finished_store), venue="ACL", format=kind)
    *command, name = shlex.split(at.code[0].value)[3:]
    assert main([*command, str(tmp_path / name), "--runs", str(finished_store)]) == 0
    assert (tmp_path / name).read_bytes() == offered[name]()


def test_the_preview_is_as_wide_as_the_venues_column_says(app, finished_store, said):
    at = app(finished_store, "figures", runs=seeds(finished_store), venue="ICML")
    assert "3.25 in wide, type of 8 and 7 pt" in said(at).replace("\\", "")


def test_the_preview_is_the_exported_png(app, finished_store, monkeypatch):
    from PIL import Image

    from pages.components import figures_files

    seen = []
    monkeypatch.setattr(figures_files.st, "image", lambda image, **more: seen.append(image))
    app(finished_store, "figures", runs=seeds(finished_store), venue="ICML", format="PNG")
    with Image.open(io.BytesIO(seen[0])) as image:
        assert image.width == 975 and image.convert("RGB").getpixel((0, 0)) == (255, 255, 255)  # 3.25 in at 300 dpi


def test_a_figure_without_values_says_what_is_missing(app, finished_store, said):
    at = app(finished_store, "figures", runs=seeds(finished_store), figure="4c: Completion length")
    assert "completions/mean_length" in said(at).replace("\\", "") and not at.exception and not at.error


def test_the_table_is_shown_with_its_latex(app, finished_store):
    at = app(finished_store, "figures", runs=seeds(finished_store))
    assert at.dataframe[0].value.Run.tolist() == ["demo", "demo-ttrl"] and at.dataframe[0].value.N.tolist() == [3, 1]
    latex = next(code.value for code in at.code if "tabular" in code.value)
    assert r"\textbf" in latex and r"$\pm$" in latex


def test_the_bundle_has_its_command(app, finished_store):
    at = app(finished_store, "figures", runs=seeds(finished_store))
    assert at.code[-1].value.startswith("python -m corl_core bundle ") and at.code[-1].value.endswith("-o corl-bundle.zip")


def test_a_link_with_a_deleted_run_and_bad_values_opens_with_a_notice(app, finished_store, said):
    at = app(finished_store, "figures", runs=f"{ids(finished_store)[0]},gone-1", venue="Nature", figure="9z")
    words = said(at).replace("\\", "")
    assert "gone-1" in words and "Nature" in words and "9z" in words and not at.exception and preview(at)


def test_a_run_without_metrics_is_no_error(app, partial_store, said):
    fresh = next(run_id for run_id in ids(partial_store) if "fresh" in run_id)
    at = app(partial_store, "figures", runs=fresh)
    assert not at.exception and not at.error and "no values for this figure yet" in said(at)


@pytest.mark.parametrize("kind", ["PDF", "SVG", "PNG", "HTML", "CSV", "LaTeX"])
def test_every_format_has_its_download(app, finished_store, kind):
    at = app(finished_store, "figures", runs=seeds(finished_store), format=kind)
    suffix = {"LaTeX": "tex"}.get(kind, kind.lower())
    assert at.get("download_button")[0].proto.label == f"Download 2a-agreement.{suffix}" and not at.exception
