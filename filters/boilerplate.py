"""Signal group and editor `boilerplate`: the lines of a page that filters/chrome.py takes.

A kernel looks for the keys of all rules in every line that is short enough for one of them: by the
first letters of a word, or two Han characters, that some key has. Only a line with a key goes to
the patterns. The edit takes away the whole line with its line feed. Code has no page around it: of
`kind: code` no line is taken (a licence header is a matter of its own).
"""

from __future__ import annotations

import functools
import itertools
from collections.abc import Iterator, Mapping
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc

from filters.chrome import FOLDED, FOOT_LINES, HEAD_LINES, RULES, takes
from filters.columns import Signal
from filters.edits import Edits, edits_of, whole_lines
from filters.evidence import MOST
from filters.names import Offsets, Positions
from filters.pieces import Pieces
from filters.segments import Texts
from filters.text import next_char
from kernels.compile import inner_kernel, kernel
from kernels.han import TRADITIONAL_TO_SIMPLIFIED
from kernels.hashing import HASH_PRIME, Bytes, fold, load8

Codes = npt.NDArray[np.uint32]
Masks = npt.NDArray[np.uint32]
Flags = npt.NDArray[np.bool_]

EVIDENCE_CHARS = 60
COLUMNS: dict[str, Signal] = {
    "char_share": Signal(
        pa.float32(), "characters of lines", "under lines that a rule of chrome.py takes", "assay"
    ),
    "num_lines": Signal(pa.int32(), "lines", "such lines", "assay"),
    **{
        f"num_{name}": Signal(pa.int32(), "lines", f"taken by the rule {name}", "assay")
        for name in RULES
    },
    "lines": Signal(
        pa.list_(pa.string()),
        "lines",
        "the first 8 of them: rule, and the line's beginning",
        "assay",
    ),
}

_SLOT_BITS = 15
_LENGTH, _LETTER, _FIRST = 7, 8, 16  # of a byte: see Keys.bytes
_TWO, _FOUR, _SIX = (np.uint64((1 << 8 * n) - 1) for n in (2, 4, 6))  # bytes of a number
_BY_FREQUENCY = "etaoin srhldcumfpgwybv"  # of English; other characters are rarer


class Line(NamedTuple):
    text: int
    line: int  # in the lines of the batch
    rule: str


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    lines = texts.segments.lines
    by_rule = {name: np.zeros(len(texts), np.int32) for name in RULES}
    taken = np.zeros(len(texts), np.int64)
    shown: list[str] = []
    num_shown = np.zeros(len(texts), np.int32)
    for found in chrome_lines(texts, columns["kind"]):
        by_rule[found.rule][found.text] += 1
        taken[found.text] += lines.chars[found.line]
        if num_shown[found.text] < MOST:
            shown.append(f"{found.rule}: {_line(texts, lines, found.line)[:EVIDENCE_CHARS]}")
            num_shown[found.text] += 1
    return {
        "char_share": (taken / np.maximum(_all_chars(lines), 1)).astype(np.float32),
        "num_lines": sum(by_rule.values(), np.zeros(len(texts), np.int32)),
        **{f"num_{name}": counts for name, counts in by_rule.items()},
        "lines": pa.ListArray.from_arrays(
            np.concatenate([[0], np.cumsum(num_shown)]).astype(np.int32),
            pa.array(shown, pa.string()),
        ),
    }


def find(texts: Texts, columns: Mapping[str, pa.Array]) -> Edits:
    """The lines as edits; see filters/editors.py."""
    found = list(chrome_lines(texts, columns["kind"]))
    rows = np.array([line.text for line in found], np.int64)
    at = texts.segments.lines.begins[np.array([line.line for line in found], np.int64)]
    starts, ends = whole_lines(texts, rows, at)
    rules, nothing = [line.rule for line in found], [""] * len(found)
    whole = zip(rows.tolist(), starts.tolist(), ends.tolist(), rules, nothing, strict=True)
    return edits_of(whole)


def chrome_lines(texts: Texts, kinds: pa.Array) -> Iterator[Line]:
    """The lines that a rule takes, in order."""
    lines = texts.segments.lines
    skipped = np.asarray(pc.equal(kinds, "code"))
    masks = _candidates(texts.data, lines, skipped, _keys(), FOLDED)
    (numbers,) = np.nonzero(masks)
    of_text = np.searchsorted(lines.offsets, numbers, side="right") - 1
    for text, line in zip(of_text.tolist(), numbers.tolist(), strict=True):
        words, mask = _line(texts, lines, line), int(masks[line])
        for number, name in enumerate(RULES):
            if mask >> number & 1 and takes(name, words):
                yield Line(text, line, name)
                break


def _line(texts: Texts, lines: Pieces, line: int) -> str:
    return texts.data[lines.begins[line] : lines.ends[line]].tobytes().decode()


def _all_chars(lines: Pieces) -> Offsets:
    """Characters of the lines of each text."""
    total = np.concatenate([[0], np.cumsum(lines.chars[: lines.offsets[-1]], dtype=np.int64)])
    found: Offsets = np.diff(total[lines.offsets])
    return found


class Keys(NamedTuple):
    """Every key, and where to look for it: by hash of some of its bytes. A key stands once for
    each way to write those."""

    bytes: Bytes  # by byte: how many a character has that begins with it; _LETTER, _FIRST
    bits: Bytes  # a bit by hash: some key has such bytes
    starts: Positions  # by hash: its first entry in the arrays below, and the end of them
    rules: Positions  # by entry: number of the rule
    backs: Positions  # characters of the key before those bytes
    codes: Codes  # [entry, n]: its characters, 0 after the last
    allowed: Positions  # by characters of a line: the rules that may take it, one bit each
    edge: int  # the rules of edges, one bit each


def _grams(key: str) -> Iterator[tuple[bytes, int]]:
    """What of a key is looked for, in each way to write it, and what stands before it: the rarest
    four bytes that begin a word if it begins in ASCII, its first two Han characters if not."""
    if key[0].isascii():
        words = [at for at in range(len(key)) if key[at].isalnum() and not key[:at][-1:].isalnum()]
        best = min(words, key=lambda at: (len(key) - at < 4, _common(key[at : at + 4]), at))
        yield key[best:].encode()[:4], best
    elif ord(key[0]) < 0x800:
        yield key.encode()[:2], 0
    else:
        for pair in itertools.product(*(_WRITTEN.get(char, char) for char in key[:2])):
            yield "".join(pair).encode(), 0


def _common(letters: str) -> int:
    return -sum(_BY_FREQUENCY.find(letter) % 99 for letter in letters)


def _written() -> dict[str, str]:
    """A simplified character and the traditional ones that it stands for."""
    found: dict[str, str] = {}
    for traditional, simplified in TRADITIONAL_TO_SIMPLIFIED.items():
        found[simplified] = found.get(simplified, simplified) + traditional
    return found


_WRITTEN = _written()


_LONGEST = max(rule.longest for rule in RULES.values())


def _rules_of(chars: int) -> int:
    return sum(1 << n for n, rule in enumerate(RULES.values()) if chars <= rule.longest)


@functools.cache
def _keys() -> Keys:
    entries = sorted(
        (_slot(np.uint64(int.from_bytes(gram, "little"))), number, back, key)
        for number, rule in enumerate(RULES.values())
        for key in rule.keys
        for gram, back in _grams(key)
    )
    slots = np.array([slot for slot, _, _, _ in entries])
    bits = np.zeros((1 << _SLOT_BITS) // 8, np.uint8)
    np.bitwise_or.at(bits, slots >> 3, (1 << (slots & 7)).astype(np.uint8))
    codes = np.zeros((len(entries), max(len(key) for *_, key in entries) + 1), np.uint32)
    for entry, (*_, key) in enumerate(entries):
        codes[entry, : len(key)] = [ord(char) for char in key]
    kinds = np.ones(256, np.uint8)
    kinds[0xC0:0xE0], kinds[0xE0:0xF0], kinds[0xF0:] = 2, 3, 4
    kinds[[byte for byte in range(128) if chr(byte).isalnum()]] |= _LETTER
    for rule in RULES.values():
        for gram, _ in itertools.chain.from_iterable(map(_grams, rule.keys)):
            kinds[[gram[0], gram[:1].upper()[0]]] |= _FIRST
    return Keys(
        kinds,
        bits,
        np.searchsorted(slots, np.arange((1 << _SLOT_BITS) + 1)).astype(np.int32),
        np.array([number for _, number, _, _ in entries], np.int32),
        np.array([back for _, _, back, _ in entries], np.int32),
        codes,
        np.array([_rules_of(chars) for chars in range(_LONGEST + 2)], np.int32),
        sum(1 << number for number, rule in enumerate(RULES.values()) if rule.edge),
    )


@inner_kernel
def _slot(value: np.uint64) -> int:
    return int((value * HASH_PRIME) >> np.uint64(64 - _SLOT_BITS))


@kernel
def _candidates(data: Bytes, lines: Pieces, skipped: Flags, keys: Keys, folded: Codes) -> Masks:
    """Of each line: the rules that a key of stands in it, one bit each."""
    found = np.zeros(lines.offsets[-1], np.uint32)
    for text in range(len(lines.offsets) - 1):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        for line in range(first, last):
            allowed = int(keys.allowed[min(lines.chars[line], len(keys.allowed) - 1)])
            if first + HEAD_LINES <= line < last - FOOT_LINES:
                allowed &= ~keys.edge
            if allowed and not skipped[text]:
                found[line] = _rules(
                    data, lines.begins[line], lines.ends[line], keys, folded, allowed
                )
    return found


@inner_kernel
def _rules(data: Bytes, begin: int, end: int, keys: Keys, folded: Codes, allowed: int) -> int:
    mask = 0
    at = begin
    while at < end:
        start = at
        kind = keys.bytes[data[at]]
        at += int(kind & _LENGTH)
        if kind & _LETTER:
            while at < end and keys.bytes[data[at]] & _LETTER:
                at += 1
            if not kind & _FIRST:
                continue
            value = fold(load8(data, start, end)) & _FOUR
        elif kind & _FIRST:
            value = load8(data, start, end) & (_TWO if data[start] < 0xE0 else _SIX)
        else:
            continue
        slot = _slot(value)
        if keys.bits[slot >> 3] >> (slot & 7) & 1:
            for entry in range(keys.starts[slot], keys.starts[slot + 1]):
                bit = 1 << int(keys.rules[entry])
                if bit & allowed & ~mask and _stands(data, begin, start, end, keys, entry, folded):
                    mask |= bit
    return mask


@kernel
def _stands(
    data: Bytes, begin: int, start: int, end: int, keys: Keys, entry: int, folded: Codes
) -> bool:
    """Does the key stand there, at the beginning of a word?"""
    at = start - keys.backs[entry]
    if at < begin or (at > begin and keys.bytes[data[at]] & keys.bytes[data[at - 1]] & _LETTER):
        return False
    i = 0
    while keys.codes[entry, i]:
        if at >= end:
            return False
        code, at = next_char(data, at)
        if folded[code] != keys.codes[entry, i]:
            return False
        i += 1
    return True
