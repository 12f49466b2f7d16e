"""SQL to rows: which documents each source of a mixture gets.

`walk` says which documents stay; here they are found in the shards of their corpora, their edits
made, and every document that goes is counted with its reason.
"""

from __future__ import annotations

import contextlib
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from mixtures.candidates import Unclaimed
from mixtures.caps import Capped
from mixtures.dealing import Documents
from mixtures.edited import Changes
from mixtures.spec import Mixture
from mixtures.staying import stay
from mixtures.tokens import tokenizer_of
from mixtures.walk import Overlap, Walk, source_walks, walks
from pipeline import finished
from pipeline.config import ConfigError


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
    unique_tokens: int  # of the documents that stay, each once
    capped: Capped  # what `cap` left out, after all else


@dataclass(frozen=True)
class Selection:
    """The rows of a mixture."""

    tokenizer: str  # hash
    documents: dict[str, Documents]  # source -> its documents, by id; of a repeated one several
    counts: tuple[SourceCounts, ...]
    heldout: int  # documents that some `where` selects and that are held out
    overlap: int  # documents that several sources select; the first has them
    overlaps: tuple[Overlap, ...]  # of each two sources
    unclaimed: tuple[Unclaimed, ...]  # documents that no source wants
    states: dict[Path, finished.State]  # of the corpora: where documents stand holds in these
    walked: dict[str, Walk]  # of each source

    def counted(self) -> dict[str, Any]:
        """All counts, for JSON."""
        return {
            "sources": [asdict(count) for count in self.counts],
            "heldout": self.heldout,
            "overlap": self.overlap,
            "overlaps": [asdict(row) for row in self.overlaps],
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


def _select(
    mixture: Mixture, roots: dict[str, Path], states: dict[Path, finished.State]
) -> Selection:
    tokenizer = tokenizer_of(list(roots.values()), mixture.tokenizer)
    all_walked = walks(mixture, roots)
    walk_of = source_walks(all_walked)
    documents, counts = {}, []
    for at, (name, source) in enumerate(mixture.sources.items()):
        walked = walk_of[at]
        mine = walked.owner == at
        staying = stay(mixture, name, walked, roots[source.corpus], tokenizer)
        chosen = documents[name] = staying.standing()
        last = int((mine & walked.distinct & ~walked.kept).sum())
        counts.append(
            SourceCounts(
                name=name,
                claimed=int(mine.sum()),
                indexed=int((mine & walked.indexed).sum()),
                copies=int((mine & ~walked.first & ~walked.indexed).sum()),
                near=int((mine & walked.first & ~walked.distinct).sum()),
                semantic=last if mixture.unique == "semantic" else 0,
                contained=last if mixture.unique == "contained" else 0,
                documents=len(staying.documents),
                times=len(chosen),
                num_tokens=int(chosen.num_tokens.sum()),
                num_bytes=int(chosen.num_bytes.sum()),
                changes=staying.changes,
                unique_tokens=int(staying.documents.num_tokens.sum()),
                capped=staying.capped,
            )
        )
    return Selection(
        tokenizer=tokenizer,
        documents=documents,
        counts=tuple(counts),
        heldout=sum(f.heldout for f in all_walked[0].found),
        overlap=sum(walked.overlap for walked in all_walked),
        overlaps=tuple(found for walked in all_walked for found in walked.overlaps),
        unclaimed=tuple(row for f in all_walked[0].found for row in f.unclaimed),
        states=states,
        walked={name: walk_of[at] for at, name in enumerate(mixture.sources)},
    )
