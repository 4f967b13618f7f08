"""A question as every data source hands it to the rest of the project."""

from dataclasses import dataclass


class DataError(ValueError):
    """Data that cannot be used; the text names the source, what is wrong and what to do."""


@dataclass(frozen=True)
class Question:
    """One question; `answer` is its ground truth, None when nobody knows it.

    `id` is unique within a source and equal questions have equal ids. `question` is the prompt's text, verbatim.
    `kind` groups questions for reports (in arithmetic: add, sub, mul), None when the source has no groups.
    `paraphrase` asks the same in other words and has the same answer; None when there is none. The id is the original's.
    """

    id: str
    question: str
    answer: str | None = None
    kind: str | None = None
    paraphrase: str | None = None

    def asked(self, paraphrased: bool) -> str:
        """The text that an agent trains on: the paraphrase if it is to read one and there is one."""
        return self.paraphrase if paraphrased and self.paraphrase else self.question
