"""What an index of documents that were had is made of: the whole of a corpus, or what a mixture
selects.

Of a corpus near copies are told by the contents that stay when the whole of it is selected (`kept`
in SQL), exact ones and those by address or words by all of them; held-out text is in neither, for
new corpora keep the sets (`heldout: {keep: ...}`). Of a mixture it is the documents that it gives.
"""

from __future__ import annotations

import contextlib
from pathlib import Path

import numpy as np
import pyarrow.compute as pc

from mixtures.candidates import TIMEOUT_SECONDS
from mixtures.copies import hashes_of
from mixtures.select import select, used_corpora
from mixtures.spec import Mixture, load_mixture
from pipeline import finished
from pipeline.copy_index import Index
from pipeline.copy_index_writing import Chosen, write
from pipeline.sql import ask
from pipeline.tables import names_of

ASKED = "select id, content_hash, near_duplicate from documents where not heldout"


def index(what: str, place: str, add: bool = False) -> Index:
    """Write an index of a corpus (folder or URL) or of a mixture.yaml; see `write`."""
    if what.endswith((".yaml", ".yml")):
        return _of_mixture(load_mixture(what), place, add)
    with finished.reading(what) as root:
        return write(place, [_whole(root)], add)


def _of_mixture(mixture: Mixture, place: str, add: bool) -> Index:
    selection = select(mixture)
    roots = used_corpora(mixture)
    with contextlib.ExitStack() as stack:
        for root, state in selection.states.items():
            stack.enter_context(finished.unchanged(root, state))
        chosen = []
        for name, root in roots.items():
            mine = [s for s, source in mixture.sources.items() if source.corpus == name]
            some = [selection.documents[source] for source in mine]
            ids = np.concatenate([documents.id for documents in some])
            contents = np.concatenate([documents.content_hash for documents in some])
            chosen.append(Chosen(root, np.unique(ids.view("S16")), np.unique(contents.view("S16"))))
        return write(place, chosen, add)


def _whole(root: Path) -> Chosen:
    ids, contents = [np.empty(0, "S16")], [np.empty(0, "S16")]
    with ask(root, ASKED, macros={}, timeout_seconds=TIMEOUT_SECONDS) as batches:
        for batch in batches:
            ids.append(names_of(hashes_of(batch["id"])))
            kept = batch["content_hash"].filter(pc.invert(batch["near_duplicate"]))
            contents.append(names_of(hashes_of(kept)))
    return Chosen(root, np.unique(np.concatenate(ids)), np.unique(np.concatenate(contents)))
