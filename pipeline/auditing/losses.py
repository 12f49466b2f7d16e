"""What each source loses as copies, and which cluster took most of it."""

from __future__ import annotations

from pathlib import Path

from pipeline.amounts import counted
from pipeline.seeing.asking import Row, rows
from pipeline.syntax import text_literal

# Of the documents of a source that are not held out. Three sources of templates and books that
# plain LSH with transitive closure spoilt lost 97, 98 and 100 % (marin #6854); of the seven that
# benchmarks run on, which overlap, the worst loses 40 %.
MAX_LOSS = 0.5

_LOSSES = """
select source, count(*) as documents, count(*) filter (duplicate) as copies,
       count(*) filter (near_duplicate and not duplicate) as near
from documents where not heldout group by 1 order by source"""
# Of a source, the cluster of near duplicates that most of its documents leave for.
_CLUSTERS = """
select source, cluster, count(*) as removed
from documents join clusters using (content_hash)
where near_duplicate and not duplicate and not heldout group by source, cluster
qualify row_number() over (partition by source order by removed desc, cluster) = 1"""


def losses(root: Path) -> list[Row]:
    """source, documents, copies, near, share lost; and where near duplicates go: cluster, removed
    (documents that leave for it), kept (the head of a text that stays)."""
    found = rows(root, _LOSSES)
    clusters = {row["source"]: row for row in rows(root, _CLUSTERS)}
    heads = _heads(root, {row["cluster"] for row in clusters.values()})
    for row in found:
        row["share"] = (row["copies"] + row["near"]) / row["documents"]
        largest = clusters.get(row["source"])
        row["cluster"] = largest["cluster"] if largest else None
        row["removed"] = largest["removed"] if largest else 0
        row["kept"] = heads.get(row["cluster"], "")
    return found


def _heads(root: Path, clusters: set[str]) -> dict[str, str]:
    if not clusters:
        return {}
    listed = ", ".join(map(text_literal, sorted(clusters)))
    found = rows(
        root,
        "select cluster, min_by(left(text, 80), id) as head from documents join clusters "
        f"using (content_hash) where cluster in ({listed}) and kept group by 1",
    )
    return {row["cluster"]: " ".join(row["head"].split()) for row in found}


def warnings(found: list[Row], most: float) -> list[str]:
    """A line for each source that loses more than `most`."""
    lines = []
    for row in found:
        if row["share"] <= most:
            continue
        line = (
            f"source {row['source']} loses {row['share']:.0%} of "
            f"{counted(row['documents'], 'document')}: {row['copies']:,} as exact copies, "
            f"{row['near']:,} as near duplicates"
        )
        if row["cluster"]:
            line += f"; cluster {row['cluster'][:12]} took {row['removed']:,}: {row['kept']!r}"
        lines.append(line)
    return lines
