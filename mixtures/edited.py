"""Documents as the edits of a mixture leave them.

Only those selected documents that have an edit are tokenized again, from the edited text, by the
tokenizer of the corpus; all others keep the tokens of the corpus. What is made is kept (see
edited_tokens.py), named by content and edits, so that arms share it. Copies of a text are resolved
before, on the text as it came.

Edits of several rules are made together (`merged` in filters/edits.py): what one of them takes away
is gone, and where two overlap the rule that the mixture names first says what stands there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq
import xxhash

from filters.blank_lines import with_blank_lines
from filters.edits import Edits, applied, merged
from mixtures.dealing import Documents
from mixtures.edited_tokens import EditedTokens
from mixtures.repeats import TABLES, Going
from pipeline.commits import record_path
from pipeline.corpus import fetched
from pipeline.files import part_name
from pipeline.tables import names_of
from pipeline.whole import require_whole, vouched


@dataclass(frozen=True)
class Changes:
    """What edits did to the documents of a source: before = after + removed - added."""

    edited: int = 0  # documents that stay, with another text
    emptied: int = 0  # documents of which white space is left, or nothing: they are left out
    removed_bytes: int = 0  # of text; of a document that is left out all
    added_bytes: int = 0  # of what stands instead


NO_CHANGES = Changes()
NOTHING_GOES: Mapping[str, Going] = {}


def apply(
    root: Path,
    tokenizer: str,
    names: Sequence[str],
    documents: Documents,
    going: Mapping[str, Going] = NOTHING_GOES,
) -> tuple[Documents, Changes]:
    """The documents with their edits made: tokens and bytes counted anew, empty ones left out.

    Args:
        going: of edits that keep one of several places those that go, as `rows_that_go` says.

    Raises:
        CorpusError: documents or edits of the corpus are damaged.
    """
    if not names:
        return documents, NO_CHANGES
    shards = EditedTokens(root, tokenizer, names)
    keys, num_tokens = documents.edits.copy(), documents.num_tokens.copy()
    removed, added = np.zeros((2, len(documents)), np.int64)
    for part in np.unique(documents.part).tolist():
        (mine,) = np.nonzero(documents.part == part)
        edits = _edits(root, names, part, documents.take(mine), going)
        places, firsts = np.unique(edits.rows, return_index=True)
        if not len(places):
            continue
        at = mine[places]
        keys[at] = _keys(edits, firsts, documents.content_hash[at])

        def texts(
            which: np.ndarray, part: int = part, at: np.ndarray = at, edits: Edits = edits
        ) -> pa.Array:
            return _texts(root, part, documents.row[at[which]], _of(edits, which))

        num_tokens[at] = shards.made(part, keys[at], texts)
        removed[at] = np.add.reduceat(edits.ends - edits.starts, firsts)
        added[at] = np.add.reduceat(np.asarray(pc.binary_length(edits.replacements)), firsts)
    changed = replace(documents, num_tokens=num_tokens, edits=keys)
    emptied = changed.is_edited & (num_tokens == 0)
    removed[emptied], added[emptied] = documents.num_bytes[emptied], 0
    changed = replace(changed, num_bytes=documents.num_bytes - removed + added)
    return changed.take(~emptied), Changes(
        edited=int((changed.is_edited & ~emptied).sum()),
        emptied=int(emptied.sum()),
        removed_bytes=int(removed.sum()),
        added_bytes=int(added.sum()),
    )


def _edits(
    root: Path, names: Sequence[str], part: int, documents: Documents, going: Mapping[str, Going]
) -> Edits:
    """The edits of some documents of a part, merged; `rows` are those of `documents`, whose ids
    ascend."""
    wanted = documents.id.view("S16")  # S16 compares as 16 bytes
    several = []
    for name in names:
        if name in TABLES:
            table = _that_go(root, name, part, going[name])
        else:
            table = pq.read_table(_whole(root, f"edits/{name}", part, f"edits/{name}"))
        stored = names_of(table["id"])
        rows = np.minimum(np.searchsorted(wanted, stored), len(wanted) - 1)
        (hits,) = np.nonzero(wanted[rows] == stored)
        hits = hits[np.argsort(rows[hits], kind="stable")]
        table = table.take(pa.array(hits)).combine_chunks()
        for batch in table.to_batches():  # one, or none
            of, kinds = rows[hits], batch["kind"]
            starts, ends = (np.asarray(batch[column]) for column in ("start", "end"))
            if "before" in batch.schema.names:  # lines and paragraphs: schema.PLACES
                before, after = (np.asarray(batch[n]).astype(np.int64) for n in ("before", "after"))
                sizes = documents.num_bytes[of]
                starts, ends = with_blank_lines(of, starts, ends, before, after, sizes)
            several.append(Edits(of, starts, ends, kinds, batch["replacement"]))
    return merged(several)


def _that_go(root: Path, name: str, part: int, going: Going) -> pa.Table:
    """Places of repeated text that go, with the columns of schema.EDITS."""
    folder, stage, kind = TABLES[name]
    table = pq.read_table(_whole(root, folder, part, stage)).filter(pa.array(going[part]))
    for column, value in {"kind": kind, "replacement": ""}.items():
        table = table.append_column(column, pa.array([value] * len(table), pa.string()))
    return table


def _of(edits: Edits, which: np.ndarray) -> Edits:
    """The edits of the `which`-th documents that have any, with rows in that order."""
    number = np.cumsum(np.append(False, np.diff(edits.rows) != 0)[: len(edits)])
    (mine,) = np.nonzero(np.isin(number, which))
    kinds, texts = (column.take(pa.array(mine)) for column in (edits.kinds, edits.replacements))
    rows = np.searchsorted(which, number[mine])
    return Edits(rows, edits.starts[mine], edits.ends[mine], kinds, texts)


def _texts(root: Path, part: int, rows: np.ndarray, edits: Edits) -> pa.Array:
    """Edited texts of documents of a part; `edits` are of these."""
    path = _whole(root, "documents", part, "ingest")
    texts = pq.read_table(path, columns=["text"])["text"].take(pa.array(rows))
    return applied(texts.combine_chunks(), edits)


def _whole(root: Path, table: str, part: int, stage: str) -> Path:
    """A part of a table, once its bytes are those that its commit record names."""
    name = f"{table}/{part_name(part)}"
    path = fetched(root, name)
    require_whole(root, name, vouched([record_path(root, stage, part)]))
    return path


def _keys(edits: Edits, firsts: np.ndarray, contents: np.ndarray) -> np.ndarray:
    """Of each document with edits a hash of its content and its edits, V16."""
    replacements, keys = edits.replacements.to_pylist(), []
    lasts = np.append(firsts[1:], len(edits))
    for content, first, last in zip(contents, firsts, lasts, strict=True):
        digest = xxhash.xxh3_128(content.tobytes())
        digest.update(edits.starts[first:last].tobytes() + edits.ends[first:last].tobytes())
        digest.update("\0".join(replacements[first:last]).encode())
        keys.append(digest.digest())
    return np.frombuffer(b"".join(keys), "V16")
