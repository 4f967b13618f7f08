"""Read by every Python that the harness starts: lets the test hold an agent at a place, and harm it there.

    CORL_FAULTS    a folder; AGENT.PLACE in it says: from step N on, wait here. AGENT.PLACE.here appears when the agent does,
                   and AGENT.PLACE.go lets it go on.

Nothing of this is in the code that runs without the harness.
"""

import importlib.abc
import importlib.machinery
import os
import sys

PATCHED = ("corl_core.training.process", "corl_core.runs.supervisor")


class _Patcher(importlib.abc.MetaPathFinder):
    """Calls `holds.patch` once a module that matters has been loaded."""

    def find_spec(self, name, path=None, target=None):
        if name not in PATCHED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(name, path)
        load = spec.loader.exec_module

        def exec_module(module):
            load(module)
            import holds

            holds.patch(name)

        spec.loader.exec_module = exec_module
        return spec


if os.environ.get("CORL_FAULTS"):
    sys.meta_path.insert(0, _Patcher())
    if os.environ.get("CORL_FAULTS_CLOCK"):
        import holds

        holds.shift_clock()
    if os.environ.get("CORL_FAULTS_LAUNCH") and "streamlit" in " ".join(sys.orig_argv):
        import threading

        import holds

        threading.Thread(target=holds.serve_launches, daemon=True).start()
