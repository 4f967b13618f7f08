"""The bulk read of a tracking server: windows that lose no value, and one request for many runs."""

from corl_core.tracking import reader_http


class Server:
    """A server that holds lines and thins an answer to 2,500 values a run, evenly, as MLflow does."""

    def __init__(self, lines: dict[tuple[str, str], list[tuple[int, float]]]):
        self.lines, self.asked = lines, []

    def __call__(self, credentials, uuids, metric, start, end):
        self.asked.append((tuple(uuids), metric, start, end))
        rows = []
        for uuid in uuids:
            own = [(uuid, s, v, False, s * 1000) for s, v in self.lines.get((uuid, metric), []) if start <= s <= end]
            step = max(1, -(-len(own) // reader_http.MAX_VALUES))
            rows += own[::step]
        return rows


def read(monkeypatch, server, wants):
    monkeypatch.setattr(reader_http, "_asked", server)
    return reader_http.bulk(None, wants)


def test_a_long_line_comes_whole_with_its_spike(monkeypatch):
    line = [(step, 9.0 if step == 4321 else 0.5) for step in range(10_000)]
    found = read(monkeypatch, Server({("u", "reward"): line}), {("u", "reward"): (0, 9_999)})["u", "reward"]
    assert len(found.steps) == 10_000 and found.values.max() == 9.0


def test_a_window_that_was_written_twice_is_halved_until_it_fits(monkeypatch):
    line = [(step, value) for value in (0.1, 0.2, 0.3) for step in range(1200)]  # a run that started over twice: 3,600 values
    server = Server({("u", "reward"): line})
    found = read(monkeypatch, server, {("u", "reward"): (0, 1199)})["u", "reward"]
    assert len(found.steps) == 3600
    assert len(server.asked) == 7  # 1,200 steps with 3,600 values; 600 with 1,800, twice; 300 with 900, four times


def test_runs_share_requests_and_only_new_steps_are_kept(monkeypatch):
    lines = {(uuid, "reward"): [(step, 0.5) for step in range(10)] for uuid in "abc"}
    server = Server(lines)
    found = read(monkeypatch, server, {("a", "reward"): (0, 9), ("b", "reward"): (8, 9), ("c", "reward"): (5, 9)})
    assert {line[0]: len(new.steps) for line, new in found.items()} == {"a": 10, "b": 2, "c": 5}
    assert server.asked == [(("a", "b", "c"), "reward", 0, 1199)]


def test_numbers_that_json_writes_as_words_are_numbers():
    assert reader_http._value("Infinity") == (float("inf"), False)
    assert reader_http._value("NaN")[1] and reader_http._value(0.5) == (0.5, False)
