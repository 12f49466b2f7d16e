"""All formats through ingest: in = kept + rejected per file, the same rows at any shard size."""

from __future__ import annotations

import bz2
import gzip
import io
import re
import tarfile
import zipfile
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml
from small_corpus import chinese, english

from pipeline import corpus
from pipeline.config import check
from pipeline.inputs import input_files
from pipeline.planning import plan_shards
from pipeline.readers.formats import PAIRS, READERS, format_of
from pipeline.settings import CorpusSettings
from pipeline.transforms.ingest import ingest

PAGE = (
    "<page><title>t{0}</title><ns>{1}</ns><id>{0}</id><revision><text>{2}</text></revision></page>"
)
PDF = (
    b"%PDF-1.7\n1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    b"2 0 obj<</Type/Pages/Kids[4 0 R]/Count 1>>endobj\n"
    b"3 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    b"4 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 600 800]/Contents 5 0 R"
    b"/Resources<</Font<</F1 3 0 R>>>>>>endobj\n"
    b"5 0 obj<</Length 33>>stream\nBT /F1 9 Tf 9 700 Td (page) Tj ET\nendstream endobj\n"
    b"trailer<</Root 1 0 R>>\n%%EOF"
)


def files() -> dict[str, bytes]:
    """One file or more of every format, with a fault in most of them."""
    rows = "".join(f'{{"text": "{english(n)[:300]}"}}\n' for n in range(9))
    plain = {
        "a.jsonl": (rows + "{broken\n").encode(),
        "a.json": b'[{"text": "first"}, {"text": "second"}, {broken]',
        "a.csv": f'text,n\n"{chinese(1)}",1\nx,y,z\n'.encode("gb18030"),
        "a.txt": chinese(2).encode("gbk"),
        "a.md": b"# Title\n\n" + english(3).encode(),
        "a.html": f"<title>题</title><p>{chinese(4)}</p>".encode(),
        "a.xml.bz2": b"".join(
            bz2.compress(PAGE.format(n, n % 2, english(n)).encode()) for n in range(9)
        ),
        "a.pdf": PDF,
        "a.warc.wet.gz": gzip.compress(
            f"WARC/1.0\r\nWARC-Type: conversion\r\nContent-Type: text/plain\r\n"
            f"Content-Length: {len(english(5))}\r\n\r\n{english(5)}\r\n\r\n".encode()
        ),
    }
    table = io.BytesIO()
    pq.write_table(pa.table({"text": [english(40), None]}), table)
    plain["a.parquet"] = table.getvalue()
    book = io.BytesIO()
    with zipfile.ZipFile(book, "w") as out:
        out.writestr("META-INF/container.xml", '<a xmlns="x"><rootfile full-path="p"/></a>')
        items = '<item id="a" href="a.html" media-type="text/html"/><itemref idref="a"/>'
        out.writestr("p", f'<a xmlns="x">{items}<itemref idref="b"/></a>')
        out.writestr("a.html", f"<p>{chinese(7)}</p>")
    plain["a.epub"] = book.getvalue()
    packed, tarred = io.BytesIO(), io.BytesIO()
    with zipfile.ZipFile(packed, "w") as out, tarfile.open(fileobj=tarred, mode="w:gz") as tar:
        for name, data in {**plain, "x.png": b"\x89PNG"}.items():
            out.writestr(f"in/{name}", data)
            info = tarfile.TarInfo(f"in/{name}")
            info.size = len(data)
            tar.addfile(info, io.BytesIO(data))
    return plain | {"a.zip": packed.getvalue(), "a.tar.gz": tarred.getvalue()}


def ingested(folder: Path, root: Path, shard_bytes: int) -> dict[str, list[dict[str, Any]]]:
    settings = CorpusSettings.model_validate(
        {"inputs": [{"source": "all", "files": f"{folder}/*"}], "tokenizer": "deepseek"}
    )
    counted: dict[str, Counter[str]] = {}
    root.mkdir()
    for table in ("documents", "signals/normalize", "rejects"):
        (root / table).mkdir(parents=True)
    for shard in plan_shards(root, input_files(settings), shard_bytes):
        counters = ingest(root, shard, settings.inputs[0], "resiliparse", ("empty",), None)
        for file, counts in counters["files"].items():
            counted.setdefault(file, Counter()).update(counts)
    tables = {}
    for table in ("documents", "rejects"):
        found = [pq.read_table(path) for path in corpus.part_paths(root, table)]
        tables[table] = sorted(pa.concat_tables(found).to_pylist(), key=lambda row: row["id"])
    for file, counts in counted.items():
        assert counts["records"] == counts["kept"] + counts["rejected"]
        assert counts["kept"] == sum(row["file"] == file for row in tables["documents"])
        assert counts["rejected"] == sum(row["file"] == file for row in tables["rejects"])
    assert sorted(counted) == sorted(path.name for path in folder.iterdir())
    return tables


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("inputs")
    for name, data in files().items():
        (folder / name).write_bytes(data)
    return folder


def test_every_format_is_here(folder: Path) -> None:
    here = {format_of(path.name) for path in folder.iterdir()}
    assert here == set(READERS) - set(PAIRS)  # two files each: test_reader_token_files.py


def test_every_suffix_is_documented() -> None:
    page = (Path(__file__).resolve().parents[2] / "docs" / "inputs.md").read_text(encoding="utf-8")
    suffixes = [suffix for reader in READERS.values() for suffix in reader.suffixes]
    assert [suffix for suffix in suffixes if f"`{suffix}`" not in page] == []
    *_, example = re.findall(r"^```yaml\n(.*?)^```", page, re.MULTILINE | re.DOTALL)
    inputs = check(yaml.safe_load(example) | {"tokenizer": "deepseek"}, CorpusSettings, "").inputs
    assert {format_of(item.files) for item in inputs} >= {"csv", "mediawiki", "epub", "zip", "pdf"}


def test_nothing_is_lost_and_shards_do_not_matter(folder: Path, tmp_path: Path) -> None:
    whole = ingested(folder, tmp_path / "whole", 32_000_000)
    assert ingested(folder, tmp_path / "small", 1_000) == whole
    ids = [row["id"] for table in whole.values() for row in table]
    assert len(ids) == len(set(ids))
    kept = Counter(row["file"] for row in whole["documents"])
    assert kept == {
        "a.jsonl": 9, "a.json": 2, "a.csv": 1, "a.txt": 1, "a.md": 1, "a.html": 1,
        "a.xml.bz2": 5, "a.pdf": 1, "a.warc.wet.gz": 1, "a.parquet": 1, "a.epub": 1,
        "a.zip": 24, "a.tar.gz": 24,
    }  # fmt: skip
    reasons = Counter((row["file"], row["reason"]) for row in whole["rejects"])
    assert reasons == {
        ("a.jsonl", "bad_json"): 1, ("a.json", "bad_json"): 1, ("a.csv", "bad_csv"): 1,
        ("a.xml.bz2", "namespace"): 4, ("a.parquet", "null_text"): 1, ("a.epub", "bad_chapter"): 1,
    } | {
        (archive, reason): number
        for archive in ("a.zip", "a.tar.gz")
        for reason, number in {
            "bad_json": 2, "bad_csv": 1, "namespace": 4, "null_text": 1, "bad_chapter": 1,
            "no_reader": 1,
        }.items()
    }  # fmt: skip
    texts = Counter(row["text"] for row in whole["documents"])
    assert texts["page"] == texts[chinese(2)] == texts[english(40)] == 3  # alone, in zip, in tar
