"""A file is whole or absent."""

from __future__ import annotations

from pathlib import Path

import pytest

from pipeline.files import read_json, remove_temporaries, replacing, write_json


def test_replacing_keeps_the_old_file_when_the_block_fails(tmp_path: Path) -> None:
    path = tmp_path / "a.json"
    write_json(path, {"n": 1})
    with pytest.raises(ZeroDivisionError), replacing(path) as temporary:
        temporary.write_text("half")
        raise ZeroDivisionError
    assert read_json(path) == {"n": 1}
    assert [p.name for p in tmp_path.iterdir()] == ["a.json"]


def test_temporaries_of_killed_attempts_go(tmp_path: Path) -> None:
    (tmp_path / "documents").mkdir()
    (tmp_path / "documents" / ".part-00000.parquet.123.tmp").write_text("half")
    (tmp_path / "documents" / "part-00001.parquet").write_text("whole")
    remove_temporaries(tmp_path)
    assert [p.name for p in (tmp_path / "documents").iterdir()] == ["part-00001.parquet"]
