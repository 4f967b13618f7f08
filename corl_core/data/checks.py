"""What preflight looks at, one function a check; each gives findings: sentences with a level."""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Literal

from corl_core.config import RunConfig
from corl_core.data import overlap
from corl_core.data.learning_signal import zero_signal
from corl_core.data.paraphrase import Pair
from corl_core.data.sources import ARITHMETIC, Loaded
from corl_core.data.tables import Trouble, listed
from corl_core.tiny_names import is_tiny

NEEDED_FRAC = 0.9
"""Share of the true answers that must parse, and of the prompts that must fit."""
Level = Literal["ok", "note", "warning", "refusal"]


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at, in a sentence."""

    check: str
    level: Level
    text: str


@dataclass(frozen=True)
class Lengths:
    """Prompt lengths, one a question, in tokens of `agent`'s model, which has room for `context` of them."""

    agent: str
    tokens: Sequence[int]
    context: int | None
    ends: bool = False  # what is longer fails, for the model has a table of positions; another one reads on, and worse


def loaded(what: str, loaded: Loaded) -> list[Finding]:
    check = f"{what} questions"
    columns = f"; {loaded.columns.said()}" if loaded.columns else ""
    findings = [Finding(check, "ok", f"{len(loaded.questions):,} {what} questions from '{loaded.source}'{columns}")]
    if loaded.dropped:
        findings.append(Finding(check, "warning", f"{len(loaded.dropped):,} {what} rows are left out: {listed(loaded.dropped)}"))
    return findings + [Finding(check, "warning", note[:1].upper() + note[1:]) for note in loaded.notes]


def gold(config: RunConfig, train: Loaded) -> Finding:
    """Supervised training needs the truth; the other methods only measure with it."""
    said, share = _answers(train), train.num_labelled / len(train.questions)
    if "ground_truth" in config.signals and share < NEEDED_FRAC:
        columns = f"; the columns are {', '.join(train.names)}" if train.names else ""
        text = (
            f"method '{config.method}' needs true answers for {NEEDED_FRAC:.0%} of the training questions: {said}; "
            f"mend these answers, set data.answer_column, or choose a method without labels (corl, ttrl){columns}"
        )
        return Finding("true answers", "refusal", text)
    if share == 0:
        text = "No true answers for training: what needs them, like pseudo-label accuracy, is not shown"
        return Finding("true answers", "warning" if train.unreadable else "note", f"{text}; {said}" if train.unreadable else text)
    return Finding("true answers", "warning" if train.unreadable else "ok", f"Training: {said}")


def chosen_by(config: RunConfig, held_out: Loaded | None) -> list[Finding]:
    """Weights that are chosen by held-out questions need some, and their answers where those say which are best."""
    rule = config.eval.checkpoint
    if rule == "last":
        return []
    if held_out is None or not held_out.questions:
        lacking = f"there are none for data.train='{config.data.train}'; set data.eval"
    elif rule == "ground_truth" and not held_out.num_labelled:
        lacking = "none of them has a true answer; mend them, or set another data.eval"
    else:
        return []
    text = f"eval.checkpoint='{rule}' chooses weights by held-out questions: {lacking}, or take eval.checkpoint='last'"
    return [Finding("chosen weights", "refusal", text)]


def held_out_gold(held_out: Loaded) -> Finding:
    share = held_out.num_labelled / max(1, len(held_out.questions))
    return Finding("held-out answers", "warning" if share < NEEDED_FRAC else "ok", f"Held-out: {_answers(held_out)}")


def _answers(loaded: Loaded) -> str:
    """'1,300 of 1,319 true answers parse (98.6%); 10 rows have none; 9 say nothing parsable (line 4: …)'."""
    total, good, bad = len(loaded.questions), loaded.num_labelled, len(loaded.unreadable)
    parts = [f"{good:,} of {total:,} true answers parse ({good / total:.1%})"]
    if none := total - good - bad:
        named = {trouble.where for trouble in loaded.unreadable}
        rows = zip(loaded.places, loaded.questions, strict=False)
        empty = [place for place, question in rows if question.answer is None and place not in named]
        parts.append(f"{none:,} rows have none ({', '.join(empty[:3])}{', …' if none > 3 else ''})")
    return "; ".join(parts + ([f"{bad:,} say nothing parsable ({listed(loaded.unreadable)})"] if bad else []))


def fit(config: RunConfig, train: Loaded, measured: Sequence[Lengths]) -> list[Finding]:
    """Prompt lengths, in tokens where they were measured; and tiny models on questions that are not theirs."""
    tiny = [agent.name for agent in config.agents if is_tiny(agent.model)] if train.source != ARITHMETIC else []
    text = f"Tiny models ({', '.join(tiny)}) know the built-in arithmetic only; take a real model for other data"
    strangers = [Finding("models", "warning", text)] if tiny else []
    if measured:
        return strangers + [_room(lengths, _longest(config, lengths), train.places) for lengths in measured]
    templates = {config.for_agent(agent.name).data.prompt_template for agent in config.agents}
    sizes = [len(template.format(question=question.question)) for question in train.questions for template in templates]
    text = (
        f"Prompts have {median(sizes):,.0f} characters in the middle, {max(sizes):,} at most; "
        "tokens are counted where the model is at hand"
    )
    return [*strangers, Finding("prompt lengths", "ok", text)]


def held_out_fit(config: RunConfig, held_out: Loaded, measured: Sequence[Lengths]) -> list[Finding]:
    """Held-out prompts that are too long for an agent."""
    found = [_room(lengths, _longest(config, lengths), held_out.places, "Held-out prompts") for lengths in measured]
    return [finding for finding in found if finding.level != "ok"]


def _longest(config: RunConfig, lengths: Lengths) -> int:
    return config.for_agent(lengths.agent).grpo.max_completion_length


def _room(lengths: Lengths, completion: int, places: Sequence[str], what: str = "Prompts") -> Finding:
    """Whether the prompts leave room for a whole completion in the model's context."""
    sizes, context = lengths.tokens, lengths.context
    said = f"{what} of agent '{lengths.agent}' have {median(sizes):,.0f} tokens in the middle, {max(sizes):,} at most"
    if context is None:
        return Finding("prompt lengths", "ok", said)
    limit = f"{context - completion:,} (the model's {context:,} less {completion:,} for a completion)"
    long = [row for row, size in enumerate(sizes) if size > context - completion]
    if not long:
        return Finding("prompt lengths", "ok", f"{said}; room for {limit}")
    first = f", first {places[long[0]]}" if places else ""
    remedy = "lower grpo.max_completion_length, leave them out, or take a model with a longer context"
    level: Level = "refusal" if lengths.ends or (len(sizes) - len(long)) / len(sizes) < NEEDED_FRAC else "warning"
    fails = ", and this model cannot read on" if lengths.ends else ""
    return Finding("prompt lengths", level, f"{said}; {len(long):,} do not fit into {limit}{first}{fails}; {remedy}")


def repeats(config: RunConfig, train: Loaded) -> list[Finding]:
    """Questions that are in training more than once, or too few for a step."""
    texts = [question.question for question in train.questions]
    groups = overlap.duplicates(texts)
    distinct = len(texts) - sum(len(group) - 1 for group in groups)
    if train.source == ARITHMETIC:
        return [Finding("duplicates", "ok", f"{distinct:,} different questions, drawn with repeats; held-out ones never")]
    findings = []
    if distinct < config.grpo.questions_per_step:
        step = f"grpo.questions_per_step={config.grpo.questions_per_step}"
        text = f"Only {distinct:,} different questions for {step}: a step repeats some"
        findings.append(Finding("duplicates", "warning", text))
    if not groups:
        return [*findings, Finding("duplicates", "ok", "No training question is there twice")]
    answers = [{train.questions[row].answer for row in group} - {None} for group in groups]
    torn = sum(len(given) > 1 for given in answers)
    where = "; ".join(" = ".join(train.places[row] for row in group[:4]) for group in groups[:3])
    text = f"{len(texts) - distinct:,} training questions repeat another ({where}{'; …' if len(groups) > 3 else ''})"
    text += f"; {torn:,} of them with another true answer" if torn else ""
    return [*findings, Finding("duplicates", "warning", text)]


def overlapping(train: Loaded, held_out: Loaded | None) -> list[Finding]:
    """Held-out questions that are in training, too; the built-in ones never are."""
    if held_out is None or not held_out.questions or (train.source, held_out.source) == (ARITHMETIC, ARITHMETIC):
        return []
    texts = [question.question for question in held_out.questions]
    shares = overlap.overlaps(texts, [question.question for question in train.questions])
    rule = f"the same text, or at least {overlap.OVERLAP_SHARE:.0%} of their word {overlap.NGRAM}-grams"
    if not shares:
        return [Finding("overlap", "ok", f"No held-out question is in the training questions ({rule})")]
    same = sum(share == 1.0 for share in shares.values())
    where = ", ".join(held_out.places[row] if held_out.places else texts[row] for row in list(shares)[:3])
    text = (
        f"{len(shares):,} of {len(texts):,} held-out questions are in the training questions ({rule}; {same:,} whole): {where}"
        f"{', …' if len(shares) > 3 else ''}; accuracy on them is no test of new questions"
    )
    return [Finding("overlap", "warning", text)]


def paraphrases(config: RunConfig, train: Loaded, pairs: Sequence[Pair]) -> list[Finding]:
    """Whether the agents that read paraphrases find some, and whether their numbers are those of the question."""
    both = "co_rewarding_1" in config.signals
    readers = [agent.name for agent in config.agents if agent.paraphrase or both]
    if readers and not pairs:
        text = (
            f"agents {', '.join(readers)} are to read paraphrases and '{train.source}' has none; set data.paraphrase_column, "
            "or make them with: python -m corl_core paraphrase"
        )
        return [Finding("paraphrases", "refusal", text)]
    if not pairs:
        return []
    flagged = [pair for pair in pairs if pair.flagged]
    who = f", read by {', '.join(readers)}" if readers else ", read by no agent"
    text = f"{len(pairs):,} of {len(train.questions):,} questions have a paraphrase{who}"
    if both and len(pairs) < len(train.questions):
        text += "; Co-rewarding-I asks the others twice in the same words"
    if not flagged:
        return [Finding("paraphrases", "ok", text)]
    shown = listed([Trouble(pair.place, pair.change()) for pair in flagged])
    return [Finding("paraphrases", "warning", f"{text}; in {len(flagged):,} the numbers changed: {shown}")]


def signal(config: RunConfig, accuracies: Sequence[float]) -> Finding:
    """The share of questions that will give no learning signal, averaged over the questions whose accuracy is known."""
    k = config.grpo.num_generations
    if not accuracies:
        text = "Share of questions without a learning signal: unknown; each question's accuracy is needed (check-data --rollouts)"
        return Finding("signal", "note", text)
    share = zero_signal(accuracies, k)
    known = f"over {len(accuracies):,} questions"
    text = f"{share:.1%} of the groups of {k} will be all right or all wrong and teach nothing ({known})"
    return Finding("signal", "warning" if share > 0.5 else "ok", text)
