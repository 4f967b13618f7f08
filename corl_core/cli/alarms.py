"""The verb that works out a run's alarms again from its journals."""

import argparse
import json
from dataclasses import asdict

from corl_core.runs.alarms import replayed
from corl_core.runs.folder import find_run


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("alarms", parents=[common], help="what a run's journals set off: lock-in, collapse, no signal")
    verb.add_argument("ref", metavar="RUN", help="a run's id, the start of one, or a run's name")
    verb.set_defaults(run=_alarms)


def _alarms(arguments: argparse.Namespace) -> int:
    run = find_run(arguments.runs, arguments.ref)
    alarms = replayed(run)
    if arguments.json:
        print(json.dumps({"id": run.id, "alarms": [asdict(alarm) for alarm in alarms]}))
        return 0
    print(f"{run.id}: {len(alarms) or 'no'} alarm{'' if len(alarms) == 1 else 's'}")
    for alarm in alarms:
        until = f" to {alarm.ended}" if alarm.ended is not None else ""
        print(f"  step {alarm.step}{until}  {alarm.kind}  {alarm.text}")
    return 0
