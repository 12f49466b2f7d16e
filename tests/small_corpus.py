"""A small bilingual corpus that goes through the real `assay prepare`, for tests of what follows.

Own invented text. Two sources of JSON Lines, with exact and near copies, a bad line and an empty
text, a literal end token, and enough documents for held-out sets.
"""

from __future__ import annotations

import json
import random
import subprocess
from pathlib import Path

import ready_assay

ADJECTIVES = (
    "amber broken careful distant early faithful gentle hollow idle jagged kindly lonely narrow "
    "open patient quiet rusty silver tired upper velvet wooden yellow ancient bitter crooked"
).split()
NOUNS = (
    "anchor bell candle doctor engine fisherman garden harbour island journey kettle lantern mill "
    "notebook orchard pilot queen river sailor teacher uncle valley window yard baker clock ferry"
).split()
VERBS = (
    "answered borrowed carried described examined followed guarded helped ignored joined kept "
    "lifted mended noticed opened painted questioned repaired sold taught visited washed"
).split()
PLACES = "海边 山谷 城里 河岸 院子 车站 集市 学校 庙前 田间 桥头 村口 码头 林中 楼上 湖心".split()
PEOPLE = "老师 渔夫 医生 孩子 木匠 船长 诗人 邻居 厨师 裁缝 邮差 祖母 学徒 客人 牧童 石匠".split()
DEEDS = "修好 借走 画下 记住 卖掉 洗净 送来 种下 找到 打开 点亮 藏起 读完 数清 忘记 搬走".split()
THINGS = "灯笼 木船 旧钟 书信 茶壶 棋盘 铜锁 雨伞 药方 地图 苹果 石碑 竹篮 毛笔 风筝 米袋".split()


def english(n: int) -> str:
    """One to four paragraphs of invented sentences, the same for the same number."""
    pick = random.Random(n).choice
    sentence = "The {} {} {} the {} {}, and that was what the {} had {} of the {} {}."
    parts = (ADJECTIVES, NOUNS, VERBS, ADJECTIVES, NOUNS, NOUNS, VERBS, ADJECTIVES, NOUNS)
    paragraphs = [
        " ".join(sentence.format(*map(pick, parts)) for _ in range(6)) for _ in range(n % 4 + 1)
    ]
    return "\n\n".join(paragraphs)


def chinese(n: int) -> str:
    pick = random.Random(n).choice
    sentence = "{}的{}{}了{}，后来{}也在{}{}了{}。"
    parts = (PLACES, PEOPLE, DEEDS, THINGS, PEOPLE, PLACES, DEEDS, THINGS)
    paragraphs = [
        "".join(sentence.format(*map(pick, parts)) for _ in range(9)) for _ in range(n % 4 + 1)
    ]
    return "\n".join(paragraphs)


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
    done = ready_assay.run(*map(str, arguments))
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
