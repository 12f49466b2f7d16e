"""A small bilingual corpus that goes through the real `assay prepare`, for tests of what follows.

Own invented text. Two sources of JSON Lines, with exact and near copies, a bad line and an empty
text, a literal end token, and enough documents for held-out sets.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ENGLISH = (
    "The {n}th lighthouse keeper of the {w} coast wrote down the weather every morning, and that "
    "he did for {n} years. On clear days he counted the ships that passed, with their flags and "
    "their cargo of {w}, and compared the number to the one of the day before. When the fog came "
    "he rang the bell, as his father had done, and nobody ever thanked him for it."
)
CHINESE = (
    "第{n}位守塔人每天清晨都把{w}海岸的天气写在本子上，一写就是{n}年。天晴的时候，他数一数经过的船只，"
    "记下旗帜和货物，再和前一天的数目比较。雾来的时候，他就敲响那口钟，像他父亲从前那样，"
    "从来没有人为此向他道谢。后来{w}的孩子们长大了，他们还记得钟声和灯光。"
)
EN_WORDS = ("amber", "granite", "salt", "copper", "linen", "barley", "walnut", "silver", "wool")
ZH_WORDS = ("琥珀", "花岗岩", "海盐", "铜矿", "亚麻", "大麦", "胡桃", "白银", "羊毛")


def english(n: int) -> str:
    return " ".join(ENGLISH.format(n=n * 7 + i, w=EN_WORDS[(n + i) % 9]) for i in range(n % 3 + 1))


def chinese(n: int) -> str:
    return "\n".join(CHINESE.format(n=n * 7 + i, w=ZH_WORDS[(n + i) % 9]) for i in range(n % 3 + 1))


def write_inputs(folder: Path, documents: int = 120) -> Path:
    """Raw files and a corpus.yaml in `folder`; returns the path of corpus.yaml."""
    folder.mkdir(parents=True, exist_ok=True)
    en = [{"id": f"en-{n}", "text": english(n), "author": f"a{n % 3}"} for n in range(documents)]
    zh = [{"id": f"zh-{n}", "text": chinese(n), "author": "作者"} for n in range(documents)]
    en += [en[3], {"id": "near", "text": en[6]["text"] + " So it was."}]
    en += [{"id": "literal", "text": english(200) + " <|endoftext|> is a token."}]
    zh += [zh[5], {"id": "empty", "text": " \n "}, {"id": "null", "text": None}]
    (folder / "en.jsonl").write_bytes(_lines(en) + b'{"text": "\xff"}\n')
    (folder / "zh.jsonl").write_bytes(_lines(zh))
    (folder / "corpus.yaml").write_text(
        "inputs:\n"
        "  - {source: tales-en, files: en.jsonl, kind: book, keep: [author]}\n"
        "  - {source: tales-zh, files: zh.jsonl, kind: book, keep: [author]}\n"
        "tokenizer: tokenizer.json\n"
        "heldout: {share: 0.03, min_documents: 2}\n"
        "output: corpus\n"
    )
    return folder / "corpus.yaml"


def _lines(rows: list[dict[str, str]] | list[dict[str, str | None]]) -> bytes:
    return b"".join(json.dumps(row, ensure_ascii=False).encode() + b"\n" for row in rows)


def assay(*arguments: str | Path, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run the command in a process of its own, as a user does."""
    command = [sys.executable, "-m", "trainer.cli", *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert not check or done.returncode == 0, f"{arguments}\n{done.stdout}\n{done.stderr}"
    return done


def prepare(folder: Path, documents: int = 120) -> Path:
    """Inputs, tokenizer and corpus in `folder`; returns the folder of the corpus."""
    settings = write_inputs(folder, documents)
    assay(
        "tokenizer", "train", settings, "--vocab-size", "600", "--output", folder / "tokenizer.json"
    )
    assay("prepare", settings, "--workers", "1")
    return folder / "corpus"
