"""A real MLflow server that can be told to misbehave.

    python faulty_mlflow.py PORT FOLDER

FOLDER/mode says how: ok, error (answers 500), slow (a second an answer), or deaf (makes and logs what it is asked to, and answers
500).
"""

import os
import sys
import time
from pathlib import Path

port, folder = int(sys.argv[1]), Path(sys.argv[2])
os.environ["_MLFLOW_SERVER_FILE_STORE"] = f"sqlite:///{folder / 'server.db'}"
os.environ["_MLFLOW_SERVER_ARTIFACT_ROOT"] = str(folder / "artifacts")
os.environ["MLFLOW_SERVER_DISABLE_SECURITY_MIDDLEWARE"] = "true"

from mlflow.server import app  # noqa: E402
from werkzeug.serving import make_server  # noqa: E402


def misbehaving(environ, start_response):
    mode = (folder / "mode").read_text()
    with (folder / "calls").open("a") as calls:
        calls.write(f"{mode} {environ['PATH_INFO']}\n")
    if mode == "slow":
        time.sleep(1)
    if mode == "deaf" and not environ["PATH_INFO"].endswith(("/create", "/log-batch")):
        mode = "ok"
    if mode == "deaf":
        list(app(environ, lambda *_: None))
    if mode in ("error", "deaf"):
        start_response("500 INTERNAL SERVER ERROR", [("Content-Type", "application/json")])
        return [b'{"error_code": "INTERNAL_ERROR", "message": "out of order"}']
    return app(environ, start_response)


make_server("127.0.0.1", port, misbehaving, threaded=True).serve_forever()
