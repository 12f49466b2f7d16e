"""What a classifier is judged by: whole sources where a class has several, else single contents.

A model learns the look of its sources; asked about others of the same ones it seems better than it
is. So of each class and language with several sources whole ones are held out.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from pipeline.config import ConfigError
from pipeline.learned.examples import place
from pipeline.learned.settings import HeldOut

Flags = npt.NDArray[np.bool_]
MOST = 0.5  # of a class and language that may be held out: half stays to train on
LEAST = 0.02  # of all examples: a smaller class and language decides about no source


def split(table: pa.Table, settings: HeldOut, seed: int) -> tuple[Flags, tuple[str, ...]]:
    """Which examples are held out; and the sources that are held out as a whole.

    Raises:
        ConfigError: a source that is named is not there; a class has nothing left on one side.
    """
    sources = table["source"].to_pylist()
    groups = list(zip(table["good"].to_pylist(), table["lang"].to_pylist(), strict=True))
    whole = _sources(sources, groups, settings, seed)
    held = np.array([source in whole for source in sources])
    if not settings.sources:
        covered = {group for group, is_held in zip(groups, held, strict=True) if is_held}
        hashes = table["content_hash"].to_pylist()
        bound = settings.share * 2**64
        for row, (group, key) in enumerate(zip(groups, hashes, strict=True)):
            held[row] |= group not in covered and place(key, seed) < bound
    good = np.array([is_good for is_good, _ in groups])
    for side, rows in (("held out", held), ("to train on", ~held)):
        for name, flags in (("positive", good), ("negative", ~good)):
            if not (rows & flags).any():
                raise ConfigError(
                    f"no {name} text {side}; sources held out: "
                    f"{', '.join(sorted(whole)) or 'none'}; name others in `heldout: {{sources: "
                    "[...]}`, or split by content (`by: content`)"
                )
    return held, tuple(sorted(whole))


def _sources(
    sources: list[str], groups: list[tuple[bool, str]], settings: HeldOut, seed: int
) -> set[str]:
    known = set(sources)
    if missing := set(settings.sources) - known:
        raise ConfigError(
            f"`heldout.sources`: no source {sorted(missing)[0]!r}; there are: "
            f"{', '.join(sorted(known))}"
        )
    if settings.sources or settings.by == "content":
        return set(settings.sources)
    held: set[str] = set()
    sizes: dict[tuple[bool, str], Counter[str]] = {}
    for group, source in zip(groups, sources, strict=True):
        sizes.setdefault(group, Counter())[source] += 1
    sizes = {group: s for group, s in sizes.items() if s.total() >= LEAST * len(sources)}
    for _, of_group in sorted(sizes.items()):
        total = of_group.total()
        got = sum(count for source, count in of_group.items() if source in held)
        for source in sorted(of_group, key=lambda name: place(name.encode(), seed)):
            count = of_group[source]
            if source in held or got + count > MOST * total or got >= settings.share * total:
                continue
            if not all(_leaves_half(s, held | {source}) for s in sizes.values()):
                continue
            held.add(source)
            got += count
    return held


def _leaves_half(of_group: Counter[str], held: set[str]) -> bool:
    gone = sum(count for source, count in of_group.items() if source in held)
    return gone <= MOST * of_group.total()
