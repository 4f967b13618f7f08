"""Processors, memory, GPUs, disk and browser, without loading a training library."""

import os
import shutil
import subprocess
from pathlib import Path

import psutil

from corl_core.doctor.record import Finding
from corl_core.runs.launch import MIN_FREE_BYTES

BROWSERS = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable")
SMI_FIELDS = "index,name,memory.total,memory.used,utilization.gpu,driver_version"
SMI = ("nvidia-smi", f"--query-gpu={SMI_FIELDS}", "--format=csv,noheader,nounits")
SMI_TIMEOUT_S = 10
GB = 1e9
LITTLE_MEMORY = 2 * GB  # free: a tiny cohort of three takes about as much
LITTLE_DISK = 5 * GB
THREADS = ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS")


def check(runs_dir: Path) -> list[Finding]:
    memory = psutil.virtual_memory()
    there = next((path for path in (runs_dir, *runs_dir.parents) if path.exists()), Path("/"))
    found = [threads(len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1, os.environ)]
    found += [memory_left(memory.available, memory.total), *gpus(), disk(shutil.disk_usage(there).free, runs_dir)]
    found += [writable(runs_dir if runs_dir.exists() else there), browser(next(filter(None, map(shutil.which, BROWSERS)), None))]
    return found


def threads(cores: int, environ) -> Finding:
    """Threads that a library is told to use beyond the cores slow every agent down."""
    set_to = {name: int(environ[name]) for name in THREADS if environ.get(name, "").isdigit()}
    words = f"{cores} cores may be used" + "".join(f", {name}={value}" for name, value in set_to.items())
    if too_many := [name for name, value in set_to.items() if value > cores]:
        return Finding("processors", "note", words, f"unset {too_many[0]}: more threads than cores make every agent slower")
    return Finding("processors", "ok", words)


def memory_left(available: float, total: float) -> Finding:
    words = f"{available / GB:.1f} of {total / GB:.1f} GB are free"
    if available < LITTLE_MEMORY:
        return Finding("memory", "note", words, "close other programs, or train smaller models or fewer agents")
    return Finding("memory", "ok", words)


def gpus() -> list[Finding]:
    """By the driver's own command; a machine without one trains on its processors."""
    if shutil.which(SMI[0]) is None:
        return [Finding("GPU", "ok", "none (no nvidia-smi): agents train on the processors")]
    try:
        said = subprocess.run(SMI, capture_output=True, text=True, timeout=SMI_TIMEOUT_S, check=True).stdout
    except (OSError, subprocess.SubprocessError) as error:
        return [Finding("GPU", "bad", f"nvidia-smi does not answer: {error}", "check the driver: run nvidia-smi yourself")]
    return gpu_lines(said)


def gpu_lines(said: str) -> list[Finding]:
    """A line for each GPU, from nvidia-smi's table."""
    found = []
    for row in (line.split(", ") for line in said.strip().splitlines()):
        if len(row) == 6:
            index, name, total, used, busy, driver = row
            words = f"{name}, {used} of {total} MiB used, {busy}% busy, driver {driver}"
            found.append(Finding(f"GPU {index}", "ok", words))
    return found or [Finding("GPU", "bad", "nvidia-smi lists no GPU", "check the driver: run nvidia-smi yourself")]


def disk(free: float, runs_dir: Path) -> Finding:
    words = f"{free / GB:.1f} GB are free for {runs_dir}"
    if free < MIN_FREE_BYTES:
        return Finding("disk", "bad", words, "no run starts: empty the trash, prune checkpoints, or use --runs DIR")
    if free < LITTLE_DISK:
        return Finding("disk", "note", words, "empty the trash, prune checkpoints, or use --runs DIR on another disk")
    return Finding("disk", "ok", words)


def writable(folder: Path) -> Finding:
    if os.access(folder, os.W_OK | os.X_OK):
        return Finding("runs folder", "ok", f"{folder} can be written")
    return Finding("runs folder", "bad", f"{folder} cannot be written", "change its owner, or use --runs DIR")


def browser(path: str | None) -> Finding:
    if path:
        return Finding("browser", "ok", f"{path} (only the browser tests use it)")
    return Finding("browser", "ok", "no Chromium or Chrome here: only the browser tests need one, and they skip")
