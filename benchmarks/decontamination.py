"""How often evaluation items are found where they are, and where they cannot be; numbers only.

    python benchmarks/decontamination.py [FOLDER ...]

FOLDER as in detectors.py. Items are made of sentences: a question of 8 to 80 words (13 to 130 Han),
and the sentence behind it, as choices and answer. Four tables for each language:

    false alarms  items of one source against the documents of all sources of other genres, and
                  items that a chain of words of a source made up, against that source itself.
                  Neither can contain them but by chance, or where one quotes the other.
    recall        items planted in documents of another source, as they are and altered
    instructions  all items begin with the same one: does it hit, are they found without it
    speed         CPU-ms for a MB of text, with a set of this size

`--lengths` tries other n-grams and shares: what the defaults were chosen by.
"""

from __future__ import annotations

import argparse
import itertools
import os
import random
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np
import pyarrow as pa
from human_texts import Human, documents

from dedup.item_index import MAX_ENTRIES, ItemIndex, build_index
from dedup.overlap import Found, find
from dedup.placed_words import Length
from filters.text import sentences, words
from kernels.arrow import string_buffers
from kernels.han import TRADITIONAL_TO_SIMPLIFIED
from pipeline.heldout_settings import Decontaminate

SOURCE_BYTES = 1_000_000
ITEMS = 200  # of each source
TEXT_CHARS = 20_000  # of a document from which items are made
SOURCES = {  # of which items are made
    "en": ("python-peps-en", "rust-rfcs-en", "nltk-movie-reviews", "docs.djangoproject.com"),
    "zh": ("javaguide-zh", "d2l-zh", "laws-zh", "cold-offensive-zh", "poetry-other-classics"),
}
BESIDE = {  # documents are those of these sources too
    "en": (
        *("nltk-state-union", "nltk-shakespeare", "spamassassin-mail-en", "sms-spam-en"),
        *("hate-speech-tweets-en", "ethereum-eips-en", "www.postgresql.org"),
    ),
    "zh": ("crosswoz-zh", "trpl-zh", "poetry-tang-song", "poetry-yuding-quantangshi"),
}
INSTRUCTIONS = {
    "en": "Read the following question with care and choose the one answer that is right; write "
    "only its letter and nothing else.",
    "zh": "请仔细阅读下面这道单项选择题，从四个选项里选出唯一正确的答案，只写出它前面的字母。",
}
HOSTS = {"en": "ethereum-eips-en", "zh": "crosswoz-zh"}  # of what is planted
LENGTHS = {
    "en": [Length(n, 13) for n in (5, 8, 13)],
    "zh": [Length(8, n) for n in (8, 10, 13, 20)],
}
SHARES = (0.3, 0.4, 0.5, 0.6)


class Item(NamedTuple):
    question: str
    other: str


def items_of(texts: list[str], language: str, rng: random.Random) -> list[Item]:
    found = []
    for text in rng.sample(texts, min(len(texts), 4 * ITEMS)):
        parts = sentences(text[:TEXT_CHARS])
        for _ in range(max(1, 2 * ITEMS // len(texts))):
            at = rng.randrange(len(parts)) if parts else 0
            wanted = rng.choice((8, 16, 32, 80)) * (1.6 if language == "zh" else 1)
            question = ""
            while at < len(parts) - 1 and len(words(question)) < wanted:
                question += ("" if language == "zh" else " ") + parts[at]
                at += 1
            if len(words(question)) >= wanted:
                found.append(Item(question.strip(), parts[at]))
    rng.shuffle(found)
    return found[:ITEMS]


def made_up(texts: list[str], language: str, rng: random.Random) -> list[Item]:
    """Items of a chain in which each word follows the one before it, of Han the two, as it does in
    the texts; more words before it would copy them."""
    order = 2 if language == "zh" else 1
    after: dict[tuple[str, ...], list[str]] = defaultdict(list)
    for text in texts:
        row = words(text[:TEXT_CHARS])
        for at in range(len(row) - order):
            after[tuple(row[at : at + order])].append(row[at + order])
    starts = sorted(after)
    join = ("" if language == "zh" else " ").join
    found = []
    for _ in range(ITEMS):
        row = list(rng.choice(starts))
        wanted = int(rng.choice((16, 32, 80)) * (1.6 if language == "zh" else 1))
        while len(row) < wanted:
            row.append(rng.choice(after.get(tuple(row[-order:]), row)))
        found.append(Item(join(row[: -wanted // 4]), join(row[-wanted // 4 :])))
    return found


# --- what becomes of an item ----------------------------------------------------------------------

_TRADITIONAL = {simplified: old for old, simplified in TRADITIONAL_TO_SIMPLIFIED.items()}
_WIDE = str.maketrans({",": "，", ".": "。", "?": "？", "!": "！", ":": "：", "(": "（", ")": "）"})
_NARROW = {wide: chr(narrow) for narrow, wide in _WIDE.items()}


def _is_chinese(text: str) -> bool:
    return any("一" <= char <= "鿿" for char in text)


def _changed(text: str, rng: random.Random) -> str:
    """Another word in place of one of each twenty."""
    row = words(text)
    for begin in range(0, len(row), 20):
        at = rng.randrange(begin, min(begin + 20, len(row)))
        row[at] = rng.choice("的一是不了人在有") if _is_chinese(row[at]) else "other"
    return " ".join(row)


def _respaced(text: str, rng: random.Random) -> str:
    if _is_chinese(text):
        return "".join(f"{char} " if _is_chinese(char) else char for char in text)
    return text.replace(" ", "  \n")


def _whole(item: Item) -> str:
    return f"{item.question}\n{item.other}"


def _half(text: str, second: bool) -> str:
    return text[len(text) // 2 :] if second else text[: len(text) // 2]


ALTERED: dict[str, Callable[[Item, random.Random], str]] = {
    "as it is": lambda item, _: _whole(item),
    "punctuation": lambda item, _: "".join(
        _NARROW.get(c, chr(_WIDE[ord(c)]) if isinstance(_WIDE.get(ord(c)), int) else c)
        for c in _whole(item).translate(_WIDE)
    ),
    "capitals, traditional": lambda item, _: "".join(
        _TRADITIONAL.get(c, c) for c in _whole(item).upper()
    ),
    "other spaces": lambda item, rng: _respaced(_whole(item), rng),
    "one word of 20": lambda item, rng: _changed(_whole(item), rng),
    "question alone": lambda item, _: item.question,
    "choices with letters": lambda item, _: f"问题：{item.question}\nA. {item.other}\nB. no",
    "first half": lambda item, _: _half(_whole(item), False),
    "second half": lambda item, _: _half(_whole(item), True),
}


# --- measuring ------------------------------------------------------------------------------------


def index_of(items: list[Item], length: Length, max_entries: int = MAX_ENTRIES) -> ItemIndex:
    questions, others = (pa.array(column, pa.string()) for column in zip(*items, strict=True))
    return build_index(questions, others, length, max_entries)


def found_in(index: ItemIndex, texts: list[str]) -> Found:
    return find(index, *string_buffers(pa.array(texts, pa.large_string())))


class Texts(NamedTuple):
    """What is measured of a language: the same for every length of n-grams."""

    items: dict[str, list[Item]]  # by source
    chains: dict[str, list[Item]]
    documents: dict[str, list[Human]]
    planted: dict[str, tuple[list[str], list[tuple[int, int]]]]  # alteration -> texts, their bytes


def texts_of(by_source: dict[str, list[Human]], language: str) -> Texts:
    rng = random.Random(5)
    own = {name: [d.text for d in by_source[name]] for name in SOURCES[language]}
    items = {name: items_of(texts, language, rng) for name, texts in own.items()}
    chains = {name: made_up(texts, language, rng) for name, texts in own.items()}
    hosts = [d.text for d in by_source[HOSTS[language]]]
    planted = {}
    for name, alter in ALTERED.items():
        texts, spans = [], []
        for item in itertools.chain(*items.values()):
            host = rng.choice(hosts)[:2_000]
            before, text, behind = host[:1_000], alter(item, rng), host[1_000:]
            texts.append(f"{before}\n{text}\n{behind}")
            begin = len(before.encode()) + 1
            spans.append((begin, begin + len(text.encode())))
        planted[name] = texts, spans
    documents = {name: by_source[name] for name in SOURCES[language] + BESIDE[language]}
    return Texts(items, chains, documents, planted)


def false_alarms(texts: Texts, length: Length) -> list[str]:
    """Cells by share: documents hit, items found; items found that were made up."""
    alien, made = np.zeros((len(SHARES), 2), int), np.zeros((len(SHARES), 2), int)
    num = num_bytes = blind = 0
    for source, items in texts.items.items():
        genre = texts.documents[source][0].genre
        index = index_of(items, length)
        blind += int((index.counted == 0).sum())
        others = [d.text for row in texts.documents.values() for d in row if d.genre != genre]
        num, num_bytes = num + len(others), num_bytes + sum(len(t.encode()) for t in others)
        alien += _over(found_in(index, others))
        chain = index_of(texts.chains[source], length)
        made += _over(found_in(chain, [d.text for d in texts.documents[source]]))
    of = sum(map(len, texts.items.values())), sum(map(len, texts.chains.values()))
    return [
        f"{share} | {alien[i, 0]} of {num:,} ({num_bytes / 1e6:.0f} MB) | "
        f"{alien[i, 1]} of {of[0]:,} | {made[i, 1]} of {of[1]:,} | {blind}"
        for i, share in enumerate(SHARES)
    ]


def _over(found: Found) -> list[tuple[int, int]]:
    """Documents and items, for each share."""
    counts = []
    for share in SHARES:
        over = found.shares >= share
        counts.append((len(np.unique(found.documents[over])), len(np.unique(found.entries[over]))))
    return counts


def recall(texts: Texts, length: Length) -> Iterator[str]:
    """Cells by alteration: shares of planted items found; of the bytes planted those that were
    found, and of those found those that were not planted."""
    index = index_of(list(itertools.chain(*texts.items.values())), length)
    can = index.counted > 0
    for altered, (planted, spans) in texts.planted.items():
        found = found_in(index, planted)
        own = found.documents == found.entries
        best = np.zeros(len(planted))
        np.maximum.at(best, found.entries[own], found.shares[own])
        shown = " | ".join(f"{(best[can] >= share).mean():.3f}" for share in SHARES)
        told = own & (found.shares >= SHARES[0])
        begins, behind = np.array(spans).T
        at, starts, ends = found.documents[told], found.starts[told], found.ends[told]
        over = np.minimum(ends, behind[at]) - np.maximum(starts, begins[at])
        inside = over.sum() / max(1, (behind - begins)[np.unique(at)].sum())
        beside = 1 - over.sum() / max(1, (ends - starts).sum())
        yield f"{altered} | {shown} | {inside:.3f} | {beside:.4f}"


def instructions(texts: Texts, language: str, length: Length) -> Iterator[str]:
    """Cells, with and without the rule for n-grams of many items, where all items begin with the
    same instruction: documents hit that hold nothing but it; planted items found without it."""
    items = list(itertools.chain(*texts.items.values()))
    asked = [Item(f"{INSTRUCTIONS[language]} {item.question}", item.other) for item in items]
    beside = [d.text[:500] for name in BESIDE[language] for d in texts.documents[name][:50]]
    bare = [f"{INSTRUCTIONS[language]}\n{text}" for text in beside]
    for rule, most in (("with", MAX_ENTRIES), ("without", len(items))):
        index = index_of(asked, length, most)
        hit = found_in(index, bare)
        documents = len(np.unique(hit.documents[hit.shares >= SHARES[1]]))
        found = found_in(index, texts.planted["question alone"][0])
        own = (found.documents == found.entries) & (found.shares >= SHARES[1])
        recalled = len(np.unique(found.entries[own])) / len(items)
        yield f"{rule} | {documents} of {len(bare)} | {recalled:.3f}"


def speed(texts: Texts, length: Length) -> str:
    index = index_of(list(itertools.chain(*texts.items.values())), length)
    rows = [d.text for row in texts.documents.values() for d in row]
    data, offsets = string_buffers(pa.array(rows, pa.large_string()))
    seconds = []
    for _ in range(5):
        begin = time.process_time()
        find(index, data, offsets)
        seconds.append(time.process_time() - begin)
    megabytes = (offsets[-1] - offsets[0]) / 1e6
    return f"{len(index.ngrams):,} | {1e3 * min(seconds) / megabytes:.1f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folders", nargs="*")
    parser.add_argument("--lengths", action="store_true")
    options = parser.parse_args()
    folders = options.folders or [os.environ[name] for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS")]
    by_source: dict[str, list[Human]] = defaultdict(list)
    for document in documents(folders, SOURCE_BYTES):
        by_source[document.source].append(document)
    usual = Decontaminate()
    shares = " | ".join(map(str, SHARES))
    columns = "documents hit | items found | of those made up | without n-gram"
    for language in ("en", "zh"):
        lengths = LENGTHS[language] if options.lengths else [Length(usual.words, usual.characters)]
        texts = texts_of(by_source, language)
        named = [(n.words if language == "en" else n.characters, n) for n in lengths]
        print(f"\n| | n | share | {columns} |\n| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
        for name, length in named:
            for row in false_alarms(texts, length):
                print(f"| {language} | {name} | {row} |", flush=True)
        print(f"\n| | n | planted | {shares} | covered | beside it |")
        print("| --- | ---: | --- |" + " ---: |" * (len(SHARES) + 2))
        for name, length in named:
            for row in recall(texts, length):
                print(f"| {language} | {name} | {row} |", flush=True)
        print("\n| | n | the rule | documents hit by the instruction | found without it |")
        print("| --- | ---: | --- | ---: | ---: |")
        for name, length in named:
            for row in instructions(texts, language, length):
                print(f"| {language} | {name} | {row} |", flush=True)
        print("\n| | n | n-grams | CPU-ms a MB |\n| --- | ---: | ---: | ---: |")
        for name, length in named:
            print(f"| {language} | {name} | {speed(texts, length)} |", flush=True)


if __name__ == "__main__":
    main()
