"""`assay` in a process of its own, which is forked from one that has loaded what the verbs load.

Started from nothing, a verb on a small corpus takes 3 CPU seconds to import Beam and to read the
compiled kernels, and 1.5 for its work; the suite calls hundreds. The server here imports them once,
runs nothing and has one thread (as the fork server of pipeline/workers.py); each call is a child of
it, with arguments, folder, output and exit code of its own, that ends as any Python program does.

What is read while modules load cannot be changed later: in another environment than the server's,
and for verbs that load torch (which no process loads beside Beam), `run` starts from nothing.
"""

from __future__ import annotations

import atexit
import functools
import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from pipeline import heap

WITH_TORCH = ("train", "evaluate", "ablate")
# These may differ: the name of the test that runs, and what pipeline.heap sets for each process.
NEVER_READ = {"PYTEST_CURRENT_TEST", *heap.ENVIRONMENT}


def _environment() -> dict[str, str]:
    return {name: value for name, value in os.environ.items() if name not in NEVER_READ}


FIRST = _environment()  # when this is imported, before any test runs


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One call of the command, as `subprocess.run` with its output captured as text."""
    command = [sys.executable, "-m", "trainer.cli", *arguments]
    if arguments[0] in WITH_TORCH or _environment() != FIRST:
        return subprocess.run(command, capture_output=True, text=True, check=False)
    server = _server()
    assert server.stdin is not None
    assert server.stdout is not None
    with tempfile.TemporaryDirectory() as folder:
        streams = [Path(folder, name) for name in ("out", "err")]
        wanted = {"arguments": arguments, "folder": os.getcwd(), "environment": dict(os.environ)}
        wanted["streams"] = [str(path) for path in streams]
        server.stdin.write(json.dumps(wanted) + "\n")
        server.stdin.flush()
        said = server.stdout.readline()
        assert said, "the process that starts `assay` for tests has ended, and printed why"
        return subprocess.CompletedProcess(command, int(said), *(p.read_text() for p in streams))


@functools.cache
def _server() -> subprocess.Popen[str]:
    """It ends with its input, so with this process."""
    server = subprocess.Popen(
        [sys.executable, __file__],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | heap.ENVIRONMENT,  # no threads
    )
    atexit.register(server.communicate)  # its children's CPU seconds are ours then
    return server


def _serve() -> list[str]:
    """Fork for each line; returns, in a child, its arguments."""
    answers = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # of a terminal: for pytest, which ends this
    for line in sys.stdin:
        threads = Path("/proc/self/task")  # not on macOS
        alone = not threads.exists() or len(list(threads.iterdir())) == 1
        assert alone, "a fork could wait for a lock for ever"
        wanted: dict[str, Any] = json.loads(line)
        child = os.fork()
        if child == 0:
            answers.close()
            _become(**wanted)
            return list(wanted["arguments"])
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), file=answers, flush=True)
    os._exit(0)


def _become(
    arguments: list[str], folder: str, streams: list[str], environment: dict[str, str]
) -> None:
    """The child takes over what a new process would have been given."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    os.dup2(os.open(os.devnull, os.O_RDONLY), sys.stdin.fileno())
    for path, stream in zip(streams, (sys.stdout, sys.stderr), strict=True):
        os.dup2(os.open(path, os.O_WRONLY | os.O_APPEND | os.O_CREAT), stream.fileno())
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    tempfile.tempdir = None


if __name__ == "__main__":
    heap.settle()
    import mixtures.commands  # noqa: F401 (as the two below: for the children)
    import pipeline.launch
    import pipeline.warm  # noqa: F401
    from trainer import cli

    sys.argv = ["assay", *_serve()]
    sys.exit(cli.main())
