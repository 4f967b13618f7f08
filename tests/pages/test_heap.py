"""The dashboard's process returns large blocks to the system, whatever small ones lie between them."""

import os
import platform
import subprocess
import sys

import pytest

from corl_core.runs.launch import PROJECT

KEPT = """
import os, sys
from pathlib import Path
from pages.components import heap
if sys.argv[1] == "thrifty":
    heap.be_thrifty()

def resident_mb():
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

del (first := [bytearray(b"x") * 20_000_000])[:]  # a large block that is freed is what raises glibc's limit
before, small = resident_mb(), []
large = []
for number in range(200):  # 200 x 300 kB = 57 MB, each followed by a block that stays
    large.append(b"x" * 300_000)
    small.append(b"y" * 2_000)
del large
print(resident_mb() - before)
"""


def kept_mb(how: str) -> float:
    environment = {key: value for key, value in os.environ.items() if not key.startswith("MALLOC_")}
    command = [sys.executable, "-c", KEPT, how]
    return float(subprocess.run(command, cwd=PROJECT, env=environment, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="other allocators have no such limits")
def test_what_is_freed_goes_back_to_the_system_and_would_not_by_default():
    assert kept_mb("thrifty") < 5
    assert kept_mb("default") > 40


def test_arrow_takes_the_systems_pool_unless_a_person_has_chosen_one(monkeypatch):
    from pages.components.heap import be_thrifty

    monkeypatch.setattr("ctypes.CDLL", lambda name: object())  # no glibc: nothing else is touched
    monkeypatch.setenv("ARROW_DEFAULT_MEMORY_POOL", "jemalloc")
    be_thrifty()
    assert os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "jemalloc"
    monkeypatch.delenv("ARROW_DEFAULT_MEMORY_POOL")
    be_thrifty()
    assert os.environ["ARROW_DEFAULT_MEMORY_POOL"] == "system"
