"""Where an agent can be held. Each place is a wrapper round one method of the training code."""

import json
import os
import sys
import time
from pathlib import Path

SETTINGS = "settings.json"  # in the folder of faults: constants of modules, so that a test need not wait a minute
NOISE_EVERY_S = 5.0  # of an agent that is held


def folder() -> Path:
    return Path(os.environ["CORL_FAULTS"])


def make_noise(agent: str) -> None:
    """`AGENT.noise` says how many kilobytes."""
    noise = folder() / f"{agent}.noise"
    if noise.exists():
        sys.stderr.write(("x" * 1023 + "\n") * int(noise.read_text()))


def hold(agent: str, place: str, step: int) -> None:
    """Waits as long as the test wants. `hang` waits in one piece, so that the main thread shows no sign of life."""
    wanted = folder() / f"{agent}.{place}"
    if not wanted.exists() or step < int(wanted.read_text()):
        return
    (folder() / f"{wanted.name}.here").write_text(str(step))
    began = time.monotonic()
    while wanted.exists() and not (folder() / f"{wanted.name}.go").exists():
        time.sleep(0.02)
        if time.monotonic() - began > NOISE_EVERY_S:
            began = time.monotonic()
            make_noise(agent)
    wanted.unlink(missing_ok=True)


HARMS = {
    "MemoryError": lambda _: _raise(MemoryError()),
    "OutOfMemoryError": lambda _: _raise(sys.modules["torch"].OutOfMemoryError("Tried to allocate 2.00 GiB")),
    "KeyError": lambda _: _raise(KeyError("x")),
    "exit": lambda _: _exit_loudly(),
    "NaN": lambda arguments: arguments[2]["advantages"].fill_(float("nan")),  # of an update, and with them the loss
    "weights": lambda arguments: [each.data.fill_(float("nan")) for each in arguments[0]._model.parameters()],  # of a sampler
}


def harm(agent: str, place: str, step: int, arguments: tuple) -> None:
    """What befalls an agent by itself: `AGENT.PLACE.harm` says from which step on, and what, such as '5 KeyError'. `arguments`
    are those of the method that is the place."""
    wanted = folder() / f"{agent}.{place}.harm"
    if not wanted.exists():
        return
    first, what = wanted.read_text().split()
    if step >= int(first):
        HARMS[what](arguments)


def _raise(error: Exception) -> None:
    raise error


def _exit_loudly() -> None:
    """As a library does that catches its own error and gives up."""
    print('Traceback (most recent call last):\n  File "library.py", line 1, in give_up\nLibraryError: no way', file=sys.stderr)
    sys.stderr.flush()
    os._exit(3)


def shift_clock() -> None:
    """The clock on the wall, for this process, is off by as many seconds as `clock` says; so is what psutil makes of it."""
    real, read = time.time, {"at": -1.0, "shift_s": 0.0}

    def shift_s() -> float:
        if time.monotonic() - read["at"] > 0.1:
            path = folder() / "clock"
            read.update(at=time.monotonic(), shift_s=float(path.read_text() or 0) if path.exists() else 0.0)
        return read["shift_s"]

    time.time = lambda: real() + shift_s()
    import psutil._pslinux as linux

    boot_time = linux.boot_time
    linux.boot_time = lambda: boot_time() + shift_s()


def serve_launches() -> None:
    """In the dashboard's process: launches what the test asks it to, as a click would."""
    asked = folder() / "launch.yaml"
    while not asked.exists() or "streamlit.web.cli" not in sys.modules:  # before that the project is not on the path yet
        time.sleep(0.1)
    from corl_core.config import RunConfig
    from corl_core.runs import launch

    run = launch.launch(RunConfig.from_yaml(asked.read_text()), Path(os.environ["CORL_RUNS"]))
    (folder() / "launched").write_text(str(run.path))


def patch(module: str) -> None:
    """Once `module` has been loaded."""
    settings = folder() / SETTINGS
    for name, values in (json.loads(settings.read_text()) if settings.exists() else {}).items():
        for key, value in values.items():
            if name in sys.modules:
                setattr(sys.modules[name], key, value)
    if module == "corl_core.training.process":
        _patch_agents()


def _patch_agents() -> None:
    from corl_core.runs import journal
    from corl_core.training import agent, exchange, rollout, trainer

    now = {"agent": "", "step": -1}

    def before(owner, method, place, step=lambda arguments: now["step"]):
        real = getattr(owner, method)

        def held(*arguments, **named):
            hold(now["agent"], place, step(arguments))
            harm(now["agent"], place, step(arguments), arguments)
            return real(*arguments, **named)

        setattr(owner, method, held)

    def note(owner, method, what):
        real = getattr(owner, method)

        def noted(*arguments, **named):
            now.update(what(arguments))
            return real(*arguments, **named)

        setattr(owner, method, noted)

    before(agent.Agent, "_train", "start", lambda a: 0)  # before the first step
    before(rollout._Rows, "forward", "generation")  # a token has been drawn, others have not
    before(exchange.Exchange, "_wait", "exchange")  # its votes are out, its peer's are not in
    before(trainer.CohortTrainer, "_compute_loss", "update")  # rollouts and rewards are there, the weights are the old ones
    before(agent._Steps, "on_save", "checkpoint", lambda a: a[2].global_step)  # TRL's files are there, the mark is not
    before(agent.Agent, "_learn", "loading", lambda a: 0)
    note(agent.Agent, "_rollouts", lambda a: {"step": a[2]})
    note(agent.Agent, "run", lambda a: {"agent": a[0].name})
    _patch_journal(journal.Journal, now)


def _patch_journal(journal, now) -> None:
    """`logging`: half of a step's line is in the journal. `noise`: megabytes on stderr."""
    real = journal.write

    def write(self, event, **fields):
        step, wanted = fields.get("step", -1), folder() / f"{now['agent']}.logging"
        if event == "step" and wanted.exists() and step >= int(wanted.read_text()):
            whole, size = json.dumps({"event": event, "time": time.time(), **fields}), self.path.stat().st_size
            with self.path.open("a") as file:
                file.write(whole[: len(whole) // 2])
            hold(now["agent"], "logging", step)
            os.truncate(self.path, size)  # what is written next is the line as a whole
        if event == "step":
            make_noise(now["agent"])
        real(self, event, **fields)

    journal.write = write
