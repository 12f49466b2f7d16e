"""Stretches of text over all parts: which of them stand in several places.

A partition of the names is in memory at a time: a slice of each part's file, 24 bytes a stretch,
and 40 more of each that is repeated.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from dedup import bands, repeats, sketches
from pipeline import schema
from pipeline.tables import read_columns, write_columns
from pipeline.transforms.near import ROW
from pipeline.transforms.substrings import grouped_output, named_outputs, wind_outputs


def group(root: Path, which: str, parts: list[int], partition: int, num: int) -> dict[str, Any]:
    """Write the repeated stretches of a partition of `num`, by document and start.

    Args:
        which: of substrings.ROUNDS.
    """
    slices = [[np.empty(0, np.uint64)] * 3 + [np.empty(0, np.uint32)]]
    for part in sorted(parts):
        upper, lower, rows, starts = read_columns(
            named_outputs(root, which, part)[0], schema.STRETCHES
        )
        cut = bands.partition_slice(upper, partition, num)
        docs = rows[cut] | np.uint64(part << 32)
        slices.append([upper[cut].copy(), lower[cut].copy(), docs, starts[cut].copy()])
    upper, lower, docs, starts = (np.concatenate(several) for several in zip(*slices, strict=True))
    order = np.argsort(upper, kind="stable")
    order = order[sketches.shared(upper[order])]
    upper, lower, docs, starts = (values[order] for values in (upper, lower, docs, starts))
    contents = _contents(root, docs)
    found = repeats.groups(upper, lower, contents, starts.astype(np.int64))
    by_place = np.lexsort((starts[found.at], docs[found.at]))
    at, copies, first, members, places = (values[by_place] for values in found)
    write_columns(
        grouped_output(root, which, partition),
        schema.REPEATED,
        [docs[at], starts[at], upper[at], lower[at], copies, first, members, places],
    )
    return {"stretches": sum(len(s[0]) for s in slices), "places": len(at)}


def _contents(root: Path, docs: bands.Docs) -> npt.NDArray[np.uint64]:
    """The content of each document, uint64[n, 2]."""
    found = np.empty((len(docs), 2), np.uint64)
    parts = (docs >> np.uint64(32)).astype(np.int64)
    order = np.argsort(parts, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(parts[order])) + 1) if len(docs) else []:
        contents = read_columns(wind_outputs(root, int(parts[rows[0]]))[1], schema.CONTENTS)
        for half, values in enumerate(contents):
            found[rows, half] = values[docs[rows] & ROW]
    return found
