"""`doctor`: looks at everything that a run needs, says what to do, and mends what it safely can when asked."""

import argparse
import json
from dataclasses import asdict

MARKS = {"ok": "ok  ", "note": "note", "bad": "BAD "}


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    verb = verbs.add_parser("doctor", parents=[common], help="check packages, machine, metrics store, runs, processes and ports")
    mends = "close dead runs, end orphans, wake the queue, remove old locks and unfinished files"
    verb.add_argument("--repair", action="store_true", help=mends)
    verb.set_defaults(run=_doctor)


def _doctor(arguments: argparse.Namespace) -> int:
    from corl_core import doctor

    findings = doctor.examine(arguments.runs)
    done = doctor.repair(findings, arguments.runs) if arguments.repair else []
    if done:
        findings = doctor.examine(arguments.runs)
    if arguments.json:
        print(json.dumps({"findings": [asdict(finding) for finding in findings], "repaired": done}))
    else:
        for sentence in done:
            print(f"mended  {sentence}")
        for finding in findings:
            offer = " (--repair does it)" if finding.repair else ""
            remedy = f"\n        → {finding.remedy}{offer}" if finding.remedy else ""
            print(f"{MARKS[finding.level]}  {finding.name}: {finding.found}{remedy}")
    return int(doctor.worst(findings) == "bad")
