"""How fast a run trains, from the ends of its journals."""

import json

from corl_core.config import load_config
from corl_core.runs import launch
from corl_core.runs.speed import STEPS, Speed, run_speed, speed


def lines(num: int, every_s: float, tokens: int) -> list[dict]:
    return [{"event": "step", "time": 100 + every_s * n, "step": n, "metrics": {"tokens": tokens * n}} for n in range(num)]


def test_a_cohort_is_as_fast_as_its_slowest_agent_and_has_the_tokens_of_all():
    # 4 steps in 2 s are 2 steps/s and 200 tokens/s; 4 steps in 4 s are 1 step/s and 50 tokens/s
    assert speed([lines(5, 0.5, 100), lines(5, 1.0, 50)]) == Speed(1.0, 250.0)


def test_before_two_steps_of_every_agent_nothing_is_known():
    assert speed([lines(5, 0.5, 100), lines(1, 1.0, 50)]) is None
    assert speed([]) is None
    assert speed([lines(3, 0.0, 100)]) is None  # no time has passed


def test_steps_without_tokens_still_have_a_pace():
    bare = [{"event": "step", "time": float(n), "step": n, "metrics": {}} for n in range(3)]
    assert speed([bare]) == Speed(1.0, None)


def test_only_the_end_of_a_journal_counts(tmp_path):
    run = launch.create(load_config("demo-pair"), tmp_path)
    assert run_speed(run) is None
    slow, fast = lines(100, 10.0, 100), lines(STEPS, 0.1, 100)
    for path in [run.agent_path(agent.name) / "journal.jsonl" for agent in run.config.agents]:
        path.parent.mkdir(parents=True, exist_ok=True)
        told = [*slow, {"event": "eval", "step": 100, "metrics": {}}]
        told += [line | {"time": 5000 + line["time"], "step": 100 + line["step"]} for line in fast]
        path.write_text("".join(json.dumps(line) + "\n" for line in told) + '{"event": "step", "unfinished')
    now = run_speed(run)
    assert now is not None and round(now.steps_per_s, 6) == 10.0 and round(now.tokens_per_s or 0, 3) == 2 * 1000
