"""A small bilingual corpus in which every fourth text holds an e-mail address, with its edits."""

from __future__ import annotations

import json
from pathlib import Path

import small_corpus

DOCUMENTS = 60
SETTINGS = """\
inputs: [{source: tales, files: tales.jsonl, kind: book}]
tokenizer: tokenizer.json
heldout: {share: 0.1, min_documents: 2}
shard_bytes: 16000
output: corpus
edits: [privacy]
"""


def text(n: int) -> str:
    found = small_corpus.chinese(n) if n % 2 else small_corpus.english(n)
    middle = len(found) // 2
    mail = f"请写信给editor{n}@mail.cn。" if n % 2 else f" Write to editor{n}@mail.cn. "
    if n == DOCUMENTS:
        return "nothing.else@mail.cn \n"
    return found[:middle] + mail + found[middle:] if n % 4 < 2 else found


def write_texts(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    rows = [{"id": f"{n}", "text": text(n)} for n in range(DOCUMENTS + 1)]
    lines = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows)
    (folder / "tales.jsonl").write_text(lines, "utf-8")


def prepare(folder: Path) -> Path:
    """Inputs, tokenizer and corpus in `folder`; returns the folder of the corpus."""
    write_texts(folder)
    settings = folder / "corpus.yaml"
    settings.write_text(SETTINGS, "utf-8")
    tokenizer = folder / "tokenizer.json"
    small_corpus.assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    small_corpus.assay("prepare", settings, "--workers", "1")
    return folder / "corpus"
