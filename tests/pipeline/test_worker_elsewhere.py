"""Workers without the driver's disk: what they read and what they make goes by the store."""

from __future__ import annotations

import gzip
import os
import shutil
from pathlib import Path

import pytest
import small_corpus
from s3_server import s3_bucket
from small_corpus import assay

from benchmarks import runners
from pipeline import objects, store
from pipeline.files import read_json


def hiding(folder: Path) -> list[str]:
    """A prefix of a command that cannot see this folder: another host's disk, by a mount of its
    own. Empty without root: the command then merely has another cache."""
    if os.geteuid() != 0 or shutil.which("unshare") is None:
        return []
    mount = f'mount -t tmpfs none {folder} && exec "$@"'
    return ["unshare", "--mount", "sh", "-c", mount, "sh"]


@pytest.mark.slow
def test_a_pool_with_a_disk_of_its_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    driver = tmp_path / "driver"
    settings = small_corpus.write_inputs(driver, 40)
    (driver / "zh.jsonl.gz").write_bytes(gzip.compress((driver / "zh.jsonl").read_bytes()))
    text = settings.read_text().replace("zh.jsonl,", "zh.jsonl.gz,") + "shard_bytes: 20000\n"
    tokenizer = driver / "tokenizer.json"
    assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    settings.write_text(text)
    assay("prepare", settings, "--runner", "inline")
    wanted = runners.hashes(driver / "corpus")
    assert len([name for name in wanted if name.startswith("cut/")]) > 3, "it has to be cut"

    with s3_bucket() as bucket:
        for name in ("en.jsonl", "zh.jsonl.gz"):
            objects.upload(driver / name, f"{bucket}/raw/{name}")
            text = text.replace(f"files: {name}", f"files: {bucket}/raw/{name}")
        url = f"{bucket}/corpus"
        settings.write_text(text.replace("output: corpus", f"output: {url}"))
        monkeypatch.setenv("ASSAY_CACHE", str(driver / "cache"))
        pool = {"ASSAY_CACHE": str(tmp_path / "worker")}
        with runners.external_pool(hiding(driver), pool) as arguments:
            assay("prepare", settings, *arguments)
        assert not (store.cache(url) / "documents").exists(), "the driver made no part"
        assert not left_behind(tmp_path / "worker", monkeypatch, url)
        found = whole(tmp_path / "reader", monkeypatch, url)
    assert found == {name: it for name, it in wanted.items() if not name.startswith("cut/")}


def left_behind(cache: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> list[str]:
    """Files of parts that a worker keeps though they are on the store."""
    monkeypatch.setenv("ASSAY_CACHE", str(cache))
    root = store.cache(url)
    assert (root / "inputs.json").exists(), "it worked here"
    tables = ("documents", "signals", "tokens", "rejects", "heldout/matches", "cut/*")
    return [str(path) for t in tables for path in root.glob(f"{t}/**/*") if path.suffix[1:] in ENDS]


ENDS = ("parquet", "arrow", "zst")


def whole(cache: Path, monkeypatch: pytest.MonkeyPatch, url: str) -> dict[str, str]:
    """The hashes of all files of a corpus, fetched by a machine that knows nothing of it."""
    monkeypatch.setenv("ASSAY_CACHE", str(cache))
    root = store.folder(url)
    mirror = store.of(root)
    assert mirror is not None
    store.fetch(mirror, read_json(root / store.MANIFEST)["files"])
    return {name: it for name, it in runners.hashes(root).items() if name[0] != "."}
