"""`assay export`: what is written holds the ids of the corpus; readers are those of the formats'
own descriptions. `python benchmarks/interchange.py` reads it with the peers themselves."""

from __future__ import annotations

import itertools
import json
import struct
from pathlib import Path

import numpy as np
import pyarrow.parquet as pq
import pytest
import small_corpus

from mixtures.dealing import deal
from mixtures.interchange import megatron
from mixtures.interchange.export import export
from mixtures.interchange.mds import SHARD_BYTES
from mixtures.interchange.mds import write as write_mds
from mixtures.loader import Loader
from mixtures.packed import packing_of
from mixtures.plan import make_plan
from mixtures.select import select
from mixtures.spec import load_mixture
from mixtures.tokens import TokenShards
from pipeline.config import ConfigError
from pipeline.corpus import manifest


@pytest.fixture(scope="module")
def mixture(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("export")
    small_corpus.prepare(folder, 60)
    path = folder / "mixture.yaml"
    path.write_text(
        "corpora: {tales: corpus}\nsequence_length: 64\nseed: 3\nsources:\n"
        "  english: {from: tales, where: \"lang = 'en'\", weight: 0.75}\n"
        "  chinese: {from: tales, where: \"lang = 'zh'\", weight: 0.25}\n"
    )
    return path


def documents(path: Path, source: str) -> list[list[int]]:
    """The ids of each document of a source, in packing order, one document at a time."""
    mixture = load_mixture(path)
    root = Path(mixture.corpora["tales"])
    shards = TokenShards(root, manifest(root)["tokenizer"]["hash"])
    packing = packing_of(mixture, root, shards.folder.name)
    found = []
    for part in deal(select(mixture).documents[source], packing):
        for number, row in zip(part.part.tolist(), part.row.tolist(), strict=True):
            for offsets, values in shards.batches(number):
                if row < len(offsets) - 1:
                    found.append(values[offsets[row] : offsets[row + 1]].tolist())
                    break
                row -= len(offsets) - 1
    return found


def read_megatron(path: Path) -> list[list[int]]:
    index = path.with_suffix(".idx").read_bytes()
    assert index[:9] == b"MMIDIDX\0\0"
    version, code, num, borders = struct.unpack("<QBQQ", index[9:34])
    assert (version, borders) == (1, num + 1)
    dtype = {8: "<u2", 4: "<i4"}[code]
    lengths = np.frombuffer(index, "<i4", num, 34)
    offsets = np.frombuffer(index, "<i8", num, 34 + 4 * num)
    assert np.frombuffer(index, "<i8", num + 1, 34 + 12 * num).tolist() == list(range(num + 1))
    assert len(index) == 34 + 12 * num + 8 * (num + 1)
    data = path.with_suffix(".bin").read_bytes()
    return [
        np.frombuffer(data, dtype, length, offset).tolist()
        for length, offset in zip(lengths.tolist(), offsets.tolist(), strict=True)
    ]


def test_megatron(mixture: Path, tmp_path: Path) -> None:
    told = export(mixture, "megatron", tmp_path / "out", None)
    for source in ("english", "chinese"):
        found = read_megatron(tmp_path / "out" / f"{source}.bin")
        assert found == documents(mixture, source)
        assert len(found) > 40
    assert told[1] == (
        f"--data-path 0.75 {tmp_path}/out/english 0.25 {tmp_path}/out/chinese "
        "--tokenizer-type HuggingFaceTokenizer"
    )
    known = json.loads((tmp_path / "out" / "assay.json").read_text())
    assert known["sources"]["english"]["documents"] == len(documents(mixture, "english"))
    assert sorted(known["files"]) == ["chinese.bin", "chinese.idx", "english.bin", "english.idx"]
    assert (tmp_path / "out" / "tokenizer.json").exists()


def test_ids_beyond_16_bits_are_int32_for_megatron(tmp_path: Path) -> None:
    chunks = [(np.array([70_000, 1, 129_279], np.uint32), np.array([1, 2]))]
    megatron.write(tmp_path / "a.b", iter(chunks))
    assert read_megatron(tmp_path / "a.b.bin") == [[70_000], [1, 129_279]]


def test_datatrove(mixture: Path, tmp_path: Path) -> None:
    export(mixture, "datatrove", tmp_path / "out", None)
    ids = np.frombuffer((tmp_path / "out/english.ds").read_bytes(), "<u2")
    ends = np.frombuffer((tmp_path / "out/english.ds.index").read_bytes(), "<u8").astype(int)
    found = [part.tolist() for part in np.split(ids, ends[:-1])]
    assert found == documents(mixture, "english")
    assert ends[-1] == len(ids)
    metadata = (tmp_path / "out/english.ds.metadata").read_text().splitlines()
    assert metadata[:2] == ["tokenizer.json|2", str(len(ids))]


def windows(mixture: Path, tokens: int) -> tuple[np.ndarray, list[list[int]]]:
    plan = make_plan(mixture, tokens)
    batch = Loader(plan).batch(0, plan.num_windows)
    starts = [np.flatnonzero(np.diff(row, prepend=-1)).tolist() for row in batch.documents]
    return batch.tokens, starts


def read_mds(folder: Path) -> np.ndarray:
    index = json.loads((folder / "index.json").read_text())
    rows = []
    for shard in index["shards"]:
        data = (folder / shard["raw_data"]["basename"]).read_bytes()
        assert len(data) == shard["raw_data"]["bytes"]
        [encoding] = shard["column_encodings"]
        _, dtype, length = encoding.split(":")
        (num,) = struct.unpack("<I", data[:4])
        assert num == shard["samples"]
        offsets = np.frombuffer(data, "<u4", num + 1, 4)
        head = data[4 + 4 * (num + 1) : offsets[0]]
        assert {**json.loads(head), **shard} == shard
        for begin, end in itertools.pairwise(offsets):
            rows.append(np.frombuffer(data[begin:end], dtype))
            assert len(rows[-1]) == int(length)
    return np.stack(rows)


def test_mds_is_the_order_of_the_run(mixture: Path, tmp_path: Path) -> None:
    export(mixture, "mds", tmp_path / "out", 20_000)
    found = read_mds(tmp_path / "out")
    assert found.dtype == np.uint16
    assert np.array_equal(found, windows(mixture, 20_000)[0])


def test_mds_begins_a_new_shard_when_one_is_full(tmp_path: Path) -> None:
    length = SHARD_BYTES // 12
    batches = [np.arange(3 * length).reshape(3, length), np.ones((1, length), int)]
    files = write_mds(tmp_path, iter(batches), np.dtype(np.uint32))
    assert [path.name for path in files] == ["shard.00000.mds", "shard.00001.mds", "index.json"]
    assert np.array_equal(read_mds(tmp_path), np.concatenate(batches))


@pytest.mark.parametrize("policy", ["concat", "best_fit", "buckets"])
def test_parquet(mixture: Path, tmp_path: Path, policy: str) -> None:
    text = mixture.read_text()
    mixture = mixture.with_name(f"{policy}.yaml")
    mixture.write_text(f"packing: {policy}\n{text}")
    export(mixture, "parquet", tmp_path / "out", 20_000)
    table = pq.read_table(tmp_path / "out" / "train-00000.parquet")
    tokens, starts = windows(mixture, 20_000)
    assert table["input_ids"].to_pylist() == tokens.tolist()
    assert table["document_starts"].to_pylist() == starts
    assert any(len(row) > 1 for row in starts)


def test_mistakes(mixture: Path, tmp_path: Path) -> None:
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "x").touch()
    with pytest.raises(ConfigError, match="full is not empty; give another --output"):
        export(mixture, "megatron", tmp_path / "full", None)
    for arguments, message in (
        (["--format", "mds"], "--format mds writes the windows of a run: give --tokens"),
        (["--format", "megatron", "--tokens", "1k"], "whole documents: leave --tokens out"),
    ):
        done = small_corpus.assay(
            "export", mixture, "--output", tmp_path / "new", *arguments, check=False
        )
        assert done.returncode == 2
        assert message in done.stderr
