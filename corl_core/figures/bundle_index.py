"""The bundle's page: built as a tree of elements, so every text is escaped where it is written out, and no script exists."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from xml.etree.ElementTree import Element, SubElement, tostring

import pandas as pd

from corl_core.figures.bundle_votes import Votes
from corl_core.figures.stamp import Stamp
from corl_core.figures.text import one_line
from corl_core.methods import METHOD_LABELS
from corl_core.runs.folder import Run

QUESTIONS_SHOWN = 5  # of each run; the files hold the whole sample
POLICY = "default-src 'none'; img-src 'self' file: data:; style-src 'unsafe-inline'"
STYLE = """
body { margin: 2rem auto; max-width: 62rem; padding: 0 1rem; background: #fff; color: #222; font: 16px/1.5 sans-serif }
figure { display: inline-block; width: 100%; max-width: 29rem; margin: 0 1rem 1.5rem 0; vertical-align: top }
img { width: 100%; border: 1px solid #ddd } .wide { overflow-x: auto } code, pre { font: 13px/1.4 monospace }
table { border-collapse: collapse } th, td { border-bottom: 1px solid #ddd; padding: .3rem .7rem; text-align: left;
vertical-align: top } pre, code { white-space: pre-wrap; overflow-wrap: anywhere; margin: 0 } summary { cursor: pointer }
"""


@dataclass(frozen=True)
class Shown:
    """A figure of the page: its files' stem, its title, and the command that makes it."""

    stem: str
    title: str
    command: str


def index_html(
    stamp: Stamp, runs: Sequence[Run], names: Mapping[str, str], figures: Sequence[Shown], results: pd.DataFrame | None,
    votes: Mapping[str, Votes],
) -> bytes:  # fmt: skip
    """The page. `names` are the runs' file names."""
    page = Element("html", lang="en")
    head, body = SubElement(page, "head"), SubElement(page, "body")
    SubElement(head, "meta", charset="utf-8")
    SubElement(head, "meta", {"http-equiv": "Content-Security-Policy", "content": POLICY})
    SubElement(head, "meta", name="viewport", content="width=device-width, initial-scale=1")
    _text(head, "title", "Co-RL Lab: share bundle")
    _text(head, "style", STYLE)
    _text(body, "h1", "Co-RL Lab: share bundle")
    _text(SubElement(body, "p"), "code", stamp.command)
    _text(body, "h2", "Runs")
    _runs(body, runs, names)
    _text(body, "h2", "Figures")
    for shown in figures:
        _figure(body, shown)
    if not figures:
        _text(body, "p", "These runs have logged nothing that a figure shows.")
    if results is not None:
        _results(body, results)
    _text(body, "h2", "A sample of votes")
    for run in runs:
        _votes(body, run, names[run.id], votes[run.id])
    return b"<!doctype html>\n" + tostring(page, encoding="utf-8", method="html")


def _text(parent: Element, tag: str, text: object, **attributes: str) -> Element:
    """An element with a text in it: printable letters, line ends and tabs."""
    element = SubElement(parent, tag, attributes)
    element.text = "".join(letter if letter.isprintable() or letter in "\n\t" else " " for letter in str(text))
    return element


def _table(parent: Element, headings: Sequence[str]) -> Element:
    table = SubElement(SubElement(parent, "div", {"class": "wide"}), "table")
    row = SubElement(table, "tr")
    for heading in headings:
        _text(row, "th", heading)
    return table


def _row(table: Element, cells: Sequence[object]) -> Element:
    row = SubElement(table, "tr")
    for cell in cells:
        _text(row, "td", cell)
    return row


def _runs(body: Element, runs: Sequence[Run], names: Mapping[str, str]) -> None:
    table = _table(body, ["Run", "Name", "Method", "Agents", "Seed", "State", "Steps", "Files"])
    for run in runs:
        config, status = run.config, run.status()
        steps = f"{status.step:,} of {config.grpo.max_steps:,}"
        agents = ", ".join(f"{agent.name} ({agent.model})" for agent in config.agents)
        row = _row(table, [run.id, config.name, METHOD_LABELS[config.method], agents, config.seed, status.state, steps])
        cell = SubElement(row, "td")
        _text(cell, "a", "config", href=f"configs/{names[run.id]}.yaml").tail = " "
        _text(cell, "a", "metrics", href=f"data/run-{names[run.id]}.csv")


def _figure(body: Element, shown: Shown) -> None:
    box = SubElement(body, "figure")
    SubElement(box, "img", src=f"figures/{shown.stem}.svg", alt=shown.title)
    caption = SubElement(box, "figcaption")
    _text(caption, "strong", shown.title).tail = " "
    for folder, kind in (("figures", "pdf"), ("figures", "svg"), ("figures", "png"), ("data", "csv")):
        _text(caption, "a", kind, href=f"{folder}/{shown.stem}.{kind}").tail = " "
    details = SubElement(box, "details")
    _text(details, "summary", "Command")
    _text(details, "code", shown.command)


def _results(body: Element, results: pd.DataFrame) -> None:
    _text(body, "h2", "Results")
    _text(body, "p", "Held-out accuracy, mean over agents; ± is the sample standard deviation over the runs of a row.")
    table = _table(body, list(results.columns))
    for cells in results.itertuples(index=False):
        _row(table, cells)
    links = SubElement(body, "p")
    for kind in ("tex", "csv"):
        _text(links, "a", f"results.{kind}", href=f"results.{kind}").tail = " "


def _votes(body: Element, run: Run, name: str, votes: Votes) -> None:
    _text(body, "h3", f"{run.config.name}, seed {run.config.seed}")
    if votes.problem:
        _text(body, "p", votes.problem)
    groups = [list(rows) for _, rows in groupby(votes.rows, key=lambda row: (row["step"], row["question_id"]))]
    for rows in groups[:QUESTIONS_SHOWN]:
        details = SubElement(body, "details")
        _text(details, "summary", f"Step {rows[0]['step']}: {one_line(str(rows[0]['question']))}")
        _text(details, "p", f"Truth: {_or_none(rows[0]['truth'])}")
        table = _table(details, ["Agent", "Pseudo-label", "Answer", "Reward", "Completion"])
        for row in rows:
            reward = "none" if row["reward"] is None else f"{row['reward']:g}"
            line = _row(table, [row["agent"], _or_none(row["pseudo_label"]), _or_none(row["answer"]), reward])
            _text(SubElement(line, "td"), "pre", row["completion"])
    if groups:
        links = _text(body, "p", f"{min(len(groups), QUESTIONS_SHOWN)} of {len(groups)} questions of the sample; all of them: ")
        for kind in ("jsonl", "csv"):
            _text(links, "a", f"{name}.{kind}", href=f"votes/{name}.{kind}").tail = " "


def _or_none(value: object) -> str:
    return "none" if value is None else str(value)
