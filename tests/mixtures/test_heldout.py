from __future__ import annotations

from pathlib import Path

import pytest
from mixture_corpus import Doc, Tiny, write_corpus

from mixtures.heldout import evaluation_sets, tokenize
from pipeline.config import ConfigError
from pipeline.settings import Tokenizer
from pipeline.tokenizer import load
from pipeline.tokenizer_commands import train


def corpora(root: Path) -> list[Path]:
    """Both hold the set `tiny/en/web`, one with one document more."""
    docs = [Doc("an apple"), Doc("二", "zh"), Doc("pear"), Doc("", "en", "qa"), Doc("train")]
    one = write_corpus(root / "one", Tiny(docs, heldout=[0, 1, 3]))
    return [one, write_corpus(root / "two", Tiny(docs, heldout=[0, 2]))]


def test_sets_are_merged_by_name_and_content(tmp_path: Path) -> None:
    sets = evaluation_sets(corpora(tmp_path))
    assert [(s.name, s.language, s.source, s.num_bytes) for s in sets] == [
        ("tiny/en/qa", "en", "qa", 0),
        ("tiny/en/web", "en", "web", 12),
        ("tiny/zh/web", "zh", "web", 3),
    ]
    web = sorted((Doc(text).content.hex(), text) for text in ("an apple", "pear"))
    assert list(sets[1].documents) == web


def test_a_cap_takes_documents_by_content_hash(tmp_path: Path) -> None:
    roots = corpora(tmp_path)
    web = evaluation_sets(roots)[1]
    first, second = (len(text.encode()) for _, text in web.documents)
    for cap, expected in ((1, 1), (first, 1), (first + second - 1, 1), (first + second, 2)):
        assert evaluation_sets(roots, cap)[1].documents == web.documents[:expected]


def test_tokens_of_each_document(tmp_path: Path) -> None:
    path = tmp_path / "tokenizer.json"
    train(["an apple", "pear 二"], 257, path)
    encoder = load(Tokenizer(file=str(path)))
    sets = evaluation_sets(corpora(tmp_path))
    tokens = tokenize(sets, encoder)
    assert [[len(ids) for ids in documents] for documents in tokens] == [
        [len(text.encode()) + 1 for _, text in s.documents] for s in sets
    ]
    assert {int(ids[-1]) for documents in tokens for ids in documents} == {0}


def test_no_heldout_text_is_an_error(tmp_path: Path) -> None:
    root = write_corpus(tmp_path / "one", Tiny([Doc("a")]))
    with pytest.raises(ConfigError, match=r"no held-out text in .*one: .*`heldout.share`"):
        evaluation_sets([root])
