"""Of a line that stands in many documents a mixture keeps one, whatever it selects of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import small_corpus
import yaml
from tokenizers import Tokenizer

from mixtures import repeats
from mixtures.plan import make_plan
from mixtures.select import Selection, select
from mixtures.spec import load_mixture
from pipeline import schema
from pipeline.corpus import CorpusError, manifest, part_paths
from pipeline.files import part_number
from pipeline.seeing.asking import rows

GROUPS, EACH = 16, 6  # lines, and documents in which each stands
SETTINGS = """\
inputs: [{source: web, files: pages.jsonl, kind: web}]
tokenizer: tokenizer.json
heldout: {share: 0.15, min_documents: 2}
shard_bytes: 16000
output: corpus
across: {repeated_lines: {documents: 3}, repeated_paragraphs: {documents: 3}}
edits: [repeated_lines, repeated_paragraphs]
"""


def line(group: int) -> str:
    name = small_corpus.NOUNS[group]
    return f"All rights of the {name} number {group} are reserved, and no one may copy it at all."


def text(group: int, n: int) -> str:
    """In the middle or at the end; the last of a group is a longer near copy of the first."""
    begin = small_corpus.english(4 * (50 * group + n % (EACH - 1)) + 3)
    begin += " So it was." if n == EACH - 1 else ""
    return f"{begin}\n\n{line(group)}" + (f"\n\nEnd {group}." if group % 2 else "")


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("lines")
    pages = [{"id": f"{g}-{n}", "text": text(g, n)} for n in range(EACH) for g in range(GROUPS)]
    (folder / "pages.jsonl").write_text("".join(json.dumps(page) + "\n" for page in pages))
    settings, tokenizer = folder / "corpus.yaml", folder / "tokenizer.json"
    settings.write_text(SETTINGS)
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "500", "--output", tokenizer)
    small_corpus.assay("prepare", settings, "--workers", "1")
    return folder / "corpus"


def mixture(root: Path, edits: str, where: str, unique: str) -> Path:
    source = {"from": "web", "where": where, "max_epochs": 1_000}
    spec: dict[str, Any] = {"corpora": {"web": "corpus"}, "sequence_length": 2, "seed": 3}
    spec |= {"sources": {"all": source}, "edits": [edits], "unique": unique}
    path = root.parent / "mixture.yaml"
    path.write_text(yaml.safe_dump(spec | {"prefer": ["num_bytes desc"]}))
    return path


def times(root: Path, path: Path) -> list[int]:
    """How often each line stands in what is packed; the last window may lack two tokens."""
    plan, said = make_plan(path, 3_200), []
    file = str(root / "tokens" / manifest(root)["tokenizer"]["hash"] / "tokenizer.json")
    decoder = Tokenizer.from_file(file)
    for part in sorted(Path(plan.sources[0].folder).glob("part-*.arrow")):
        windows = pa.ipc.open_file(str(part)).read_all()["ids"].to_pylist()
        ids = [i for window in windows for i in window[:-1]] + windows[-1][-1:]
        said.append(decoder.decode(ids))
    return ["".join(said).count(line(group)[:-20]) for group in range(GROUPS)]


def groups_of(root: Path, selection: Selection) -> list[int]:
    """Documents of each group that stay."""
    names = {
        row["id"]: row["source_id"] for row in rows(root, "select id, source_id from documents")
    }
    kept = [names[key.tobytes().hex()] for key in selection.documents["all"].id]
    return np.bincount([int(name.split("-")[0]) for name in kept], minlength=GROUPS).tolist()


def keepers(root: Path, unit: str) -> set[str]:
    """Documents that keep a line when the whole corpus is selected."""
    tables = pa.concat_tables(pq.read_table(path) for path in part_paths(root, f"places/{unit}"))
    return {key.hex() for key in tables.filter(tables["first"])["id"].to_pylist()}


@pytest.mark.parametrize("unit", ["repeated_lines", "repeated_paragraphs"])
@pytest.mark.parametrize("unique", ["none", "near"])
@pytest.mark.parametrize("where", ["true", "source_id not like '%-1' and source_id like '%-_'"])
def test_each_line_is_kept_once(root: Path, unit: str, unique: str, where: str) -> None:
    path = mixture(root, unit, where, unique)
    selection = select(load_mixture(path))
    num = groups_of(root, selection)
    assert min(num) > 1
    assert times(root, path) == [1] * GROUPS
    gone = [(n - 1) * (len(line(g)) + (2 if g % 2 else 1)) for g, n in enumerate(num)]
    assert selection.counts[0].changes.removed_bytes == sum(gone)
    chosen = {key.tobytes().hex() for key in selection.documents["all"].id}
    missing = keepers(root, unit) - chosen
    heldout = {
        r["id"]
        for r in rows(root, "select d.id from documents d join heldout using (content_hash)")
    }
    assert len(missing & heldout) >= 2  # else the corpus shows nothing
    assert unique == "none" or missing - heldout  # those of a near copy that goes
    assert where == "true" or missing - heldout


def test_of_the_whole_corpus_all_but_what_the_stage_says_goes(root: Path) -> None:
    found = pa.concat_tables(
        pq.read_table(path, columns=["id", "content_hash"])
        for path in part_paths(root, "documents")
    ).combine_chunks()
    ids, contents = (found[name].combine_chunks() for name in ("id", "content_hash"))
    for unit in ("repeated_lines", "repeated_paragraphs"):
        going = repeats.rows_that_go(root, repeats.TABLES[unit], ids, contents)
        for path in part_paths(root, f"places/{unit}"):
            table = pq.read_table(path)
            assert table.schema == schema.PLACES
            assert going[part_number(path)].tolist() == [not x for x in table["first"].to_pylist()]
            assert set(table["copies"].to_pylist()) <= {EACH}
        nothing = repeats.rows_that_go(root, repeats.TABLES[unit], ids[:0], contents[:0])
        assert not any(mask.any() for mask in nothing.values())


def test_damaged_places_are_refused(root: Path) -> None:
    path = part_paths(root, "places/repeated_lines")[0]
    before = path.read_bytes()
    path.write_bytes(before[:-9] + b"x" + before[-8:])
    with pytest.raises(CorpusError, match="places/repeated_lines/part-00000"):
        select(load_mixture(mixture(root, "repeated_lines", "true", "none")))
    path.write_bytes(before)
