"""Keeping house: names, notes and tags; the trash; archives; checkpoints.

    rename RUN NAME · note RUN TEXT · tag RUN TAG… [--remove TAG…]
    trash [RUN…] [--restore RUN…] [--empty]      without any: what is in it, and the size of every run
    archive RUN -o FILE.corl.zip · import FILE.corl.zip · prune RUN…|--all [--keep N]
"""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from corl_core.cli.numbers import at_least
from corl_core.runs.folder import Run, all_runs, find_run


def add_verbs(verbs: argparse._SubParsersAction, common: argparse.ArgumentParser) -> None:
    for name, run, value, text in (
        ("rename", _rename, "NAME", "call a run otherwise; '' gives its configuration's name back"),
        ("note", _note, "TEXT", "write something down about a run; '' removes it"),
    ):
        verb = _verb(verbs, common, name, run, text)
        verb.add_argument("ref", metavar="RUN", help="a run's id, the start of one, or a run's name")
        verb.add_argument("value", metavar=value)
    tag = _verb(verbs, common, "tag", _tag, "add tags to a run, or remove some")
    tag.add_argument("ref", metavar="RUN")
    tag.add_argument("tags", nargs="*", metavar="TAG")
    tag.add_argument("--remove", nargs="+", default=[], metavar="TAG")
    trash = _verb(verbs, common, "trash", _trash, "move runs to the trash, bring them back, empty it; alone: what is in it")
    trash.add_argument("refs", nargs="*", metavar="RUN")
    trash.add_argument("--mlflow", action="store_true", help="mark their MLflow runs as deleted, too (comes back with --restore)")
    trash.add_argument("--restore", nargs="+", default=[], metavar="RUN", help="bring these back")
    trash.add_argument("--empty", action="store_true", help="remove everything in the trash for good")
    archive = _verb(verbs, common, "archive", _archive, "write a run that has ended into one file")
    archive.add_argument("ref", metavar="RUN")
    archive.add_argument("-o", "--out", type=Path, help="default: ID.corl.zip in the current folder")
    archive.add_argument("--without-models", action="store_true", help="leave the trained weights out")
    restored = _verb(verbs, common, "import", _import, "bring a run in from such a file; it is checked, and nothing in it is run")
    restored.add_argument("file", type=Path, metavar="FILE")
    restored.add_argument("--no-sync", action="store_true", help="do not log it into the metrics store")
    prune = _verb(verbs, common, "prune", _prune, "remove checkpoints: all of finished runs, all but the newest of others")
    prune.add_argument("refs", nargs="*", metavar="RUN")
    prune.add_argument("--all", action="store_true", help="every run that has ended")
    prune.add_argument("--keep", type=at_least(0), metavar="N", help="keep the newest N instead")


def _verb(verbs: Any, common: argparse.ArgumentParser, name: str, run: Any, text: str) -> argparse.ArgumentParser:
    verb = verbs.add_parser(name, parents=[common], help=text)
    verb.set_defaults(run=run)
    return verb


def _rename(arguments: argparse.Namespace) -> int:
    from corl_core.runs import labels

    return _labelled(arguments, lambda run: labels.rename(run, arguments.value))


def _note(arguments: argparse.Namespace) -> int:
    from corl_core.runs import labels

    return _labelled(arguments, lambda run: labels.write_note(run, arguments.value))


def _tag(arguments: argparse.Namespace) -> int:
    from corl_core.runs import labels

    return _labelled(arguments, lambda run: labels.change_tags(run, arguments.tags, arguments.remove))


def _labelled(arguments: argparse.Namespace, change: Any) -> int:
    from corl_core.runs import labels
    from corl_core.tracking.housekeeping import mirror_labels

    run = find_run(arguments.runs, arguments.ref)
    own = change(run)
    _in_mlflow(lambda: mirror_labels(run, arguments.runs))
    _print(arguments, {"id": run.id, "name": labels.shown_name(run), "note": own.note, "tags": list(own.tags)})
    return 0


def _trash(arguments: argparse.Namespace) -> int:
    from corl_core.runs import trash
    from corl_core.tracking.housekeeping import delete_runs, restore_runs

    for run in [find_run(arguments.runs, ref) for ref in arguments.refs]:
        item = trash.throw(run, arguments.mlflow)
        if arguments.mlflow:
            _in_mlflow(lambda item=item: delete_runs(item.run, arguments.runs))
    for item in [trash.find(arguments.runs, ref) for ref in arguments.restore]:
        run = trash.restore(item)
        if item.with_mlflow:
            _in_mlflow(lambda run=run: restore_runs(run, arguments.runs))
    freed = trash.empty(trash.thrown(arguments.runs)) if arguments.empty else 0
    items = trash.thrown(arguments.runs)
    report: dict[str, Any] = {"trash": {item.id: _megabytes(trash.size_bytes(item.run.path)) for item in items}}
    if arguments.empty:
        report["freed"] = _megabytes(freed)
    if not (arguments.refs or arguments.restore or arguments.empty):
        report["runs"] = {run.id: _megabytes(trash.size_bytes(run.path)) for run in all_runs(arguments.runs)}
    _print(arguments, report)
    return 0


def _archive(arguments: argparse.Namespace) -> int:
    from corl_core.runs import archive

    run = find_run(arguments.runs, arguments.ref)
    target = arguments.out or Path(f"{run.id}{archive.SUFFIX}")
    left = archive.archive(run, target, with_models=not arguments.without_models)
    size = _megabytes(target.stat().st_size)
    _print(arguments, {"id": run.id, "file": str(target), "size": size, "left_behind": len(left)})
    return 0


def _import(arguments: argparse.Namespace) -> int:
    from corl_core.runs import archive
    from corl_core.tracking.housekeeping import log_imported

    run = archive.restore(arguments.file, arguments.runs)
    if not arguments.no_sync:
        _in_mlflow(lambda: log_imported(run, arguments.runs))
    _print(arguments, {"id": run.id, "state": run.status().state, "path": str(run.path)})
    return 0


def _prune(arguments: argparse.Namespace) -> int:
    from corl_core.runs.prune import prune

    if bool(arguments.refs) == arguments.all:
        print("error: prune: name runs, or say --all", file=sys.stderr)
        return 2
    runs: list[Run] = [find_run(arguments.runs, ref) for ref in arguments.refs]
    if arguments.all:
        runs = [run for run in all_runs(arguments.runs) if not run.problem and run.status().final]
    _print(arguments, {"freed": {run.id: _megabytes(prune(run, arguments.keep)) for run in runs}})
    return 0


def _in_mlflow(action: Any) -> None:
    """What is done is done; MLflow may hear of it later."""
    from corl_core.tracking.log import TrackingError

    try:
        action()
    except TrackingError as error:
        print(f"warning: {error}", file=sys.stderr)


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"


def _print(arguments: argparse.Namespace, value: dict[str, Any]) -> None:
    if arguments.json:
        print(json.dumps(value, ensure_ascii=False))
        return
    for key, inner in value.items():
        if isinstance(inner, dict):
            print(f"{key}:" if inner else f"{key}: empty")
            for name, text in inner.items():
                print(f"  {name}: {text}")
        else:
            print(f"{key}: {', '.join(inner) if isinstance(inner, list) else inner}")
