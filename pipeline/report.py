"""What became of the input: the funnel of a corpus, as rows and as text."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.corpus import manifest


def funnel(root: Path) -> list[dict[str, Any]]:
    """Rows (step, documents, bytes, note) from records read to documents that are left.

    `bytes` is UTF-8 text, None where it is not known.
    """
    found = manifest(root)
    ingest = found["stages"]["ingest"]["totals"]
    rows = [_row("records read", ingest["records"], None, "")]
    if ingest["not_sampled"]:
        rows.append(_row("outside --limit", -ingest["not_sampled"], None, ""))
    rows += [_row(f"rejected: {r}", -n, None, "") for r, n in ingest["reasons"].items()]
    rows.append(_row("documents", ingest["documents"], ingest["bytes"], ""))
    matches = found["stages"]["matches"]["totals"]
    heldout = found["stages"]["heldout"]["totals"]
    note = f"{heldout['documents']:,} in {heldout['sets']} sets, and copies"
    rows.append(_row("held out", -matches["documents"], None, note))
    return rows


def _row(step: str, documents: int, num_bytes: int | None, note: str) -> dict[str, Any]:
    return {"step": step, "documents": documents, "bytes": num_bytes, "note": note}


def summary(root: Path) -> str:
    """The funnel, the tokens, and where the time went, as text for a terminal."""
    found = manifest(root)
    lines = [f"{root}"]
    for row in funnel(root):
        size = f"{row['bytes'] / 1e6:,.1f} MB" if row["bytes"] is not None else ""
        lines.append(f"  {row['step']:<28}{row['documents']:>12,}  {size}{row['note']}")
    tokens = found["stages"]["tokens"]["totals"]
    tokenizer = found["tokenizer"]
    lines.append(
        f"  {'tokens':<28}{tokens['tokens']:>12,}  vocabulary {tokenizer['vocab_size']:,}, "
        f"{tokenizer['engine']}"
    )
    pairs = found["stages"]["pairs"]["totals"]
    lines.append(f"  {'near-duplicate pairs':<28}{pairs['pairs']:>12,}")
    cpu = {stage: s["cpu_seconds"] for stage, s in found["stages"].items()}
    megabytes = found["stages"]["ingest"]["totals"]["bytes"] / 1e6
    total = sum(cpu.values())
    slowest = sorted(cpu, key=lambda stage: -cpu[stage])[:4]
    shares = ", ".join(f"{stage} {cpu[stage] / total:.0%}" for stage in slowest) if total else ""
    rate = f"{megabytes / total:.1f} MB of text per CPU second" if total else ""
    lines.append(f"  {'CPU seconds of the stages':<28}{total:>12,.1f}  {rate}; {shares}")
    return "\n".join(lines)
