"""The documents of a selection, and how they are dealt into parts.

They are ordered by hash(seed, id), and a part is a range of that order. So they are shuffled before
packing, a prefix is a fair sample, a smaller selection lies within a larger one in the same order,
and nothing depends on how the corpus was sharded.

Members of a group have the hash of their group, and stand together, in their order: the group is
dealt as one document. What `unique` or a `where` took out of it is simply not there.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import xxhash

from mixtures.packed import Packing

# Version of the rules of packing: part of the hash, so a change packs anew. 2: only of token
# shards whose bytes are those that were written; what was packed before may hold damage.
POLICY = 2


@dataclass(frozen=True)
class Documents:
    """The selected documents of one source: columns of equal length, ordered by id. One that is
    repeated stands several times."""

    id: np.ndarray  # V16
    content_hash: np.ndarray  # V16
    part: np.ndarray  # int64: shard of the corpus
    row: np.ndarray  # int64: row in that shard
    num_tokens: np.ndarray  # int64
    num_bytes: np.ndarray  # int64
    edits: np.ndarray  # V16: of content and edits where edits are made, else zeros: see edited.py
    group: np.ndarray | None = None  # V16: hash of what its group is called; zeros: alone
    # int64: place in its group, which no two members share; 0: alone, as anything that says where a
    # document stands in the corpus would be part of the hash
    rank: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.id)

    @property
    def is_edited(self) -> np.ndarray:
        """bool: of which the edited text counts."""
        return is_set(self.edits)

    def take(self, index: np.ndarray) -> Documents:
        columns: dict[str, Any] = {
            name: None if column is None else column[index] for name, column in vars(self).items()
        }
        return Documents(**columns)


def is_set(names: np.ndarray) -> np.ndarray:
    """bool: which V16 are not all zeros."""
    return np.asarray(names.view(np.uint64).reshape(-1, 2).any(axis=1))


def selection_hash(documents: Documents, packing: Packing) -> str:
    """32 hex digits over the selected documents and all that decides their windows.

    The predicate is not part of it: two predicates that select the same documents share a folder.
    The content hash is, because an id names a place in a file, whose text may have changed.
    """
    return _hash(documents, (POLICY, _known(packing)))


def order_hash(documents: Documents, packing: Packing) -> str:
    """32 hex digits over what the windows hold: that of selection_hash without the versions of the
    code that made them. The order of windows follows from it (order.py), so that code which changes
    no token changes no order."""
    known = _known(packing)
    del known["tokens"]
    return _hash(documents, ("order", known))


def _known(packing: Packing) -> dict[str, Any]:
    known = asdict(packing)
    if packing.policy == "concat":
        del known["policy"]  # what was packed before there were others keeps its name
    return known


def _hash(documents: Documents, how: object) -> str:
    digest = xxhash.xxh3_128(repr(how).encode())
    digest.update(documents.id.tobytes())
    digest.update(documents.content_hash.tobytes())
    if documents.is_edited.any():
        digest.update(documents.edits.tobytes())
    if documents.group is not None and documents.rank is not None:
        digest.update(b"groups")
        digest.update(documents.group.tobytes())
        # the order of ranks, not ranks: it stays when a member goes
        order = np.lexsort((documents.rank, documents.group.view("S16")))
        digest.update(documents.id[order].tobytes())
    return str(digest.hexdigest())


def deal(documents: Documents, packing: Packing) -> list[Documents]:
    """The documents of each part, in packing order.

    The number of parts follows from the number of tokens; at most about `part_tokens` a part.
    """
    digest, seed = xxhash.xxh3_64_intdigest, packing.seed
    names = documents.id
    if documents.group is not None:
        names = np.where(is_set(documents.group), documents.group, documents.id)
    ids, turns = names.tobytes(), _turns(documents.id).tolist()
    key = np.fromiter(
        (
            digest(ids[16 * at : 16 * at + 16] + (b"%d" % turn if turn else b""), seed)
            for at, turn in enumerate(turns)
        ),
        dtype=np.uint64,
        count=len(documents),
    )
    # ties of two names, at 2**-64 a pair, stay in the order of ids
    rank = np.zeros(len(key), np.int64) if documents.rank is None else documents.rank
    order = np.lexsort((rank, key))
    num_parts = max(1, -(-int(documents.num_tokens.sum()) // packing.part_tokens))
    borders = [(part << 64) // num_parts for part in range(1, num_parts)]
    cuts = np.searchsorted(key[order], np.array(borders, dtype=np.uint64))
    return [documents.take(index) for index in np.split(order, cuts)]


def _turns(ids: np.ndarray) -> np.ndarray:
    """Of each of the ordered `ids` how often it stood before."""
    names = ids.view("S16")  # V16 does not compare
    is_new = np.append(True, names[1:] != names[:-1])[: len(names)]
    firsts = np.flatnonzero(is_new)
    return np.arange(len(names)) - np.repeat(firsts, np.diff(np.append(firsts, len(names))))


def units(part: Documents) -> np.ndarray:
    """How many documents each unit of a dealt part has, int64: one, or the members of a group."""
    if part.group is None or part.rank is None or not len(part):
        return np.ones(len(part), np.int64)
    names, rank = part.group.view("S16"), part.rank
    # a repeated group begins again: its ranks rise within each turn
    goes_on = (names[1:] == names[:-1]) & is_set(part.group)[1:] & (rank[1:] > rank[:-1])
    firsts = np.flatnonzero(np.append(True, ~goes_on))
    return np.diff(np.append(firsts, len(part)))
