"""Which column holds what: guessed from the names that such data really has, or named in the configuration.

Names are compared without case, spaces, '_' and '-', in the order of the lists; a column without a single value is passed
over. Nested fields have dotted names: `reward_model.ground_truth`.
"""

import re
import string
from collections.abc import Sequence
from dataclasses import dataclass

from corl_core.config import DataConfig
from corl_core.config_errors import did_you_mean
from corl_core.data import chat
from corl_core.data.questions import DataError
from corl_core.data.tables import Table, cell, is_missing

NAMES = {
    "question": "question problem prompt query questiontext problemtext problemstatement questionstem questioncontent "
    "instruction input messages conversations conversation chat extrainfo.question text content 问题 题目",
    "answer": "answer finalanswer groundtruth gold goldanswer goldenanswer correctanswer expectedanswer referenceanswer "
    "rewardmodel.groundtruth answerkey label target solution extrainfo.answer answers correct response output completion 答案",
    "paraphrase": "paraphrase paraphrasedquestion paraphrasedproblem paraphrasedprompt questionparaphrase rephrased "
    "rephrasedquestion rephrasedproblem rephrasedprompt rewritten rewrittenquestion rewrittenproblem rewrite pairedquestion",
    "choices": "choices options choice option candidates answerchoices extrainfo.choices",
    "image": "image images decodedimage img imgs imagepath imagepaths picture figure",
}
CHOICE_SETS = [[f"{prefix}{letter}" for letter in string.ascii_lowercase[:10]] for prefix in ("", "option", "choice", "answer")]
GPQA = ["correctanswer", "incorrectanswer1", "incorrectanswer2", "incorrectanswer3"]
MOST_LISTED = 30


@dataclass(frozen=True)
class Columns:
    """The column of each role; None where there is none. `choices` may be several columns, one a choice."""

    question: str
    answer: str | None = None
    paraphrase: str | None = None
    choices: tuple[str, ...] = ()
    image: str | None = None

    def said(self) -> str:
        """'question = problem, answer = solution', for people."""
        roles = {"question": self.question, "answer": self.answer, "paraphrase": self.paraphrase}
        roles |= {"choices": " + ".join(self.choices) or None, "image": self.image}
        return ", ".join(f"{role} = {column or 'none'}" for role, column in roles.items() if column or role == "answer")


def find(table: Table, data: DataConfig, source: str, lenient: bool = False) -> tuple[Columns, tuple[str, ...]]:
    """The columns of a table, and notes. `lenient`: a named column that is missing here is guessed, and noted.

    Raises DataError when a named column does not exist or nothing looks like a question.
    """
    names, notes = table.columns(), []
    found: dict[str, str | None] = {}
    for role in ("question", "answer", "paraphrase", "image"):
        wanted = getattr(data, f"{role}_column")
        if wanted and lenient and not _exists(table, wanted):
            notes.append(f"no column '{wanted}' here: the {role} column is guessed")
            wanted = None
        found[role] = _named(table, names, role, wanted, source) if wanted else _guess(table, names, role)
    if found["question"] is None:
        raise DataError(
            f"data '{source}': no column looks like a question; set data.question_column to one of {_shown(names)}"
            + ("; if these are a first question and not names, give the file a header line" if len(names) < 4 else "")
        )
    if not data.answer_column and found["answer"] in (None, found["question"]):
        found["answer"] = _answer_in_chat(table, found["question"])
    choices = _choices(table, names, data, source, lenient)
    return Columns(found["question"], found["answer"], found["paraphrase"], choices, found["image"]), tuple(notes)


def _exists(table: Table, column: str) -> bool:
    return any(column in row.cells or cell(row, column) is not None for row in table.rows)


def _named(table: Table, names: Sequence[str], role: str, wanted: str, source: str) -> str:
    if not _exists(table, wanted):
        near = did_you_mean(wanted, list(names))
        raise DataError(f"data '{source}': {role}_column='{wanted}' is not a column; the columns are {_shown(names)}{near}")
    return wanted


def _guess(table: Table, names: Sequence[str], role: str) -> str | None:
    plain = {_plain(name): name for name in reversed(names)}
    candidates = [plain[name] for name in NAMES[role].split() if name in plain]
    filled = [name for name in candidates if any(not is_missing(cell(row, name)) for row in table.rows)]
    return next(iter(filled or (candidates if role == "question" else ())), None)


def _answer_in_chat(table: Table, question: str) -> str | None:
    """The question's own column, when its chats hold replies."""
    replies = (chat.reply(messages) for row in table.rows if (messages := chat.messages(cell(row, question))))
    return question if any(replies) else None


def _choices(table: Table, names: Sequence[str], data: DataConfig, source: str, lenient: bool) -> tuple[str, ...]:
    if data.choices_column:
        wanted = [name.strip() for name in data.choices_column.split(",")]
        if not lenient or all(_exists(table, name) for name in wanted):
            return tuple(_named(table, names, "choices", name, source) for name in wanted)
    if single := _guess(table, [*names, *{name.split(".")[0] for name in names}], "choices"):
        return (single,)
    plain = {_plain(name): name for name in reversed(names)}
    for series in CHOICE_SETS:
        present = [plain[name] for name in series if name in plain]
        if len(present) >= 2 and series[0] in plain:
            return tuple(present)
    return tuple(plain[name] for name in GPQA) if all(name in plain for name in GPQA) else ()


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


def _shown(names: Sequence[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
