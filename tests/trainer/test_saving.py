"""Checkpoints that are written while a run goes on, that fail, or are slow; what stays of them."""

from __future__ import annotations

import errno
import json
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_run import losses, train
from tiny_run_jobs import ONE, pair

from trainer import checkpoint, saved, saving
from trainer.saved import Copy, superfluous
from trainer.saving import SaveError, Saver
from trainer.settings import Checkpoint

Write = Callable[..., Path]
FULL = OSError(errno.ENOSPC, "No space left on device")


class Told(list[str]):
    def __call__(self, line: str) -> None:
        self.append(line)


def saver(folder: Path, tell: Callable[[str], None] = print, **keys: Any) -> Saver:
    return Saver(folder, Checkpoint.model_validate(keys), ONE, tell)


@pytest.mark.parametrize("background", [False, True])
def test_what_is_saved_is_the_state_of_its_step(tmp_path: Path, background: bool) -> None:
    model, optimizer = pair(0)
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    one = saver(tmp_path, **{"async": background})
    one.save(model, optimizer, {"step": 1, "data": {}})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()  # the next step, while it is being written
    one.finish()
    one.close()
    checkpoint.load(tmp_path / saved.name(1), model, optimizer, ONE)
    for name, value in model.state_dict().items():
        assert torch.equal(value, expected[name]), name


def test_a_slow_save_leaves_out_the_next_and_the_last_waits(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """DeepSpeed #7533, accelerate #2912: a slow save ended the job."""
    gate, write = threading.Event(), checkpoint.write

    def slow(*arguments: Any) -> Path:
        assert gate.wait(60)
        return write(*arguments)

    monkeypatch.setattr(checkpoint, "write", slow)
    told = Told()
    one = saver(tmp_path, told, **{"async": True})
    trained = pair(0)
    one.save(*trained, {"step": 1, "data": {}})
    one.save(*trained, {"step": 2, "data": {}})
    assert told == [
        "step 2: no checkpoint, that of step 1 is still being written; save less often "
        "(`checkpoint.every`), or to a faster disk"
    ]
    gate.set()
    one.save(*trained, {"step": 3, "data": {}}, last=True)
    one.finish()
    one.close()
    assert [path.name for path in saved.newest_first(tmp_path)] == [saved.name(3), saved.name(1)]


def test_one_that_hangs_ends_neither_wait_nor_the_one_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The last of a run does not overwrite the copy that the hanging one still has to write."""
    gate, write = threading.Event(), checkpoint.write

    def slow(*arguments: Any) -> Path:
        assert gate.wait(60)
        return write(*arguments)

    monkeypatch.setattr(checkpoint, "write", slow)
    monkeypatch.setattr(saving, "LAST_SECONDS", 0.1)
    told = Told()
    one = saver(tmp_path, told, **{"async": True})
    model, optimizer = pair(0)
    expected = {name: value.clone() for name, value in model.state_dict().items()}
    one.save(model, optimizer, {"step": 1, "data": {}})
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.zero_()
    one.save(model, optimizer, {"step": 2, "data": {}}, last=True)
    with pytest.raises(SaveError, match="step-00000001 could not be written: it is still being"):
        one.finish()
    one.close()
    assert told[1].startswith("step 2: no checkpoint, that of step 1 is still being written")
    gate.set()
    while saved.newest(tmp_path) is None:
        time.sleep(0.05)
    checkpoint.load(tmp_path / saved.name(1), model, optimizer, ONE)
    assert all(torch.equal(value, expected[n]) for n, value in model.state_dict().items())


@pytest.mark.parametrize("background", [False, True])
def test_a_save_that_fails_is_told_and_the_next_succeeds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    told, trained = Told(), pair(0)
    one = saver(tmp_path, told, **{"async": background})
    one.save(*trained, {"step": 1, "data": {}}, last=True)
    one.finish()
    with monkeypatch.context() as broken:
        broken.setattr(checkpoint, "_publish", raising(FULL))
        one.save(*trained, {"step": 2, "data": {}}, last=True)
        with pytest.raises(SaveError, match=r"step-00000002 could not be written: .*No space left"):
            one.finish()
    assert told == [
        "step 2: the checkpoint could not be written: [Errno 28] No space left on device; the run "
        "goes on, step-00000001 is the newest that is complete"
    ]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["latest", "step-00000001"]
    one.save(*trained, {"step": 3, "data": {}}, last=True)
    one.finish()
    one.close()
    assert saved.newest(tmp_path) == tmp_path / saved.name(3)


def raising(error: Exception) -> Callable[..., None]:
    def fail(*_: Any) -> None:
        raise error

    return fail


@pytest.mark.parametrize("background", [False, True])
def test_a_run_goes_on_where_a_save_fails(
    data: Path, run_yaml: Write, monkeypatch: pytest.MonkeyPatch, background: bool
) -> None:
    every = {"every": 4 * 4 * 32, "async": background}
    whole = train(run_yaml("whole", checkpoint=every))
    publish = checkpoint._publish

    def full(temporary: Path, target: Path, record: dict[str, Any]) -> None:
        if record["step"] == 8:
            raise FULL
        publish(temporary, target, record)

    monkeypatch.setattr(checkpoint, "_publish", full)
    again = train(run_yaml("full", checkpoint={**every, "keep": 9}))
    assert losses(again.folder) == losses(whole.folder)
    kept = [path.name for path in saved.newest_first(again.folder / "checkpoints")]
    assert kept[0] == saved.name(20)
    assert saved.name(8) not in kept
    if not background:  # which leaves out what is due while it writes
        assert kept == [saved.name(step) for step in (20, 16, 12, 4)]


def test_the_stall_is_in_the_metrics(data: Path, run_yaml: Write) -> None:
    folder = train(run_yaml("a", checkpoint={"every": 4 * 4 * 32, "async": True})).folder
    rows = [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]
    stalled = [row["step"] for row in rows if row["checkpoint_stall_seconds"] > 0]
    assert stalled == [5, 9, 13, 17]  # the row after each save; the last has none


def test_file_sizes_are_those_of_tensors(tmp_path: Path) -> None:
    """A view that took its whole storage with it would make files of the wrong size."""
    model, optimizer = pair(0)
    for parameter in model.parameters():
        large = torch.empty(100 * parameter.numel())
        large[: parameter.numel()] = parameter.detach().flatten()
        parameter.data = large[: parameter.numel()].view(parameter.shape)
    one = saver(tmp_path)
    one.save(model, optimizer, {"step": 1, "data": {}}, last=True)
    state = checkpoint.state_of(model, optimizer)
    tensors = [v for part in ("model", "optimizer") for v in state[part].values()]
    tensors = [v for v in tensors if isinstance(v, torch.Tensor)] + [state["rng"]]
    wanted = sum(tensor.nbytes for tensor in tensors)
    files = saved.manifest(tmp_path / saved.name(1))["files"]
    found = sum(file["bytes"] for name, file in files.items() if name.endswith(".distcp"))
    others = len(state["optimizer"]) + len(tensors)  # numbers, and a header for each
    assert wanted < found < wanted + 1_600 * others


# --- retention ------------------------------------------------------------------------------------


def copies(*entries: tuple[int, bool, bool]) -> list[Copy]:
    return [Copy(saved.name(step), good, permanent) for step, good, permanent in entries]


def test_which_may_go() -> None:
    several = copies(
        (1, True, False), (2, True, True), (3, True, False), (4, True, False), (5, False, False)
    )
    assert superfluous(several, 1) == [saved.name(3), saved.name(1)]
    assert superfluous(several, 2) == [saved.name(1)]
    assert superfluous(several, 1, held=[saved.name(3)]) == [saved.name(1)]


@given(
    st.lists(st.tuples(st.integers(1, 30), st.booleans(), st.booleans()), max_size=12),
    st.integers(1, 3),
)
def test_the_last_good_one_stays(entries: list[tuple[int, bool, bool]], keep: int) -> None:
    several = copies(*{step: (step, good, p) for step, good, p in entries}.values())
    gone = superfluous(several, keep)
    good = sorted(copy.name for copy in several if copy.good)
    assert not good or good[-1] not in gone
    assert not [copy for copy in several if copy.name in gone and copy.good and copy.permanent]
    assert len([copy for copy in several if copy.good and copy.name not in gone]) >= min(
        keep, len(good)
    )


def test_permanent_ones_and_the_newest_stay(data: Path, run_yaml: Write) -> None:
    batch = 4 * 32
    keys = {"every": 2 * batch, "keep": 1, "keep_every": 6 * batch}
    folder = train(run_yaml("a", checkpoint=keys)).folder / "checkpoints"
    kept = [path.name for path in reversed(saved.newest_first(folder))]
    assert kept == [saved.name(step) for step in (6, 12, 18, 20)]
