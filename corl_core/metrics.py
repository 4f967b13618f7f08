"""Every metric's name, meaning and unit, in one table: the words beside each curve come from here."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

from corl_core import diagnostics
from corl_core.alarms.record import TITLES
from corl_core.alarms.watch import about
from corl_core.methods import SIGNALS

Scope = Literal["agent", "cohort", "pair"]
UNIT_INTERVAL = (0.0, 1.0)


@dataclass(frozen=True)
class Metric:
    """What a metric's name stands for. `scope` says whether it belongs to an agent, a cohort or a pair of agents."""

    name: str
    label: str
    unit: str
    scope: Scope
    doc: str
    needs_truth: bool = False
    bounds: tuple[float, float] | None = None


def _of(function: Callable, label: str, scope: Scope = "agent", *, name: str = "", truth: bool = False,
        bounds: tuple[float, float] | None = UNIT_INTERVAL) -> Metric:  # fmt: skip
    doc = " ".join((function.__doc__ or "").split())
    return Metric(name or function.__name__, label, "fraction", scope, doc, truth, bounds)


_TABLE = [
    Metric("reward", "Reward", "", "agent",
           "Mean reward over the rollouts of labelled groups: a fraction for 0/1 rewards, nats for Intuitor and RENT."),
    *(Metric(f"reward/{name}", f"Reward of {signal.label}", "", "agent",
             f"Mean reward that the signal {signal.label} ({signal.about}) adds to a weighted sum, before its weight.")
      for name, signal in SIGNALS.items()),
    Metric("reward_std", "Reward std", "", "agent", " ".join(diagnostics.reward_std.__doc__.split())),
    Metric("reward_std_normalized", "Reward std, relative to the first step", "ratio", "agent",
           "Reward std divided by its value at the first step where that is above zero."),
    _of(diagnostics.frac_reward_zero_std, "Groups without learning signal"),
    _of(diagnostics.labeled_frac, "Labelled questions"),
    _of(diagnostics.vote_share, "Vote share"),
    _of(diagnostics.parse_rate, "Parsed completions"),
    _of(diagnostics.tie_rate, "Tied votes"),
    _of(diagnostics.unparsed_vote_rate, "Votes without any answer"),
    _of(diagnostics.below_share_rate, "Votes below the threshold"),
    _of(diagnostics.grade_timeout_rate, "Grading timeouts"),
    _of(diagnostics.grade_error_rate, "Grading errors"),
    _of(diagnostics.pseudo_label_accuracy, "Pseudo-label accuracy", truth=True),
    _of(diagnostics.vote_accuracy, "Vote accuracy", truth=True),
    _of(diagnostics.reward_accuracy, "Reward accuracy", truth=True),
    _of(diagnostics.false_reward_rate, "False reward rate", truth=True),
    Metric("entropy", "Token entropy", "nats", "agent",
           "Entropy of the next-token distribution at the sampling temperature, averaged over completion tokens."),
    Metric("self_certainty", "Self-certainty", "nats", "agent",
           "KL divergence of the next-token distribution from the uniform one, averaged over completion tokens (Intuitor's "
           "reward)."),
    Metric("completions/mean_length", "Completion length", "tokens", "agent",
           "Mean length of the completions, end token included."),
    Metric("completions/clipped_ratio", "Clipped completions", "fraction", "agent",
           "Share of completions cut off at the longest allowed length.", bounds=UNIT_INTERVAL),
    Metric("eval/accuracy", "Accuracy", "fraction", "agent",
           "Share of sampled completions whose answer is right, on held-out questions, at the training temperature.",
           True, UNIT_INTERVAL),
    Metric("eval/majority_accuracy", "Majority accuracy", "fraction", "agent",
           "Share of held-out questions on which the vote of the sampled answers is right; no vote counts as wrong.",
           True, UNIT_INTERVAL),
    Metric("loss", "Loss", "", "agent",
           "TRL's policy loss; about zero by construction when each batch is used once at beta = 0."),
    Metric("grad_norm", "Gradient norm", "", "agent", "Norm of the gradient before clipping."),
    Metric("kl", "KL divergence", "nats", "agent",
           "Divergence from the base model (the k3 estimate), averaged over completion tokens, where there is a KL penalty."),
    Metric("learning_rate", "Learning rate", "", "agent", "Learning rate of the update."),
    Metric("generate_time_s", "Time sampling", "s", "agent", "Part of a step spent sampling completions."),
    Metric("grade_time_s", "Time grading", "s", "agent", "Part of a step spent parsing answers, voting and rewarding."),
    Metric("log_time_s", "Time recording", "s", "agent", "Part of a step spent recording metrics and rollouts."),
    Metric("update_time_s", "Time updating", "s", "agent", "Rest of a step: the forward and backward pass and the update."),
    Metric("exchange_wait_s", "Wait for the peer", "s", "agent", "Time spent waiting for the peer's votes in a step."),
    Metric("step_time_s", "Step time", "s", "agent", "Wall time from the start of a step to the end of its update."),
    Metric("tokens", "Tokens", "tokens", "agent", "Prompt and completion tokens the agent has seen in training, cumulative."),
    _of(diagnostics.agreement, "Agreement", "cohort"),
    _of(diagnostics.kappa, "Error overlap: kappa", "cohort", name="error_overlap/kappa", truth=True, bounds=(-1.0, 1.0)),
    _of(diagnostics.jaccard, "Error overlap: Jaccard", "cohort", name="error_overlap/jaccard", truth=True),
    _of(diagnostics.same_wrong, "Error overlap: same wrong answer", "cohort", name="error_overlap/same_wrong", truth=True),
    _of(diagnostics.both_wrong, "Error overlap: both wrong", "cohort", name="error_overlap/both_wrong", truth=True),
]  # fmt: skip
METRICS: dict[str, Metric] = {metric.name: metric for metric in _TABLE}

HEADLINES = ("agreement", "pseudo_label_accuracy", "error_overlap/kappa", "reward_std")


def describe(name: str) -> Metric:
    """The metric behind a logged name: 'eval/accuracy/add', 'eval/agreement', 'agreement/a.b' and 'alarm/parse_drop' included.

    Raises KeyError for a name that no metric has.
    """
    if name in METRICS:
        return METRICS[name]
    if name.startswith("alarm/") and (kind := name.removeprefix("alarm/")) in TITLES:
        return Metric(name, f"Alarm: {TITLES[kind]}", "", "agent", f"1 where it is raised, 0 where it ends. {about(kind)}")
    base = name.removeprefix("eval/")
    while base:
        if base in METRICS:
            return _variant(METRICS[base], name)
        if f"eval/{base}" in METRICS:
            return _variant(METRICS[f"eval/{base}"], name)
        base = base.rpartition("/")[0]
    raise KeyError(f"no metric is called {name!r}")


def _variant(metric: Metric, name: str) -> Metric:
    held_out = name.startswith("eval/") and not metric.name.startswith("eval/")
    rest = name.removeprefix("eval/").removeprefix(metric.name.removeprefix("eval/")).strip("/")
    label = metric.label + (f" ({rest})" if rest else "") + (", held-out" if held_out else "")
    scope = "pair" if metric.scope == "cohort" and rest else metric.scope
    doc = metric.doc + (" Measured on the held-out questions." if held_out else "")
    return Metric(name, label, metric.unit, scope, doc, metric.needs_truth, metric.bounds)
