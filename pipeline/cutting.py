"""Input files to pieces, and the state they are in, by as many processes as there are workers.

What is heavy before the first stage is inflating large compressed streams: 130 s of a core for 20
GB of text.
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from pipeline import disk, forks
from pipeline.clock import telling
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError
from pipeline.ranges import ReadError
from pipeline.readers import Piece
from pipeline.readers.files import content_hash, file_size, file_version
from pipeline.readers.formats import cut
from pipeline.readers.spill import DONE, spill
from pipeline.shards import Key, spill_folder

File = tuple[Key, str]  # and where it lies now
TELL_SECONDS = 10.0  # between lines on stderr
HANDS = 256  # into which files are dealt at most: of 100,000 tiny ones, 400 travel together
# Of files that are worth processes which begin with nothing, 0.6 s of a core and 140 MB each: about
# 600 MB of text, 3 s.
WORTH_BYTES = 200_000_000


@dataclass(frozen=True, slots=True)
class Cut:
    """What a file is cut into and its state then, or why it cannot be read."""

    pieces: list[Piece] = field(default_factory=list)
    bytes: int = 0
    modified: str = ""
    hash: str = ""
    failed: str = ""


def cut_files(
    root: Path, files: Sequence[File], shard_bytes: int, strict: bool, workers: int
) -> list[Cut]:
    """What each file is cut into; large compressed streams are written out, as shards.

    Args:
        strict: the first file that cannot be read is an error; else it stands in the result.

    Raises:
        ConfigError: a file cannot be read.
        OSError: the corpus cannot be written.
        CorpusError: a process was killed.
    """
    sizes = [_size_if_known(path) for _, path in files]
    largest_first = sorted(range(len(files)), key=lambda n: -sizes[n])  # so all are busy to the end
    hands = [largest_first[n::HANDS] for n in range(min(HANDS, len(files)))]
    dealt = [[files[n] for n in hand] for hand in hands]
    made: dict[int, Cut] = {}
    function = functools.partial(_cut_hand, root, shard_bytes, strict)
    try:
        with forks.each(function, dealt, workers, sum(sizes) > WORTH_BYTES) as results:
            cuts = itertools.chain.from_iterable(results)
            numbers = itertools.chain.from_iterable(hands)
            for result in telling(
                cuts, lambda n: f"{n:,} of {len(files):,} input files read", TELL_SECONDS
            ):
                if isinstance(result, Exception):
                    raise result
                made[next(numbers)] = result
    except forks.Killed:
        raise CorpusError(
            f"{root}: a process that cut input files was killed; finished shards are kept: call "
            "again. SIGKILL is most often a lack of memory: fewer --workers"
        ) from None
    return [made[n] for n in range(len(files))]


def _size_if_known(path: str) -> int:
    """What the system knows, or a store has said in its list; a web server is not asked for it."""
    if path.startswith(("http://", "https://")):
        return 0
    try:
        return file_size(path)
    except OSError:
        return 0


def is_cut(spilled: Path) -> bool:
    """Does this shard stand, and was its stream cut to the end?"""
    return spilled.exists() and spilled.with_name(DONE).exists()


def _cut_hand(
    root: Path, shard_bytes: int, strict: bool, hand: list[File]
) -> list[Cut | Exception]:
    """Up to the first that ends the run."""
    cuts: list[Cut | Exception] = []
    for named in hand:
        cuts.append(_cut(root, shard_bytes, strict, named))
        if isinstance(cuts[-1], Exception):
            break
    return cuts


def _cut(root: Path, shard_bytes: int, strict: bool, named: File) -> Cut | Exception:
    """Returns what is meant for the user, to be raised by the process that talks to them."""
    key, path = named
    source, file = key
    try:
        pieces = cut(path, file, shard_bytes)
        if pieces is None:  # a stream too large for one piece: written out once, as shards
            pieces = spill(path, file, root / spill_folder(key), shard_bytes)
        return Cut(pieces, file_size(path), file_version(path), content_hash(path))
    except Exception as error:  # whatever a decoder or a store makes of a bad file
        if strict and isinstance(error, ReadError):
            return ConfigError(str(error))
        if isinstance(error, OSError) and _is_ours(error, root):
            return error
        if strict and isinstance(error, OSError):
            return ConfigError(
                f"{path} (source {source}) cannot be read: {error.strerror or error}; mend it, "
                "take it out of `files`, or let some fail with `max_bad_files`"
            )
        if strict:
            raise
        return Cut(failed=f"{type(error).__name__}: {error}")


def _is_ours(error: OSError, root: Path) -> bool:
    """Is it the corpus that cannot be written, and not an input file that cannot be read?"""
    return error.errno in disk.OURS or Path(str(error.filename or "")).is_relative_to(root)
