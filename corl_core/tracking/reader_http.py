"""A tracking server's bulk read: one metric of up to a hundred runs in one request.

MLflow thins a run's line to 2,500 values a request, evenly, which would lose spikes. So a line is asked for in windows of less
than half as many steps; one that brings more values than it has steps was written in twice, may be thinned, and is halved.
"""

from collections import defaultdict
from concurrent.futures import ThreadPoolExecutor
from itertools import groupby
from typing import Any

from corl_core.tracking.reader_rows import Written, in_time

PATH = "/api/2.0/mlflow/metrics/get-history-bulk-interval"
MAX_RUNS, MAX_VALUES = 100, 2500  # the server's limits a request
WINDOW = 1200  # steps a request
PARALLEL = 4  # requests at a time
LAST_STEP = 2**31 - 1


def bulk(credentials: Any, wants: dict[tuple[str, str], tuple[int, int]]) -> dict[tuple[str, str], Written]:
    """(MLflow run, metric) → what was written from its first to its last step, both included, as `wants` says."""
    jobs = []
    for metric, group in groupby(sorted(wants, key=lambda line: (line[1], line[0])), key=lambda line: line[1]):
        uuids = [uuid for uuid, _ in group]
        for place in range(0, len(uuids), MAX_RUNS):
            some = uuids[place : place + MAX_RUNS]
            first, last = min(wants[uuid, metric][0] for uuid in some), max(wants[uuid, metric][1] for uuid in some)
            jobs += [(some, metric, start, start + WINDOW - 1) for start in range(first, last + 1, WINDOW)]
    found: dict[tuple[str, str], list[tuple]] = defaultdict(list)
    with ThreadPoolExecutor(PARALLEL) as pool:
        for (_, metric, *_), rows in zip(jobs, pool.map(lambda job: _window(credentials, *job), jobs), strict=True):
            for uuid, *row in rows:
                if row[0] >= wants[uuid, metric][0]:
                    found[uuid, metric].append(row)
    return {line: in_time(rows) for line, rows in found.items()}


def _window(credentials: Any, uuids: list[str], metric: str, start: int, end: int) -> list[tuple]:
    """Rows of MLflow run, step, stored value, whether it is NaN, and milliseconds, of the steps start to end."""
    rows = _asked(credentials, uuids, metric, start, end)
    counts: dict[str, int] = defaultdict(int)
    for row in rows:
        counts[row[0]] += 1
    if max(counts.values(), default=0) <= WINDOW or start >= end:
        return rows
    middle = (start + end) // 2
    return _window(credentials, uuids, metric, start, middle) + _window(credentials, uuids, metric, middle + 1, end)


def _asked(credentials: Any, uuids: list[str], metric: str, start: int, end: int) -> list[tuple]:
    from mlflow.utils.rest_utils import http_request, verify_rest_response

    params = {"run_ids": uuids, "metric_key": metric, "max_results": MAX_VALUES}
    params |= {"start_step": start, "end_step": min(end, LAST_STEP)}
    answer = verify_rest_response(http_request(credentials, PATH, "GET", params=params), PATH)
    rows = answer.json().get("metrics", [])
    return [(row["run_id"], int(row.get("step", 0)), *_value(row.get("value", 0.0)), int(row["timestamp"])) for row in rows]


def _value(value: Any) -> tuple[float, bool]:
    """A number of the answer, which JSON may hold as a word: NaN, Infinity."""
    number = float(value)
    return number, number != number
