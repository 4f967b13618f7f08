"""Answers that exist already: evaluation dumps of several models, long or wide, as JSON Lines, JSON, CSV, TSV or Parquet.

Long: a row an answer, with `question_id`, `model`, `answer` or `completion`, and `truth` where it is known. Several rows of one
question and model are its samples, in the file's order; so are the items of a list. Wide: a row a question, a column a model.

A completion's answer stands in its last box, as everywhere in this project. In a file whose completions never box anything,
answers are taken as announced ('#### 18', 'A: 18' or 'The answer is 18.' on the last line), by the same rule for every model,
and a note says so. A cell of an `answer` column is the answer itself, unless it holds a box; where it is empty, a `completion`
beside it is read. What is still empty is an answer that could not be read, which counts as wrong. An empty truth is unknown.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

from corl_core import answers as reader
from corl_core.config_errors import did_you_mean
from corl_core.data.files import read_file
from corl_core.data.gold import gold_text, readable
from corl_core.data.questions import DataError
from corl_core.data.tables import Row, Table, Trouble, as_text, cell, is_missing, listed
from corl_core.diversity.answers import NO_ANSWER, Answers, Builder
from corl_core.diversity.columns import Layout, find

MAX_MODELS = 64
Reader = Callable[[str], reader.Answer | None]


def read_answers(path: Path, models: Iterable[str] = ()) -> Answers:
    """The answers of a file; of `models` only, if any are named. Raises DataError with what is wrong and where."""
    return from_table(read_file(Path(path)), str(path), tuple(models))


def from_table(table: Table, source: str, models: tuple[str, ...] = ()) -> Answers:
    """The answers in a table's rows; `source` is what errors call it. Raises DataError."""
    if not table.rows:
        raise DataError(f"answers '{source}' has no rows{'; ' + listed(table.dropped) if table.dropped else ''}")
    layout = find(table, source)
    cells = list(_cells(table, layout, source))
    known = list(dict.fromkeys(model for model, *_ in cells))
    _check_models(known, models, source)
    wanted = set(models or known)
    builder, notes = Builder(), [*table.notes, *_dropped(table)]
    if layout.truth_is_a_guess:
        notes.append(f"column '{layout.truth}' is taken for the true answer; call it 'truth' to say so")
    _add_truths(builder, table, layout, source, notes)
    read_as = _readers([(kind, text) for model, _, kind, text in cells if model in wanted], notes)
    unread: Counter[str] = Counter()
    for model, question, kind, text in cells:
        if model in wanted:
            found = read_as[kind](text) if text else None
            unread[model] += found is None
            code = builder.code(found.key, found.text) if found else NO_ANSWER
            builder.add(model, builder.question(question), code)
    made = builder.answers((*notes, *_unread(unread, cells)))
    return made.only(models) if models else made


def _check_models(known: list[str], wanted: tuple[str, ...], source: str) -> None:
    for model in wanted:
        if model not in known:
            raise DataError(f"answers '{source}': no model '{model}'{did_you_mean(model, known)}; there are {', '.join(known)}")
    if len(wanted or known) < 2:
        raise DataError(f"answers '{source}': answers of one model only ({known[0]}); a pair needs two")
    if len(wanted or known) > MAX_MODELS:
        raise DataError(f"answers '{source}': {len(known)} models, and {MAX_MODELS} can be compared; name some with --models")


def _cells(table: Table, layout: Layout, source: str) -> Iterator[tuple[str, str, bool | None, str]]:
    """(model, question id, kind of text, text) of every answer; '' where a cell is empty."""
    for row in table.rows:
        question = _id(row, layout, source)
        if question is None:
            continue
        for model, column, kind in layout.answers:
            name = model if model is not None else as_text(cell(row, layout.model))
            if name is None:
                raise DataError(
                    f"answers '{source}', {row.where}: column '{layout.model}' is empty; name the model that gave this answer"
                )
            value = cell(row, column)
            if model is not None and value is None and column not in row.cells:
                continue  # a row of JSON that lacks the column: the model was not asked
            if layout.completion is not None and is_missing(value):
                value, kind = cell(row, layout.completion), True
            for text in _samples(value):
                yield name, question, kind, text


def _samples(value: Any) -> list[str]:
    """The texts in a cell: the items of a list, or the one that it holds."""
    items = value if isinstance(value, (list, tuple)) and value else [value]
    return [as_text(gold_text(item)) or "" for item in items]


def _id(row: Row, layout: Layout, source: str) -> str | None:
    """The question's id; None for a wide row without any."""
    if layout.question_id is None:
        return row.where
    found = as_text(cell(row, layout.question_id))
    if found is None and layout.model is not None:
        raise DataError(f"answers '{source}', {row.where}: column '{layout.question_id}' is empty; which question was it?")
    return found


def _add_truths(builder: Builder, table: Table, layout: Layout, source: str, notes: list[str]) -> None:
    """Registers every question in the file's order, with its text and its truth."""
    unreadable, read = [], cache(_announced)
    for row in table.rows:
        question_id = _id(row, layout, source)
        if question_id is None:
            continue
        text = as_text(cell(row, layout.question)) if layout.question else None
        question = builder.question(question_id, text or "")
        value = gold_text(cell(row, layout.truth)) if layout.truth else None
        if value is None or is_missing(value):
            continue
        truth = read(value)
        if truth is None:
            unreadable.append(Trouble(row.where, f"{value[:60]!r}"))
        elif not builder.truth(question, builder.code(truth.key, truth.text)):
            raise DataError(
                f"answers '{source}', {row.where}: question '{question_id[:60]}' has the truth {value[:60]!r} here and another "
                "one before; give every question one truth, or an id of its own"
            )
    if unreadable:
        notes.append(f"{len(unreadable)} true answers say nothing parsable: these questions are unlabelled: {listed(unreadable)}")


def _readers(texts: list[tuple[bool | None, str]], notes: list[str]) -> dict[bool | None, Reader]:
    """How each kind of cell is read; see the module's text."""
    completions = [text for kind, text in texts if kind]
    announced = bool(completions) and not any("boxed" in text for text in completions)
    if announced:
        notes.append(
            "no completion has a box: answers are taken as announced at the end ('#### 18', 'A: 18', 'The answer is 18.')"
        )
    by_kind: dict[bool | None, Reader] = {
        True: _announced if announced else reader.parse,
        False: lambda text: reader.parse(text) if "boxed" in text else reader.answer(text),
        None: _announced,
    }
    return {kind: cache(read) for kind, read in by_kind.items()}  # samples repeat each other


def _announced(text: str) -> reader.Answer | None:
    said = readable(text)
    return reader.answer(said) if said else None


def _dropped(table: Table) -> list[str]:
    return [f"{len(table.dropped)} rows could not be read: {listed(table.dropped)}"] if table.dropped else []


def _unread(unread: Counter[str], cells: list[tuple[str, str, bool | None, str]]) -> list[str]:
    """A note for each model most of whose answers could not be read: it may be the format, not the model."""
    total = Counter(model for model, *_ in cells)
    return [
        f"{count:,} of {total[model]:,} answers of '{model}' could not be read and count as wrong"
        for model, count in unread.items()
        if count > total[model] / 2
    ]
