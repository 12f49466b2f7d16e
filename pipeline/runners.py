"""Where the pipeline runs. Local: FnApiRunner by name (DirectRunner tries to download Prism).

`python -m pipeline.runners` is the worker process: Beam's own, without its log of every step.
"""

from __future__ import annotations

import contextlib
import logging
import re
import shlex
import signal
import sys

logging.disable(logging.ERROR)  # before Beam loads; what fails comes back as an exception

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker_main
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from pipeline.workers import watched
from pipeline.build import build
from pipeline.corpus import CorpusError
from pipeline.stages import Job

# The end of what Beam makes of an exception: a disk that is full, settings that we refuse.
_MENDED_BY_USER = re.compile(
    r"\A.*^(?:RuntimeError: )?"
    r"(?:OSError|PermissionError|FileNotFoundError|pipeline\.\w+\.\w+Error): (.*)"
    r" \[while running '([^']*)'\]\s*\Z",
    re.DOTALL | re.MULTILINE,
)


def run_local(job: Job, workers: int) -> None:
    """Run to the end in `workers` processes on this machine; one worker runs in this process.

    Processes, not threads: fastText, resiliparse and JSON parsing hold the GIL.
    """
    options = PipelineOptions(direct_num_workers=workers)
    local = watched() if workers > 1 else contextlib.nullcontext()
    try:
        with (
            local as environment,
            beam.Pipeline(runner=FnApiRunner(environment), options=options) as pipeline,
        ):
            build(pipeline, job)
    except RuntimeError as error:
        mended = _MENDED_BY_USER.search(str(error))
        if mended is None:
            raise
        message, step = mended.groups()
        remedy = "mend it and call again: finished parts are kept"
        raise CorpusError(f"{job.root}: step {step!r} failed: {message}; {remedy}") from None


def worker() -> None:
    """Beam's worker process; it does not outlive the process that started it."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    worker()
