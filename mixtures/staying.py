"""Which documents of a source stay after a walk, as its edits leave them, and how often they stand.

In this order: edits, `repeats`, `cap`. So a cap counts tokens as a run will see them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.caps import NO_CAP, Capped, Cut, capped
from mixtures.copies import hashes_of
from mixtures.dealing import Documents
from mixtures.edited import Changes, apply
from mixtures.grouping import grouped
from mixtures.rehydration import dealt, times
from mixtures.sources import Source
from mixtures.spec import Mixture
from mixtures.tokens import TokenShards
from mixtures.walk import Walk
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.corpus import part_paths
from pipeline.files import part_number
from pipeline.tables import names_of


@dataclass(frozen=True)
class Staying:
    """The documents of a source, each once, ordered by id."""

    documents: Documents
    times: np.ndarray  # int64: how often each stands
    changes: Changes
    capped: Capped = NO_CAP
    cuts: tuple[Cut, ...] = ()  # of each value that lost documents
    cut_ids: frozenset[bytes] = frozenset()  # documents that would stand here without `cap`

    def standing(self) -> Documents:
        """Each as often as it stands."""
        return self.documents.take(np.repeat(np.arange(len(self.documents)), self.times))


def stay(mixture: Mixture, name: str, walked: Walk, root: Path, tokenizer: str) -> Staying:
    """What stays of a source.

    Raises:
        ConfigError: none does, or `repeats_by` cannot be used.
    """
    source = mixture.sources[name]
    documents, changes = _edited(mixture, name, walked, root, tokenizer)
    often = np.ones(len(documents), np.int64)
    asked = (source.repeats, source.repeats_by, source.cap, source.group)
    if all(key is None for key in asked):
        return Staying(documents, often, changes)
    places = _places(documents, source.corpus, walked.rows)
    if source.group is not None:
        at = list(mixture.sources).index(name)
        values = walked.rows[f"group_{at}"].take(places)
        order = walked.rows[f"group_order_{at}"].take(places) if source.group_order else None
        documents = grouped(documents, values, order)
    if source.repeats is not None:
        often = times(source.repeats, np.asarray(walked.rows["cluster_size"])[places])
    if source.repeats_by is not None:
        values = walked.rows[f"times_{list(mixture.sources).index(name)}"].take(places)
        often = _dealt(mixture, name, values, documents)
    if source.cap is None:
        return Staying(documents, often, changes)
    rank = np.empty(len(walked.order), np.int64)
    rank[walked.order] = np.arange(len(rank))
    values = walked.rows[f"cap_{list(mixture.sources).index(name)}"].take(places)
    keep, found, cuts = capped(source.cap, values, documents.num_tokens * often, rank[places])
    if not keep.any():
        raise ConfigError(_nothing(name, source, found))
    gone = frozenset(gone.tobytes() for gone in documents.id[~keep])
    return Staying(documents.take(keep), often[keep], changes, found, cuts, gone)


def _edited(
    mixture: Mixture, name: str, walked: Walk, root: Path, tokenizer: str
) -> tuple[Documents, Changes]:
    source = mixture.sources[name]
    mine = walked.owner == list(mixture.sources).index(name)
    chosen = locate(root, tokenizer, walked.rows.filter(pa.array(mine & walked.kept)))
    if not len(chosen):
        selected = int(mine.sum())
        others = "others, or of documents in `not_in`" if mixture.not_in else "others"
        which = f"{selected} of corpus {source.corpus!r}, all copies of {others}"
        raise ConfigError(
            f"source {name!r} has no document left: `where: {source.where}` selects "
            f"{which if selected else f'none of corpus {source.corpus!r}'}; try the "
            f'predicate with `assay sql {root} "select count(*) from documents where ..."`'
        )
    chosen, changes = apply(root, tokenizer, mixture.edits, chosen, walked.going[source.corpus])
    if not len(chosen):
        raise ConfigError(
            f"source {name!r} has no document left: its edits ({', '.join(mixture.edits)}) "
            f"leave nothing of all {changes.emptied}; name fewer edits, or widen its `where`"
        )
    return chosen, changes


def _places(documents: Documents, corpus: str, rows: pa.Table) -> np.ndarray:
    """Row numbers of the documents of a corpus among all that were walked."""
    (here,) = np.nonzero(np.asarray(pc.equal(rows["corpus"], corpus)))
    ids = names_of(hashes_of(rows["id"].take(here)))
    order = np.argsort(ids, kind="stable")
    found: np.ndarray = here[order[np.searchsorted(ids[order], documents.id.view("S16"))]]
    return found


def _dealt(
    mixture: Mixture, name: str, values: pa.ChunkedArray, documents: Documents
) -> np.ndarray:
    key = f"source {name!r}: `repeats_by: {mixture.sources[name].repeats_by}`"
    if values.null_count:
        raise ConfigError(
            f"{key} is NULL for {counted(values.null_count, 'document')} of {len(values):,}; say "
            "how often these stand, as in `coalesce(..., 1)`"
        )
    try:
        return dealt(np.asarray(values), documents.id, mixture.seed)
    except ValueError as error:
        raise ConfigError(f"{key} {error}") from None


def _nothing(name: str, source: Source, found: Capped) -> str:
    assert source.cap is not None
    said = f"source {name!r} has no document left: its cap by `{source.cap.by}` leaves nothing of "
    said += f"{found.documents:,}, of {counted(found.values, 'value')}; "
    share = source.cap.max_share
    if share is not None and share * found.values < 1:
        raised = f"raise `max_share` to more than {1 / found.values:.2g}, " * (found.values > 1)
        return said + (
            f"they cannot have at most {share:g} each of what stays, so {raised}cap by another "
            "column, or widen `where`"
        )
    return said + (
        f"none is as short as the {counted(found.limit or 0, 'token')} that a value may have, so "
        "raise the cap, or widen `where`"
    )


def locate(root: Path, tokenizer: str, rows: pa.Table) -> Documents:
    """Where documents stand in the shards of their corpus, ordered by id.

    Raises:
        ConfigError: an id is that of two documents.
    """
    ids = names_of(hashes_of(rows["id"]))
    order = np.argsort(ids, kind="stable")
    ids = ids[order]  # S16 compares as 16 bytes, and V16 does not compare at all
    twice = ids[1:][ids[1:] == ids[:-1]]
    if len(twice):
        raise ConfigError(
            f"{root}: {counted(len(twice), 'id')} of more than one document, for instance "
            f"{twice.tobytes()[:16].hex()}: in its dump of a wiki a page stands twice; give the "
            "second one as a file of its own, then `assay prepare --refresh`"
        )
    shards = TokenShards(root, tokenizer)
    part, row, num_tokens = (np.full(len(ids), -1, np.int64) for _ in range(3))
    for path in part_paths(root, "documents"):
        number = part_number(path)
        stored = names_of(pq.read_table(path, columns=["id"])["id"])
        at = np.minimum(np.searchsorted(ids, stored), len(ids) - 1)
        (hits,) = np.nonzero(ids[at] == stored) if len(ids) else (np.zeros(0, np.int64),)
        part[at[hits]], row[at[hits]] = number, hits
        num_tokens[at[hits]] = shards.lengths(number)[hits]
    assert (part >= 0).all(), f"{root}: the documents view has ids that no part has"
    contents = names_of(hashes_of(rows["content_hash"])).view("V16")
    return Documents(
        id=ids.view("V16"),
        content_hash=contents[order],
        part=part,
        row=row,
        num_tokens=num_tokens,
        num_bytes=np.asarray(rows["num_bytes"])[order],
        edits=np.zeros(len(ids), "V16"),
    )
