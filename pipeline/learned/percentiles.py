"""Edges of a model fitted on a named corpus, and how far a later corpus has moved from them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters import edges
from filters.cards import read_card
from filters.classifier import KIND, load, margins
from filters.segments import Texts
from pipeline.config import ConfigError
from pipeline.corpus import manifest
from pipeline.files import file_hash
from pipeline.finished import home, reading
from pipeline.groups import has_other_edges
from pipeline.learned.card import write_card
from pipeline.learned.examples import QUERY_SECONDS
from pipeline.predicates import predicate
from pipeline.sql import ask
from pipeline.syntax import quoted

Values = npt.NDArray[np.floating]
Score = Callable[[Texts, list[str]], Values]  # texts, their languages -> a number each, or NaN


def fit_classifier(model: Path, corpus: str, where: str | None) -> dict[str, Any]:
    """Write the percentiles of a corpus into the card of a model; returns the card."""
    card, loaded = read_card(model, KIND), load(model)
    card["edges"] = fit(corpus, where, lambda texts, _: margins(loaded, texts), "margins")
    write_card(model, card)
    return card


def fit(corpus: str, where: str | None, score: Score, name: str) -> dict[str, Any]:
    """Edges of a score over the documents of a corpus, and of which corpus they are."""
    found, languages = [], []
    condition = predicate(where) if where else "true"
    with reading(corpus) as root:
        identity = {
            "corpus": home(root).name if where is None else f"{home(root).name} where {where}",
            "manifest": file_hash(root / "corpus.json"),
        }
        statement = f"select text, lang from documents where {condition} and not duplicate"
        with ask(root, statement, macros={}, timeout_seconds=QUERY_SECONDS) as rows:
            for batch in rows:
                texts = Texts(pa.array(batch["text"], pa.string()))
                of_batch = batch["lang"].to_pylist()
                found.append(score(texts, of_batch))
                languages += of_batch
    scores = np.concatenate([np.empty(0), *found])
    defined = ~np.isnan(scores)
    named = [lang for lang, is_defined in zip(languages, defined, strict=True) if is_defined]
    if not named:
        raise ConfigError(f"{corpus}: no document to take percentiles of; name others with --where")
    return identity | {"documents": len(named), name: edges.fit(scores[defined], named)}


def shifts(corpus: str, group: str, where: str | None) -> list[dict[str, Any]]:
    """Per language: how far the percentiles of `group` in a corpus are from even.

    Raises:
        ConfigError: the corpus has no such percentiles, or they are of other edges than the card's.
    """
    condition = predicate(where) if where else "true"
    with reading(corpus) as root:
        found = manifest(root)
        if group not in found["signals"]:
            raise ConfigError(
                f"{corpus}: no signal group {group!r}; there are: {', '.join(found['signals'])}"
            )
        if has_other_edges(found, group):
            raise ConfigError(
                f"{corpus}: its {group}.percentile was measured with other edges than the card has "
                "now; call `assay prepare` again, and then ask for the shift"
            )
        return shifts_of(root, group, condition)


def shifts_of(root: Path, group: str, condition: str = "true") -> list[dict[str, Any]]:
    """The same of a folder that is being read, for documents where `condition` (SQL) holds."""
    column = f"{quoted(group)}.percentile"
    statement = (
        f"select lang, {column} as percentile from documents "
        f"where {condition} and {column} is not null and not duplicate order by lang"
    )
    with ask(root, statement, macros={}, timeout_seconds=QUERY_SECONDS) as rows:
        table = rows.read_all()
    languages = np.array(table["lang"].to_pylist(), dtype=object)
    shares = table["percentile"].to_numpy().astype(np.float64)
    return [
        _shift(str(lang), shares[languages == lang])
        for lang, count in zip(*np.unique(languages.astype(str), return_counts=True), strict=True)
        if count >= edges.MIN_DOCUMENTS
    ]


def _shift(lang: str, shares: Values) -> dict[str, Any]:
    psi = edges.psi(shares)
    return {
        "lang": lang,
        "documents": len(shares),
        "psi": round(psi, 4),
        "psi_noise": round(edges.psi_noise(len(shares)), 4),
        "ks": round(edges.ks(shares), 4),
        "median": round(float(np.median(shares)), 4),
        "top_tenth": round(float((shares >= 0.9).mean()), 4),
        "shifted": psi >= edges.PSI_SHIFTED,
    }


def shown(found: list[dict[str, Any]]) -> Iterator[str]:
    """As lines for a screen, with a warning for each language that moved."""
    yield "lang  documents     PSI  (noise)      KS  median  share >= .9"
    for row in found:
        yield (
            f"{row['lang']:<4} {row['documents']:>10,} {row['psi']:>7.3f}  "
            f"({row['psi_noise']:.3f}) {row['ks']:>7.3f} {row['median']:>7.3f} "
            f"{row['top_tenth']:>12.3f}"
        )
    for row in found:
        if row["shifted"]:
            yield (
                f"warning: {row['lang']} has moved (PSI {row['psi']:.2f}; from "
                f"{edges.PSI_SHIFTED:g} on it counts): percentile >= .9 keeps "
                f"{100 * row['top_tenth']:.1f} % here, and kept 10 % of the corpus of the edges; "
                "look at the documents, or fit the edges anew and say so"
            )
