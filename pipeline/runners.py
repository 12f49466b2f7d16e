"""Where the pipeline runs. Local: FnApiRunner by name (DirectRunner tries to download Prism)."""

from __future__ import annotations

import logging
import os

import apache_beam as beam
from apache_beam.options.pipeline_options import PipelineOptions
from apache_beam.runners.portability.fn_api_runner import FnApiRunner

from pipeline.build import build
from pipeline.stages import Job


def run_local(job: Job, workers: int) -> None:
    """Run to the end in `workers` processes on this machine; one worker runs in this process.

    Processes, not threads: fastText, resiliparse and JSON parsing hold the GIL.
    """
    logging.getLogger("apache_beam").setLevel(logging.ERROR)
    mode = "multi_processing" if workers > 1 else "in_memory"
    options = PipelineOptions(
        direct_num_workers=workers,
        direct_running_mode=mode,
        # The runner's own guess at progress costs a thread and says nothing that stats/ does not.
        job_name=f"assay-{os.getpid()}",
    )
    with beam.Pipeline(runner=FnApiRunner(), options=options) as pipeline:
        build(pipeline, job)
