"""The funnel against sums made by hand, and the same for one part and for many."""

from __future__ import annotations

import errno
import json
import random
from pathlib import Path
from typing import Any

import corpus_parts
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from corpus_parts import content

from dedup import clusters
from pipeline import report, schema
from pipeline.dedup_settings import Near
from pipeline.files import part_name, read_json, write_json
from pipeline.heldout_settings import Heldout
from pipeline.report import fitted, funnel, held_out, summary
from pipeline.transforms import heldout, heldout_index, heldout_match, near, near_join
from pipeline.transforms.sweep import sweep

TOKENIZER = "0123456789abcdef"
HELDOUT = Heldout(share=0.1, min_documents=2)


def sentence(seed: int, words: int = 40) -> str:
    pick = random.Random(seed)
    return " ".join(f"w{pick.randrange(2_000)}" for _ in range(words))


SINGLE = [sentence(n) for n in range(60)]


def chain(seed: int) -> list[str]:
    """a ~ b ~ c with Jaccard 36/42; a and c have 36/48."""
    middle, end, start = sentence(seed), sentence(seed + 1, 6), sentence(seed + 2, 6)
    return [f"{middle} {end}", middle, f"{start} {middle}"]


CHAINS = [chain(1_000), chain(2_130)]  # the middle is not, and is, the first by content hash
CHINESE = [
    f"第{n}篇：" + "".join(random.Random(n).choices("海边山谷城里河岸", k=30)) for n in range(9)
]


def texts() -> list[str]:
    found = SINGLE + SINGLE[:7] * 3 + CHAINS[0] * 2 + CHAINS[1] * 2 + CHINESE + ["ひと", "ひと"]
    random.Random(3).shuffle(found)
    return found


def corpus(root: Path, num_parts: int) -> Path:
    """All stages after ingest over `texts()`, tokens by hand (one a byte)."""
    held = [texts()[part::num_parts] for part in range(num_parts)]
    parts = corpus_parts.write(root, held)
    for part, mine in zip(parts, held, strict=True):
        path = root / "tokens" / TOKENIZER / "counts" / part_name(part)
        path.parent.mkdir(parents=True, exist_ok=True)
        rows = [{"num_tokens": len(t.encode()), "num_special_literals": 0} for t in mine]
        pq.write_table(pa.Table.from_pylist(rows, schema.TOKEN_COUNTS), path)
        heldout.nominate(root, HELDOUT, ("zh", "en"), part)
    none, sources = schema.HELDOUT.empty_table(), dict.fromkeys(parts, "web")
    chosen = heldout.choose(root, HELDOUT, none, none, sources)
    chosen["independent_rejected"] = 0
    heldout_index.write(root, HELDOUT, Near())
    for part in parts:
        stages = {"sign": near.sign(root, Near(), part)}
        stages |= {"match": heldout_match.match(root, HELDOUT, Near(), part)}
        sweep(root, part, stages, Near().ngram, ("url",))
    near_join.forest(root, Near(), parts, 0, 1)
    near_join.join(root, 1)
    for part in parts:
        near.shingle(root, Near(), part, 1)
    pairs = near_join.verify(root, Near(), parts, 0, 1)["pairs"]
    total = sum(len(text.encode()) for text in texts())
    ingest = {"records": 110, "not_sampled": 4, "reasons": {"bad_json": 2, "empty": 6}}
    ingest |= {"documents": len(texts()), "bytes": total}
    stages: dict[str, Any] = {
        "ingest": {"totals": ingest, "cpu_seconds": 0.5},
        "heldout": {"totals": chosen, "cpu_seconds": 0.1},
        "pairs": {"totals": {"pairs": pairs}, "cpu_seconds": 0.2},
        "tokens": {"totals": {"tokens": total}, "cpu_seconds": 0.2},
    }
    write_json(
        root / "corpus.json",
        {
            "format": schema.FORMAT_VERSION,
            "name": root.name,
            "settings": {
                "inputs": [{"source": "web"}],
                "languages": ["zh", "en"],
                "near": {"threshold": 0.8},
            },
            "tokenizer": {"hash": TOKENIZER, "vocab_size": 256, "engine": "tokenizers"},
            "signals": ["language"],
            "meta": [],
            "stages": stages,
        },
    )
    return root


def expected(root: Path) -> dict[str, list[str]]:
    """Documents by fate, from the text alone and the sets that were chosen."""
    table = pq.read_table(root / "heldout" / "documents.parquet")
    held = set(table["text"].to_pylist())
    assert not held & {
        text for chained in CHAINS for text in chained
    }  # or their copies would be held out too
    found: dict[str, list[str]] = {"held out": [], "exact copies": [], "near duplicates": []}
    found["left"] = []
    dropped: set[str] = set()
    for a, b, c in CHAINS:
        dropped |= {b} if content(b) > min(content(a), content(c)) else {a, c}
    seen: set[str] = set()
    for text in texts():
        if text in held:
            found["held out"].append(text)
        elif text in seen:
            found["exact copies"].append(text)
        else:
            found["near duplicates" if text in dropped else "left"].append(text)
        seen.add(text)
    return found


@pytest.mark.parametrize(("num_parts", "max_stored"), [(1, 1000), (7, 1000), (3, 2)])
def test_every_document_has_one_fate(
    tmp_path: Path, num_parts: int, max_stored: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clusters, "MAX_STORED", max_stored)
    root = corpus(tmp_path / "corpus", num_parts)
    fates = expected(root)
    rows = {row["step"]: (row["documents"], row["bytes"]) for row in funnel(root)}
    size = {fate: sum(len(t.encode()) for t in mine) for fate, mine in fates.items()}
    left = {
        lang: [t for t in fates["left"] if corpus_parts.language(t) == lang]
        for lang in ("en", "zh")
    }
    assert rows == {
        "records read": (110, None),
        "outside --limit": (-4, None),
        "rejected: bad_json": (-2, None),
        "rejected: empty": (-6, None),
        "documents": (len(texts()), sum(size.values())),
        "held out": (-len(fates["held out"]), -size["held out"]),
        "exact copies": (-len(fates["exact copies"]), -size["exact copies"]),
        "near duplicates": (-len(fates["near duplicates"]), -size["near duplicates"]),
        "left": (len(fates["left"]), size["left"]),
        "left: zh": (len(left["zh"]), sum(len(t.encode()) for t in left["zh"])),
        "left: en": (len(left["en"]), sum(len(t.encode()) for t in left["en"])),
    }
    assert (len(texts()), len(fates["near duplicates"])) == (104, 3)
    assert [row["note"] for row in funnel(root)][-3] == f"{size['left']:,} tokens"


def test_languages_that_the_settings_do_not_name_are_others(tmp_path: Path) -> None:
    root = corpus(tmp_path / "corpus", 1)
    named = {row["step"]: row for row in funnel(root)}
    found = read_json(root / "corpus.json")
    write_json(
        root / "corpus.json", found | {"settings": {**found["settings"], "languages": ["en"]}}
    )
    rows = funnel(root)
    assert [row["step"] for row in rows[-3:]] == ["left", "left: en", "left: others"]
    assert rows[-1] == named["left: zh"] | {"step": "left: others"}
    assert rows[-2] == named["left: en"]


@pytest.mark.parametrize("code", [errno.EACCES, errno.EROFS, errno.ENOSPC])
def test_where_nothing_can_be_written_it_is_told_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, code: int
) -> None:
    def refuse(*_: object) -> None:
        raise OSError(code, "no writing here")

    root = corpus(tmp_path / "corpus", 1)
    expected = funnel(root)
    (root / "stats" / "fates.json").unlink()
    monkeypatch.setattr(report, "write_sealed", refuse)
    assert funnel(root) == expected
    assert not (root / "stats" / "fates.json").exists()


def test_documents_are_asked_once_of_each_state(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = corpus(tmp_path / "corpus", 2)
    first = funnel(root)
    monkeypatch.setattr(report, "_asked", lambda *_: [])
    assert funnel(root) == first
    write_json(root / "corpus.json", read_json(root / "corpus.json") | {"name": "of another state"})
    assert [row["documents"] for row in funnel(root) if row["step"] == "left"] == [0]


def test_one_part_and_many_give_the_same_funnel(tmp_path: Path) -> None:
    one, many = corpus(tmp_path / "one" / "c", 1), corpus(tmp_path / "many" / "c", 9)
    assert funnel(one) == funnel(many)


def test_summary_is_the_funnel_and_where_time_went(tmp_path: Path) -> None:
    root = corpus(tmp_path / "corpus", 2)
    lines = summary(root).splitlines()
    assert lines[0] == str(root)
    assert lines[1] == "  records read                         110"
    assert [line.split("  ")[1] for line in lines[1:]] == [
        *(row["step"] for row in funnel(root)),
        "tokens",
        "near-duplicate pairs",
        "CPU seconds of the stages",
    ]
    assert lines[-1].endswith("ingest 50%, pairs 20%, tokens 20%, heldout 10%")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_the_summary_fits_a_terminal_and_loses_no_word(tmp_path: Path, columns: int) -> None:
    whole = summary(corpus(tmp_path / "c", 1)).partition("\n")[2]
    lines = fitted(whole, columns).splitlines()
    assert max(map(len, lines)) <= columns
    assert " ".join(lines).split() == whole.split()


def test_a_note_that_does_not_fit_goes_below_its_row() -> None:
    rows = "  left           114   0.2 MB  58,946 tokens\n  exact copies      -2   0.0 MB"
    assert fitted(rows, 80) == rows
    assert fitted(rows, 40).splitlines() == [
        "  left           114   0.2 MB",
        "      58,946 tokens",
        "  exact copies      -2   0.0 MB",
    ]


def test_a_word_wider_than_the_terminal_stays_whole() -> None:
    assert fitted("made in /a/very/long-path/of/words here", 12) == (
        "made in\n      /a/very/long-path/of/words\n      here"
    )


def test_held_out_texts_that_were_forgotten_are_not_counted(tmp_path: Path) -> None:
    sets = {"a/en/x": {"documents": 3}, "a/zh/x": {"documents": 0}}
    (tmp_path / "heldout.json").write_text(json.dumps({"sets": sets}))
    totals = {"documents": 9, "sets": 2, "independent_rejected": 1}
    before = "9 texts in 2 sets, and copies; 1 independent record rejected"
    assert held_out(tmp_path, totals, is_forgotten=False) == before
    after = "3 texts in 1 set, and copies; 1 independent record rejected"
    assert held_out(tmp_path, totals, is_forgotten=True) == after
