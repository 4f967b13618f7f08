"""Which column of a file of answers holds what: guessed from its name, without regard to case, spaces, '_' and '-'.

Long: one row an answer, with the model's name in a column. Wide: one row a question, one column a model; a nested column
(`llama.solution`) belongs to the model it is nested in.
"""

import re
from dataclasses import dataclass

from corl_core.data.questions import DataError
from corl_core.data.tables import Table, cell, is_missing

NAMES = {
    "question_id": "questionid qid id uniqueid promptid problemid taskid docid exampleid index idx question problem prompt query",
    "question": "question problem prompt query questiontext problemtext",
    "model": "model modelname modelid agent llm system checkpoint",
    "answer": "answer modelanswer predictedanswer prediction pred extractedanswer parsedanswer finalanswer",
    "completion": "completion response output generation solution modeloutput generatedtext resps text",
    "truth": "truth groundtruth gold goldanswer goldenanswer correctanswer expectedanswer referenceanswer trueanswer target "
    "reference label",
}
PASSED_OVER = (
    "sample sampleid sampleindex k seed kind category subject level difficulty type topic split source url row line temperature "
    "iscorrect correct score reward acc tokens numtokens length timestamp choices options image images notes"
)
"""Columns of wide files that are nobody's answers."""
_UNNAMED = re.compile(r"column \d+|unnamed: ?\d+|", re.IGNORECASE)  # the index that pandas writes
MOST_LISTED = 20


@dataclass(frozen=True)
class Layout:
    """Where things stand. `answers`: (model or None for long files, column, whether it holds whole completions)."""

    question_id: str | None  # None: the rows are numbered
    question: str | None
    truth: str | None
    model: str | None  # None: a wide file
    answers: tuple[tuple[str | None, str, bool | None], ...]  # None: an answer or a completion, as each cell says itself
    completion: str | None = None  # of a long file: read where its answer is empty

    @property
    def truth_is_a_guess(self) -> bool:
        """Whether a column called 'answer' beside the models' columns is taken for the true one."""
        return self.truth is not None and _plain(self.truth) in NAMES["answer"].split()


def find(table: Table, source: str) -> Layout:
    """The layout of a table. Raises DataError when it has neither."""
    names = table.columns()
    plain = {_plain(name): name for name in reversed(names)}

    def named(role: str) -> str | None:
        present = [plain[name] for name in NAMES[role].split() if name in plain]
        return next((name for name in present if any(not is_missing(cell(row, name)) for row in table.rows)), None)

    question_id, question, truth, model = named("question_id"), named("question"), named("truth"), named("model")
    completion, answer = named("completion"), named("answer")
    if model is not None:
        if completion is None and answer is None:
            raise DataError(
                f"answers '{source}': column '{model}' names models, but no column holds their answers; "
                f"call it 'answer' or 'completion' (the columns are {_listed(names)})"
            )
        if question_id is None:
            raise DataError(f"answers '{source}': no column tells the questions apart; add 'question_id' to {_listed(names)}")
        column = (None, answer, False) if answer is not None else (None, completion, True)
        return Layout(question_id, question, truth, model, (column,), completion)
    if truth is None and answer is not None:  # no column of models: an answer beside the models' columns is the true one
        truth = answer
    columns = _of_models(names, {question_id, question, truth})
    if len({model for model, _, _ in columns}) < 2:
        raise DataError(
            f"answers '{source}': neither long nor wide: there is no column 'model', and fewer than two columns that could be "
            f"models' answers among {_listed(names)}; give one row an answer with question_id, model, answer (or completion) "
            "and, if known, truth; or one row a question with a column for each model"
        )
    return Layout(question_id, question, truth, None, columns)


def _of_models(names: list[str], taken: set[str | None]) -> tuple[tuple[str, str, bool | None], ...]:
    """The columns of a wide file that hold answers; of several nested in one model, the one named like an answer."""
    found: dict[str, tuple[str, bool | None]] = {}
    for name in names:
        if name in taken or _UNNAMED.fullmatch(name):
            continue
        outer, dot, leaf = name.rpartition(".")
        role = next((role for role in ("answer", "completion") if _plain(leaf) in NAMES[role].split()), None)
        if dot and role is not None:
            if outer not in found or role == "answer":
                found[outer] = (name, role == "completion")
        elif _plain(leaf) not in PASSED_OVER.split():
            found.setdefault(name, (name, None))
    return tuple((model, name, kind) for model, (name, kind) in found.items())


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.casefold())


def _listed(names: list[str]) -> str:
    more = f" and {len(names) - MOST_LISTED} more" if len(names) > MOST_LISTED else ""
    return ", ".join(names[:MOST_LISTED]) + more
