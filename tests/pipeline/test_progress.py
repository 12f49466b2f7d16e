"""What is told of a run, from commit records alone."""

from __future__ import annotations

import errno
import json
import time
from pathlib import Path
from typing import Any

import pytest

from pipeline import progress
from pipeline.clock import telling
from pipeline.corpus import CorpusError
from pipeline.files import read_json, write_json
from pipeline.shards import load_shards
from pipeline.time_left import Mark
from pipeline.watch import Stage, Watch


class FakeJob:
    """What of a job is looked at."""

    def __init__(self, root: Path) -> None:
        self.root, self.parts = root, [0, 1, 2]

    def record_name(self, stage: str) -> str:
        return stage


def record(root: Path, stage: str, part: int, cpu_seconds: float = 2.0, **counters: Any) -> None:
    found: dict[str, Any] = {"stage": stage, "part": part, "counters": counters, "seconds": 3.0}
    found |= {"cpu_seconds": cpu_seconds, "outputs": {"a": {"bytes": 5}, "b": {"bytes": 6}}}
    write_json(root / f"stats/{stage}/part-{part:05d}.json", found)


def events_of(root: Path) -> list[dict[str, Any]]:
    lines = (root / "stats/log.jsonl").read_text("utf-8").splitlines()
    return [json.loads(line) for line in lines]


def ingested(root: Path, part: int, records: int = 12) -> None:
    record(root, "ingest", part, documents=9, bytes=4_000_000, files={"f": {"records": records}})


def test_the_log_of_a_real_run(many_parts: Path) -> None:
    log = events_of(many_parts)
    assert (log[0]["event"], log[-1]["event"]) == ("start", "end")
    stages = read_json(many_parts / "corpus.json")["stages"]
    num_parts = len(load_shards(many_parts))
    parts = [event for event in log if event["event"] == "part"]
    assert len(parts) == sum(log[0]["missing"].values())
    assert len({(event["stage"], event["part"]) for event in parts}) == len(parts)
    ends = {event["stage"]: event for event in log if event["event"] == "stage"}
    assert ends.keys() == log[0]["missing"].keys() == stages.keys()
    total = stages["ingest"]["totals"]
    for stage in ("ingest", "tokens", "signals/language"):
        assert (ends[stage]["parts"], ends[stage]["documents"]) == (num_parts, total["documents"])
        mine = [event for event in parts if event["stage"] == stage]
        assert sum(event["text_bytes"] for event in mine) == total["bytes"]
    assert {event["documents"] for event in parts if event["stage"] == "pairs"} == {None}


def test_each_record_is_told_once_and_old_ones_never(tmp_path: Path) -> None:
    ingested(tmp_path, 0)
    ingested(tmp_path, 1)
    watch = Watch(FakeJob(tmp_path), {"ingest": 2, "pairs": 1})  # type: ignore[arg-type]
    assert watch.look() == []
    ingested(tmp_path, 1)  # made again
    ingested(tmp_path, 2)
    record(tmp_path, "pairs", 0, pairs=3, documents=7)
    found = [(event["stage"], event["part"]) for event in watch.look()]
    assert found == [("ingest", 1), ("ingest", 2), ("pairs", 0)]
    assert watch.look() == []
    assert watch.stages["ingest"].documents == 18
    assert watch.stages["pairs"].documents == 0


def test_a_run_that_fails_says_so_in_the_log(tmp_path: Path) -> None:
    with (
        pytest.raises(ValueError, match="disk"),
        progress.shown(FakeJob(tmp_path), {"ingest": 2}),  # type: ignore[arg-type]
    ):
        ingested(tmp_path, 0)
        raise ValueError("the disk is full")
    events = events_of(tmp_path)
    assert [event["event"] for event in events] == ["start", "part", "error"]
    assert events[1]["bytes"] == 11
    assert events[2]["message"] == "ValueError: the disk is full"
    told = events[2]["traceback"].splitlines()
    assert (told[0], told[-1]) == (
        "Traceback (most recent call last):",
        "ValueError: the disk is full",
    )


def test_what_a_full_disk_does_not_log_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Events wait for room; without any, the traceback goes with the error."""
    room = [True]
    real = progress.append

    def append(log: Path, events: list[dict[str, Any]]) -> None:
        if not room[0]:
            raise OSError(errno.ENOSPC, "No space left")
        real(log, events)

    monkeypatch.setattr(progress, "append", append)
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.01)
    job: Any = FakeJob(tmp_path)
    with progress.shown(job, {"ingest": 2}):
        room[0] = False
        ingested(tmp_path, 0)
        time.sleep(0.2)
        room[0] = True
    assert [event["event"] for event in events_of(tmp_path)] == ["start", "part", "end"]
    with pytest.raises(KeyError) as caught, progress.shown(job, {"ingest": 2}):
        room[0] = False
        raise KeyError("a decoder")
    (note,) = caught.value.__notes__
    log = tmp_path / progress.LOG
    assert note.startswith(f"{log}: [Errno 28] No space left; so here is the traceback\nTraceback")
    assert note.endswith("KeyError: 'a decoder'\n")
    room[0] = True
    with pytest.raises(CorpusError) as known, progress.shown(job, {"ingest": 2}):
        room[0] = False
        raise CorpusError("its disk is full; free some")
    assert known.value.__notes__ == [f"{log}: [Errno 28] No space left"]


def stage(missing: int, made: int, cpu_seconds: float, **known: int) -> Stage:
    return Stage(missing, Path(), {}, made, cpu_seconds=cpu_seconds, **known)


STAGES = {
    "ingest": stage(10, 5, 10.0, documents=90, records=100, text_bytes=20_000_000),
    "tokens": stage(10, 2, 2.0, documents=40, text_bytes=8_000_000),
    "signatures": stage(10, 0, 0.0),
    "pairs": stage(16, 0, 0.0),
}


def test_the_block_by_hand() -> None:
    # left: see test_time_left.py, at 12 s of CPU in 6 s
    marks = [Mark(1.0, 2.0), Mark(6.0, 12.0)]
    assert progress.block(STAGES, 6.0, marks) == [
        "7 of 46 steps, about 0:18 left, 0:06, 3.33 MB/s, 90.0% kept, 90 documents, "
        "20.0 MB of text",
        "  ingest  5 of 10  2.0 MB/s a core  90.0% kept",
        "  tokens  2 of 10  4.0 MB/s a core",
    ]
    assert progress.headline({"ingest": stage(3, 0, 0.0)}, 2.0, []) == ["0 of 3 steps", "0:02"]
    assert progress.block({"ingest": stage(3, 0, 0.0)}, 2.0, [])[1:] == ["  ingest  0 of 3"]


@pytest.mark.parametrize(
    ("columns", "head", "first"),
    [
        (60, "131,313 of 262,626 steps, about 38:28:46 left, 27:46:40", "  21.8 MB/s a core"),
        (
            80,
            "131,313 of 262,626 steps, about 38:28:46 left, 27:46:40, 20.00 MB/s, 98.3% kept",
            "  21.8 MB/s a core  98.3% kept",
        ),
        (
            120,
            "131,313 of 262,626 steps, about 38:28:46 left, 27:46:40, 20.00 MB/s, 98.3% kept, "
            "590,000,000 documents",
            "  21.8 MB/s a core  98.3% kept",
        ),
    ],
)
def test_a_large_block_fits_its_terminal(columns: int, head: str, first: str) -> None:
    counts = {"documents": 590_000_000, "text_bytes": 2_000_000_000_000}
    names = ("signals/language", "signals/fineweb", "tokens")
    stages = {
        "ingest": stage(65_656, 60_656, 91_743.0, records=600_000_000, **counts),
        **{name: stage(65_656, 23_552, 99_000.0, **counts) for name in names},
        "pairs": stage(2, 1, 1.0),
    }
    done = sum(stage.cpu_seconds for stage in stages.values())
    marks = [Mark(0.0, 0.0), Mark(100_000.0, done)]
    lines = progress.block(stages, 100_000.0, marks, columns, 24)
    assert len(lines) == 6
    assert lines[0] == head
    assert lines[1] == f"  ingest            60,656 of 65,656{first}"
    assert max(map(len, lines)) <= columns


def test_what_is_done_makes_way_in_a_low_terminal() -> None:
    stages = {f"done-{n}": stage(3, 3, 1.0) for n in range(9)} | {"tokens": stage(3, 1, 1.0)}
    lines = progress.block(stages, 2.0, [], 80, 6)
    assert lines[1:] == ["  tokens  1 of 3"]


def test_plain_lines_from_the_first_second(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "LOOK_SECONDS", 0.01)
    monkeypatch.setattr(progress, "LINE_SECONDS", 0.05)
    job = FakeJob(tmp_path)
    with progress.shown(job, {"ingest": 2, "tokens": 2, "pairs": 1}):  # type: ignore[arg-type]
        ingested(tmp_path, 0)
        time.sleep(0.3)
        record(tmp_path, "tokens", 0, documents=9)
        time.sleep(0.3)
    said = capsys.readouterr().err.splitlines()
    assert [line for line in said if line.startswith("begins")] == [
        "begins: ingest",
        "begins: tokens",
    ]
    assert sum(line.startswith("2 of 5 steps, about ") for line in said) > 1


def test_lines_come_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    assert list(telling("abc", lambda n: f"{n} of 3", 0.0)) == ["a", "b", "c"]
    assert capsys.readouterr().err == "0 of 3\n1 of 3\n2 of 3\n"
    assert list(telling("abc", lambda n: f"{n} of 3", 60.0)) == ["a", "b", "c"]
    assert capsys.readouterr().err == ""
