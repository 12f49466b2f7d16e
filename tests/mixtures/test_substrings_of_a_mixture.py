"""Which places of repeated text a mixture edits, held to the definition over what it selects."""

from __future__ import annotations

import random
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content
from repeated_texts import Row, covered, found, mixed, repeated

from dedup import winnowing
from dedup.repeats import slack
from mixtures import repeats
from pipeline import schema
from pipeline.commits import commit
from pipeline.files import part_name


def selected(root: Path, texts: list[str], which: set[str]) -> dict[str, set[int]]:
    """Of each text that a mixture selects, the bytes that go."""
    ids = {schema.document_id("web", "0.jsonl", row): text for row, text in enumerate(texts)}
    chosen = [name for name, text in ids.items() if text in which]
    contents = pa.array([content(ids[name]) for name in chosen], schema.HASH)
    going = repeats.rows_that_go(
        root, repeats.TABLES["substrings"], pa.array(chosen, schema.HASH), contents
    )
    rows = pq.read_table(root / "substrings" / part_name(0)).to_pylist()
    gone: dict[str, set[int]] = {text: set() for text in which}
    for row, goes in zip(rows, going[0].tolist(), strict=True):
        if goes:
            text = ids[row.pop("id")]
            gone[text] |= covered([Row(**row | {"first": False})])
    return gone


@pytest.mark.parametrize("seed", range(6))
def test_any_selection_keeps_one_of_all_that_it_holds(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, seed: int
) -> None:
    monkeypatch.setattr(repeats, "PASS_ROWS", 7)  # so that several passes are made
    texts = mixed(seed + 100)
    rows = found(tmp_path, [texts])
    output = tmp_path / "substrings" / part_name(0)
    commit(tmp_path, "substrings", 0, "made so", [output], {}, 0.0, 0.0)
    length, window = winnowing.sizes(60)
    most = slack(length, window)
    whole = selected(tmp_path, texts, set(texts))
    assert whole == {text: covered(of_text) for text, of_text in rows.items()}
    for turn in range(5):
        some = set(random.Random(turn).sample(sorted(set(texts)), 7))
        gone = selected(tmp_path, texts, some)
        least = repeated(list(some), 60, window + most)
        at_most = repeated(list(some), length - 2 * most - 9)
        for text in some:
            assert least[text] <= gone[text] <= at_most[text]
    assert selected(tmp_path, texts, set()) == {}
