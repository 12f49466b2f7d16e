"""Editor `privacy`: what tells who somebody is, or opens a door.

Replacements are plain words in square brackets, one for each kind and the same everywhere: they
depend on no order and no shard, no rule finds them again, they are nobody's (for a Chinese mobile
number none is set aside for documentation), and they are no control token of any tokenizer.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

import pyarrow as pa

from filters.edits import Edits, edits_of
from filters.segments import Texts

REPLACEMENTS = {"email": "[EMAIL]"}

# Bytes, so that a Han character next to it is a border.
_EMAIL = re.compile(
    rb"(?<![A-Za-z0-9.!#$%&'*+/=?^_`{|}~-])[A-Za-z0-9][A-Za-z0-9.!#$%&'*+/=?^_`{|}~-]{0,63}"
    rb"@(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}[A-Za-z]{2,24}(?![A-Za-z0-9-])"
)


def find(texts: Texts, columns: Mapping[str, pa.Array]) -> Edits:
    """What would be replaced; see filters/editors.py."""
    del columns
    data, offsets = texts.data.tobytes(), texts.offsets.tolist()
    return edits_of(
        (row, match.start() - offsets[row], match.end() - offsets[row], "email", "[EMAIL]")
        for row in range(len(texts))
        for match in _EMAIL.finditer(data, offsets[row], offsets[row + 1])
    )
