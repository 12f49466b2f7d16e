"""The documents that the sources of a mixture select, held against each other.

Sources that a later phase is the first to read take what is left beside the earlier ones that it
reads too; beside one that it reads no more they may take the same documents again.

`candidates` asks the corpora, `copies` decides which copy of a text stays.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from mixtures import answers, repeats
from mixtures.candidates import Candidates, candidates, forgotten_hashes, heldout_hashes
from mixtures.copies import (
    first_of_each,
    hashes_of,
    preferred_order,
    without_contained,
    without_near,
)
from mixtures.indexed import copies_of_indexed, indexes_of, near_indexed
from mixtures.phases import Generation
from mixtures.semantic import without_semantic
from mixtures.spec import Mixture
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.copy_index import Index
from pipeline.linked import linked
from pipeline.linked_contained import linked_contained


@dataclass(frozen=True)
class Overlap:
    """What two sources both select; it goes to the first of the mixture that does."""

    sources: tuple[str, str]
    documents: int
    num_bytes: int


@dataclass(frozen=True)
class Walk:
    """The documents of sources that begin together, walked in `prefer` order: columns of equal
    length."""

    sources: tuple[int, ...]  # numbers of those that get documents here
    # Of `Candidates`, of all corpora: what these select, and what the earlier ones beside them kept
    rows: pa.Table
    owner: np.ndarray  # int64: number of the source that has the document
    order: np.ndarray  # int64: row numbers, the most preferred first
    indexed: np.ndarray  # bool: it is a copy of a document in an index of `not_in`
    first: np.ndarray  # bool: it is not, and the first of its copies
    distinct: np.ndarray  # bool: ... and no near duplicate of one that stays
    kept: np.ndarray  # bool: ... and what one that stays neither holds nor means
    found: tuple[Candidates, ...]  # of each corpus
    overlap: int  # documents that several sources select
    overlaps: tuple[Overlap, ...]  # of each two of them
    going: dict[str, dict[str, repeats.Going]]  # corpus, edits -> places that become edits
    before: frozenset[str]  # corpora of which that was asked before documents were forgotten

    def keep_answer(self, folder: Path, root: Path, corpus: str) -> None:
        """Beside windows that are packed: which places of this corpus went."""
        if self.going[corpus] and corpus not in self.before:
            kept = kept_of(self.rows.filter(pa.array(self.kept)), corpus)
            answers.keep(folder, root, kept, self.going[corpus])


def walks(mixture: Mixture, roots: dict[str, Path]) -> list[Walk]:
    """Which documents the sources of a mixture get, and which copies of them stay: a walk for all
    sources, or with phases one for each phase that begins to read some.

    Raises:
        ConfigError: a predicate is NULL for some document, or two sources select one document.
    """
    excluded = heldout_hashes([Path(root) for root in mixture.corpora.values()])
    forgotten = forgotten_hashes([Path(root) for root in mixture.corpora.values()])
    found = tuple(candidates(mixture, name, excluded, forgotten) for name in roots)
    rows = pa.concat_tables([f.rows for f in found], promote_options="permissive").combine_chunks()
    claims = _claims(mixture, rows)
    walked: list[Walk] = []
    for generation in mixture.generations():
        overlaps = _overlap(mixture, claims, generation, rows)
        here = np.asarray(claims[[*generation.beside, *generation.new]].any(axis=0))
        some = rows if here.all() else rows.filter(pa.array(here))
        of_some = claims[:, here]
        walk = _walk(mixture, roots, found, some, of_some, generation, overlaps, forgotten)
        walked.append(walk)
        kept = np.zeros(len(here), bool)
        kept[here] = walk.kept  # what they left out is not there for later ones
        claims[list(generation.new)] &= kept
    return walked


def source_walks(walked: Iterable[Walk]) -> dict[int, Walk]:
    """The walk of each source, by its number."""
    return {at: walk for walk in walked for at in walk.sources}


def _walk(
    mixture: Mixture,
    roots: dict[str, Path],
    found: tuple[Candidates, ...],
    rows: pa.Table,
    claims: np.ndarray,
    generation: Generation,
    overlaps: tuple[int, tuple[Overlap, ...]],
    forgotten: pa.Array,
) -> Walk:
    sources = np.array([*generation.beside, *generation.new])
    place = claims[sources].argmax(axis=0) if rows.num_rows else np.zeros(0, np.int64)
    owner = sources[place]
    order = preferred_order(rows, mixture.prefer)
    later = place >= len(generation.beside)
    order = order[np.argsort(later[order], kind="stable")]
    indexes = indexes_of(mixture)
    indexed = copies_of_indexed(rows, mixture.unique, indexes)
    first = first_of_each(rows["copy"], order) & ~indexed
    kept = distinct = first
    if mixture.unique in ("near", "contained", "semantic"):
        pairs = pairs_of(roots, indexes)
        if indexes:
            indexed |= near_indexed(pairs, rows["content_hash"], first, indexes)
            first = first & ~indexed
        kept = distinct = without_near(pairs, rows["content_hash"], first, order)
    if mixture.unique == "contained":
        kept = without_contained(contained_of(roots), rows["content_hash"], distinct, order)
    if mixture.unique == "semantic":
        kept = without_semantic(mixture, roots, rows, distinct, order)
    going, before = _going(mixture, roots, rows.filter(pa.array(kept)), forgotten)
    copies = (indexed, first, distinct, kept)
    return Walk(generation.new, rows, owner, order, *copies, found, *overlaps, going, before)


def _going(
    mixture: Mixture, roots: dict[str, Path], kept: pa.Table, forgotten: pa.Array
) -> tuple[dict[str, dict[str, repeats.Going]], frozenset[str]]:
    """Asked of all sources together, unless it was answered before documents were forgotten."""
    tables = {name: repeats.TABLES[name] for name in mixture.edits if name in repeats.TABLES}
    if not tables:
        return {name: {} for name in roots}, frozenset()
    gone, found = hashes_of(forgotten), {}
    before: dict[str, dict[str, repeats.Going]] = {}
    for name, root in roots.items():
        mine = kept_of(kept, name)
        if len(gone) and (given := answers.given(root, list(tables), mine, gone)):
            before[name] = given
            continue
        found[name] = {
            edits: repeats.rows_that_go(root, table, mine["id"], mine["content_hash"])
            for edits, table in tables.items()
        }
    return found | before, frozenset(before)


def kept_of(kept: pa.Table, corpus: str) -> pa.RecordBatch:
    """Id and content_hash, as bytes, of the documents of a corpus that a mixture keeps."""
    mine = kept.filter(pc.equal(kept["corpus"], corpus))
    return pa.record_batch({name: hashes_of(mine[name]) for name in ("id", "content_hash")})


def pairs_of(roots: dict[str, Path], indexes: Sequence[Index]) -> Path:
    """The folder with the verified pairs of all these corpora, and with what is indexed."""
    corpora = list(roots.values())
    return linked(corpora, indexes) if len(corpora) > 1 or indexes else corpora[0]


def contained_of(roots: dict[str, Path]) -> Path:
    """The folder that says which documents of all these corpora hold which."""
    corpora = list(roots.values())
    return linked_contained(corpora) if len(corpora) > 1 else corpora[0]


def _claims(mixture: Mixture, rows: pa.Table) -> np.ndarray:
    """Which sources select which rows: bool [num_sources, num_rows]."""
    columns = [rows[f"where_{at}"].fill_null(False) for at in range(len(mixture.sources))]
    return np.stack([np.asarray(column) for column in columns])


def _overlap(
    mixture: Mixture, claims: np.ndarray, generation: Generation, rows: pa.Table
) -> tuple[int, tuple[Overlap, ...]]:
    """The documents that two of the sources want which are read together."""
    names, together = list(mixture.sources), sorted((*generation.new, *generation.beside))
    new = claims[list(generation.new)].sum(axis=0)
    beside = claims[list(generation.beside)].any(axis=0)
    (twice,) = np.nonzero((new > 0) & (new + beside > 1))
    if len(twice) and mixture.overlap == "error":
        claiming = [names[at] for at in together if claims[at, twice[0]]]
        raise ConfigError(
            f"{counted(len(twice), 'document')} selected by more than one source, for instance "
            f"{rows['id'][int(twice[0])].as_py()} by {' and '.join(claiming)}; make their `where` "
            "exclude each other, or give them to the first with `overlap: first`"
        )
    shared, sizes = claims[:, twice], np.asarray(rows["num_bytes"])[twice]
    found = []
    for one, other in itertools.combinations(together, 2):
        both = shared[one] & shared[other]
        if both.any():
            pair = names[one], names[other]
            found.append(Overlap(pair, int(both.sum()), int(sizes[both].sum())))
    return len(twice), tuple(found)
