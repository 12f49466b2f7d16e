"""What became of the input: the funnel of a corpus, as rows and as text.

The numbers are asked of the corpus as it stands (`assay sql` gives the same), never summed over
parts: how the input was cut into shards changes none of them.
"""

from __future__ import annotations

import contextlib
import shutil
import sys
import textwrap
from collections import Counter
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from pipeline import store
from pipeline.amounts import counted
from pipeline.corpus import manifest, part_paths
from pipeline.files import file_hash, read_json, read_sealed, write_sealed
from pipeline.sql import ask

MEMORY_LIMIT = "300MB"  # with the process that asks, below what its workers had together
TIMEOUT_SECONDS = 3_600.0  # a few columns of the documents: 1e8 of them take minutes

# Each document has one fate, the first that applies. Of copies the first document stays, of near
# duplicates what the selection of a mixture over the whole corpus would keep (pipeline/unique.py).
FATES = """
select case when heldout then 'heldout' when duplicate then 'copies' when near_duplicate then 'near'
       else 'left' end as fate,
       source, coalesce(lang, '') as language, count(*) as documents,
       sum(num_bytes)::bigint as bytes, sum(num_tokens)::bigint as tokens
from documents group by all"""
# Of each source the reason of most rejects, with the first of them by file and offset.
REJECTED = """
select source, first(reason order by records desc, reason) as reason,
       first(detail order by records desc, reason)[:200] as detail, sum(records)::bigint as records
from (select source, reason, min_by(detail, (file, "offset")) as detail, count(*) as records
      from rejects group by all)
group by source"""


def funnel(root: Path) -> list[dict[str, Any]]:
    """Rows (step, documents, bytes, note) from records read to documents that are left.

    What goes away is negative, so that the documents down to `left` add up; `bytes` is UTF-8 text,
    None where it is not known. Below `left` stand its languages.
    """
    found = manifest(root)
    ingest = found["stages"]["ingest"]["totals"]
    rows = [_row("records read", ingest["records"], None)]
    if ingest["not_sampled"]:
        rows.append(_row("outside --limit", -ingest["not_sampled"], None))
    rows += [_row(f"rejected: {r}", -n, None) for r, n in ingest["reasons"].items()]
    fates = _fates(root) if ingest["documents"] else []
    sources = [item["source"] for item in found["settings"]["inputs"]]
    silent = [source for source in sources if source not in {fate["source"] for fate in fates}]
    forgotten = ingest.get("forgotten", 0)
    had = _sources(root) if silent and forgotten else set()
    for source in sorted(had.intersection(silent)):
        rows.append(_row(f"of source {source}", 0, None, "its documents were all forgotten"))
    silent = [source for source in silent if source not in had]
    rows += _silent(root, silent, sampled=ingest["not_sampled"] > 0)
    if forgotten:
        rows.append(_row("forgotten", -forgotten, None, "see `assay forget`"))
    rows.append(_row("documents", ingest["documents"] - forgotten, ingest["bytes"]))
    note = held_out(root, found["stages"]["heldout"]["totals"], is_forgotten=forgotten > 0)
    rows.append(_gone("held out", fates, "heldout", note))
    rows.append(_gone("exact copies", fates, "copies", "beyond the first of a text"))
    rows.append(_gone("near duplicates", fates, "near", "as a mixture of all would choose"))
    left = [fate for fate in fates if fate["fate"] == "left"]
    rows.append(_left("left", left))
    named = found["settings"]["languages"]
    for language in named:
        rows.append(_left(f"left: {language}", [f for f in left if f["language"] == language]))
    others = [fate for fate in left if fate["language"] not in named]
    return [*rows, _left("left: others", others)] if others else rows


def held_out(root: Path, totals: dict[str, Any], *, is_forgotten: bool) -> str:
    """How much text is held out. When sets were chosen it was as `totals` say; what was forgotten
    since, heldout.json has taken off."""
    texts, sets = totals["documents"], totals["sets"]
    if is_forgotten:
        left = [entry["documents"] for entry in read_json(root / "heldout.json")["sets"].values()]
        texts, sets = sum(left), sum(num > 0 for num in left)
    note = f"{counted(texts, 'text')} in {counted(sets, 'set')}, and copies"
    if totals["independent_rejected"]:
        note += f"; {counted(totals['independent_rejected'], 'independent record')} rejected"
    return note


def _fates(root: Path) -> list[dict[str, Any]]:
    """Asked once of each state of a corpus: 10 million documents take a minute."""
    known = root / "stats" / "fates.json"
    state = [FATES, *(file_hash(root / name) for name in ("corpus.json", "heldout.json"))]
    found = read_sealed(known)
    if found is not None and found["state"] == state:
        return list(found["fates"])
    fates = _asked(root, FATES)
    with contextlib.suppress(OSError):  # someone else's, a read-only or a full disk: asked again
        write_sealed(known, {"state": state, "fates": fates})
    return fates


def _silent(root: Path, sources: list[str], sampled: bool) -> list[dict[str, Any]]:
    """A row for each source that gave no document, with what became of its records: most often
    `text` names no field. With `--limit` a source may have none in the sample."""
    rejected = {row["source"]: row for row in _asked(root, REJECTED)} if sources else {}
    rows = []
    for source in sources:
        if row := rejected.get(source):
            records = counted(row["records"], "record")
            note = f"no document of {records}, rejected: {row['reason']}, {row['detail']}"
            rows.append(_row(f"of source {source}", 0, None, note))
        elif not sampled:
            rows.append(_row(f"of source {source}", 0, None, "no record: are its files empty?"))
    return rows


def _sources(root: Path) -> set[str]:
    """Sources of all rows of documents, of which no view shows those that were forgotten."""
    tables = (pq.read_table(path, columns=["source"]) for path in part_paths(root, "documents"))
    return {source for table in tables for source in table["source"].unique().to_pylist()}


def _asked(root: Path, question: str) -> list[dict[str, Any]]:
    with ask(
        root, question, macros={}, timeout_seconds=TIMEOUT_SECONDS, memory_limit=MEMORY_LIMIT
    ) as batches:
        rows: list[dict[str, Any]] = batches.read_all().to_pylist()
    return rows


def _gone(step: str, fates: list[dict[str, Any]], fate: str, note: str) -> dict[str, Any]:
    total = _total([row for row in fates if row["fate"] == fate])
    return _row(step, -total["documents"], -total["bytes"], note)


def _left(step: str, fates: list[dict[str, Any]]) -> dict[str, Any]:
    total = _total(fates)
    note = counted(total["tokens"], "token") if fates else "none"
    return _row(step, total["documents"], total["bytes"], note)


def _total(rows: list[dict[str, Any]]) -> Counter[str]:
    total = Counter(documents=0, bytes=0, tokens=0)
    for row in rows:
        total.update({key: row[key] for key in total})
    return total


def _row(step: str, documents: int, num_bytes: int | None, note: str = "") -> dict[str, Any]:
    return {"step": step, "documents": documents, "bytes": num_bytes, "note": note}


def summary(root: Path) -> str:
    """The funnel, the tokenizer, and where the time went, as text for a terminal."""
    found = manifest(root)
    stages, tokenizer = found["stages"], found["tokenizer"]
    lines = [f"{root}"]
    here = store.is_here(root, "documents")
    if not here:  # workers elsewhere made it: a corpus is not fetched for a few lines
        lines.append("  what became of the documents: `assay report` of its URL fetches and counts")
    for row in funnel(root) if here else ():
        size = f"{row['bytes'] / 1e6:,.1f} MB" if row["bytes"] is not None else ""
        line = f"  {row['step']:<28}{row['documents']:>12,}{size:>14}  {row['note']}"
        lines.append(line.rstrip())
    lines.append(
        f"  {'tokens':<28}{stages['tokens']['totals']['tokens']:>12,}  "
        f"of all documents; vocabulary {tokenizer['vocab_size']:,}, {tokenizer['engine']}"
    )
    if "evaluation_items" in stages:
        found = stages["evaluation_items"]["totals"]
        blind = found["items"] - found["matchable"]
        lines.append(
            f"  {'evaluation items':<28}{found['items']:>12,}  {blind:,} of them cannot be found; "
            "`assay report --contamination` names them, and what was found"
        )
    pairs = stages["pairs"]["totals"]["pairs"]
    lines.append(f"  {'near-duplicate pairs':<28}{pairs:>12,}")
    cpu = {stage: s["cpu_seconds"] for stage, s in stages.items()}
    megabytes = stages["ingest"]["totals"]["bytes"] / 1e6
    total = sum(cpu.values())
    slowest = sorted(cpu, key=lambda stage: -cpu[stage])[:4]
    shares = ", ".join(f"{stage} {cpu[stage] / total:.0%}" for stage in slowest) if total else ""
    rate = f"{megabytes / total:.1f} MB of text per CPU second" if total else ""
    lines.append(f"  {'CPU seconds of the stages':<28}{total:>12,.1f}  {rate}; {shares}")
    return "\n".join(lines)


def fitted(text: str, columns: int) -> str:
    """Lines no wider than `columns`: of a row that is wider the note, which two spaces part from
    it, goes below; it, and other lines, are broken between words."""
    below = " " * 6
    wrapper = textwrap.TextWrapper(
        columns, subsequent_indent=below, break_long_words=False, break_on_hyphens=False
    )
    lines = []
    for line in text.splitlines():
        row, _, note = line.rpartition("  ")
        if len(line) <= columns:
            lines.append(line)
        elif row.strip():
            lines += [row.rstrip(), wrapper.fill(below + note)]
        else:
            lines.append(wrapper.fill(line))
    return "\n".join(lines)


def say(text: str) -> None:
    """Print; on a terminal no line is wider than it."""
    print(fitted(text, shutil.get_terminal_size().columns) if sys.stdout.isatty() else text)
