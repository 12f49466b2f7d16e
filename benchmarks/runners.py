"""Every runner that one machine can run, on one small corpus: seconds, and are the bytes the same?

    python benchmarks/runners.py            # all; needs root for the hosts, Java for Spark
    python benchmarks/runners.py dask spark

Seconds are of the wall, with the start of clusters left out: they say what a runner costs on a
corpus that needs two seconds of work, not how fast it is.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from importlib.util import find_spec
from pathlib import Path

import xxhash

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))
import small_corpus  # noqa: E402 (it lies with the tests)

NETWORK = "10.231.7"  # of the hosts, which are network namespaces on one bridge


class Unavailable(Exception):
    """A runner that this machine cannot run; says why."""


Recipe = Callable[[], AbstractContextManager[list[str]]]  # arguments of `assay prepare`


def plain(*arguments: str) -> Recipe:
    return lambda: nullcontext(list(arguments))


@contextmanager
def external_pool(
    pool_prefix: Sequence[str] = (), pool_environment: Mapping[str, str] | None = None
) -> Iterator[list[str]]:
    """A job service and a pool of workers, each a process of its own."""
    service, pool = _free_port(), _free_port()
    beam = [sys.executable, "-m"]
    workers = [*beam, "apache_beam.runners.worker.worker_pool_main", f"--service_port={pool}"]
    with (
        _running([*beam, "apache_beam.runners.portability.local_job_service_main", f"-p{service}"]),
        _running([*pool_prefix, *workers], pool_environment or {}),
    ):
        _wait_for(service)
        _wait_for(pool)
        yield [
            *("--runner", "portable", "--", f"--job_endpoint=localhost:{service}"),
            *("--environment_type=EXTERNAL", f"--environment_config=localhost:{pool}"),
        ]


@contextmanager
def dask_local() -> Iterator[list[str]]:
    _need("distributed")
    yield ["--runner", "dask"]


@contextmanager
def dask_hosts() -> Iterator[list[str]]:
    """A Dask scheduler here, one worker on each of two hosts with networks of their own."""
    _need("distributed")
    port = _free_port()
    address = f"tcp://{NETWORK}.1:{port}"
    dask = [sys.executable, "-m", "dask"]
    scheduler = [*dask, "scheduler", "--host", f"{NETWORK}.1", "--port", str(port)]
    worker = [*dask, "worker", address, "--nthreads", "1", "--no-dashboard"]
    with _hosts(2) as hosts, ExitStack() as started:
        started.enter_context(_running([*scheduler, "--no-dashboard"]))
        _wait_for(port, f"{NETWORK}.1")
        for host in hosts:
            folder = started.enter_context(tempfile.TemporaryDirectory())
            local = ["--local-directory", folder]
            started.enter_context(_running(["ip", "netns", "exec", host, *worker, *local]))
        _wait_for_dask(address, len(hosts))
        yield ["--runner", "dask", "--", f"--dask_client_address={address}"]


@contextmanager
def spark() -> Iterator[list[str]]:
    _need("beam_pyspark_runner")
    if shutil.which("java") is None:
        raise Unavailable("no Java")
    yield ["--runner", "spark"]


RECIPES: dict[str, tuple[str, Recipe]] = {
    "inline": (
        "this process; what the others are compared with",
        plain("--runner", "inline"),
    ),
    "threads": (
        "two threads of this process",
        plain("--runner", "threads", "--workers", "2"),
    ),
    "processes": ("two forked processes", plain("--workers", "2")),
    "portable": ("a job service inside, LOOPBACK workers", plain("--runner", "portable")),
    "portable-pool": ("a job service and an EXTERNAL worker pool, two processes", external_pool),
    "dask": ("a cluster on this machine", dask_local),
    "dask-hosts": ("a scheduler, two workers on two hosts (network namespaces)", dask_hosts),
    "spark": ("PySpark 3.5 on Java 17, local[*]", spark),
}


def prepare(folder: Path, recipe: str) -> tuple[float, dict[str, str]]:
    """Prepare the corpus of `folder` anew; returns seconds and the hash of every file."""
    shutil.rmtree(folder / "corpus", ignore_errors=True)
    with RECIPES[recipe][1]() as arguments:
        began = time.perf_counter()
        small_corpus.assay("prepare", folder / "corpus.yaml", *arguments)
        seconds = time.perf_counter() - began
    return seconds, hashes(folder / "corpus")


def hashes(root: Path) -> dict[str, str]:
    """All but timings and file times: stats/, corpus.json, inputs.json."""
    files = (path for path in sorted(root.rglob("*")) if path.is_file())
    names = ((path.relative_to(root).as_posix(), path) for path in files)
    skipped = ("stats/", "corpus.json", "inputs.json", ".lock")
    return {
        name: xxhash.xxh3_64_hexdigest(path.read_bytes())
        for name, path in names
        if not name.startswith(skipped)
    }


def make_inputs(folder: Path) -> None:
    settings = small_corpus.write_inputs(folder)
    with settings.open("a") as file:
        file.write("shard_bytes: 40000\n")  # a dozen shards
    tokenizer = folder / "tokenizer.json"
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)


def _need(module: str) -> None:
    if find_spec(module) is None:
        raise Unavailable(f"{module} is not installed")


def _free_port() -> int:
    with socket.socket() as bound:
        bound.bind(("", 0))
        return int(bound.getsockname()[1])


def _wait_for(port: int, host: str = "localhost", seconds: float = 60) -> None:
    deadline = time.monotonic() + seconds
    while True:
        try:
            socket.create_connection((host, port), timeout=1).close()
            return
        except OSError:
            if time.monotonic() > deadline:
                raise
            time.sleep(0.1)


def _wait_for_dask(address: str, workers: int) -> None:
    from distributed import Client

    with Client(address) as client:
        client.wait_for_workers(workers, timeout=60)


@contextmanager
def _running(command: list[str], environment: Mapping[str, str] | None = None) -> Iterator[None]:
    """A server, for as long as it is needed. Pools start a bare `python`: ours is put on PATH."""
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    paths = f"{ROOT}{os.pathsep}{os.environ.get('PYTHONPATH', '')}"
    process = subprocess.Popen(
        command,
        env=os.environ | {"PATH": path, "PYTHONPATH": paths} | dict(environment or {}),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield
    finally:
        process.terminate()
        process.wait()


@contextmanager
def _hosts(count: int) -> Iterator[list[str]]:
    """Network namespaces on a bridge; NETWORK.1 is this host."""
    if os.geteuid() != 0 or shutil.which("ip") is None:
        raise Unavailable("hosts are network namespaces, which need root and `ip`")
    bridge = "assay-bridge"
    hosts = [f"assay-host-{n}" for n in range(count)]
    try:
        _ip(f"link add {bridge} type bridge")
        _ip(f"addr add {NETWORK}.1/24 dev {bridge}")
        _ip(f"link set {bridge} up")
        for n, host in enumerate(hosts):
            _ip(f"netns add {host}")
            _ip(f"link add assay-veth-{n} type veth peer name eth0 netns {host}")
            _ip(f"link set assay-veth-{n} master {bridge} up")
            _ip(f"-n {host} addr add {NETWORK}.{n + 2}/24 dev eth0")
            _ip(f"-n {host} link set eth0 up")
            _ip(f"-n {host} link set lo up")
        yield hosts
    except subprocess.CalledProcessError as error:
        raise Unavailable(f"{' '.join(error.cmd)}: {error.stderr.strip()}") from None
    finally:
        for host in hosts:
            subprocess.run(["ip", "netns", "del", host], check=False, capture_output=True)
        subprocess.run(["ip", "link", "del", bridge], check=False, capture_output=True)


def _ip(arguments: str) -> None:
    subprocess.run(["ip", *arguments.split()], check=True, capture_output=True, text=True)


def main(names: list[str]) -> None:
    with tempfile.TemporaryDirectory() as scratch:
        make_inputs(Path(scratch))
        _, wanted = prepare(Path(scratch), "inline")  # kernels are compiled now
        print("| runner | what was run | seconds | same corpus |\n|---|---|---|---|", flush=True)
        for name in names or RECIPES:
            what = RECIPES[name][0]
            try:
                seconds, found = prepare(Path(scratch), name)
                row = f"{seconds:.1f} | {'yes' if found == wanted else 'NO'}"
            except Unavailable as reason:
                row = f"not run: {reason} | "
            print(f"| {name} | {what} | {row} |", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
