"""Near duplicates, in four steps of which none shuffles text.

    sign        a part: packed band keys of its signatures, sorted by key
    forest      a partition of the keys: which documents share a band, as a spanning forest
    join        all forests: candidate components
    shingle     a part: shingle hashes of its candidates only
    verify      a partition of the components: pairs by true Jaccard, clusters

Exact copies are collapsed as soon as they are met: of each content, the first document of a part
has band keys. So a text that stands a million times joins once a part.

Steps hand each other files; only part and partition numbers travel through Beam.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.parquet as pq

from dedup import bands, clusters, minhash
from dedup.shingles import shingles
from pipeline import schema
from pipeline.corpus import part_name
from pipeline.files import replacing
from pipeline.tables import (
    column,
    first_of_each,
    read_arrow,
    read_columns,
    write_columns,
    write_rows,
)

if TYPE_CHECKING:
    from pipeline.settings import Near
    from pipeline.transforms.sweep import Stage

# Partitions of the join. A fixed number, so that files do not depend on workers; each partition
# holds 1/4 of the band keys (16 bytes each, 21 a document: 1e8 documents are 8.4 GB a partition).
NUM_PARTITIONS = 4


# --- sign -----------------------------------------------------------------------------------------


def sign_outputs(root: Path, part: int) -> list[Path]:
    return [root / "joins" / "keys" / part_name(part, "arrow")]


def sign(root: Path, near: Near, part: int) -> Stage:
    """Sorted band keys of the contents of a part. Their signatures are not kept: they would be a
    fifth to a third of the text, and nothing but these keys is ever made of them."""
    keys: list[npt.NDArray[np.uint64]] = [np.empty((0, near.bands), np.uint64)]
    signed: list[npt.NDArray[np.bool_]] = [np.empty(0, np.bool_)]
    contents = [pa.array([], schema.HASH)]
    num_shingles = 0
    while (batch := (yield)) is not None:
        hashes, offsets = batch.shingles
        signatures = minhash.signatures(hashes, offsets, near.permutations)
        keys.append(bands.band_keys(signatures, near.bands, near.rows))
        signed.append(np.diff(offsets) > 0)
        contents.append(batch.contents)
        num_shingles += len(hashes)
    first = first_of_each(pa.chunked_array(contents))
    has_shingles = np.concatenate(signed)
    has_keys = np.zeros(len(has_shingles), np.bool_)
    has_keys[first] = has_shingles[first]
    records = bands.key_records(np.concatenate(keys), has_keys, part)
    write_columns(sign_outputs(root, part)[0], schema.BAND_KEYS, list(records))
    return {
        "documents": len(has_keys),
        "contents": len(first),
        "shingles": num_shingles,
        "band_keys": len(records[0]),
    }


# --- forest, join ---------------------------------------------------------------------------------


def forest_output(root: Path, partition: int) -> Path:
    return root / "joins" / "forest" / part_name(partition, "arrow")


EDGES = pa.schema([("a", pa.uint64()), ("b", pa.uint64())])


def forest(root: Path, parts: list[int], partition: int) -> dict[str, Any]:
    """Documents that share a band key of this partition, as a spanning forest of edges."""
    slices = [(np.empty(0, np.uint64), np.empty(0, np.uint64))]
    for part in sorted(parts):
        keys, docs = read_columns(sign_outputs(root, part)[0])
        bounds = bands.partition_bounds(keys, NUM_PARTITIONS)
        cut = slice(bounds[partition], bounds[partition + 1])
        slices.append((keys[cut], docs[cut]))
    keys, docs = bands.sort_records(
        np.concatenate([k for k, _ in slices]), np.concatenate([d for _, d in slices])
    )
    edges = clusters.spanning_forest(bands.candidate_edges(keys, docs))
    write_columns(forest_output(root, partition), EDGES, [edges[:, 0], edges[:, 1]])
    return {"band_keys": len(keys), "edges": len(edges)}


COMPONENTS = pa.schema([("doc", pa.uint64()), ("component", pa.int64())])


def components_output(root: Path) -> Path:
    return root / "joins" / "components" / part_name(0, "arrow")


def join(root: Path) -> dict[str, Any]:
    """One union-find over the forests: documents sorted, with the number of their component."""
    edges = [np.stack(read_columns(forest_output(root, p)), axis=1) for p in range(NUM_PARTITIONS)]
    docs, labels = clusters.components(np.concatenate(edges))
    write_columns(components_output(root), COMPONENTS, [docs, labels])
    return {"candidates": len(docs), "components": len(np.unique(labels))}


# --- shingle, verify ------------------------------------------------------------------------------


def shingle_outputs(root: Path, part: int) -> list[Path]:
    return [root / "joins" / "candidates" / part_name(part, "arrow")]


def shingle(root: Path, near: Near, part: int) -> dict[str, Any]:
    """Shingle hashes of those documents of a part that are in a candidate component."""
    docs, labels = read_columns(components_output(root))
    first, last = np.searchsorted(docs, np.array([part << 32, (part + 1) << 32], np.uint64))
    rows = (docs[first:last] & np.uint64(0xFFFFFFFF)).astype(np.int64)
    labels = labels[first:last]
    documents = pq.ParquetFile(root / "documents" / part_name(part))
    begin = 0
    with (
        replacing(shingle_outputs(root, part)[0]) as temporary,
        pa.OSFile(str(temporary), "wb") as sink,
        pa.ipc.new_file(sink, schema.CANDIDATES) as writer,
    ):
        for i in range(documents.num_row_groups):
            end = begin + documents.metadata.row_group(i).num_rows
            inside = slice(*np.searchsorted(rows, [begin, end]))
            if inside.start < inside.stop:
                chosen = pa.array(rows[inside] - begin)
                texts = column(documents, i, "text").take(chosen)
                hashes, offsets = shingles(texts, near.ngram)
                lists = pa.LargeListArray.from_arrays(pa.array(offsets), pa.array(hashes))
                contents = column(documents, i, "content_hash").take(chosen)
                writer.write_batch(
                    pa.RecordBatch.from_arrays(
                        [pa.array(labels[inside]), contents, lists], schema=schema.CANDIDATES
                    )
                )
            begin = end
    return {"candidates": len(rows)}


def verify_outputs(root: Path, partition: int) -> list[Path]:
    name = part_name(partition)
    return [root / "pairs" / name, root / "clusters" / name, root / "clusters" / "shingles" / name]


def verify(root: Path, near: Near, parts: list[int], partition: int) -> dict[str, Any]:
    """Pairs by true Jaccard inside each candidate component of this partition.

    A content that stands in several parts counts once. A component above MAX_STORED members keeps
    its shingles instead of its pairs: it is verified when a mixture selects.
    """
    tables = [_candidates(root, part, partition) for part in sorted(parts)]
    table = pa.concat_tables([schema.CANDIDATES.empty_table(), *tables])
    labels = np.asarray(table["component"])
    contents: list[bytes] = table["content_hash"].to_pylist()
    sets = [shingles.values.to_numpy() for shingles in table["shingles"]]
    pairs: list[dict[str, Any]] = []
    members: list[dict[str, Any]] = []
    large: list[dict[str, Any]] = []
    order = np.argsort(labels, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(labels[order])) + 1):
        distinct = {contents[i]: i for i in group}
        names = sorted(distinct)
        chosen = [sets[distinct[name]] for name in names]
        if len(names) > clusters.MAX_STORED:
            members += [_member(name, names, large=True) for name in names]
            large += [
                {"content_hash": name, "shingles": hashes}
                for name, hashes in zip(names, chosen, strict=True)
            ]
        elif len(names) > 1:
            found_pairs, found_clusters = _verified(names, chosen, near.threshold)
            pairs += found_pairs
            members += [_member(name, c, large=False) for c in found_clusters for name in c]
    pairs_path, clusters_path, shingles_path = verify_outputs(root, partition)
    write_rows(pairs_path, schema.PAIRS, sorted(pairs, key=lambda row: (row["a"], row["b"])))
    write_rows(clusters_path, schema.CLUSTERS, sorted(members, key=_by_content))
    write_rows(shingles_path, schema.LARGE_CLUSTER_SHINGLES, sorted(large, key=_by_content))
    return {"pairs": len(pairs), "clustered": len(members), "large": len(large)}


def _verified(
    names: list[bytes], sets: list[npt.NDArray[np.uint64]], threshold: float
) -> tuple[list[dict[str, Any]], list[list[bytes]]]:
    """Verified pairs of the documents of one component, and the clusters that they form."""
    offsets = np.cumsum([0, *(len(hashes) for hashes in sets)], dtype=np.int64)
    first, second, jaccard = clusters.verified_pairs(np.concatenate(sets), offsets, threshold)
    pairs = [
        {"a": names[min(i, j)], "b": names[max(i, j)], "jaccard": value}
        for i, j, value in zip(first.tolist(), second.tolist(), jaccard.tolist(), strict=True)
    ]
    nodes, labels = clusters.components(np.stack([first, second], axis=1).astype(np.uint64))
    found: dict[int, list[bytes]] = {}
    for node, label in zip(nodes.tolist(), labels.tolist(), strict=True):
        found.setdefault(label, []).append(names[node])
    return pairs, list(found.values())


def _member(name: bytes, cluster: list[bytes], large: bool) -> dict[str, Any]:
    return {"content_hash": name, "cluster": min(cluster), "size": len(cluster), "large": large}


def _by_content(row: dict[str, Any]) -> bytes:
    content: bytes = row["content_hash"]
    return content


def _candidates(root: Path, part: int, partition: int) -> pa.Table:
    table = read_arrow(shingle_outputs(root, part)[0])
    return table.filter(pa.array(np.asarray(table["component"]) % NUM_PARTITIONS == partition))
