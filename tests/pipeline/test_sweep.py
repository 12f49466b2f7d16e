"""One pass for all stages: what each gets, when its files stand, what happens when one fails."""

from __future__ import annotations

from pathlib import Path

import corpus_parts
import numpy as np
import pytest

from dedup.shingles import shingles
from pipeline.files import replacing
from pipeline.transforms.sweep import Batch, Stage, sweep

TEXTS = [f"text number {n}" if n % 2 else f"第{n}号文本" for n in range(17)]


def listing(seen: list[Batch], path: Path) -> Stage:
    with replacing(path) as temporary, open(temporary, "w") as file:
        while (batch := (yield)) is not None:
            seen.append(batch)
            file.writelines(f"{text}\n" for text in batch.texts.array.to_pylist())
            file.flush()
    return {"documents": sum(len(batch.texts) for batch in seen)}


def failing(after: int) -> Stage:
    for _ in range(after):
        yield
    raise ValueError("no space left")


def test_every_stage_gets_every_row_group_once(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [TEXTS])
    one: list[Batch] = []
    two: list[Batch] = []
    made = sweep(
        tmp_path, 0, {"a": listing(one, tmp_path / "a"), "b": listing(two, tmp_path / "b")}, 5
    )
    assert {name: swept.counters for name, swept in made.items()} == {
        "a": {"documents": 17},
        "b": {"documents": 17},
    }
    assert [len(batch.texts) for batch in one] == [7, 7, 3]
    assert all(a is b for a, b in zip(one, two, strict=True))
    assert (tmp_path / "a").read_text().splitlines() == TEXTS
    batch = one[1]
    assert batch.columns["lang"].to_pylist() == [
        corpus_parts.language(text) for text in TEXTS[7:14]
    ]
    assert batch.contents.to_pylist() == [corpus_parts.content(text) for text in TEXTS[7:14]]
    for found, defined in zip(batch.shingles, shingles(batch.texts.array, 5), strict=True):
        assert np.array_equal(found, defined)
    assert batch.shingles[0] is batch.shingles[0]
    assert all("segments" not in vars(batch.texts) for batch in one)
    batch.forget()
    assert "_shingles" not in vars(batch)


def test_languages_are_empty_while_they_are_found(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [TEXTS])
    (tmp_path / "signals/language/part-00000.parquet").unlink()
    seen: list[Batch] = []
    sweep(tmp_path, 0, {"signals/language": listing(seen, tmp_path / "a")}, 5)
    assert {lang for batch in seen for lang in batch.columns["lang"].to_pylist()} == {""}


def test_a_part_without_documents(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [[]])
    assert sweep(tmp_path, 0, {"a": listing([], tmp_path / "a")}, 5)["a"].counters == {
        "documents": 0
    }
    assert (tmp_path / "a").read_bytes() == b""


@pytest.mark.parametrize("after", [1, 2, 3])
def test_where_one_stage_fails_no_file_stands(tmp_path: Path, after: int) -> None:
    corpus_parts.write(tmp_path, [TEXTS])
    stages = {"bad": failing(after), "a": listing([], tmp_path / "a")}
    with pytest.raises(ValueError, match="no space left"):
        sweep(tmp_path, 0, stages, 5)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["documents", "signals"]


def test_reading_is_shared_and_the_rest_is_measured(tmp_path: Path) -> None:
    corpus_parts.write(tmp_path, [TEXTS])

    def busy() -> Stage:
        while (yield) is not None:
            sum(range(300_000))
        return {}

    made = sweep(tmp_path, 0, {"a": listing([], tmp_path / "a"), "busy": busy()}, 5)
    assert made["busy"].cpu_seconds > made["a"].cpu_seconds > 0
