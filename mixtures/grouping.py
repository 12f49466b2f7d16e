"""Documents that are packed as one: the files of a repository, the chapters of a book, the posts of
a thread, by any expression over the columns of a document.

A group is what is there of it: a member that a `where`, `unique` or held-out sets leave out is not
there, and the others close up. Groups are of one source; one value in two sources is two groups.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import xxhash

from mixtures.dealing import Documents, is_set


def grouped(
    documents: Documents, values: pa.ChunkedArray, order: pa.ChunkedArray | None
) -> Documents:
    """The documents of a source with their groups.

    Args:
        values: text, what the group of each document is called; null: it is alone.
        order: anything that can be sorted, null last; of equal ones, and with None, members stand
            as in the corpus.
    """
    coded = values.combine_chunks().dictionary_encode()
    names = [xxhash.xxh3_128_digest(name.encode()) for name in coded.dictionary.to_pylist()]
    known = np.frombuffer(b"".join([*names, bytes(16)]), "V16")  # the last: of none
    group = known[np.asarray(coded.indices.fill_null(len(names)))]
    first = np.zeros(len(documents), np.int64)
    if order is not None:
        ranks = pc.rank(order.combine_chunks(), tiebreaker="dense")
        first = np.asarray(ranks).astype(np.int64)
    names_of = group.view("S16")  # V16 does not compare
    in_order = np.lexsort((documents.row, documents.part, first, names_of))
    rank = np.empty(len(documents), np.int64)
    rank[in_order] = np.arange(len(documents))
    # within the group: a number among all documents would depend on how the corpus was sharded
    rank -= np.searchsorted(names_of[in_order], names_of)
    rank[~is_set(group)] = 0
    return replace(documents, group=group, rank=rank)
