"""What was measured of a corpus: signal groups as their files hold them, and presets over them.

A corpus that an earlier version prepared may have a group without a column that a preset reads now.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from filters.presets import PRESETS, needs, reads, reasons
from pipeline.corpus import manifest, part_paths


def schemas(root: Path) -> dict[str, pa.Schema]:
    """Signal group -> its columns, in the order in which they were measured."""
    return {
        name: pq.read_schema(paths[0])
        for name in manifest(root)["signals"]
        if (paths := part_paths(root, f"signals/{name}"))
    }


def presets(groups: Mapping[str, Collection[str]]) -> tuple[str, ...]:
    """Those of which each column that they read stands in `groups`."""
    return tuple(
        name
        for name in PRESETS
        if needs(name) <= groups.keys()
        and all(column in groups[group] for group, column in reads(name))
    )


def flags(groups: Mapping[str, Collection[str]]) -> dict[str, str]:
    """Detector of `clean` whose score stands in `groups` -> SQL that is true of a document that it
    flags; NULL where it has no cut."""
    return {
        group: fails
        for name, fails in reasons("clean")
        for group, _, column in (name.partition("."),)
        if column in groups.get(group, ())
    }


def presets_of(root: Path) -> tuple[str, ...]:
    """Those of a corpus."""
    return presets({name: columns.names for name, columns in schemas(root).items()})
