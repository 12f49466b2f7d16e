"""What processes of `clean_process` do to a tiny run: die, be one rank of several, see a NaN."""

from __future__ import annotations

import os
import signal
import sys
import threading
import time
import zlib
from pathlib import Path
from typing import Any

import pytest
import tiny_run
import torch
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_state_dict

from trainer import checkpoint, cli, loop, saved, step
from trainer.attention import Scope
from trainer.loop import TrainingError
from trainer.model import Decoder
from trainer.optim import make_optimizer
from trainer.parallel.world import World, join_world
from trainer.saving import Saver
from trainer.settings import Checkpoint, RunSettings
from trainer.starting import build_model

SHAPE = {"width": 16, "depth": 1, "heads": 2, "kv_heads": 1, "ffn": 16}
RUN = RunSettings.model_validate(
    {"mixture": "m.yaml", "model": SHAPE, "tokens": "1k", "threads": 1}
)
ONE = World(0, 1, torch.device("cpu"), None)
Pair = tuple[Decoder, torch.optim.Optimizer]


def pair(seed: int, world: World = ONE) -> Pair:
    """A model after one step, with the optimizer that has its moments."""
    model = build_model(RUN.model_copy(update={"seed": seed}), 20, world)
    optimizer = make_optimizer(model, RUN)
    tokens = torch.arange(20)[None]
    model(tokens, Scope(torch.zeros_like(tokens))).logsumexp(-1).sum().backward()
    optimizer.step()
    return model, optimizer


def save(folder: Path, step: int, seed: int, keep: int = 2) -> Path:
    return saved_by(ONE, folder, pair(seed), {"step": step, "data": {}}, keep)


def saved_by(
    world: World, folder: Path, trained: Pair, record: dict[str, Any], keep: int = 1
) -> Path:
    """Write one checkpoint, as a run does."""
    saver = Saver(folder, Checkpoint(keep=keep), world, print)
    saver.save(*trained, record)
    saver.finish()
    return folder / saved.name(record["step"])


def save_killed_at(moment: str, folder: Path) -> None:
    """Be killed at the first call of os.<moment>: while the second checkpoint is written."""
    setattr(os, moment, lambda *_: os.kill(os.getpid(), signal.SIGKILL))
    save(folder, 2, 1, keep=1)


def whole_state(model: Decoder, optimizer: torch.optim.Optimizer) -> dict[str, Any]:
    """Weights and moments by name, gathered from all ranks."""
    options = StateDictOptions(full_state_dict=True, flatten_optimizer_state_dict=True)
    weights, moments = get_state_dict(model, optimizer, options=options)
    return {**weights, **moments}


def save_rank(rank: int, size: int, folder: Path) -> None:
    """One of `size` ranks that write a checkpoint."""
    be(rank, size, folder)
    with join_world(RUN) as world:
        _save_with_state(folder, pair(0, world), world)


def reload_rank(rank: int, size: int, source: Path, folder: Path) -> None:
    """One of `size` ranks that load a checkpoint and write it anew."""
    be(rank, size, folder)
    with join_world(RUN) as world:
        model, optimizer = pair(99, world)
        checkpoint.load(source, model, optimizer, world)
        _save_with_state(folder, (model, optimizer), world)


def _save_with_state(folder: Path, trained: Pair, world: World) -> None:
    state = whole_state(*trained)
    if world.first:
        folder.mkdir()
        torch.save(state, folder / "state.pt")
    saved_by(world, folder, trained, {"step": 1})


def train_killed_after(number: int, data: Path | None, path: Path) -> None:
    """Be killed after a step; data None: of a run that says itself what it reads."""
    if data is not None:
        tiny_run.use(data)
    log = loop.append_log

    def killed(where: Path, row: dict[str, Any]) -> None:
        log(where, row)
        if row["step"] == number:
            os.kill(os.getpid(), signal.SIGKILL)

    loop.append_log = killed
    tiny_run.train(path)


def train_killed_at_save(number: int, after: bool, data: Path, path: Path) -> None:
    """Be killed just before or just after the checkpoint of a step is written."""
    tiny_run.use(data)
    save = Saver.save

    def killed(*arguments: Any, **options: Any) -> float:
        mine = arguments[3]["step"] == number
        if after or not mine:
            save(*arguments, **options)
        if mine:
            os.kill(os.getpid(), signal.SIGKILL)
        return 0.0

    Saver.save = killed
    tiny_run.train(path)


def train_rank(rank: int, size: int, data: Path | None, path: Path) -> None:
    """Train as torchrun would let this process do it."""
    if data is not None:
        tiny_run.use(data)
    be(rank, size, path)
    tiny_run.train(path)


def train_from_hub(endpoint: str, home: Path, path: Path) -> None:
    """Call `assay train` where huggingface.co is another server."""
    assert "huggingface_hub" not in sys.modules, "it has read HF_ENDPOINT"
    os.environ |= {"HF_ENDPOINT": endpoint, "HF_HOME": str(home)}
    assert cli.main(["train", str(path)]) == 0


def train_rank_with_nan(rank: int, size: int, data: Path, path: Path) -> None:
    """The losses of rank 1 are not numbers from step 3 on; keeps the message of the error."""
    tiny_run.use(data)
    be(rank, size, path)
    losses, calls = step.token_losses, iter(range(100))

    def broken(model: torch.nn.Module, *batch: torch.Tensor) -> torch.Tensor:
        factor = float("nan") if rank == 1 and next(calls) >= 2 else 1.0
        return losses(model, *batch) * factor

    step.token_losses = broken
    with pytest.raises(TrainingError) as caught:
        tiny_run.train(path)
    (path.parent / f"rank-{rank}.txt").write_text(str(caught.value))


def be(rank: int, size: int, folder: Path) -> None:
    """Take the environment that torchrun would give; the port is one that `folder` has alone, below
    those that systems give to outgoing connections (from 32,768 on: ip(7)), which may be in use."""
    port = str(10_000 + zlib.crc32(str(folder).encode()) % 20_000)
    address = {"MASTER_ADDR": "127.0.0.1", "MASTER_PORT": port}
    os.environ.update({"RANK": str(rank), "WORLD_SIZE": str(size), **address})


def train_killed_at_moment(seconds: float, data: Path, path: Path) -> None:
    """Be killed so long after the first step, wherever that is: in a step, a save, a score."""
    tiny_run.use(data)
    log, begun = loop.append_log, threading.Event()

    def seen(where: Path, row: dict[str, Any]) -> None:
        log(where, row)
        if not begun.is_set():
            begun.set()
            threading.Thread(target=kill, daemon=True).start()

    def kill() -> None:
        time.sleep(seconds)
        os.kill(os.getpid(), signal.SIGKILL)

    loop.append_log = seen
    tiny_run.train(path)


def train_killed_while_writing(number: int, data: Path, path: Path) -> None:
    """Be killed when the files of a checkpoint are written and its manifest is not."""
    tiny_run.use(data)
    publish = checkpoint._publish

    def killed(temporary: Path, target: Path, record: dict[str, Any]) -> None:
        if record["step"] == number:
            os.kill(os.getpid(), signal.SIGKILL)
        publish(temporary, target, record)

    checkpoint._publish = killed
    tiny_run.train(path)


def train_terminated_after(number: int, data: Path, path: Path) -> None:
    """Call `assay train` and get SIGTERM in a step; keeps the exit code."""
    tiny_run.use(data)
    clip = loop.clip_gradients
    calls = iter(range(1, 1000))

    def terminated(*arguments: Any) -> Any:
        if next(calls) == number:
            os.kill(os.getpid(), signal.SIGTERM)
        return clip(*arguments)

    loop.clip_gradients = terminated
    (path.parent / "code.txt").write_text(str(cli.main(["train", str(path)])))
