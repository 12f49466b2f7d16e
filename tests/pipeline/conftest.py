"""A small corpus of many parts, made once by the real command."""

from __future__ import annotations

from pathlib import Path

import pytest
import small_corpus


@pytest.fixture(scope="session")
def many_parts(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Tests read it and copy it, never write to it; its corpus.yaml lies beside it."""
    folder = tmp_path_factory.mktemp("many-parts")
    settings = small_corpus.write_inputs(folder)
    with open(settings, "a") as file:
        file.write("shard_bytes: 20000\n")
    tokenizer = folder / "tokenizer.json"
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    (folder / "prices.yaml").write_text(
        "{currency: EUR, cpu_core_hour: 0.5, storage_gb_month: 0.02, source: a test}\n"
    )
    done = small_corpus.assay(
        "prepare", settings, "--workers", "1", "--prices", folder / "prices.yaml"
    )
    (folder / "said.txt").write_text(done.stdout)
    return folder / "corpus"
