"""Train character models on documents of a corpus: one for each language, in one file."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import xxhash

from filters import cards, edges, kenlm_model, ngrams, perplexity
from filters.segments import Texts
from filters.spread import FOLDS, View
from filters.text import CLASSES
from kernels.arrow import string_buffers
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import replacing, write_json
from pipeline.fingerprint import versions
from pipeline.finished import home
from pipeline.learned import percentiles
from pipeline.learned.examples import place, rows_of, texts_of
from pipeline.predicates import predicate
from pipeline.syntax import text_literal

ASIDE = 10  # one content of so many is not trained on: its bits are the first percentiles
MIN_DOCUMENTS = 20  # of a language, held aside ones among them
MIN_COUNT = 2  # of an n-gram of three or more characters
SEED = 17


def train(
    corpus: str,
    where: str | None,
    languages: Sequence[str],
    output: Path,
    *,
    order: int,
    num_chars: int,
    max_chars: int,
) -> dict[str, Any]:
    """Write the models and their card; returns the card.

    `num_chars` is how much of a language is read at most, `max_chars` how much of one document.

    Raises:
        ConfigError: too few documents of a language.
    """
    condition = predicate(where) if where else "true"
    models: dict[str, ngrams.Model] = {}
    described: dict[str, Any] = {}
    aside: list[tuple[str, str]] = []
    for language in languages:
        texts, unseen, digest = _sample(corpus, condition, language, num_chars, max_chars)
        data, offsets = string_buffers(pa.array(texts, pa.string()))
        codes, ends = ngrams.characters(data, offsets, FOLDS, CLASSES, max_chars)
        model = ngrams.estimate(codes, ends, order, MIN_COUNT)
        models[language] = model
        described[language] = {
            "unknown": model.unknown,
            "documents": len(texts),
            "characters": len(codes) - 2 * len(texts),
            "contents": digest,
        }
        aside += [(language, text) for text in unseen]
    named = np.array([language for language, _ in aside], dtype=object)
    unseen_texts = Texts(pa.array([text for _, text in aside], pa.string()))
    loaded = perplexity.Models(models, max_chars, {})
    found = perplexity.bits(loaded, unseen_texts, named)
    for language in languages:
        described[language]["bits"] = round(float(found[named == language].mean()), 4)
    with replacing(output) as temporary:
        with open(temporary, "wb") as file:
            np.savez(file, allow_pickle=False, **{n: m.table for n, m in models.items()})
        digest = cards.sha256(temporary)
    card = {
        "format": cards.FORMAT,
        "kind": perplexity.KIND,
        "model": {"file": output.name, "sha256": digest},
        "order": order,
        "max_chars": max_chars,
        "languages": described,
        "data": {"corpus": home(Path(corpus)).name, "where": where, "seed": SEED},
        "versions": versions(["assay", "numpy"]),
        "edges": {
            "corpus": "the texts held aside when it was trained",
            "documents": len(aside),
            "bits": edges.fit(found, named.tolist()),
        },
    }
    write_json(cards.card_path(output), card)
    return card


def adopt(
    files: dict[str, Path], output: Path, corpus: str, where: str | None, view: View
) -> dict[str, Any]:
    """A card for KenLM models, one of a language, with percentiles of a corpus; returns the card.

    Raises:
        ValueError: KenLM is not installed, or cannot read a model.
    """
    models = {language: kenlm_model.load(file, view) for language, file in files.items()}
    with replacing(output) as temporary, open(temporary, "wb") as empty:
        np.savez(empty, allow_pickle=False)  # tables of our own: none
    loaded = perplexity.Models(models, view.max_chars, {})

    def score(texts: Texts, languages: list[str]) -> percentiles.Values:
        return perplexity.bits(loaded, texts, np.array(languages, dtype=object))

    folder = output.resolve().parent
    card = {
        "format": cards.FORMAT,
        "kind": perplexity.KIND,
        "model": {"file": output.name, "sha256": cards.sha256(output)},
        "max_chars": view.max_chars,
        "languages": {
            language: {
                "kenlm": os.path.relpath(file.resolve(), folder),
                "sha256": cards.sha256(file),
                "units": view.units,
                "fold": view.fold,
            }
            for language, file in files.items()
        },
        "versions": versions(["assay", "kenlm"]),
        "edges": percentiles.fit(corpus, where, score, "bits"),
    }
    write_json(cards.card_path(output), card)
    return card


def fit_edges(model: Path, corpus: str, where: str | None) -> dict[str, Any]:
    """Write the percentiles of a corpus into the card of the models; returns the card."""
    card, models = cards.read_card(model, perplexity.KIND), perplexity.load(model)

    def score(texts: Texts, languages: list[str]) -> percentiles.Values:
        return perplexity.bits(models, texts, np.array(languages, dtype=object))

    card["edges"] = percentiles.fit(corpus, where, score, "bits")
    write_json(cards.card_path(model), card)
    return card


def _sample(
    corpus: str, condition: str, language: str, num_chars: int, max_chars: int
) -> tuple[list[str], list[str], str]:
    """Texts to train on, texts held aside, and a hash of which contents they are."""
    condition = f"{condition} and {predicate(f'lang = {text_literal(language)}')}"
    rows = rows_of(
        corpus,
        "select content_hash, min(num_chars) as num_chars from documents "
        f"where {condition} and not heldout group by content_hash",
    )
    sizes = zip(rows["content_hash"].to_pylist(), rows["num_chars"].to_pylist(), strict=True)
    chosen, total = [], 0
    for key, size in sorted(sizes, key=lambda pair: place(bytes.fromhex(pair[0]), SEED)):
        if total >= num_chars:
            break
        chosen.append(key)
        total += min(size, max_chars)
    if len(chosen) < MIN_DOCUMENTS:
        raise ConfigError(
            f"{corpus}: {counted(len(chosen), 'document')} of language {language!r}, at least "
            f"{MIN_DOCUMENTS} are needed; name other --languages, or more with --where"
        )
    table = texts_of(corpus, condition, chosen, max_chars)
    is_aside = [place(key, SEED + 1) % ASIDE == 0 for key in table["content_hash"].to_pylist()]
    is_aside[0] = True
    texts = table["text"].to_pylist()
    digest = xxhash.xxh3_128_hexdigest("".join(sorted(chosen)).encode())
    return (
        [text for text, out in zip(texts, is_aside, strict=True) if not out],
        [text for text, out in zip(texts, is_aside, strict=True) if out],
        digest,
    )
