"""Text as every later step sees it: one kind of line end, no characters that are not text.

Done once, before anything is hashed or measured, and counted. Only what carries no meaning goes;
full-width punctuation stays Chinese, compatibility characters stay what they are (NFKC would make
the author's １ a 1 and ① a 1), white space stays.

A line ends where `str.splitlines` ends it: a form feed or a separator (U+001C to U+001E) stands
between two words, and without it they would be one. So does U+001F, which stands between two fields
and becomes a space.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.columns import Signal
from kernels.compile import kernel

_COUNT = pa.int32()
_UNICODE = "Unicode 17, chapter 5.8 and table 23-1"

# In the order of the counts that `normalize` returns.
COLUMNS: Mapping[str, Signal] = {
    "num_crlf": Signal(_COUNT, "line ends", "CR LF, became LF", _UNICODE),
    "num_cr": Signal(_COUNT, "line ends", "lone CR, became LF", _UNICODE),
    "num_unicode_newlines": Signal(
        _COUNT, "line ends", "U+000B 000C 001C-001E 0085 2028 2029, became LF", _UNICODE
    ),
    "num_nul": Signal(_COUNT, "characters", "U+0000, removed", _UNICODE),
    "num_surrogates": Signal(_COUNT, "characters", "lone surrogates, became U+FFFD", _UNICODE),
    "num_bom": Signal(_COUNT, "characters", "U+FEFF anywhere, removed", _UNICODE),
    "num_control": Signal(
        _COUNT, "characters", "other C0 and C1 controls, removed; U+001F became a space", _UNICODE
    ),
}
NOTHING = (0,) * len(COLUMNS)

_LONE_SURROGATE = "[\ud800-\udfff]"  # once pairs have become characters
_SURROGATE_PAIR = "[\ud800-\udbff][\udc00-\udfff]"
# What is not text when line ends are LF, by the column that counts it.
_REMOVED = {
    "num_nul": "\0",
    "num_bom": "\ufeff",
    "num_control": "\x01-\x08\x0e-\x1b\x7f-\x84\x86-\x9f",
}
_NEWLINES = "\x0b\x0c\x1c-\x1e\x85\u2028\u2029"
_ODD = re.compile(f"[\r\x1f{_NEWLINES}\ud800-\udfff{''.join(_REMOVED.values())}]")


def normalize(text: str) -> tuple[str, tuple[int, ...]]:
    """The normalized text and how often each of `COLUMNS` was met; a second call changes nothing.

    Controls go first, so that a CR and an LF with a NUL between them are one line end.
    """
    if _ODD.search(text) is None:
        return text, NOTHING
    counts = dict.fromkeys(COLUMNS, 0)
    for name, chars in _REMOVED.items():
        text, counts[name] = re.subn(f"[{chars}]", "", text)
    counts["num_control"] += text.count("\x1f")
    text = text.replace("\x1f", " ")
    text = re.sub(_SURROGATE_PAIR, _pair_to_char, text)
    text, counts["num_surrogates"] = re.subn(_LONE_SURROGATE, "\ufffd", text)
    text, counts["num_crlf"] = re.subn("\r\n", "\n", text)
    text, counts["num_cr"] = re.subn("\r", "\n", text)
    text, counts["num_unicode_newlines"] = re.subn(f"[{_NEWLINES}]", "\n", text)
    return text, tuple(counts.values())


def is_plain(texts: Sequence[bytes]) -> npt.NDArray[np.bool_]:
    """Which texts need no look: they hold more than white space, no U+FFFD, and nothing that
    `normalize` changes. Texts are UTF-8, lone surrogates as they pass (`surrogatepass`).

    One compiled scan over many texts, at 7 GB/s; the regular expression does .3 GB/s of English.
    """
    ends = np.fromiter((len(text) for text in texts), np.int64, len(texts)).cumsum() + 2
    data = bytearray().join((b"\0\0", *texts))  # may be written, or the scan is compiled twice
    plain: npt.NDArray[np.bool_] = are_plain(np.frombuffer(data, np.uint8), ends)
    return plain


@kernel
def are_plain(data: npt.NDArray[np.uint8], ends: npt.NDArray[np.int64]) -> npt.NDArray[np.bool_]:
    """`is_plain` of texts one after another, behind two bytes of padding: no odd character in it,
    and one that is surely no white space.

    Compares bytes and does not decode, with unsigned indices, so that it becomes vector code.
    """
    plain = np.empty(len(ends), np.bool_)
    begin = np.uint64(2)
    for row in range(len(ends)):
        end = np.uint64(ends[row])
        odd = visible = False
        for at in range(begin, end):
            a, b, c = data[at - np.uint64(2)], data[at - np.uint64(1)], data[at]
            odd |= (c < 0x20) & (c != 0x09) & (c != 0x0A) | (c == 0x7F)  # C0 but tab and LF, DEL
            odd |= (b == 0xC2) & (c < 0xA0)  # U+0080 to 009F
            odd |= (b == 0xED) & (c >= 0xA0)  # U+D800 to DFFF
            odd |= (a == 0xE2) & (b == 0x80) & ((c == 0xA8) | (c == 0xA9))  # U+2028, 2029
            odd |= (a == 0xEF) & (b == 0xBB) & (c == 0xBF)  # U+FEFF
            odd |= (a == 0xEF) & (b == 0xBF) & (c == 0xBD)  # U+FFFD
            # By the first byte ASCII, U+00C0 to 07FF, 4000 to EFFF, above FFFF: no white space.
            visible |= (c > 0x20) & (c < 0x7F) | (c > 0xC2) & (c < 0xE0) | (c > 0xE3) & (c != 0xEF)
        plain[row] = visible & (not odd)
        begin = end
    return plain


def _pair_to_char(pair: re.Match[str]) -> str:
    return pair[0].encode("utf-16-le", "surrogatepass").decode("utf-16-le")
