"""A model's card: JSON that `classifier.load` reads, and the same for people, in Markdown."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from filters.cards import card_path
from pipeline.files import replacing, write_json


def write_card(model: Path, card: dict[str, Any]) -> None:
    """Write both beside the model."""
    write_json(card_path(model), card)
    with replacing(model.with_suffix(".md")) as temporary:
        temporary.write_text("\n".join(shown(model.stem, card)) + "\n", "utf-8")


def shown(name: str, card: dict[str, Any]) -> Iterator[str]:
    """The card as Markdown."""
    model, data, held = card["model"], card.get("data"), card.get("heldout")
    yield f"# {name}\n"
    yield f"A classifier of text: how likely is it `{card['positive']}`.\n"
    yield f"- file: {model['file']}, SHA-256 {model['sha256']}"
    yield "- view of a text: " + ", ".join(f"{k} {v}" for k, v in card["view"].items())
    yield f"- calibration: {card['calibration']['method']}"
    edges = card["edges"]
    yield (
        f"- percentiles: of {edges['corpus']} ({edges['documents']:,} documents), "
        f"{', '.join(sorted(edges['margins']))} (`*`: all languages)"
    )
    yield "- made with: " + ", ".join(f"{k} {v}" for k, v in card["versions"].items())
    if card.get("agreement"):
        found = card["agreement"]
        low, high = found["kappa_interval"]
        yield (
            f"- labels: {found['documents']} also by hand, weighted kappa {found['kappa']:.3f} "
            f"({low:.3f} to {high:.3f}), Spearman {found['spearman']:.3f}"
        )
    if held:
        yield f"\n## Held out, by {held['by']}\n"
        if held["sources"]:
            yield f"Whole sources: {', '.join(held['sources'])}.\n"
        yield "| texts | number | positive | accuracy | 95 % | majority | AUC | calibration error |"
        yield "| --- | --- | --- | --- | --- | --- | --- | --- |"
        yield _row("all", held["all"])
        for key in ("languages", "by_source"):
            for name, numbers in held[key].items():
                yield _row(name, numbers)
    if data:
        yield "\n## Data\n"
        yield f"Hash of contents, classes and sides: {data['hash']}."
        yield f"Left out: {data['copies']:,} copies, {data['in_both_classes']:,} in both classes.\n"
        for name, counts in data["sources"].items():
            yield f"- {name}: " + "; ".join(f"{n:,} {side}" for side, n in sorted(counts.items()))
        yield "\n## Settings\n\n```"
        for key, value in card["settings"].items():
            yield f"{key}: {value}"
        yield "```"


def _row(name: str, numbers: dict[str, Any]) -> str:
    low, high = numbers["interval"]
    auc = "" if numbers["auc"] is None else f"{numbers['auc']:.3f}"
    return (
        f"| {name} | {numbers['documents']:,} | {numbers['positive']:,} "
        f"| {numbers['accuracy']:.3f} | {low:.3f}-{high:.3f} | {numbers['majority']:.3f} | {auc} "
        f"| {numbers['calibration_error']:.3f} |"
    )
