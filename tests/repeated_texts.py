"""Texts with repeated substrings, what the stages say of them, and what is true of them.

The definition is plain Python: by one order of places (content hash, then byte) the first stays.
"""

from __future__ import annotations

import random
from pathlib import Path
from typing import NamedTuple

import corpus_parts
import pyarrow.parquet as pq
from corpus_parts import content

from pipeline import schema
from pipeline.dedup_settings import Substrings
from pipeline.files import part_name
from pipeline.transforms import substrings, substrings_join
from pipeline.transforms.sweep import sweep

WORDS = [f"{a}{b}" for a in "ba be bi bo da de di do ka ke ki ko".split() for b in "lmnrst"]
HAN = "天地玄黄宇宙洪荒日月盈昃辰宿列张寒来暑往秋收冬藏闰余成岁律吕调阳云腾致雨露结为霜金生丽水"


class Row(NamedTuple):
    start: int
    end: int
    key: bytes
    copies: int
    first: bool


def found(
    root: Path, parts: list[list[str]], min_bytes: int = 60, partitions: int = 2
) -> dict[str, list[Row]]:
    """The rows of `substrings` of each text."""
    wanted = Substrings(min_bytes=min_bytes)
    numbers = corpus_parts.write(root, parts)
    for part in numbers:
        sweep(root, part, {"wind": substrings.wind(root, wanted, part)}, 5)
    for n in range(partitions):
        substrings_join.group(root, "stretches", numbers, n, partitions)
    for part in numbers:
        substrings.extend(root, wanted, part, partitions)
    for n in range(partitions):
        substrings_join.group(root, "extensions", numbers, n, partitions)
    rows: dict[str, list[Row]] = {text: [] for texts in parts for text in texts}
    texts = {
        schema.document_id("web", f"{part}.jsonl", row): text
        for part, of_part in enumerate(parts)
        for row, text in enumerate(of_part)
    }
    seen: dict[bytes, list[Row]] = {name: [] for name in texts}
    for part in numbers:
        substrings.place(root, wanted, part, partitions)
        substrings.edit(root, part)
        substrings.measure(root, part)
        for row in pq.read_table(root / "substrings" / part_name(part)).to_pylist():
            seen[row.pop("id")].append(Row(**row))
    for name, text in texts.items():
        assert rows[text] in ([], seen[name])  # documents of equal content have the same
        rows[text] = seen[name]
    return rows


def covered(rows: list[Row]) -> set[int]:
    """Bytes that go when all is selected."""
    return {at for row in rows if not row.first for at in range(row.start, row.end)}


def left(text: str, rows: list[Row]) -> str:
    gone = covered(rows)
    return bytes(b for at, b in enumerate(text.encode()) if at not in gone).decode()


def repeated(texts: list[str], size: int, margin: int = 0) -> dict[str, set[int]]:
    """By definition: of each text the bytes of all stretches of `size` bytes that stand before, but
    for the `margin` bytes at either end of each, where words may stay whole."""
    seen: set[bytes] = set()
    found: dict[str, set[int]] = {}
    for text in sorted(set(texts), key=content):
        data, found[text] = text.encode(), set()
        for at in range(len(data) - size + 1):
            if data[at : at + size] in seen:
                found[text].update(range(at + margin, at + size - margin))
            seen.add(data[at : at + size])
    return found


def words(seed: int, num: int) -> str:
    return " ".join(random.Random(seed).choices(WORDS, k=num))


def han(seed: int, num: int) -> str:
    return "".join(random.Random(seed).choices(HAN, k=num))


def mixed(seed: int, num: int = 12) -> list[str]:
    """Texts made of long pieces, some of which stand several times, in several texts."""
    pick = random.Random(seed)
    pieces = [words(seed * 99 + n, pick.randrange(8, 60)) for n in range(8)]
    pieces += [han(seed * 99 + n, pick.randrange(12, 90)) for n in range(8)]
    texts = []
    for n in range(num):
        own = [words(seed * 999 + n, 20), han(seed * 999 + n, 30)]
        chosen = pick.choices(pieces, k=pick.randrange(4)) + own
        pick.shuffle(chosen)
        texts.append(pick.choice([" ", "\n", ""]).join(chosen))
    return texts
