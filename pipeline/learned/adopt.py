"""A card for a fastText model that others trained: DCLM's, FineWeb-Edu's, one of your own."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from filters import cards, classifier
from filters.spread import View
from pipeline.fingerprint import versions
from pipeline.learned import percentiles
from pipeline.learned.card import write_card


def adopt(model: Path, positive: str, view: View, corpus: str, where: str | None) -> dict[str, Any]:
    """Write the card: the model's own probabilities, percentiles of a corpus.

    Raises:
        ValueError: it is no model of two labels, or `positive` is none of them.
    """
    loaded = classifier.Model(view, *classifier.linear(model, positive), {}, {})
    card = {
        "format": cards.FORMAT,
        "kind": classifier.KIND,
        "model": {"file": model.name, "sha256": cards.sha256(model)},
        "positive": positive,
        "view": view._asdict(),
        "calibration": {"method": "platt", "slope": 1.0, "intercept": 0.0},  # as it says itself
        "versions": versions(["assay"]),
        "edges": percentiles.fit(
            corpus, where, lambda texts, _: classifier.margins(loaded, texts), "margins"
        ),
    }
    write_card(model, card)
    return card
