"""The server's warm-up: what the first page needs is imported before it is asked for, by one thread at a time."""

import subprocess
import sys
import threading
import time
from pathlib import Path

from pages.components import serve

PROJECT = Path(__file__).resolve().parents[2]
ALONE = """
import sys
from pages.components import serve
serve._listening = lambda: True
serve.warm_up()
print({"pandas", "pages.components.table", "pages.components.theory_flow"} <= set(sys.modules))
print(sorted({"torch", "trl", "transformers", "mlflow"} & set(sys.modules)))
"""


def test_the_first_script_waits_for_the_warm_up():
    ended = []
    thread = threading.Thread(target=lambda: (time.sleep(0.2), ended.append(True)), name=serve.NAME)
    thread.start()
    serve.wait()
    assert ended and not thread.is_alive()
    serve.wait()  # a server without a warm-up: nothing to wait for


def test_the_warm_up_imports_what_pages_need_and_nothing_that_trains(tmp_path):
    env = {"PATH": "", "CORL_RUNS": str(tmp_path), "PYTHONPATH": str(PROJECT)}
    done = subprocess.run([sys.executable, "-c", ALONE], cwd=PROJECT, env=env, capture_output=True, text=True, timeout=120)
    assert done.stdout.split("\n")[:2] == ["True", "[]"], done.stderr
