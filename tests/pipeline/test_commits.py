"""Commit records: once a part, whole or made again."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from pipeline import commits, damage
from pipeline.corpus import CorpusError


def make(root: Path, fingerprint: str, calls: list[str], text: str = "x") -> dict[str, Any]:
    output = root / "documents" / "part-00000.parquet"

    def work() -> dict[str, Any]:
        calls.append(fingerprint)
        output.parent.mkdir(exist_ok=True)
        output.write_text(text)
        return {"documents": 1}

    return commits.once(root, "ingest", 0, fingerprint, [output], work)


def test_once_makes_a_part_once_per_fingerprint(tmp_path: Path) -> None:
    calls: list[str] = []
    record = make(tmp_path, "f1", calls)
    assert record["outputs"]["documents/part-00000.parquet"]["bytes"] == 1
    assert make(tmp_path, "f1", calls) == record
    make(tmp_path, "f2", calls)
    assert calls == ["f1", "f2"]


def test_once_makes_again_what_lost_its_file_or_was_cut_short(tmp_path: Path) -> None:
    calls: list[str] = []
    make(tmp_path, "f", calls, "whole")
    (tmp_path / "documents" / "part-00000.parquet").write_text("cut")
    make(tmp_path, "f", calls, "whole")
    (tmp_path / "documents" / "part-00000.parquet").unlink()
    make(tmp_path, "f", calls, "whole")
    assert calls == ["f", "f", "f"]


def test_a_record_does_not_vouch_for_files_of_a_killed_attempt(tmp_path: Path) -> None:
    """f1 stands; an attempt for f2 dies between its output and its record; f1 is wanted again."""
    calls: list[str] = []
    make(tmp_path, "f1", calls, "old")

    def dies() -> dict[str, Any]:
        (tmp_path / "documents" / "part-00000.parquet").write_text("new")
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        commits.once(tmp_path, "ingest", 0, "f2", [], dies)
    make(tmp_path, "f1", calls, "old")
    assert (tmp_path / "documents" / "part-00000.parquet").read_text() == "old"
    assert calls == ["f1", "f1"]


def test_damage_is_found_by_checksum(tmp_path: Path) -> None:
    make(tmp_path, "f", [], "whole")
    assert damage.damaged(tmp_path) == []
    (tmp_path / "documents" / "part-00000.parquet").write_text("whule")
    assert damage.damaged(tmp_path) == ["documents/part-00000.parquet"]
    assert not commits.record_path(tmp_path, "ingest", 0).exists(), "so that it is made again"


@pytest.mark.parametrize("place", range(0, 260, 23))
def test_a_damaged_record_is_none(tmp_path: Path, place: int) -> None:
    calls: list[str] = []
    record = make(tmp_path, "f", calls)
    path = commits.record_path(tmp_path, "ingest", 0)
    whole = path.read_bytes()
    path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
    assert commits.record(tmp_path, "ingest", 0, "f") is None
    assert make(tmp_path, "f", calls)["outputs"] == record["outputs"]
    assert calls == ["f", "f"]
    path.write_bytes(whole[:place])
    assert damage.damaged(tmp_path) == ["stats/ingest/part-00000.json"]
    assert not path.exists()


def test_a_record_is_parsed_once_until_it_or_a_file_is_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make(tmp_path, "f", [], "whole")
    path, parsed = tmp_path / "documents" / "part-00000.parquet", []
    found = commits.record
    monkeypatch.setattr(commits, "record", lambda *read: parsed.append(read[1:]) or found(*read))

    def ready() -> int:
        parsed.clear()
        commits.ready(tmp_path, [("ingest", 0, "f")])
        return len(parsed)

    assert [ready(), ready()] == [1, 0]
    make(tmp_path, "g", [], "other")
    with pytest.raises(CorpusError, match="ingest of part 0 is gone"):
        ready()
    make(tmp_path, "f", [], "whole")
    assert [ready(), ready()] == [1, 0]
    path.unlink()
    path.write_text("whule")
    with pytest.raises(CorpusError, match="is damaged"):
        ready()
