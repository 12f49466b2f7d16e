"""SQL to rows: which documents each source of a mixture gets.

`walk` says which documents stay; here they are found in the shards of their corpora, their edits
made, and every document that goes is counted with its reason.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from mixtures.candidates import Unclaimed
from mixtures.copies import hashes_of
from mixtures.edited import Changes, apply
from mixtures.packing import Documents
from mixtures.rehydration import times
from mixtures.sources import Source
from mixtures.spec import Mixture
from mixtures.tokens import TokenShards, tokenizer_of
from mixtures.walk import Walk, walk
from pipeline import finished
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.corpus import part_paths
from pipeline.files import part_number
from pipeline.tables import names_of


@dataclass(frozen=True)
class SourceCounts:
    """What became of the documents that the `where` of a source selects."""

    name: str
    claimed: int  # held-out text, and what an earlier source took, are not among them
    indexed: int  # removed as copies of documents in an index of `not_in`
    copies: int  # removed as copies of one content or address
    near: int  # removed as near duplicates
    semantic: int  # removed for what they mean
    contained: int  # removed because a longer document that stays holds them
    documents: int  # these stay, ...
    times: int  # ... and stand so many times: see rehydration.py
    num_tokens: int
    num_bytes: int
    changes: Changes  # by edits; what these leave empty does not stay


@dataclass(frozen=True)
class Selection:
    """The rows of a mixture."""

    tokenizer: str  # hash
    documents: dict[str, Documents]  # source -> its documents, by id; of a repeated one several
    counts: tuple[SourceCounts, ...]
    heldout: int  # documents that some `where` selects and that are held out
    overlap: int  # documents that several sources select; the first has them
    unclaimed: tuple[Unclaimed, ...]  # documents that no source wants
    states: dict[Path, finished.State]  # of the corpora: where documents stand holds in these

    def counted(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return {
            "sources": [asdict(count) for count in self.counts],
            "heldout": self.heldout,
            "overlap": self.overlap,
            "unclaimed": [asdict(row) for row in self.unclaimed],
        }


def select(mixture: Mixture) -> Selection:
    """Choose the documents of every source of a mixture, as `load_mixture` gives it.

    Raises:
        ConfigError: a predicate is NULL for some document, two sources select one document, or a
            source selects nothing.
        ChangedError: a corpus changed meanwhile.
        CorpusError: a file of one is damaged.
    """
    try:
        roots = used_corpora(mixture)
        states = {root: finished.begin(root) for root in roots.values()}
        with contextlib.ExitStack() as stack:
            for root, state in states.items():
                stack.enter_context(finished.unchanged(root, state))
            return _select(mixture, roots, states)
    except ConfigError as error:
        raise ConfigError(mixture.told(error)) from None


def used_corpora(mixture: Mixture) -> dict[str, Path]:
    """The corpora that sources read, in order of names.

    Raises:
        ConfigError: two are one folder.
    """
    names = sorted({source.corpus for source in mixture.sources.values()})
    known: dict[Path, str] = {}
    for name in names:
        other = known.setdefault(Path(mixture.corpora[name]).resolve(), name)
        if other != name:
            raise ConfigError(
                f"corpora {other!r} and {name!r} are one folder, {mixture.corpora[name]}; name it "
                "once: several sources may read it"
            )
    return {name: Path(mixture.corpora[name]) for name in names}


def left(
    mixture: Mixture, name: str, walked: Walk, root: Path, tokenizer: str
) -> tuple[Documents, Changes]:
    """The documents of a source that stay, as its edits leave them, each once.

    Raises:
        ConfigError: none stays.
    """
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


def _select(
    mixture: Mixture, roots: dict[str, Path], states: dict[Path, finished.State]
) -> Selection:
    tokenizer = tokenizer_of(list(roots.values()))
    walked = walk(mixture, roots)
    documents, counts = {}, []
    for at, (name, source) in enumerate(mixture.sources.items()):
        mine = walked.owner == at
        chosen, changes = left(mixture, name, walked, roots[source.corpus], tokenizer)
        num_left, last = len(chosen), int((mine & walked.distinct & ~walked.kept).sum())
        if source.repeats is not None:
            repeated = _times(source, chosen, walked.rows)
            chosen = chosen.take(np.repeat(np.arange(num_left), repeated))
        documents[name] = chosen
        counts.append(
            SourceCounts(
                name=name,
                claimed=int(mine.sum()),
                indexed=int((mine & walked.indexed).sum()),
                copies=int((mine & ~walked.first & ~walked.indexed).sum()),
                near=int((mine & walked.first & ~walked.distinct).sum()),
                semantic=last if mixture.unique == "semantic" else 0,
                contained=last if mixture.unique == "contained" else 0,
                documents=num_left,
                times=len(chosen),
                num_tokens=int(chosen.num_tokens.sum()),
                num_bytes=int(chosen.num_bytes.sum()),
                changes=changes,
            )
        )
    return Selection(
        tokenizer=tokenizer,
        documents=documents,
        counts=tuple(counts),
        heldout=sum(f.heldout for f in walked.found),
        overlap=walked.overlap,
        unclaimed=tuple(row for f in walked.found for row in f.unclaimed),
        states=states,
    )


def _times(source: Source, chosen: Documents, rows: pa.Table) -> np.ndarray:
    """How often each document of a source stands."""
    assert source.repeats is not None
    rows = rows.filter(pc.equal(rows["corpus"], source.corpus))
    ids = names_of(hashes_of(rows["id"]))
    order = np.argsort(ids, kind="stable")
    places = order[np.searchsorted(ids[order], chosen.id.view("S16"))]
    return times(source.repeats, np.asarray(rows["cluster_size"])[places])


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
