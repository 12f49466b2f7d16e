"""Worker processes of this machine, forked from one process that has loaded all that they need.

Beam's own way (`SubprocessSDKEnvironment`) starts each worker from nothing: 1.3 CPU seconds and
150 MB before its first document, and the compiled kernels are read again. Here a fork server, which
starts no thread and opens no gRPC channel, loads them once; workers share its pages. The process
that runs the pipeline cannot fork workers itself: by then pyarrow and gRPC have threads, and a
forked child would wait for ever for a lock that one held. It forks the server before it has any.

A worker that dies ends the run with an error (Beam alone waits for it without end); workers end
with the process that started them, whatever ends it.
"""

from __future__ import annotations

import logging

logging.disable(logging.ERROR)  # before Beam loads; what fails comes back as an exception

import contextlib
import gc
import json
import multiprocessing
import os
import shutil
import signal
import socket
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator, Sequence
from multiprocessing import forkserver, resource_tracker
from multiprocessing.context import ForkServerProcess
from typing import Any, ClassVar, NoReturn

import grpc
from apache_beam.portability.api import beam_fn_api_pb2
from apache_beam.runners.portability.fn_api_runner import worker_handlers
from apache_beam.runners.worker import sdk_worker
from apache_beam.transforms.environments import Environment

import pipeline.build  # noqa: F401 (what a worker runs, loaded once by the fork server)
from kernels.cache import find_kept
from kernels.compile import FOLDER, ROOT
from pipeline import forks, heap
from pipeline.disk import KEPT
from pipeline.failures import LESS_MEMORY
from pipeline.groups import DEFAULT, groups
from pipeline.stages import Job

# It prints the trace of a failed step in each worker; the process that runs the pipeline tells.
vars(sdk_worker)["print"] = lambda *_, **__: None

# Records are 30,000 small objects a second, none in a cycle: the collector took 7 % of a run over
# short documents. What is loaded stays: no need to walk it, nor to write into pages shared by fork.
gc.freeze()
gc.set_threshold(100_000, 20, 20)

WARM = "pipeline.warm"  # what a fork server loads before it forks
URN = "assay:environment:forked:v1"
WANTED = "ASSAY_WARM"  # tells the fork server what its workers will want, as JSON: see `wanted`
LOOK_SECONDS = 0.2  # how often the watch looks for requests to a worker that is dead
TEMP_CHARS = 75  # of $TMPDIR: a socket's path may have 103 (macOS; Linux 107)
LAST_SECONDS = 2.0  # in which the fork server tells of a worker whose streams broke
FORKS = multiprocessing.get_context("forkserver")


lost: list[str] = []  # what is to be said of workers that died in this run


@Environment.register_urn(URN, bytes)
class ForkedEnvironment(Environment):
    """Beam's name for where a step runs."""

    def to_runner_api_parameter(self, context: object) -> tuple[str, bytes]:
        return URN, b""

    @staticmethod
    def from_runner_api_parameter(*_: object) -> ForkedEnvironment:
        return ForkedEnvironment()


@worker_handlers.WorkerHandler.register_environment(URN, bytes)
class ForkedWorker(worker_handlers.GrpcWorkerHandler):
    """The runner's end of one worker process."""

    running: ClassVar[dict[str, ForkedWorker]] = {}

    def __init__(self, _: bytes, *arguments: Any) -> None:
        super().__init__(*arguments)

    def start_worker(self) -> None:
        self.process: ForkServerProcess = FORKS.Process(
            target=_work, args=(self.control_address, self.worker_id), daemon=True
        )
        try:
            self.process.start()
        except (EOFError, OSError):
            lost.append(
                f"the process that starts workers has ended and said why, if it could; {KEPT}"
            )
            raise
        self.running[self.worker_id] = self

    def close(self) -> None:
        """All bundles are done, or the run has failed: in both cases nothing is lost by a kill,
        and an orderly end would wait for the part that the worker is at."""
        if self.running.pop(self.worker_id, None) is None:
            return
        if self.data_conn._closed:  # not by us: Beam saw it before the watch did
            self.process.join(LAST_SECONDS)
        if self.process.exitcode is not None:
            lost.append(_obituary(self.process))
        self.process.kill()
        self.fail("the run has ended")
        self.control_conn.push(worker_handlers.BeamFnControlServicer._DONE_MARKER)
        self.data_conn.close()

    def stop_worker(self) -> None:
        pass

    def fail(self, why: str) -> None:
        """Answer what waits for this worker: Beam would wait for ever."""
        waiting = self.control_conn._futures_by_id
        for name, future in list(waiting.items()):
            future.set(beam_fn_api_pb2.InstructionResponse(instruction_id=name, error=why))


def wanted(job: Job) -> dict[str, Any]:
    """What `pipeline.warm` loads beside what every worker needs."""
    return {
        "signals": list(groups(job.settings)),
        "tokenizer": job.tokenizer.model_dump(),
        "engine": job.engine,
    }


def compiled(signals: Sequence[str]) -> tuple[str, bytes]:
    """The name under which it is kept that the kernels of these groups have been compiled."""
    return "warm", f"{FOLDER} {ROOT} {sorted(signals)}".encode()


@contextlib.contextmanager
def watched(job: Job | None = None) -> Iterator[ForkedEnvironment]:
    """The environment for a run, whose workers are watched until it is over."""
    heap.give_back()
    lost.clear()
    if job is not None:
        os.environ[WANTED] = json.dumps(wanted(job))
    heap.settle_children()
    if find_kept(*compiled(wanted(job)["signals"] if job else DEFAULT)) is None:
        print(
            "kernels are compiled first, once a machine: half a minute or so, one to two minutes "
            "with all signals",
            file=sys.stderr,
        )
    # Ctrl-C in a terminal reaches all processes, and this one answers it: the fork server and its
    # workers inherit that SIGINT is blocked.
    resource_tracker.ensure_running()  # it would unblock SIGINT
    mask = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        ours = _start_fork_server()
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, mask)
    over = threading.Event()
    watch = threading.Thread(target=_watch, args=(over,), daemon=True)
    watch.start()
    silent, threading.excepthook = threading.excepthook, _without_broken_streams
    try:
        yield ForkedEnvironment()
    finally:
        over.set()
        watch.join()
        threading.excepthook = silent
        while ForkedWorker.running:  # the runner was interrupted while it closed them
            ForkedWorker.running.popitem()[1].process.kill()
        if ours is not None:  # 260 MB, while what became of the documents is added up
            _end_fork_server(ours)


def _start_fork_server() -> str | None:
    """Unless it runs: as a fork of this process, where that is safe, which has loaded nearly all
    that workers need (2.4 CPU seconds and 150 MB); else as a process that begins with nothing.
    Returns the folder of such a fork, which nobody else uses."""
    FORKS.set_forkserver_preload([__name__, WARM])
    server = vars(forkserver._forkserver)
    known = sys.version_info < (3, 14)  # from then on it asks for a key
    if server["_forkserver_pid"] is not None or not (known and forks.can_fork()):
        forkserver.ensure_running()
        return None
    far = len(tempfile.gettempdir()) > TEMP_CHARS
    folder = tempfile.mkdtemp(prefix="assay-", dir="/tmp" if far else None)  # of this server alone
    address = f"{folder}/fork-server"
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(address)
        listener.listen()
        alive, alive_here = os.pipe()  # ends with this process, and the server with it
        pid = os.fork()
        if pid == 0:
            _be_fork_server(listener.fileno(), alive, folder)
    os.close(alive)
    server |= {
        "_forkserver_address": address,
        "_forkserver_alive_fd": alive_here,
        "_forkserver_pid": pid,
    }
    return folder


def _end_fork_server(folder: str) -> None:
    """By a kill: asked for its end, it waits for all workers, and nobody knows of one whose start
    was interrupted (which ends with this process)."""
    server = vars(forkserver._forkserver)
    os.kill(server["_forkserver_pid"], signal.SIGKILL)
    os.waitpid(server["_forkserver_pid"], 0)
    os.close(server["_forkserver_alive_fd"])
    shutil.rmtree(folder, ignore_errors=True)
    server |= dict.fromkeys(("_forkserver_address", "_forkserver_alive_fd", "_forkserver_pid"))


def _be_fork_server(listener: int, alive: int, folder: str) -> NoReturn:
    """The child's side: nothing of the parent's is open (its lock!) or handled here. The folder of
    the socket goes with a parent that is killed, too."""
    try:
        signal.signal(signal.SIGTERM, signal.SIG_DFL)
        forks.close_all_but(listener, alive)
        forkserver.main(listener, alive, [WARM])
    except SystemExit:  # the parent has ended
        shutil.rmtree(folder, ignore_errors=True)
        os._exit(0)
    except BaseException:
        traceback.print_exc()
    os._exit(1)


def _watch(over: threading.Event) -> None:
    while not over.wait(LOOK_SECONDS):
        running = list(ForkedWorker.running.values())
        dead = [worker.process for worker in running if worker.process.exitcode is not None]
        if dead:
            why = _obituary(dead[0])
            lost.append(why)
            while not over.wait(LOOK_SECONDS):  # what is asked of workers from now on, too
                for worker in running:
                    worker.process.kill()
                    worker.fail(why)


def _obituary(process: ForkServerProcess) -> str:
    code = process.exitcode or 0
    how = signal.Signals(-code).name if code < 0 else f"exit code {code}"
    return (
        f"a worker process died (pid {process.pid}, {how}); {KEPT}. SIGKILL is most often a lack "
        f"of memory: {LESS_MEMORY}"
    )


def _without_broken_streams(failed: threading.ExceptHookArgs) -> None:
    """The streams to a process that was killed break; that is no news."""
    if not issubclass(failed.exc_type, grpc.RpcError):
        threading.__excepthook__(failed)


def _work(address: str, worker_id: str) -> None:
    """The life of a worker process. Where the driver is killed its streams break, now before the
    thread notices, now behind: no news either."""
    threading.Thread(target=forks.end_with_parent, daemon=True).start()
    threading.excepthook = _without_broken_streams
    try:
        sdk_worker.SdkHarness(
            address,
            worker_id=worker_id,
            state_cache_size=worker_handlers.STATE_CACHE_SIZE_MB << 20,
            data_buffer_time_limit_ms=worker_handlers.DATA_BUFFER_TIME_LIMIT_MS,
            runner_capabilities=worker_handlers.FNAPI_RUNNER_CAPABILITIES,
        ).run()
    except grpc.RpcError as error:
        if error.code() is not grpc.StatusCode.UNAVAILABLE:
            raise
        os._exit(1)
