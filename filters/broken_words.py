"""English words that no one wrote: what recognition makes of common words, and ends of words that
stand alone because a space or a line's end cuts words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters import wordruns
from filters.names import Offsets, longest
from filters.wordruns import Words, word_hash
from kernels import hashing
from kernels.cache import kept_arrays
from kernels.compile import kernel
from kernels.hashing import Bytes

ENDING, CONFUSED, JOINED = range(3)
MIN_WORDS = 3  # of a kind; fewer are a name, a quotation, an example

# Letters that recognition (OCR) takes for others.
CONFUSIONS = (
    *(("h", "li"), ("h", "b"), ("m", "rn"), ("w", "vv"), ("l", "1"), ("d", "cl"), ("e", "c")),
    *(("u", "n"), ("o", "0"), ("i", "l")),
)
_COMMON = (
    "the and that this with have which their there they them then when what where were would "
    "could should from for not but are was had has his her you your our out about more many most "
    "some same time made make like only will all well also than other another after before between "
    "under over through into upon because during while such each both these those first people "
    "been being may must can how who work world years very much still even just now"
).split()
# Made so from a common word, and yet words, names or abbreviations.
_WORDS = frozenset(
    "bad bas ber bis bow bat ban ben bob arc thc ton ont fot wlll thls hls clay tor von yon nor "
    "bcd bnd rnd cnt onc wcs hcr mcn bnt n0t all snow 1st tbd ncw timc".split()
)


def _confused() -> set[str]:
    made = {
        word[:at] + other + word[at + 1 :]
        for word in _COMMON
        for letter, other in CONFUSIONS
        for at in range(len(word))
        if word[at] == letter
    }
    return made - _WORDS - set(_COMMON)


CONFUSED_WORDS = frozenset(_confused())
# No word of their own: the second halves of cut words.
ENDINGS = frozenset(
    "tion tions ation ations sion sions ment ments ness ence ences ance ances ity ities ing ings "
    "ility ically ously ional ively ture tures ment ely ied ated ating ingly tional ement ements "
    "ization izing ized ification".split()
)
JOINED_CHARS = 21  # of a word: one more than "internationalization", and hardly any has more
_a, _z = ord("a"), ord("z")


def _tables() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_], npt.NDArray[np.bool_]]:
    """Hashes of these words, sorted; of each, whether it is of ENDINGS and of CONFUSED_WORDS; which
    low 16 bits are among the hashes. Takes 300 ms, 2 from the cache."""
    words = {word_hash(word): word for word in CONFUSED_WORDS | ENDINGS}
    hashes = np.array(sorted(words), np.uint64)
    lists = [
        [words[value] in listed for listed in (ENDINGS, CONFUSED_WORDS)] for value in sorted(words)
    ]
    is_one = np.zeros(1 << 16, np.bool_)
    is_one[hashes & np.uint64(0xFFFF)] = True
    return hashes, np.array(lists), is_one


_HASHES, _LISTS, _IS_ONE = kept_arrays([__file__, wordruns.__file__, hashing.__file__], _tables)


@kernel
def suspects(
    data: Bytes, offsets: Offsets, words: Words, english: npt.NDArray[np.bool_]
) -> npt.NDArray[np.int32]:
    """Of each text that is `english`: words of ENDINGS, of CONFUSED_WORDS, and runs of letters as
    long as in JOINED words (if there are MIN_WORDS): int32[n, 3]; 0 of others.
    """
    found = np.zeros((len(english), 3), np.int32)
    places = np.full(longest(words.starts), -1, np.int64)  # in _HASHES, by number of a word
    for text in range(len(english)):
        if not english[text]:
            continue
        first, last, is_odd = words.starts[text], words.starts[text + 1], False
        for i in range(first, last):
            value = words.vocabulary[i]
            if _IS_ONE[value & np.uint64(0xFFFF)]:
                place = np.searchsorted(_HASHES, value)
                if place < len(_HASHES) and _HASHES[place] == value:
                    places[i - first] = place
                    is_odd = True
        if is_odd:
            for name in words.names[words.offsets[text] : words.offsets[text + 1]]:
                if places[name] >= 0:
                    found[text, ENDING] += _LISTS[places[name], ENDING]
                    found[text, CONFUSED] += _LISTS[places[name], CONFUSED]
            places[: last - first] = -1
        before, num_long = 0, 0
        for end in words.ends[words.offsets[text] : words.offsets[text + 1]]:
            num_long += (end - before) // JOINED_CHARS
            before = end
        if num_long >= MIN_WORDS:
            found[text, JOINED] = _long_runs(data, offsets[text], offsets[text + 1])
    return found


@kernel
def _long_runs(data: Bytes, at: int, end: int) -> int:
    """Runs of JOINED_CHARS - 1 small letters and more. Each place for one is looked at from its
    end: a byte that is no such letter spares all before it."""
    runs = 0
    while at + JOINED_CHARS - 1 <= end:
        i = at + JOINED_CHARS - 2
        while i >= at and _a <= data[i] <= _z:
            i -= 1
        if i >= at:
            at = i + 1
            continue
        runs += 1
        at += JOINED_CHARS - 1
        while at < end and _a <= data[at] <= _z:
            at += 1
    return runs
