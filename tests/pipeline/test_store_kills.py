"""The real command on moto's S3: killed while it uploads, two at once, its lease taken away."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
import small_corpus
from s3_server import s3_bucket
from small_corpus import assay

from benchmarks import runners
from pipeline import objects, publish, store
from pipeline.files import read_json

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(os.environ.get("ASSAY_SOAK") != "1", reason="a soak: `make soak`"),
]
FREE = b'{"owner": "nobody", "expires": 0}'


def begun(settings: Path, until: Callable[[], bool]) -> subprocess.Popen[str]:
    """A run with two workers, at the moment when `until` holds."""
    command = [sys.executable, "-m", "trainer.cli", "prepare", str(settings), "--workers", "2"]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, start_new_session=True)
    while not until():
        assert process.poll() is None, process.communicate()
        time.sleep(0.02)
    return process


def test_kills_takeovers_and_two_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    settings = small_corpus.write_inputs(tmp_path, 60)
    settings.write_text(settings.read_text() + "shard_bytes: 20000\n")
    tokenizer = tmp_path / "tokenizer.json"
    assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    assay("prepare", settings, "--runner", "inline")
    wanted = runners.hashes(tmp_path / "corpus")
    with s3_bucket() as bucket:
        url = f"{bucket}/corpus"
        settings.write_text(settings.read_text().replace("output: corpus", f"output: {url}"))
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "cache"))
        leases = 0

        def uploads(table: str, more_than: int) -> Callable[[], bool]:
            return lambda: len(objects.names(f"{url}/{table}")) > more_than

        for table in ("documents", "documents", "signals", "joins", "pairs"):
            process = begun(settings, uploads(table, len(objects.names(f"{url}/{table}"))))
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            leases += 1
            refused = assay("prepare", settings, check=False)
            told = rf"another assay process writes here \(process {process.pid} on .* call again in"
            assert refused.returncode == 2
            assert re.search(told, refused.stderr)
            objects.write(f"{url}/lease/{leases:08d}.json", FREE)  # as a minute later

        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "another machine"))
        process = begun(settings, lambda: len(objects.names(f"{url}/lease")) > leases)
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / "a third"))
        refused = assay("prepare", settings, check=False)
        assert refused.returncode == 2
        assert "another assay process writes here" in refused.stderr
        assert objects.create(f"{url}/lease/{leases + 2:08d}.json", FREE)
        _, told = process.communicate(timeout=120)
        assert process.returncode == 2
        assert f"lease {leases + 1} was taken over by another process" in told
        assert "Traceback" not in told
        assert not objects.names(f"{url}/manifest"), "nobody has finished"

        assay("prepare", settings, "--workers", "2")
        mirror = store.of(store.folder(url))
        assert mirror is not None
        store.fetch(mirror, read_json(mirror.root / store.MANIFEST)["files"])
        found = {name: it for name, it in runners.hashes(mirror.root).items() if name[0] != "."}
        assert found == wanted
        left = publish.orphans(url)
        print(f"{len(left)} objects that no manifest names: {len(objects.names(url))} in all")
