"""SQL to rows: which documents each source of a mixture gets.

`candidates` asks the corpora, `copies` decides which copy of a text stays; here the sources are
held against each other, and every document that goes is counted with its reason.
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

from mixtures.candidates import Unclaimed, candidates, forgotten_hashes, heldout_hashes
from mixtures.copies import first_of_each, preferred_order, without_near
from mixtures.edited import Changes, apply
from mixtures.packing import Documents
from mixtures.rehydration import times
from mixtures.spec import Mixture, Source
from mixtures.tokens import TokenShards, tokenizer_of
from pipeline import finished
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.corpus import part_paths
from pipeline.files import part_number
from pipeline.linked import linked


@dataclass(frozen=True)
class SourceCounts:
    """What became of the documents that the `where` of a source selects."""

    name: str
    claimed: int  # held-out text, and what an earlier source took, are not among them
    copies: int  # removed as copies of one content or address
    near: int  # removed as near duplicates
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
    roots = used_corpora(mixture)
    states = {root: finished.begin(root) for root in roots.values()}
    with contextlib.ExitStack() as stack:
        for root, state in states.items():
            stack.enter_context(finished.unchanged(root, state))
        return _select(mixture, roots, states)


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


def _select(
    mixture: Mixture, roots: dict[str, Path], states: dict[Path, finished.State]
) -> Selection:
    tokenizer = tokenizer_of(list(roots.values()))
    excluded = heldout_hashes([Path(root) for root in mixture.corpora.values()])
    forgotten = forgotten_hashes([Path(root) for root in mixture.corpora.values()])
    found = [candidates(mixture, name, excluded, forgotten) for name in roots]
    rows = pa.concat_tables([f.rows for f in found], promote_options="permissive").combine_chunks()
    claims = _claims(mixture, rows)
    overlap = _overlap(mixture, claims, rows)
    owner = claims.argmax(axis=0) if rows.num_rows else np.zeros(0, np.int64)

    order = preferred_order(rows, mixture.prefer)
    kept = first = first_of_each(rows["copy"], order)
    if mixture.unique == "near":
        corpora = list(roots.values())
        pairs = linked(corpora) if len(corpora) > 1 else corpora[0]
        kept = without_near(pairs, rows["content_hash"], first, order)

    documents, counts = {}, []
    for at, (name, source) in enumerate(mixture.sources.items()):
        mine = owner == at
        chosen = locate(roots[source.corpus], tokenizer, rows.filter(pa.array(mine & kept)))
        if not len(chosen):
            selected = int(mine.sum())
            which = f"{selected} of corpus {source.corpus!r}, all copies of others"
            raise ConfigError(
                f"source {name!r} has no document left: `where: {source.where}` selects "
                f"{which if selected else f'none of corpus {source.corpus!r}'}; try the "
                f'predicate with `assay sql {roots[source.corpus]} "select count(*) from documents '
                'where ..."`'
            )
        chosen, changes = apply(roots[source.corpus], tokenizer, mixture.edits, chosen)
        if not len(chosen):
            raise ConfigError(
                f"source {name!r} has no document left: its edits ({', '.join(mixture.edits)}) "
                f"leave nothing of all {changes.emptied}; name fewer edits, or widen its `where`"
            )
        distinct = len(chosen)
        if source.repeats is not None:
            chosen = chosen.take(np.repeat(np.arange(distinct), _times(source, chosen, rows)))
        documents[name] = chosen
        counts.append(
            SourceCounts(
                name=name,
                claimed=int(mine.sum()),
                copies=int((mine & ~first).sum()),
                near=int((mine & first & ~kept).sum()),
                documents=distinct,
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
        heldout=sum(f.heldout for f in found),
        overlap=overlap,
        unclaimed=tuple(row for f in found for row in f.unclaimed),
        states=states,
    )


def _times(source: Source, chosen: Documents, rows: pa.Table) -> np.ndarray:
    """How often each document of a source stands."""
    assert source.repeats is not None
    rows = rows.filter(pc.equal(rows["corpus"], source.corpus))
    ids = np.frombuffer(bytes.fromhex("".join(rows["id"].to_pylist())), "S16")
    order = np.argsort(ids, kind="stable")
    places = order[np.searchsorted(ids[order], chosen.id.view("S16"))]
    return times(source.repeats, np.asarray(rows["cluster_size"])[places])


def _claims(mixture: Mixture, rows: pa.Table) -> np.ndarray:
    """Which sources select which rows: bool [num_sources, num_rows]."""
    columns = [rows[f"where_{at}"].fill_null(False) for at in range(len(mixture.sources))]
    return np.stack([np.asarray(column) for column in columns])


def _overlap(mixture: Mixture, claims: np.ndarray, rows: pa.Table) -> int:
    (twice,) = np.nonzero(claims.sum(axis=0) > 1)
    if len(twice) and mixture.overlap == "error":
        names = [
            name for name, claim in zip(mixture.sources, claims[:, twice[0]], strict=True) if claim
        ]
        raise ConfigError(
            f"{counted(len(twice), 'document')} selected by more than one source, for instance "
            f"{rows['id'][int(twice[0])].as_py()} by {' and '.join(names)}; make their `where` "
            "exclude each other, or give them to the first with `overlap: first`"
        )
    return len(twice)


def locate(root: Path, tokenizer: str, rows: pa.Table) -> Documents:
    """Where documents stand in the shards of their corpus, ordered by id.

    Raises:
        ConfigError: an id is that of two documents.
    """
    ids = np.frombuffer(bytes.fromhex("".join(rows["id"].to_pylist())), "S16")
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
        stored = _hashes(pq.read_table(path, columns=["id"])["id"])
        at = np.minimum(np.searchsorted(ids, stored), len(ids) - 1)
        (hits,) = np.nonzero(ids[at] == stored) if len(ids) else (np.zeros(0, np.int64),)
        part[at[hits]], row[at[hits]] = number, hits
        num_tokens[at[hits]] = shards.lengths(number)[hits]
    assert (part >= 0).all(), f"{root}: the documents view has ids that no part has"
    contents = np.frombuffer(bytes.fromhex("".join(rows["content_hash"].to_pylist())), "V16")
    return Documents(
        id=ids.view("V16"),
        content_hash=contents[order],
        part=part,
        row=row,
        num_tokens=num_tokens,
        num_bytes=np.asarray(rows["num_bytes"])[order],
        edits=np.zeros(len(ids), "V16"),
    )


def _hashes(column: pa.ChunkedArray) -> np.ndarray:
    """A column of schema.HASH as S16, without a copy where it is one chunk."""
    values = column.combine_chunks()
    raw = np.frombuffer(values.buffers()[1], "S16")
    return raw[values.offset : values.offset + len(values)]
