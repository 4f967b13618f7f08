"""What cannot fit this machine is not started from the command line, unless somebody says so."""

import json

import pytest

from corl_core.cli import main
from corl_core.config import load_config
from corl_core.forecast.room import require_room
from corl_core.runs.launch import LaunchError

HUGE = {"model_type": "llama", "hidden_size": 16384, "num_hidden_layers": 126, "num_attention_heads": 128,
        "num_key_value_heads": 8, "intermediate_size": 53248, "vocab_size": 128256}  # fmt: skip


@pytest.fixture
def huge(tmp_path):
    (tmp_path / "model").mkdir()
    (tmp_path / "model" / "config.json").write_text(json.dumps(HUGE))
    path = tmp_path / "huge.yaml"
    path.write_text(f"name: huge\nmethod: ttrl\nagents: [{{name: a, model: {tmp_path / 'model'}}}]\ndevice: cpu\n")
    return path


@pytest.mark.parametrize("verb", [["launch"], ["train"], ["queue", "add"]])
def test_a_run_that_cannot_fit_is_not_started(huge, tmp_path, capsys, verb):
    assert main([*verb, str(huge), "--runs", str(tmp_path / "runs")]) == 2
    said = capsys.readouterr().err
    assert "'a' needs" in said and "on this machine, which has" in said and "--anyway" in said
    assert not list((tmp_path / "runs").glob("*/run.yaml"))


def test_it_is_only_said_to_somebody_who_knows_better_and_not_of_what_fits_or_trains_elsewhere(huge, capsys, monkeypatch):
    require_room(load_config(str(huge)), anyway=True)
    assert capsys.readouterr().err.startswith("warning: 'a' needs")
    require_room(load_config("demo"), anyway=False)
    monkeypatch.setattr("corl_core.extras.lacks", lambda _: False)
    require_room(load_config(str(huge), ["device=auto", "launcher=ray"]), anyway=False)
    assert capsys.readouterr().err == ""
    with pytest.raises(LaunchError, match="To start it all the same: --anyway"):
        require_room(load_config(str(huge)), anyway=False)
