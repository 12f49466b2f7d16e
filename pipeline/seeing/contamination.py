"""Which items of evaluation sets stand in which documents, which cannot be found, and which sets
hit so much that an item is likely to hold boilerplate.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError, manifest
from pipeline.evaluation_items import versions
from pipeline.heldout_settings import Decontaminate
from pipeline.seeing.asking import Row, rows
from pipeline.unmeasured import told

SHOWN = 8  # items of a set
# Of the documents of a source that one set may hit: of 24,438 documents that cannot hold them 800
# items hit one (docs/decontamination.md), and no source is a hundredth evaluation.
ALARM_SHARE = 0.01
ALARM_DOCUMENTS = 5  # at least

_ITEMS = """
select "set", item, num_words, unmatched, excerpt from evaluation_items order by all"""
_HITS = """
with found as (select source, id, unnest(contamination.hits, recursive := true) from documents
               where contamination.num_items > 0)
select {columns} from found group by all order by all"""
_BY_SOURCE = _HITS.format(columns='"set", source, count(distinct id) as documents')
_BY_ITEM = _HITS.format(
    columns='"set", item, count(distinct id) as documents, max(share) as share, '
    "min_by({'id': id, 'source': source, 'start': \"start\", 'end': \"end\"}, "
    "{'less': -share, 'id': id}) as worst"
)
_SOURCES = "select source, count(*) as documents from documents group by all"
_WHY = {
    "short": "shorter than an n-gram",
    "shared": "all of it stands in more than ten items",
    "empty": "without a word",
}


def report(root: Path) -> Iterator[str]:
    """Lines for a terminal.

    Raises:
        CorpusError: the corpus was prepared without evaluation sets.
    """
    if missing := told(root, "contamination"):
        raise CorpusError(f"{root}: {missing}")
    settings = manifest(root)["settings"]["decontaminate"]
    yield (
        f"items of {counted(len(settings['sets']), 'set')}, by n-grams of {settings['words']} "
        f"words or {settings['characters']} Han; found: {settings['share']:.0%} of an item, or of "
        "its question, in one place"
    )
    yield from _stale(root)
    items, hits, found = (rows(root, question) for question in (_ITEMS, _BY_SOURCE, _BY_ITEM))
    documents = {row["source"]: row["documents"] for row in rows(root, _SOURCES)}
    for name in settings["sets"]:
        mine = [[row for row in table if row["set"] == name] for table in (items, hits, found)]
        fields = settings["sets"][name]["fields"]
        yield from of_set(name, mine[0], mine[1], mine[2], documents, fields)
    yield (
        f'every one: assay sql {root} "select id, source, unnest(contamination.hits, recursive := '
        'true) from documents where contamination.num_items > 0"'
    )


def _stale(root: Path) -> Iterator[str]:
    """Sets whose files are not those that were looked for."""
    known = manifest(root)
    if "evaluation_files" not in known:  # of an earlier version
        return
    before = {(name, file): digest for name, file, digest in known["evaluation_files"]}
    settings = Decontaminate(**known["settings"]["decontaminate"])
    try:
        now = {(name, file): digest for name, file, digest in versions(settings)}
    except (ConfigError, OSError) as error:
        yield f"  STALE: {error}; what follows is of the items that were read"
        return
    for name, file in sorted(before.keys() | now.keys()):
        was, is_now = before.get((name, file)), now.get((name, file))
        if was != is_now:
            what = "is gone" if is_now is None else "is new" if was is None else "changed"
            yield (
                f"  STALE: {name}: {file} {what} since `assay prepare`: what follows is of the "
                "items before; call it again"
            )


def _own_fields(fields: Sequence[str]) -> str:
    """What to do about items that hold what other texts hold too."""
    if not fields:
        return "name the fields that are the item's own: `fields: [question, answer]`"
    if len(fields) > 1:
        return f"its fields are {', '.join(fields)}: leave out which of them is not its own"
    return f"it has one field already, {fields[0]}: look at those items, and take them out"


def of_set(
    name: str,
    items: list[Row],
    by_source: list[Row],
    found: list[Row],
    documents: dict[str, int],
    fields: Sequence[str] = (),
) -> Iterator[str]:
    """Lines of one set.

    Args:
        by_source: documents that it hits.
        found: of each item found the documents, the largest share, and where that is.
        documents: of each source, all.
        fields: of an item, where the settings name them.
    """
    hit = ", ".join(f"{row['source']} {row['documents']:,}" for row in by_source)
    yield (
        f"{name}: {counted(len(found), 'item')} of {len(items):,} found, in documents of: "
        f"{hit or 'none'}"
    )
    for reason, words in _WHY.items():
        blind = [row for row in items if row["unmatched"] == reason]
        if blind:
            more = f", and {len(blind) - SHOWN:,} more" if len(blind) > SHOWN else ""
            named = ", ".join(f"{r['item']} {r['excerpt'][:30]!r}" for r in blind[:SHOWN])
            yield f"  cannot be found, {words}: {counted(len(blind), 'item')}: {named}{more}"
    for row in by_source:
        share = row["documents"] / documents[row["source"]]
        if share > ALARM_SHARE and row["documents"] >= ALARM_DOCUMENTS:
            yield (
                f"  ALARM: hits {share:.1%} of source {row['source']}: if that is no copy of the "
                "set, its items hold what other texts hold too (an instruction, a passage, a "
                f"licence); {_own_fields(fields)}"
            )
    excerpts = {row["item"]: row["excerpt"] for row in items}
    for row in sorted(found, key=lambda r: (-r["documents"], -r["share"], r["item"]))[:SHOWN]:
        worst = row["worst"]
        yield (
            f"  {row['item']}: {counted(row['documents'], 'document')}, at most {row['share']:.0%} "
            f"in {worst['id'][:12]} of {worst['source']}, bytes {worst['start']:,} to "
            f"{worst['end']:,}: {excerpts[row['item']][:50]!r}"
        )
    if len(found) > SHOWN:
        yield f"  ... and {counted(len(found) - SHOWN, 'more item')}"
