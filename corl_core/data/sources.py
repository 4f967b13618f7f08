"""Question sources: the built-in arithmetic, a file, or a Hugging Face dataset. All give `Question`s.

What is left out is counted and named by its line. A missing answer means unlabeled, never wrong; an answer that says nothing
parsable counts as missing, too, and is named. Equal questions stay, with equal ids.
"""

import hashlib
import random
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from corl_core import answers
from corl_core.config import DataConfig
from corl_core.config_errors import did_you_mean
from corl_core.data import arithmetic, chat
from corl_core.data.choices import Choices, choices_of, first_index, letter
from corl_core.data.columns import Columns, find
from corl_core.data.files import SUFFIXES, read_file
from corl_core.data.gold import gold_text, readable
from corl_core.data.hub import OWNER_NAME, is_bare_word, is_dataset_id, read_dataset
from corl_core.data.questions import DataError, Question
from corl_core.data.tables import Row, Table, Trouble, as_text, cell, is_missing, listed

__all__ = ["ARITHMETIC", "DataError", "Loaded", "held_out_questions", "load", "question_order", "training_questions"]

ARITHMETIC = "arithmetic"


@dataclass(frozen=True)
class Loaded:
    """The questions of one source, and what became of its rows. `places[i]` is where `questions[i]` stands."""

    source: str
    questions: tuple[Question, ...]
    places: tuple[str, ...] = ()
    columns: Columns | None = None  # None: built in
    names: tuple[str, ...] = ()  # every column that exists
    dropped: tuple[Trouble, ...] = ()  # rows without a question, or that could not be read
    unreadable: tuple[Trouble, ...] = ()  # answers that say nothing parsable
    notes: tuple[str, ...] = ()

    @property
    def num_labelled(self) -> int:
        return sum(question.answer is not None for question in self.questions)


def training_questions(data: DataConfig, num: int, seed: int) -> list[Question]:
    """The questions to train on. Arithmetic draws `num` of them from `seed`; other sources give all they have."""
    return list(load_training(data, num, seed).questions)


def held_out_questions(data: DataConfig, num: int) -> list[Question]:
    """At most `num` questions to evaluate on, the same for every seed; [] when the configuration names none."""
    loaded = load_held_out(data, num)
    return list(loaded.questions) if loaded else []


def load_training(data: DataConfig, num: int, seed: int) -> Loaded:
    """As `training_questions`, with what became of the rows. Raises DataError."""
    if not data.train.strip():
        raise DataError(f"training questions are empty: give '{ARITHMETIC}', a file or a dataset id")
    if data.train == ARITHMETIC:
        return Loaded(ARITHMETIC, tuple(arithmetic.questions(data.num_questions or num, seed, "train")))
    return load(data.train, data, data.train_split, data.config, data.revision, most=data.num_questions)


def load_held_out(data: DataConfig, num: int) -> Loaded | None:
    """As `held_out_questions`, with what became of the rows; None when there are none. Raises DataError."""
    source = data.eval or (ARITHMETIC if data.train == ARITHMETIC else None)
    if source is None or num == 0:
        return None
    if source == ARITHMETIC:
        if num > (limit := arithmetic.max_eval_questions()):
            raise DataError(
                f"eval.num_questions={num}: the built-in arithmetic has {limit} held-out questions; take at most {limit}, or a "
                "file of them as data.eval"
            )
        return Loaded(ARITHMETIC, tuple(arithmetic.questions(num, 0, "eval")))
    same = source == data.train
    config = data.eval_config or (data.config if same else None)
    revision = data.eval_revision or (data.revision if same else None)
    return load(source, data, data.eval_split, config, revision, lenient=not same, most=num)


def question_order(questions: Sequence[Question], num: int, seed: int) -> list[Question]:
    """The whole run's questions, `num` of them: passes over the data, each in its own order.

    Laid out at once so that every agent of a cohort, and a run that is resumed, sees the same questions at each step.
    """
    rng, order = random.Random(f"order/{seed}"), []
    while len(order) < num:
        order += rng.sample(list(questions), len(questions))
    return order[:num]


def load(
    source: str, data: DataConfig, split: str, config: str | None = None, revision: str | None = None,
    lenient: bool = False, most: int | None = None,
) -> Loaded:  # fmt: skip
    """The first `most` questions of a file or dataset. `lenient`: see `columns.find`. Raises DataError."""
    table = _table(source, split, config, revision)
    if not table.rows:
        raise DataError(f"data '{source}' has no rows with questions{'; ' + listed(table.dropped) if table.dropped else ''}")
    columns, notes = find(table, data, source, lenient)
    kept, dropped = [], list(table.dropped)
    for row in table.rows:
        if _question_text(row, columns.question):
            kept.append(row)
        else:
            dropped.append(Trouble(row.where, f"column '{columns.question}' holds no question"))
    if not kept:
        raise DataError(
            f"data '{source}': column '{columns.question}' is empty in all {len(table.rows)} rows; "
            f"set data.question_column to another of {', '.join(table.columns())}"
        )
    kept = kept[:most]
    notes += _notes(kept, columns)
    questions, unreadable = _questions(kept, columns)
    return Loaded(
        source, tuple(questions), tuple(row.where for row in kept), columns, tuple(table.columns()), tuple(dropped),
        tuple(unreadable), (*table.notes, *notes),
    )  # fmt: skip


def _table(source: str, split: str, config: str | None, revision: str | None) -> Table:
    path = Path(source).expanduser()
    if not path.exists() and is_bare_word(source):
        near = did_you_mean(source, [ARITHMETIC])
        raise DataError(f"data '{source}': no file or folder has this name{near}; {OWNER_NAME}")
    if path.is_file() or (path.suffix in SUFFIXES and not path.is_dir()):
        return read_file(path)
    if is_dataset_id(source):
        return read_dataset(source, config, split, revision)
    return read_file(path)  # which says that there is no such file


def _question_text(row: Row, column: str) -> str | None:
    """The question in its cell; of a chat, what the user asked last."""
    value = cell(row, column)
    messages = chat.messages(value)
    text = as_text(chat.question(messages) if messages else value)
    return text if text and text.strip() else None


def _questions(rows: Sequence[Row], columns: Columns) -> tuple[list[Question], list[Trouble]]:
    """The rows as questions, and the answers that say nothing parsable."""
    golds = [gold_text(cell(row, columns.answer)) if columns.answer else None for row in rows]
    choices = [choices_of(row, columns.choices, columns.answer) if columns.choices else None for row in rows]
    counted_from = first_index([(gold, given) for gold, given in zip(golds, choices, strict=True) if gold and given])
    questions, unreadable = [], []
    for row, gold, given in zip(rows, golds, choices, strict=True):
        answer = _answer(gold, given, counted_from) if gold else None
        if gold and answer is None:
            why = "names none of the choices" if given else "gives no answer that can be parsed"
            unreadable.append(Trouble(row.where, f"{gold[:60]!r} {why}"))
        questions.append(_question(row, columns, answer, given))
    return questions, unreadable


def _question(row: Row, columns: Columns, answer: str | None, choices: Choices | None) -> Question:
    text = _question_text(row, columns.question)
    paraphrase = _question_text(row, columns.paraphrase) if columns.paraphrase else None
    assert text is not None
    if choices:
        text, paraphrase = choices.rendered(text), choices.rendered(paraphrase) if paraphrase else None
    return Question(_id(text), text, answer, paraphrase=paraphrase)


def _answer(gold: str, choices: Choices | None, counted_from: int | None) -> str | None:
    if choices is None:
        return readable(gold)
    said = readable(gold) or ""
    parsed = answers.answer(said)
    spellings = (gold, said, parsed.key if parsed else "")
    return next(filter(None, (letter(spelling, choices, counted_from) for spelling in spellings)), None)


def _notes(rows: Sequence[Row], columns: Columns) -> tuple[str, ...]:
    """What a reader should know of these rows, beyond what is dropped."""
    notes = []
    if columns.image and (shown := sum(not is_missing(cell(row, columns.image)) for row in rows)):
        notes.append(
            f"column '{columns.image}' holds images in {shown} of {len(rows)} rows, and this version trains on text only: "
            "the models will not see them"
        )
    chats = [messages for row in rows if (messages := chat.messages(cell(row, columns.question)))]
    if any(chat.system(messages) for messages in chats):
        notes.append("the system messages in the data are not used; set data.system_prompt")
    if turns := sum(sum(role in chat.USER for role, _ in messages) > 1 for messages in chats):
        notes.append(f"{turns} chats have several user turns: only the last one is asked")
    return tuple(notes)


def _id(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
