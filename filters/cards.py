"""The card of a model: JSON beside its file, without which the file says too little to be used.

Format, kind and the SHA-256 of the file; the view of a text that the model reads; percentiles of a
named corpus; what it was made from and how well it does (written by pipeline/learned).
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

FORMAT = 1
Loaded = TypeVar("Loaded")


def card_path(model: Path) -> Path:
    return model.with_suffix(".json")


def files(model: str) -> tuple[str, str]:
    """What a signal group made of the model depends on."""
    return model, str(card_path(Path(model)))


def state(model: Path) -> tuple[int, ...]:
    """Changes when one of the two files does."""
    return tuple(
        path.stat().st_mtime_ns if path.exists() else 0 for path in (model, card_path(model))
    )


def read_card(model: Path, kind: str) -> dict[str, Any]:
    """The card of a model.

    Raises:
        ValueError: no such model, no card, or none of this kind and format.
    """
    card = card_path(model)
    if not model.is_file():
        raise ValueError(f"{model}: no such file; `assay {kind} train` makes a model")
    try:
        found = json.loads(card.read_text("utf-8"))
    except FileNotFoundError:
        adopt = ", or take in one of others with `assay classifier adopt`"
        raise ValueError(
            f"{model}: no card {card} beside it, so which view of a text it reads, how it is "
            f"calibrated and what its percentiles are is not known; make it with `assay {kind} "
            f"train`{adopt if kind == 'classifier' else ''}"
        ) from None
    except ValueError as error:
        raise ValueError(f"{card}: not readable as JSON ({error}); {_again(kind)}") from None
    if not isinstance(found, dict) or found.get("kind") != kind:
        raise ValueError(f"{card} is no card of kind {kind!r}; {_again(kind)}")
    if found.get("format") != FORMAT:
        raise ValueError(
            f"{card}: format {found.get('format')}, this version of assay reads {FORMAT}; "
            f"{_again(kind)}"
        )
    return found


def edges_hash(model: str) -> str | None:
    """Of the percentiles in the card of a model; None: the card is not here, or is none."""
    try:
        edges = json.loads(card_path(Path(model)).read_text("utf-8"))["edges"]
    except (OSError, ValueError, KeyError, TypeError):
        return None
    numbers = [edges.get(name) for name in ("margins", "bits")]  # classifier, perplexity
    return hashlib.sha256(json.dumps(numbers, sort_keys=True).encode()).hexdigest()


def read_model(model: Path, kind: str, load: Callable[[dict[str, Any]], Loaded]) -> Loaded:
    """What `load` makes of a card, when the file is the one that the card describes.

    Raises:
        ValueError: it is not, or something is missing in the card.
    """
    card = read_card(model, kind)
    try:
        expected = card["model"]["sha256"]
        found = sha256(model)
        if found != expected:
            raise ValueError(
                f"{model} is not the model that {card_path(model)} describes (SHA-256 "
                f"{found[:16]}, there {expected[:16]}); put back the two files that belong "
                f"together, or {_again(kind)}"
            )
        return load(card)
    except (KeyError, TypeError) as error:
        raise ValueError(
            f"{card_path(model)} is not a whole card ({type(error).__name__}: {error}); "
            f"{_again(kind)}"
        ) from None


def sha256(path: Path) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _again(kind: str) -> str:
    return f"make both files again with `assay {kind} train`"
