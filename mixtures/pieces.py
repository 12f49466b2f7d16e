"""From windows to the documents in them, and back."""

from __future__ import annotations

from collections.abc import Container, Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

from mixtures.loader import Loader
from mixtures.packed import PADDED
from mixtures.parts_read import parts_read
from pipeline import schema

POSITIONS = 65_536  # looked at together


@dataclass(frozen=True)
class Piece:
    """A document in a window."""

    position: int  # of the window in the run
    source: str
    epoch: int  # of the source, from 0
    part: int  # of the packed selection
    window: int  # of the part
    begin: int  # its tokens in the window: begin .. end - 1
    end: int
    id: str  # hex
    forgotten: bool  # no token of it counts
    tokens: np.ndarray


def pieces(loader: Loader, position: int, count: int) -> Iterator[Piece]:
    """Every document of the windows position .. position + count - 1, in order."""
    places = loader.places(position, count)
    for at, (part, window) in enumerate(loader.opened(position, count)):
        if part is None:
            continue  # it is damaged and skipped
        row = part.row(window)
        ends = np.append(row.starts[1:], len(row.tokens)).tolist()
        for begin, end, name in zip(row.starts.tolist(), ends, row.ids, strict=True):
            if (document := name.tobytes()) != PADDED:
                yield Piece(
                    position=position + at,
                    source=loader.plan.sources[int(places.source[at])].name,
                    epoch=int(places.epoch[at]),
                    part=int(places.part[at]),
                    window=window,
                    begin=begin,
                    end=end,
                    id=document.hex(),
                    forgotten=document in part.forgotten,
                    tokens=row.tokens[begin:end],
                )


def positions_of(
    loader: Loader, *documents: str, selections: Container[str] | None = None
) -> list[int]:
    """Positions whose window holds one of these documents (hex ids), of `selections` or of all: a
    scan of the plan."""
    wanted = pa.array(list(map(bytes.fromhex, documents)), schema.HASH)
    parts = parts_read(loader.plan)
    holders = {
        (index, number, window)
        for index, source in enumerate(loader.plan.sources)
        if selections is None or source.selection in selections
        for number in parts[index]
        if (part := loader.part(source.folder, number)) is not None
        for window in part.holders(wanted)
    }
    found: list[int] = []
    for first in range(0, len(loader), POSITIONS):
        places = loader.places(first, min(POSITIONS, len(loader) - first))
        keys = zip(
            places.source.tolist(), places.part.tolist(), places.window.tolist(), strict=True
        )
        found += [first + at for at, key in enumerate(keys) if key in holders]
    return found
