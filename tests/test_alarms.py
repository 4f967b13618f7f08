"""Alarms on journals written by hand: each detector on both sides of its threshold, and what ends an alarm."""

import math

import pytest

from corl_core.alarms.lock_in import confident_disagreement, confident_fall
from corl_core.alarms.record import KINDS, alarms_of
from corl_core.alarms.seen import Joint, JointStep
from corl_core.alarms.watch import Watch, about

HEALTHY = {
    "reward": 0.5, "frac_reward_zero_std": 0.2, "vote_share": 0.6, "entropy": 0.5, "parse_rate": 1.0, "loss": 0.0,
    "completions/mean_length": 100.0, "completions/clipped_ratio": 0.0,
}  # fmt: skip


def step(number: int, votes=(), **metrics) -> dict:
    """A healthy 'step' line but for `metrics` (a metric given as None is missing); each of its questions is asked once."""
    named = {name.replace("__", "/"): value for name, value in metrics.items()}
    values = {name: value for name, value in (HEALTHY | named).items() if value is not None}
    questions = [f"{number}.{place}" for place in range(len(votes))]
    return {"event": "step", "step": number, "metrics": values, "votes": list(votes), "questions": questions}


def events(lines, num_votes: int = 8, **settings) -> list[dict]:
    watch = Watch(["a"], num_votes, **settings)
    return [event for line in lines for event in watch.add("a", line)]


def raised(lines, **settings) -> list[tuple[str, int]]:
    return [(event["kind"], event["step"]) for event in events(lines, **settings) if event["event"] == "alarm"]


def run_of(num_steps: int, **later) -> list[dict]:
    """10 healthy first steps, then steps with `later`'s metrics."""
    return [step(number) for number in range(10)] + [step(number, **later) for number in range(10, num_steps)]


def test_a_healthy_run_raises_none():
    assert raised(run_of(200)) == []


# A window holds 25 steps, and is compared with the 10 first only when it holds none of them: steps 10 to 34 at the earliest.
@pytest.mark.parametrize(
    ("kind", "below", "above"),
    [
        ("length_collapse", {"completions__mean_length": 30.0}, {"completions__mean_length": 29.0}),  # 0.3 of 100
        ("parse_drop", {"parse_rate": 0.5}, {"parse_rate": 0.49}),  # half of 1
        ("entropy_collapse", {"entropy": 0.05}, {"entropy": 0.049}),  # a tenth of 0.5
    ],
)
def test_a_fall_from_the_start_is_raised_just_below_its_threshold(kind, below, above):
    assert raised(run_of(60, **below)) == []
    assert raised(run_of(60, **above)) == [(kind, 34)]


def test_long_completions_are_raised_when_more_than_half_are_cut_off():
    assert raised(run_of(60, completions__clipped_ratio=0.5)) == []
    blown = [step(number, completions__clipped_ratio=0.51) for number in range(20)]
    assert raised(blown) == [("length_blow_up", 9)]  # no start to compare with: ten steps are enough


def test_certainty_is_no_collapse_where_nearly_everything_is_rewarded():
    assert raised(run_of(60, entropy=0.02, reward=0.9)) == []
    assert raised(run_of(60, entropy=0.02, reward=0.89)) == [("entropy_collapse", 34)]
    assert raised(run_of(60, entropy=0.02, reward=None)) == [("entropy_collapse", 34)]


def test_entropy_that_breaks_log_probabilities_is_raised_whatever_the_reward():
    assert raised([step(number, entropy=1.1e-3, reward=1.0) for number in range(60)]) == []
    assert raised([step(number, entropy=0.9e-3, reward=1.0) for number in range(60)]) == [("entropy_collapse", 9)]


def test_no_learning_signal_is_raised_unless_all_is_rewarded():
    assert raised(run_of(80, frac_reward_zero_std=0.9, reward=0.1)) == []
    # (0.2 (25 - n) + 1.0 n) / 25 > 0.9 at n = 22 steps of 1: the 22nd after the first ten is step 31
    assert raised(run_of(80, frac_reward_zero_std=1.0, reward=0.1)) == [("zero_signal", 31)]
    assert raised(run_of(80, frac_reward_zero_std=1.0, reward=None)) != []
    assert raised(run_of(80, frac_reward_zero_std=1.0, reward=1.0)) == []  # (0.5 * 3 + 22) / 25 = 0.94 by then


def test_a_reward_that_was_always_granted_is_no_learning_signal():
    assert raised([step(number, frac_reward_zero_std=1.0, reward=1.0) for number in range(60)]) == [("zero_signal", 34)]


@pytest.mark.parametrize("value", [math.nan, math.inf, -math.inf])
def test_what_is_not_a_number_is_raised_at_once_and_does_not_end(value):
    lines = [step(0), step(1, loss=value), *(step(number) for number in range(2, 80))]
    assert [(event["event"], event["kind"], event["step"]) for event in events(lines)] == [("alarm", "non_finite", 1)]
    update = {"event": "update", "step": 3, "metrics": {"grad_norm": value, "step_time_s": 1.0}}
    assert raised([step(0), update]) == [("non_finite", 3)]


def votes_with(constant: int, others: int, number: int) -> list[str]:
    return ["0"] * constant + [f"{number}:{place}" for place in range(others)]


def test_one_answer_to_different_questions_is_raised_above_three_tenths():
    first = [step(number, votes_with(0, 10, number)) for number in range(10)]
    at = [step(number, votes_with(3, 7, number)) for number in range(10, 60)]
    over = [step(number, votes_with(4, 6, number)) for number in range(10, 60)]
    assert raised(first + at) == []  # 0.3 is not more than 0.3
    # a window of 25 steps holds 4 n of 250 votes from n later steps: above 0.3, that is 75 votes, at n = 19
    assert raised(first + over) == [("constant_answer", 28)]


def test_an_answer_asked_for_again_and_again_counts_once():
    same = [{**step(number, votes_with(4, 6, 0)), "questions": [f"q{place}" for place in range(10)]} for number in range(60)]
    assert raised(same) == []  # 10 different questions are too few


def test_choices_may_start_at_a_quarter_and_must_pass_a_half():
    def choices(of_a: int, number: int) -> dict:
        rest = [letter for letter in "BCD" for _ in range(4)]
        return step(number, ["A"] * of_a + rest[: 12 - of_a] if of_a > 4 else ["A"] * 4 + rest[:12])

    # at the start 4 of 16 votes are A: 0.25, so the limit is twice that
    first = [choices(4, number) for number in range(10)]
    assert raised(first + [choices(6, number) for number in range(10, 60)]) == []  # 6 of 12 is a half
    assert raised(first + [choices(7, number) for number in range(10, 60)]) != []  # 7 of 12 is more


def evaluation(number: int, accuracy: float, majority: float | None = None) -> dict:
    metrics = {"eval/accuracy": accuracy} | ({} if majority is None else {"eval/majority_accuracy": majority})
    return {"event": "eval", "step": number, "metrics": metrics, "votes": [], "truths": []}


def evaluated(accuracies, rewards, majorities=None, **metrics) -> list[dict]:
    """An evaluation every 25 steps, and between two of them steps with one reward (window = 25 steps)."""
    lines: list[dict] = []
    for place, accuracy in enumerate(accuracies):
        if place:
            steps = range(25 * (place - 1), 25 * place)
            lines += [step(number, reward=rewards[place], **metrics) for number in steps]
        lines.append(evaluation(25 * place, accuracy, majorities[place] if majorities else None))
    return lines


def test_reward_up_and_accuracy_down_needs_both_slopes():
    # With the evaluation before training (which has no reward) it takes five. Least squares through four equidistant
    # points y is (3 (y3 - y0) + (y2 - y1)) / 10 a point, times 3 from end to end: for -0.01 a point -0.03, for -0.011 -0.033.
    rewards = [None, 0.5, 0.51, 0.52, 0.53]
    assert raised(evaluated([0.7, 0.7, 0.69, 0.68, 0.67], rewards)) == []  # not more than 0.03
    assert raised(evaluated([0.7, 0.7, 0.689, 0.678, 0.667], rewards)) == [("reward_up_accuracy_down", 100)]
    assert raised(evaluated([0.7, 0.7, 0.689, 0.678, 0.667], [None, 0.5, 0.5, 0.5, 0.5])) == []
    assert raised(evaluated([0.7, 0.7, 0.72, 0.74, 0.76], rewards)) == []


def test_rewards_that_are_no_fractions_are_read_relatively():
    falling = [0.7, 0.7, 0.65, 0.6, 0.55]
    assert raised(evaluated(falling, [None, -9.0, -8.0, -7.0, -6.0])) == [("reward_up_accuracy_down", 100)]
    assert raised(evaluated(falling, [None, 900.0, 901.0, 902.0, 903.0])) == []  # 3 of 903


def test_a_confident_fall_of_the_majority_takes_two_evaluations():
    majority, accuracy, rewards = [0.8, 0.74, 0.74], [0.7] * 3, [None, 0.5, 0.5]
    assert raised(evaluated(accuracy, rewards, majority, vote_share=0.95)) == [("label_lock_in", 50)]
    assert raised(evaluated(accuracy, rewards, majority, vote_share=0.89)) == []
    assert raised(evaluated(accuracy, rewards, [0.8, 0.74, 0.76], vote_share=0.95)) == []  # 0.04 below its best
    assert raised(evaluated(accuracy, rewards, None, vote_share=0.95)) == []  # no ground truth


def joint(pairs, share: float, num_votes: int = 8, questions: int = 8, steps: int = 20) -> Joint:
    """A cohort of a, b (and c) that starts at agreement 0.6 and vote share 0.75 for 12 steps, and is then as given."""
    names = tuple(sorted({name for pair in pairs for name in pair.split(".")}))
    made = Joint(names, num_votes)
    for number in range(12):
        start = {f"agreement/{pair}": 0.6 for pair in pairs}
        made.add(JointStep(number, start, dict.fromkeys(names, 0.75), questions))
    for number in range(12, 12 + steps):
        now = {f"agreement/{pair}": value for pair, value in pairs.items()}
        made.add(JointStep(number, now, dict.fromkeys(names, share), questions))
    return made


def test_sure_agents_that_disagree_are_raised_when_the_proved_error_exceeds_the_doubt():
    # At the start (1 - 0.6) / 2 = 0.2 is proved wrong and 1 - (8 * 0.75 - 1) / 7 = 2/7 is doubted.
    # At vote share 0.825 the doubt is 1 - (6.6 - 1) / 7 = 0.2: as much as agreement 0.6 proves, and 0.58 proves 0.21.
    assert confident_disagreement(joint({"a.b": 0.62}, 0.825), "a") is None
    found = confident_disagreement(joint({"a.b": 0.58}, 0.825), "a")
    assert found.evidence["proved_error"] == pytest.approx(0.21) and found.evidence["doubt"] == pytest.approx(0.2)
    assert found.evidence["doubt_first"] == pytest.approx(2 / 7) and "at least 21% of these votes are wrong" in found.text


def test_agents_that_agree_on_nine_in_ten_are_never_raised():
    # a vote share of 1 leaves no doubt; the proved error is 0.0995 at agreement 0.801, and 0.1005 at 0.799
    assert confident_disagreement(joint({"a.b": 0.801}, 1.0), "b") is None
    assert confident_disagreement(joint({"a.b": 0.799}, 1.0), "b") is not None


def test_a_cohort_that_was_overconfident_from_the_start_must_grow_more_so():
    # With 2 votes the doubt is 2 (1 - s): at the start 0.5 beside a proved 0.2. Ratio 0.4, which must grow to 1 first.
    assert confident_disagreement(joint({"a.b": 0.6}, 0.895, num_votes=2), "a") is None  # 0.2 against 0.21
    assert confident_disagreement(joint({"a.b": 0.6}, 0.905, num_votes=2), "a") is not None  # 0.2 against 0.19
    # With 1000 votes the doubt is 0.25 at the start; nothing changes, and nothing is raised however little they agree.
    steady = Joint(("a", "b"), 1000)
    for number in range(30):
        steady.add(JointStep(number, {"agreement/a.b": 0.2}, {"a": 0.75, "b": 0.75}, 8))  # proves 0.4, doubts 0.25
    assert confident_disagreement(steady, "a") is None


def test_an_agent_is_judged_by_the_mean_over_its_pairs():
    # b and c agree on everything: for them (1 + 0.5) / 2 = 0.75 proves 0.125; for a 0.5 proves 0.25. The doubt is 0.2.
    cohort = joint({"a.b": 0.5, "a.c": 0.5, "b.c": 1.0}, 0.825)
    assert [agent for agent in "abc" if confident_disagreement(cohort, agent)] == ["a"]


def test_disagreement_needs_eighty_comparisons_and_a_peer_and_several_rollouts():
    assert confident_disagreement(joint({"a.b": 0.2}, 0.95, questions=3), "a") is None  # 25 steps of 3 are 75
    assert confident_disagreement(joint({"a.b": 0.2}, 0.95, questions=8, steps=10), "a") is not None
    assert confident_disagreement(joint({"a.b": 0.2}, 0.95, num_votes=1), "a") is None
    alone = Joint(("a",), 8)
    alone.add(JointStep(0, {}, {"a": 1.0}, 80))
    assert confident_disagreement(alone, "a") is None


def test_the_watch_puts_a_cohorts_lines_together_whoever_is_ahead():
    """Agent a is 30 steps ahead of b; what is found, and where, is as if they had gone together."""

    def told(order) -> list[tuple[str, str, int]]:
        watch, found = Watch(["a", "b"], 8), []
        for agent, number in order:
            share, agreed = (0.75, 0.6) if number < 12 else (0.95, 0.4)
            line = step(number, ["x"] * 8, vote_share=share)
            if agent == "":
                line = {"event": "step", "step": number, "metrics": {"agreement": agreed, "agreement/a.b": agreed}}
            found += [(event["kind"], event["agent"], event["step"]) for event in watch.add(agent, line)]
        return found

    together = [(agent, number) for number in range(40) for agent in ("a", "b", "")]
    apart = [("a", n) for n in range(40)] + [(agent, n) for n in range(40) for agent in ("b", "")]
    assert told(together) == told(apart)
    assert [(kind, agent) for kind, agent, _ in told(apart)] == [("label_lock_in", "a"), ("label_lock_in", "b")]


def test_an_alarm_is_raised_once_and_ends_after_a_window_without_it():
    lines = run_of(60, parse_rate=0.1) + [step(number) for number in range(60, 120)]
    lines += [step(number, parse_rate=0.1) for number in range(120, 200)]
    # The mean of the last 25 passes 0.5 again when 0.1 (25 - n) + n >= 12.5, at n = 12: step 71, the first look
    # without it. The 25th such look is step 95. It comes back at step 134 or so, and is not told again.
    assert [(event["event"], event["step"]) for event in events(lines)] == [("alarm", 34), ("alarm_end", 95)]
    (alarm,) = alarms_of(events(lines))
    assert (alarm.kind, alarm.agent, alarm.step, alarm.ended, alarm.title) == ("parse_drop", "a", 34, 95, "Answers unreadable")


def test_an_agent_that_is_resumed_is_judged_by_what_it_does_again():
    lost = [step(number) for number in range(20)] + [step(number, parse_rate=0.1) for number in range(20, 60)]
    again = [{"event": "attempt", "step": 20}, *(step(number) for number in range(20, 120))]
    told = events([*lost, *again, *(step(number, parse_rate=0.1) for number in range(120, 160))])
    # 1 - 0.9 n / 25 < 0.5 at n = 14: step 33, but the window is free of the first ten steps at 34; and later step 133
    assert [(event["event"], event["step"]) for event in told] == [("alarm", 34), ("alarm", 133)]


def test_kinds_that_are_ignored_are_not_raised():
    assert raised(run_of(60, parse_rate=0.1), ignored=["parse_drop"]) == []


def test_an_agent_that_is_ahead_gets_the_earlier_step_once_the_cohort_is_there():
    """Agent a loses majority accuracy by its step 200; b comes later, and with it the disagreement from its first steps on."""
    watch = Watch(["a", "b"], 8)
    ahead = [step(n, ["x"] * 8, vote_share=0.75 if n < 12 else 0.95) for n in range(200)]
    told = [event for line in ahead for event in watch.add("a", line)]
    told += [event for n, right in ((0, 0.8), (100, 0.7), (200, 0.7)) for event in watch.add("a", evaluation(n, 0.7, right))]
    assert [(event["kind"], event["step"]) for event in told] == [("label_lock_in", 200)]
    for n in range(40):
        told += watch.add("b", step(n, ["y"] * 8, vote_share=0.75 if n < 12 else 0.95))
        told += watch.add("", {"event": "step", "step": n, "metrics": {"agreement/a.b": 0.6 if n < 12 else 0.4}})
    (of_a,) = [alarm for alarm in alarms_of(told) if alarm.agent == "a"]
    assert of_a.step < 24 and "agree on" in of_a.text and sum(event["agent"] == "a" for event in told) == 2


def test_lines_without_metrics_votes_or_truth_raise_nothing():
    bare = [{"event": "phase", "phase": "loading"}] + [{"event": "step", "step": n, "metrics": {}} for n in range(60)]
    bare += [{"event": "eval", "step": 60, "metrics": {}}, {"event": "end", "stopped": False}]
    assert events(bare) == []


def test_what_is_remembered_does_not_grow_with_the_run():
    watch = Watch(["a", "b"], 8)
    for number in range(500):
        for agent in ("a", "b"):
            watch.add(agent, step(number, ["x"] * 8))
            watch.add(agent, evaluation(number, 0.5, 0.5))
        watch.add("", {"event": "step", "step": number, "metrics": {"agreement/a.b": 1.0}})
    past = watch._pasts["a"]
    assert (len(past.first), len(past.steps), len(past.evaluations)) == (10, 25, 4)
    assert (len(watch._joint.steps), len(watch._shares), len(watch._num_questions)) == (25, 0, 0)


@pytest.mark.parametrize("kind", KINDS)
def test_every_kind_says_what_raises_it(kind):
    assert len(about(kind)) > 40 and "\n" not in about(kind)


def test_both_signs_of_lock_in_stand_in_its_description():
    for sign in (confident_disagreement, confident_fall):
        assert " ".join(sign.__doc__.split("\n\n")[0].split()) in about("label_lock_in")
