"""What a run has finished, by its commit records: the same for every runner, free for workers.

A look lists the folders of the stages and reads each new record once. What stood before the run is
told apart by its time, and never read.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from pipeline.files import read_json
from pipeline.stages import JOINS, Job


@dataclass
class Stage:
    """What a run has made of one stage."""

    missing: int  # parts, when the run began
    folder: Path
    before: dict[str, int]  # name of each record when the run began -> its time in ns
    made: int = 0
    documents: int = 0
    text_bytes: int = 0
    records: int = 0  # of the input: only ingest has them
    cpu_seconds: float = 0.0
    seen: set[str] = field(default_factory=set)

    @property
    def left(self) -> int:
        return self.missing - self.made


class Watch:
    """The stages of a run that had anything missing, and what became of each."""

    def __init__(self, job: Job, missing: Mapping[str, int]) -> None:
        self.root = job.root
        self.text_bytes: dict[int, int] = {}  # of parts whose ingest was seen
        self.stages: dict[str, Stage] = {}
        for name, count in missing.items():
            folder = job.root / "stats" / job.record_name(name)
            times = {entry.name: entry.stat().st_mtime_ns for entry in _entries(folder)}
            self.stages[name] = Stage(count, folder, times)

    def look(self) -> list[dict[str, Any]]:
        """One event for each part that was finished since the last look."""
        return [event for name in self.stages for event in self._look(name)]

    def _look(self, name: str) -> Iterator[dict[str, Any]]:
        stage = self.stages[name]
        if not stage.left:
            return
        for entry in sorted(_entries(stage.folder), key=lambda entry: entry.name):
            if entry.name in stage.seen or _stands(entry, stage.before):
                continue
            record = _read(Path(entry.path))
            if record is not None:
                stage.seen.add(entry.name)
                yield self._event(name, stage, record)

    def _event(self, name: str, stage: Stage, record: dict[str, Any]) -> dict[str, Any]:
        counters, part = record["counters"], record["part"]
        if name == "ingest":
            self.text_bytes[part] = counters["bytes"]
            stage.records += sum(file["records"] for file in counters["files"].values())
        joins = name in JOINS
        text_bytes = None if joins else self.text_bytes.get(part)
        documents = None if joins else counters.get("documents")
        stage.made += 1
        stage.documents += documents or 0
        stage.text_bytes += text_bytes or 0
        stage.cpu_seconds += record["cpu_seconds"]
        return {
            "event": "part",
            "stage": name,
            "part": part,
            "documents": documents,
            "text_bytes": text_bytes,
            "bytes": sum(output["bytes"] for output in record["outputs"].values()),
            "seconds": record["seconds"],
            "cpu_seconds": record["cpu_seconds"],
            "host": record.get("host"),
        }


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    try:
        with os.scandir(folder) as entries:
            return [entry for entry in entries if entry.name.startswith("part-")]
    except FileNotFoundError:  # no part of this stage was ever made
        return []


def _stands(entry: os.DirEntry[str], before: Mapping[str, int]) -> bool:
    """Was this record there when the run began?"""
    if entry.name not in before:
        return False
    try:
        return os.stat(entry.path).st_mtime_ns == before[entry.name]
    except FileNotFoundError:  # its part is being made again
        return True


def _read(path: Path) -> dict[str, Any] | None:
    try:
        found: dict[str, Any] = read_json(path)
    except FileNotFoundError:
        return None
    return found
