"""Signal group `markup`: addresses, tags and data that stand in the text itself.

What Zyda and NeMo Curator count in a page. An address begins with http:// or https:// and goes on
to the first character that none may hold: white space, a quote, a bracket < or >, or anything
outside ASCII. So "见https://a.cn/b。然后" holds 14 characters of one; MAP-NEO's pattern for bare
names, which takes "node.js" out of "安装 node.js 后", is not followed.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa

from filters.columns import Signal
from filters.names import Offsets, Positions
from filters.segments import Texts
from kernels.compile import kernel
from kernels.hashing import Bytes

_COUNT = pa.int32()
_ZYDA = "Zyda filtering.py"
COLUMNS: dict[str, Signal] = {
    "num_urls": Signal(_COUNT, "phrases", "addresses that begin with http:// or https://", _ZYDA),
    "url_chars": Signal(
        _COUNT, "characters", "of these addresses", "NeMo Curator heuristic_filter.py"
    ),
    "num_www": Signal(_COUNT, "phrases", "times of www.", _ZYDA),
    "num_xml": Signal(_COUNT, "phrases", "times of xml", _ZYDA),
    "num_tags": Signal(_COUNT, "characters", "times of <", _ZYDA),
    "num_json_keys": Signal(_COUNT, "phrases", 'times of ":', _ZYDA),
}
_NO_ADDRESS = np.zeros(256, np.bool_)
_NO_ADDRESS[[*range(0x21), *b"\"'<>`", *range(0x7F, 0x100)]] = True
_FIRST = np.zeros(256, np.bool_)
_FIRST[[*b':wx<"']] = True


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; no other columns are read. See filters/signals.py."""
    counts = np.zeros((len(texts), len(COLUMNS)), np.int32)
    _measure(texts.data, texts.offsets, counts)
    return {name: counts[:, i].copy() for i, name in enumerate(COLUMNS)}


@kernel
def _measure(data: Bytes, offsets: Offsets, counts: Positions) -> None:
    for text in range(len(counts)):
        row = counts[text]
        begin, end = offsets[text], offsets[text + 1]
        at = begin
        while at < end:
            byte = data[at]
            if not _FIRST[byte]:
                at += 1
                continue
            if byte == 0x3C:
                row[4] += 1
            elif byte == 0x22:
                row[5] += at + 1 < end and data[at + 1] == 0x3A
            elif byte == 0x77:
                row[2] += _stands(data, at, end, 0x77, 0x77, 0x2E)
            elif byte == 0x78:
                row[3] += _stands(data, at, end, 0x6D, 0x6C, 0)
            elif _stands(data, at, end, 0x2F, 0x2F, 0):
                scheme = _scheme(data, begin, at)
                if scheme:
                    row[0] += 1
                    first = at
                    while at < end and not _NO_ADDRESS[data[at]]:
                        row[2] += data[at] == 0x77 and _stands(data, at, end, 0x77, 0x77, 0x2E)
                        row[3] += data[at] == 0x78 and _stands(data, at, end, 0x6D, 0x6C, 0)
                        at += 1
                    row[1] += scheme + at - first
                    continue
            at += 1


@kernel
def _stands(data: Bytes, at: int, end: int, second: int, third: int, fourth: int) -> bool:
    """Do these bytes follow the one at `at`? A fourth of 0 may be anything."""
    if at + 2 >= end or data[at + 1] != second or data[at + 2] != third:
        return False
    return fourth == 0 or (at + 3 < end and data[at + 3] == fourth)


@kernel
def _scheme(data: Bytes, begin: int, at: int) -> int:
    """How many bytes before `at` are http or https, in lower case; else 0."""
    last = at - 1
    length = 4
    if last >= begin and data[last] == 0x73:
        last -= 1
        length = 5
    if last - 3 < begin:
        return 0
    http = data[last] == 0x70 and data[last - 1] == 0x74
    return length if http and data[last - 2] == 0x74 and data[last - 3] == 0x68 else 0
