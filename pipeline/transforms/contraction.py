"""Components of forests that are too much for one union-find, in steps that go by partitions.

    told      a share of the forests: their edges, told to both ends
    large     a range of names: large-star
    small     the same range: small-star; large and small in turn, until both change nothing
    stars     the same range: every document with its component, by document
    components  all documents, from all ranges, in the file that near_join.join writes of few

A partition holds the edges of its range, some EDGES_A_PARTITION, or 16 bytes for each member of the
largest component, if that is more. The files of a step stand under joins/contraction/. Each step is
a run of its own (rounds.py), for only its counters tell whether there will be another one.
"""

from __future__ import annotations

import functools
import itertools
import tempfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa

from dedup import bands, clusters, contraction
from dedup.contraction import Records
from pipeline import schema
from pipeline.files import part_name
from pipeline.tables import read_columns, write_columns
from pipeline.transforms import near_join
from pipeline.transforms.near import components_output

# In one process 1e6 edges between 1.9e6 of 2e7 documents took 1.5 CPU seconds and 216 MB: 5 bytes a
# document and 40 each in an edge. So 1e8 take minutes, and 2 to 5 GB.
ONE_PROCESS_EDGES = 100_000_000
EDGES_A_PARTITION = 8_000_000  # 256 MB as records of both ends; sorting holds three copies
PARTS_AT_A_TIME = 256  # of which all documents are put into order together

RECORDS = pa.schema([("to", pa.uint64()), ("other", pa.uint64())])

Star = Callable[[Records], tuple[Records, int]]


class Step(NamedTuple):
    """`partitions`, each of which has its `output` of all partitions of another step."""

    name: str
    partitions: int
    reads: tuple[str, int] | None  # name and partitions of that step; None: the forests
    output: Callable[[Path, int], Path]
    work: Callable[[Path, int], dict[str, int]]  # writes it; returns counters


def is_needed(num_edges: int) -> bool:
    """Are there more edges than one process unites?"""
    return num_edges > ONE_PROCESS_EDGES


def unite(root: Path, num_forests: int, each: Callable[..., Iterable[dict[str, int]]]) -> None:
    """Components, in rounds or not.

    Args:
        each: each(work, numbers, what) gives work(n) for each number; what: for people.
    """

    def run(step: Step) -> int:
        found = each(functools.partial(step.work, root), list(range(step.partitions)), step.name)
        return sum(counters.get("changed", 0) for counters in found)

    columns = (
        read_columns(near_join.forest_output(root, number), schema.EDGES)
        for number in range(num_forests)
    )
    num_edges = sum(len(a) for a, _ in columns)
    if is_needed(num_edges):
        in_rounds(num_forests, num_edges, run)
    else:
        near_join.join(root, num_forests)


def in_rounds(num_forests: int, num_edges: int, run: Callable[[Step], int]) -> int:
    """All steps, one after another; returns how many rounds it took.

    Args:
        run: makes every partition of a step, and returns how many edges they changed.
    """
    num = 1 << max(0, -(-num_edges // EDGES_A_PARTITION) - 1).bit_length()
    step = _step("told", 0, num, None, _tell, num_forests)
    run(step)
    for number in itertools.count(1):
        step = _step("large", number, num, step, _star, contraction.large_star)
        changed = run(step)
        step = _step("small", number, num, step, _star, contraction.small_star)
        changed += run(step)
        if changed == 0:
            break
    step = _step("stars", number, num, step, _stars)
    run(step)
    gather = functools.partial(_gather, step.output, num)
    run(Step("components", 1, (step.name, num), _components, gather))
    return number


def _step(
    kind: str, number: int, num: int, before: Step | None, work: Callable[..., Any], *given: object
) -> Step:
    """Over `num` ranges of names: work(reads, writes, num, *given, root, partition)."""
    name = f"contraction/{number:02d}-{kind}"
    reads, writes = before.output if before else None, functools.partial(_output, name)
    made = functools.partial(work, reads, writes, num, *given)
    return Step(name, num, (before.name, num) if before else None, writes, made)


def _output(name: str, root: Path, partition: int) -> Path:
    return root / "joins" / name / part_name(partition, "arrow")


Output = Callable[[Path, int], Path]


def _tell(
    _: None, writes: Output, num: int, num_forests: int, root: Path, partition: int
) -> dict[str, int]:
    """Edges of every `num`th forest: a spanning forest of them all says as much."""
    forests = [np.empty((0, 2), np.uint64)]
    for number in range(partition, num_forests, num):
        columns = read_columns(near_join.forest_output(root, number), schema.EDGES)
        forests.append(np.stack(columns, axis=1))
    edges = contraction.scattered(clusters.spanning_forest(np.concatenate(forests)))
    told = contraction.to_both(edges[:, 0], edges[:, 1])
    write_columns(writes(root, partition), RECORDS, list(told))
    return {"edges": len(edges)}


def _star(
    reads: Output, writes: Output, num: int, star: Star, root: Path, partition: int
) -> dict[str, int]:
    told, changed = star(_told(reads, num, root, partition))
    write_columns(writes(root, partition), RECORDS, list(told))
    return {"records": len(told.to), "changed": changed}


def _stars(reads: Output, writes: Output, num: int, root: Path, partition: int) -> dict[str, int]:
    """Documents, ascending, and their components."""
    names, centres = contraction.stars(_told(reads, num, root, partition))
    docs = contraction.gathered(names)
    order = np.argsort(docs)
    write_columns(writes(root, partition), schema.COMPONENTS, [docs[order], centres[order]])
    return {"candidates": len(docs)}


def _told(reads: Output, num: int, root: Path, partition: int) -> Records:
    """What the partitions of the step before have to tell this one."""
    pieces = []
    for other in range(num):
        records = Records(*read_columns(reads(root, other), RECORDS))
        mine = bands.partition_slice(records.to, partition, num)
        pieces.append(Records(records.to[mine].copy(), records.other[mine].copy()))
    return contraction.merged(pieces)


def _components(root: Path, _: int) -> Path:
    return components_output(root)


def _gather(reads: Output, num: int, root: Path, _: int) -> dict[str, int]:
    """Some parts at a time, from files into a file: memory does not grow with the documents."""
    stars = [read_columns(reads(root, partition), schema.COMPONENTS) for partition in range(num)]
    total = sum(len(docs) for docs, _ in stars)
    last = max((int(docs[-1]) >> 32 for docs, _ in stars if len(docs)), default=0)
    done = num_components = 0
    with tempfile.TemporaryFile(dir=reads(root, 0).parent) as file:
        columns = np.memmap(file, np.uint64, "w+", shape=(2, max(1, total)))[:, :total]
        for part in range(0, last + 1, PARTS_AT_A_TIME):
            borders = np.array([part, part + PARTS_AT_A_TIME], np.uint64) << np.uint64(32)
            slices = [slice(*np.searchsorted(docs, borders)) for docs, _ in stars]
            pieces = [(d[mine], n[mine]) for (d, n), mine in zip(stars, slices, strict=True)]
            some = [np.concatenate(column) for column in zip(*pieces, strict=True)]
            order = np.argsort(some[0])
            columns[:, done : done + len(order)] = [values[order] for values in some]
            done += len(order)
            num_components += int((contraction.scattered(some[0]) == some[1]).sum())
        write_columns(components_output(root), schema.COMPONENTS, list(columns))
    return {"candidates": total, "components": num_components}
