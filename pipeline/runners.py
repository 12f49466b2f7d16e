"""Where the pipeline runs. Local: FnApiRunner by name (DirectRunner tries to download Prism).

`python -m pipeline.runners` is the worker process: Beam's own, without its log of every step.
"""

from __future__ import annotations

import ctypes
import logging
import shlex
import signal
import sys

logging.disable(logging.WARNING)  # before Beam loads: it warns of Google packages it does not find

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner
from apache_beam.runners.worker import sdk_worker_main
from apache_beam.transforms.environments import SubprocessSDKEnvironment

from pipeline.build import build
from pipeline.stages import Job


def run_local(job: Job, workers: int) -> None:
    """Run to the end in `workers` processes on this machine; one worker runs in this process.

    Processes, not threads: fastText, resiliparse and JSON parsing hold the GIL.
    """
    environment = None
    if workers > 1:
        command = f"exec {shlex.quote(sys.executable)} -m pipeline.runners"
        environment = SubprocessSDKEnvironment(command_string=command)
    options = PipelineOptions(direct_num_workers=workers)
    try:
        with beam.Pipeline(runner=FnApiRunner(environment), options=options) as pipeline:
            build(pipeline, job)
    except (OSError, ValueError) as error:
        # Beam adds " [while running 'step']" and its own frames; a full disk needs neither.
        raise type(error)(str(error).split(" [while running")[0]) from None


def worker() -> None:
    """Beam's worker process; it does not outlive the process that started it."""
    if sys.platform == "linux":
        set_parent_death_signal = 1
        ctypes.CDLL(None).prctl(set_parent_death_signal, signal.SIGKILL)
    sdk_worker_main.main(sys.argv)


if __name__ == "__main__":
    worker()
