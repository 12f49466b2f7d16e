"""`assay card CORPUS`: the data card of a corpus, every number asked of the corpus as it stands."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pipeline.amounts import counted
from pipeline.corpus import manifest
from pipeline.files import read_json, replacing
from pipeline.finished import reading
from pipeline.measured import presets_of
from pipeline.report import funnel
from pipeline.sql import ask

TIMEOUT_SECONDS = 3_600.0
MOST_ROWS = 20  # of a table
SOURCES = """
select source, any_value(kind) as kind, count(*) as documents, sum(num_bytes)::bigint as bytes,
       sum(num_tokens)::bigint as tokens from documents group by source order by bytes desc"""
LANGUAGES = """
select coalesce(lang, 'unknown') as language, count(*) as documents,
       sum(num_bytes)::bigint as bytes, sum(num_tokens)::bigint as tokens
from documents group by 1 order by bytes desc"""
# Of a language or kind that a preset has no rules for, its share is NULL.
PASSING = """
select source, coalesce(lang, 'unknown') as language, count(*) as documents, {shares}
from documents group by 1, 2 order by documents desc, source, language"""
LICENCES = """
select source, coalesce(licence, 'not stated') as licence, count(*) as documents
from documents group by all order by source, documents desc"""
LIMITS = (
    "Licences are what pages state of themselves; nobody checked them.",
    "Languages are measured, with mistakes on short, mixed or marked-up text; see `lang_score`.",
    "Near duplicates are word 5-grams in MinHash-LSH, verified by Jaccard: paraphrases and "
    "translations stay, and of pairs at the threshold about 1 in 500 is missed.",
)
EDITS = """
select name, kind, count(*) as edits, count(distinct id) as documents,
       sum(end_byte - start_byte)::bigint as bytes
from edits group by all order by name, edits desc"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay card",
        description="The data card of a corpus, as Markdown: sources, licences, languages, what "
        "was rejected and why, what passes each preset, duplicates, held-out sets, known limits.",
        epilog="example:\n  assay card runs/web --output runs/web/README.md",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder of a corpus, or its address on a store")
    parser.add_argument("--output", type=Path, help="file to write; default: standard output")
    options = parser.parse_args(argv)
    with reading(options.corpus) as root:
        text = card(root)
    if options.output is None:
        print(text, end="")
        return 0
    with replacing(options.output) as temporary:
        temporary.write_text(text, "utf-8")
    print(f"wrote {options.output}")
    return 0


def card(root: Path) -> str:
    """The data card, as Markdown."""
    return "\n".join(_lines(root)) + "\n"


def _lines(root: Path) -> Iterator[str]:
    found = manifest(root)
    settings, tokenizer = found["settings"], found["tokenizer"]
    yield f"# Data card: {found['name']}"
    yield ""
    sources = counted(len(settings["inputs"]), "source")
    yield f"Made by assay (format {found['format']}) from {sources}."
    yield from _section("Sources", SOURCES, root)
    yield ""
    for item in settings["inputs"]:
        kept = f"; kept fields: {', '.join(item['keep'])}" if item["keep"] else ""
        yield f"- `{item['source']}`: {Path(item['files']).name}, kind {item['kind']}{kept}"
    yield from _section("Languages", LANGUAGES, root)
    yield from _section("Licences that documents state", LICENCES, root)
    yield from _heading("From records to text")
    rows = [("step", "documents", "bytes", "note")]
    rows += [
        (r["step"], *map(_cell, (r["documents"], r["bytes"])), r["note"]) for r in funnel(root)
    ]
    yield from _table(rows)
    yield from _passing(root)
    yield from _heading("Filters and duplicates")
    yield (
        f"Dropped when read, with their reason kept: {', '.join(settings['hard']) or 'nothing'}. "
        f"Measured, dropping nothing: {', '.join(found['signals'])}. What a model sees is decided "
        "by a mixture."
    )
    near, pairs = settings["near"], found["stages"]["pairs"]["totals"]
    yield (
        f"Near duplicates: word {near['ngram']}-grams, {near['permutations']} permutations, "
        f"{near['bands']} bands of {near['rows']}; {counted(pairs['pairs'], 'pair')} verified at a "
        f"Jaccard of {near['threshold']:g} or more."
    )
    yield from _heading("Held-out sets")
    sets = read_json(root / "heldout.json")["sets"]
    columns = ("set", "languages", "documents", "bytes")
    yield from _table([columns, *(_held(name, entry) for name, entry in sorted(sets.items()))])
    yield from _heading("Tokens")
    yield (
        f"{found['stages']['tokens']['totals']['tokens']:,} by tokenizer `{tokenizer['hash']}`, "
        f"vocabulary {tokenizer['vocab_size']:,}."
    )
    yield from _edits(root, found.get("edits", []))
    yield from _heading("Known limits")
    yield from (f"- {limit}" for limit in LIMITS)
    yield "- No personal data was removed: the text stands as it came, edits beside it."


def _passing(root: Path) -> Iterator[str]:
    """Shares of documents that pass each preset, where its signals were measured."""
    presets = presets_of(root)
    if presets:
        shares = ", ".join(
            f"printf('%.1f %%', 100 * avg({preset}.pass::int)) as {preset}" for preset in presets
        )
        yield from _section("Shares that pass each preset", PASSING.format(shares=shares), root)
        yield "\nEmpty: the preset has no rules for this language or kind of source."


def _edits(root: Path, names: list[str]) -> Iterator[str]:
    if names:
        yield from _section("Edits that a mixture may apply", EDITS, root)


def _held(name: str, entry: dict[str, Any]) -> tuple[str, ...]:
    languages = ", ".join(entry["languages"])
    return name, languages, _cell(entry["documents"]), _cell(entry["bytes"])


def _heading(title: str) -> Iterator[str]:
    yield from ("", f"## {title}", "")


def _section(title: str, question: str, root: Path) -> Iterator[str]:
    with ask(root, question, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
        table = batches.read_all()
    rows = [tuple(map(_cell, row.values())) for row in table.slice(0, MOST_ROWS).to_pylist()]
    yield from _heading(title)
    yield from _table([tuple(table.column_names), *rows])
    if len(table) > MOST_ROWS:
        yield f"\nand {counted(len(table) - MOST_ROWS, 'row')} more."


def _table(rows: Sequence[tuple[str, ...]]) -> Iterator[str]:
    header, *others = rows
    yield f"| {' | '.join(header)} |"
    yield f"|{' --- |' * len(header)}"
    yield from (f"| {' | '.join(_escaped(cell) for cell in row)} |" for row in others)


def _escaped(cell: str) -> str:
    return cell.replace("|", "\\|").replace("\n", " ")


def _cell(value: Any) -> str:
    if value is None:
        return ""
    return f"{value:,}" if isinstance(value, int) else str(value)
