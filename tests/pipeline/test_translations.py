"""Parallel pages: what their groups are called, and held-out sets that have both or none."""

from __future__ import annotations

import tempfile
from pathlib import Path
from typing import Any

import corpus_parts
import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st

from pipeline import frozen, translations
from pipeline.config import ConfigError, check
from pipeline.files import part_name
from pipeline.heldout_settings import Heldout, TranslationGroup
from pipeline.schema import DOCUMENTS
from pipeline.settings import CorpusSettings
from pipeline.transforms import heldout

BY_URL = TranslationGroup(url=(("/en/", "/zh/", "/zh-cn/"), ("?lang=en", "?lang=zh")))


def named(folder: Path, rows: list[dict[str, Any]], group: TranslationGroup) -> list[str | None]:
    path = folder / "documents.parquet"
    pq.write_table(pa.Table.from_pylist(rows, DOCUMENTS), path)
    found: list[str | None] = translations.names(path, group).to_pylist()
    return found


def test_names_by_address(tmp_path: Path) -> None:
    urls = {
        "https://www.a.org/zh/p/1": "//a.org/en/p/1",
        "http://a.org/en/p/1/#top": "//a.org/en/p/1",
        "https://a.org/zh-cn/p/1": "//a.org/en/p/1",
        "https://a.org/zh/p/2": "//a.org/en/p/2",
        "https://a.org/zh/": "//a.org/en",
        "https://b.org/x?lang=zh": "//b.org/x?lang=en",
        "https://b.org/zh/x?lang=en": "//b.org/en/x?lang=en",
        "https://a.org/zhp/1": None,
        "https://b.org/xlang=zh": None,
        None: None,
    }
    assert named(tmp_path, [{"url": url} for url in urls], BY_URL) == list(urls.values())


def test_variants_are_plain_text(tmp_path: Path) -> None:
    group = TranslationGroup(url=((r"\1.en'", ".*(zh"), ("/", "/中文/")))
    urls = [r"a:\1.en'", "a:.*(zh", "a:x(zh", "https://a.org/中文/p", "https://a.org/p"]
    assert named(tmp_path, [{"url": url} for url in urls], group) == [
        r"a:\1.en'",
        r"a:\1.en'",
        None,
        "//a.org/p",
        "//a.org/p",
    ]


def test_names_by_a_kept_field(tmp_path: Path) -> None:
    rows = [{"meta": [("page", value)]} for value in ("p'1", "", "p'1")] + [{"meta": []}, {}]
    group = TranslationGroup(field="meta.page")
    assert named(tmp_path, rows, group) == ["p'1", None, "p'1", None, None]


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({}, "expected one of `field: meta.page`, `url: .*`, `hreflang: true`"),
        ({"url": []}, "expected one of `field: meta.page`, `url: .*`, `hreflang: true`"),
        ({"field": "meta.page", "url": [["a", "b"]]}, "expected one of"),
        ({"field": "meta.page", "hreflang": True}, "expected one of"),
        ({"hreflang": False}, "expected one of"),
        ({"url": [["/en/"]]}, r"\['/en/'\]: expected two or more distinct variants"),
        ({"url": [["/en/", ""]]}, "expected two or more distinct variants"),
        ({"field": "page"}, "'page': expected a kept field, as in meta.page"),
        ({"field": "meta.paeg"}, "`translation_group.field`: no input keeps meta.paeg.*meta.page"),
        (
            {"hreflang": True},
            "`translation_group.hreflang`: no input keeps meta.hreflang; add hreflang",
        ),
    ],
)
def test_mistakes(given: dict[str, Any], message: str) -> None:
    settings = {
        "inputs": [{"source": "web", "files": "*.jsonl", "keep": ["page"]}],
        "tokenizer": "tokenizer.json",
        "translation_group": given,
    }
    with pytest.raises(ConfigError, match=message):
        check(settings, CorpusSettings, "corpus.yaml")


# --- held-out sets --------------------------------------------------------------------------------

PAGES = [f"{text}{n}" for n in range(200) for text in ("page ", "页面")]


def address(text: str) -> str:
    """Of every fourth page the address says nothing of its language."""
    number = int(text.lstrip("page 页面"))
    language = "zh" if corpus_parts.language(text) == "zh" else "en"
    return f"https://a.org/{language}{'' if number % 4 == 3 else '/'}{number}"


def held_out(root: Path, parts: list[list[str]], held: Heldout) -> set[str]:
    numbers = corpus_parts.write(root, parts, url=address)
    for part in numbers:
        heldout.nominate(root, held, ("zh", "en"), part, BY_URL)
    none = frozen.kept([])
    heldout.choose(root, held, none, none, dict.fromkeys(numbers, "web"))
    return set(pq.read_table(root / "heldout" / "documents.parquet")["text"].to_pylist())


def group_of(text: str) -> str:
    number = int(text.lstrip("page 页面"))
    return text if number % 4 == 3 else f"//a.org/en/{number}"


@hypothesis.settings(max_examples=25, deadline=None)
@hypothesis.given(
    pages=st.lists(st.sampled_from(PAGES), max_size=120),
    num_parts=st.integers(1, 6),
    share=st.sampled_from([0.02, 0.1, 0.5]),
)
def test_a_pair_is_held_out_together_in_any_sharding(
    pages: list[str], num_parts: int, share: float
) -> None:
    held = Heldout(share=share, min_documents=0)
    with tempfile.TemporaryDirectory() as folder:
        one = held_out(Path(folder, "one"), [pages], held)
        cut = held_out(Path(folder, "cut"), [pages[n::num_parts] for n in range(num_parts)], held)
    assert one == cut
    groups = {group_of(text) for text in one}
    assert one == {text for text in pages if group_of(text) in groups}


def test_a_text_of_several_groups_goes_by_the_lowest_in_any_sharding(tmp_path: Path) -> None:
    held = Heldout(share=0.1, min_documents=2, max_documents=9)
    texts = [f"text {n}" for n in range(60)]
    rows = [(f"https://a.org/en/{n}", f"text {n % 60}") for n in range(300)]
    found = []
    for num_parts in (1, 7):
        root = tmp_path / str(num_parts)
        parts = [rows[n::num_parts] for n in range(num_parts)]
        numbers = corpus_parts.write(root, [[text for _, text in part] for part in parts])
        for part, urls in enumerate(parts):
            path = root / "documents" / part_name(part)
            table = pq.read_table(path)
            column = pa.array([url for url, _ in urls])
            at = table.schema.get_field_index("url")
            pq.write_table(table.set_column(at, "url", column), path)
            heldout.nominate(root, held, ("zh", "en"), part, BY_URL)
        none = frozen.kept([])
        heldout.choose(root, held, none, none, dict.fromkeys(numbers, "web"))
        table = pq.read_table(root / "heldout" / "documents.parquet")
        found.append(table["text"].to_pylist())
    lowest = {
        text: min(corpus_parts.content(f"//a.org/en/{n}") for n in range(at, 300, 60))
        for at, text in enumerate(texts)
    }
    below = [text for text in texts if lowest[text] < int(0.1 * 2**64).to_bytes(8, "big")]
    assert len(below) > 9
    wanted = sorted(texts, key=lambda text: lowest[text])[:9]
    assert found == [sorted(wanted, key=corpus_parts.content)] * 2
