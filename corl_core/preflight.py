"""Whether this machine can install the project; run by `make` with the system's Python, before anything is installed.

Prints one line that says what to do, and exits with 1, when it cannot. Written for any Python 3, however old.
"""

import os
import shutil
import sys

NEEDED_PYTHON = (3, 11)
NEEDED_GB = 4  # the installed requirements with a CPU build of torch, and room for runs


def problem(version=sys.version_info, free_bytes=None):
    """What is wrong, as one line; '' when nothing is."""
    if tuple(version[:2]) < NEEDED_PYTHON:
        old = "%d.%d" % tuple(version[:2])
        return "Python %s is too old: install Python 3.11 or newer and run: make PYTHON=/path/to/python3.11 demo" % old
    free = shutil.disk_usage(os.getcwd()).free if free_bytes is None else free_bytes
    if free < NEEDED_GB * 2**30:
        return "Only %.1f GB free on this disk, %d GB are needed: free some space and run make again" % (free / 2**30, NEEDED_GB)
    return ""


if __name__ == "__main__":
    found = problem()
    if found:
        sys.exit("error: " + found)
