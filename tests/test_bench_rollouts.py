"""`bench rollouts` and the shapes it measures: sizes that are right, arms that sample the same, times that make sense."""

import json
import subprocess
import sys
from types import SimpleNamespace

import pytest
import torch
from torch.autograd import DeviceType

from corl_core.bench import alone, profile, rollouts, shapes
from corl_core.bench.rollouts import Ids, Setting, check, measure, read_seconds, table
from corl_core.cli import bench as command
from corl_core.cli import main
from corl_core.config import ConfigError


def setting(**fields) -> Setting:
    return Setting(**({"model": "tiny", "rows": 8, "tokens": 5, "prompt_tokens": 6, "device": "cpu", "dtype": "float32",
                       "repeats": 1} | fields))  # fmt: skip


@pytest.mark.parametrize(
    ("name", "billions"),
    [("qwen2.5-0.5b", 0.494), ("qwen2.5-1.5b", 1.544), ("qwen2.5-3b", 3.086), ("qwen2.5-7b", 7.616), ("llama-3.2-1b", 1.236),
     ("llama-3.2-3b", 3.213), ("llama-3.1-8b", 8.030), ("smollm2-135m", 0.135), ("qwen3-1.7b", 1.721)],
)  # fmt: skip
def test_shapes_have_as_many_parameters_as_the_models_they_are_called_after(name, billions):
    """By arithmetic; figures of the model cards, to the million."""
    assert shapes.num_parameters(name) / 1e9 == pytest.approx(billions, abs=6e-4)


@pytest.mark.parametrize("name", ["tiny", "smollm2-135m", "qwen3-1.7b"])
def test_the_arithmetic_is_that_of_the_made_model(name):
    from transformers import AutoModelForCausalLM

    with torch.device("meta"):
        model = AutoModelForCausalLM.from_config(shapes.make_config(name))
    model.tie_weights()
    assert sum(parameter.numel() for parameter in model.parameters()) == shapes.num_parameters(name)


def test_a_made_model_computes_and_loads_again(tmp_path):
    """Rotary frequencies are in no checkpoint: made on the device, they are those of a loaded model."""
    from transformers import AutoModelForCausalLM, AutoTokenizer

    folder = shapes.save("tiny", tmp_path / "m", torch.float32)
    made, loaded = shapes.make_model("tiny", "cpu", torch.float32), AutoModelForCausalLM.from_pretrained(folder)
    ids = torch.tensor([[3, 4, 5, 6]])
    torch.testing.assert_close(made(ids).logits, loaded(ids).logits)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert len(tokenizer) == shapes.SHAPES["tiny"]["vocab_size"] and tokenizer.eos_token_id == made.config.eos_token_id
    assert made(ids).logits.std() > 0.05


def test_a_large_vocabulary_has_a_token_for_every_row():
    tokenizer = shapes.make_tokenizer("smollm2-135m")
    assert len(tokenizer) == 49152 and tokenizer.eos_token_id == shapes.make_config("smollm2-135m").eos_token_id
    for text in ("47+38=", "so \\boxed{7} <12>"):
        assert tokenizer(text)["input_ids"] == shapes.make_tokenizer("tiny")(text)["input_ids"]
    assert len(tokenizer.added_tokens_decoder) < 10  # each of them is looked for in every text and at every start


def test_every_arm_samples_whole_completions_of_a_model_without_end():
    measured = measure(setting())
    assert [row.arm for row in measured.rows] == [rollouts.NAMES[arm] for arm in ("generate", "static", "shared")]
    assert [row.tokens for row in measured.rows] == [8 * 5] * 3
    assert all(row.total_s > row.prefill_s > 0 and row.step_ms > 0 and row.floor_ratio > 0 for row in measured.rows)
    shown = table(measured).splitlines()
    assert sum(line.startswith("|") for line in shown) == 5 and "eager steps" in shown[-1]


def test_an_arm_that_fails_is_told_of_and_the_others_are_measured(monkeypatch, capfd):
    own, lines = rollouts._ours, []
    monkeypatch.setattr(rollouts, "_ours", lambda *args: 1 / 0 if args[1] == "static" else own(*args))
    measured = measure(setting(), ("generate:no-cudnn", "static", "shared"), done=lambda row: lines.append(row.arm))
    assert [bool(row.error) for row in measured.rows] == [False, True, False]
    assert lines == [row.arm for row in measured.rows] and "Traceback" in capfd.readouterr().err
    shown = table(measured)
    assert f"| {rollouts.NAMES['static']} | failed |" in shown and "ZeroDivisionError: division by zero" in shown
    json.dumps([row.total_s for row in measured.rows], allow_nan=False)


def test_speed_ups_are_over_the_faster_baseline():
    """100 and 200 tokens/s of generate, 800 of the static path: 4 times, whatever came first."""
    rows = [rollouts.Row(rollouts.NAMES[arm], tokens=count, total_s=1.0)
            for arm, count in (("static", 800), ("generate", 100), ("generate:no-cudnn", 200))]  # fmt: skip
    assert rollouts._baseline(rows) == 200 and rollouts._baseline(rows[:1]) == 800 and rollouts._baseline([]) is None


def test_cudnns_attention_is_off_for_its_arm_alone(monkeypatch):
    seen = []
    monkeypatch.setattr(rollouts, "_generate", lambda *args: (seen.append(torch.backends.cuda.cudnn_sdp_enabled()), 1 / 0))
    measure(setting(), ("generate:no-cudnn", "generate"))
    assert seen == [False, True] and torch.backends.cuda.cudnn_sdp_enabled()


@pytest.mark.parametrize("fails", [False, True])
def test_the_command_writes_each_arm_as_it_is_done(fails, monkeypatch, capfd):
    if fails:
        monkeypatch.setattr(rollouts, "_generate", lambda *_: 1 / 0)
    arguments = ["--model", "tiny", "--rows", "8", "--tokens", "4", "--prompt-tokens", "6", "--repeats", "1"]
    assert main(["bench", "rollouts", *arguments, "--arms", "generate", "static"]) == int(fails)
    told = [json.loads(line) for line in capfd.readouterr().err.splitlines() if line.startswith("{")]
    assert told[0]["say"].startswith(f"torch {torch.__version__}")
    arms = [line for line in told if "arm" in line]
    assert [bool(line["error"]) for line in arms] == [fails, False] and arms[1]["tokens"] == 32
    assert list(rollouts.NAMES) == command.ROLLOUT_ARMS


def test_on_a_gpu_kernels_alone_are_counted():
    """An operator has the time of the kernels that it launched again."""
    launched = SimpleNamespace(device_type=DeviceType.CPU, self_device_time_total=5.0, self_cpu_time_total=2.0, count=1, key="mm")
    kernel = SimpleNamespace(device_type=DeviceType.CUDA, self_device_time_total=5.0, self_cpu_time_total=0, count=1, key="gemm")
    assert profile.self_times([launched, kernel], on_gpu=True) == [(5.0, 1, "gemm")]
    assert profile.self_times([launched, kernel], on_gpu=False) == [(2.0, 1, "mm")]


def test_a_profile_names_what_a_step_does():
    assert "| µs a step | share |" in profile.of_a_step(setting()) and "aten::" in profile.of_a_step(setting())


def test_measuring_needs_no_library_of_the_dashboard():
    blocked = "; ".join(f"sys.modules['{name}'] = None" for name in ("mlflow", "plotly", "streamlit", "matplotlib"))
    bench = ", ".join(f"corl_core.bench.{name}" for name in ("rollouts", "profile", "alone", "plain_trl"))
    code = f"import sys; {blocked}; import {bench}, corl_core.training.agent, corl_core.cli"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert found.returncode == 0, found.stderr


def test_reading_more_takes_longer():
    assert read_seconds(2**28, "cpu", 3) > 4 * read_seconds(2**24, "cpu", 3) > 0


def test_prompts_of_ids_are_padded_on_the_left():
    batch = Ids()(["3 4 5", "6"])
    assert batch["input_ids"].tolist() == [[3, 4, 5], [0, 0, 6]] and batch["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]


@pytest.mark.parametrize(
    ("fields", "text"),
    [({"rows": 12}, "--rows 12: must be a multiple of 8"), ({"model": "gpt-5"}, "'gpt-5' is no known shape; there are tiny"),
     ({"device": "cuda"}, "--device cuda: there is no GPU here")],
)  # fmt: skip
def test_what_cannot_be_measured_is_refused(fields, text, monkeypatch):
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    with pytest.raises(ConfigError, match=text):
        check(setting(**fields))


def test_the_table_of_whole_steps_compares_with_plain_trl():
    """10 s against 2.5 s a step: four times as fast, 128 x 256 / 2.5 = 13,107 tokens a second."""
    arms = {
        "plain TRL": alone.Arm(10.0, {"generate": 8.0, "rest": 2.0}, 40.0),
        "engine": alone.Arm(2.5, {"generate": 1.0, "grade": 0.1, "update": 1.3, "record": 0.1}, 42.0, ["a CUDA graph"]),
    }
    lines = alone.table(arms, 128, 256).splitlines()
    assert lines[2] == "| plain TRL | 10.00 | 1.00 | 8.00 | 2.00 | 3,277 | 40.0 |"
    assert lines[3] == "| engine | 2.50 | 4.00 | 1.00 | 1.50 | 13,107 | 42.0 |"
    assert lines[-1] == "engine: a CUDA graph"


def test_whole_steps_of_one_arm_survive_the_failure_of_another(monkeypatch, tmp_path):
    def run(kind, *_):
        if kind == "plain":
            raise RuntimeError("a process of the arm 'plain' ended with exit code 1")
        return alone.Arm(2.5, {"generate": 1.0}, 42.0, ["eager steps"], "sampled by the shared path")

    told = []
    monkeypatch.setattr(alone, "_run", run)
    found = alone.measure(None, tmp_path, done=lambda name, arm: told.append(name))
    assert told == ["plain TRL", "engine"]
    lines = alone.table(found, 128, 256).splitlines()
    assert lines[2] == "| plain TRL | failed | – | – | – | – | – |"
    assert lines[3].startswith("| engine (sampled by the shared path) | 2.50 | – |")
    assert "plain TRL: RuntimeError: a process of the arm 'plain' ended with exit code 1" in lines


@pytest.mark.parametrize(("asked", "steps"), [([], command.ALONE_STEPS), (["--steps", "10"], 10)])
def test_a_model_of_real_size_takes_as_many_steps_as_are_asked_for(asked, steps, monkeypatch, capsys):
    taken = []
    monkeypatch.setattr(alone, "bench", lambda model, steps, *_: taken.append(steps) or {})
    assert main(["bench", "engine", "--model", "tiny", *asked]) == 0 and taken == [steps]
