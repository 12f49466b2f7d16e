"""English words that no one wrote: what recognition makes of common words, and ends of words that
stand alone because a space or a line's end cuts words.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from filters import wordruns
from filters.wordruns import Words, word_hash
from kernels import hashing
from kernels.cache import kept_arrays
from kernels.compile import kernel

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


def _tables() -> tuple[npt.NDArray[np.uint64], npt.NDArray[np.bool_]]:
    """Hashes of these words, sorted, and which low 16 bits are among them; takes 300 ms, 2 from the
    cache."""
    hashes = np.array(sorted(map(word_hash, CONFUSED_WORDS | ENDINGS)), np.uint64)
    is_one = np.zeros(1 << 16, np.bool_)
    is_one[hashes & np.uint64(0xFFFF)] = True
    return hashes, is_one


_HASHES, _IS_ONE = kept_arrays([__file__, wordruns.__file__, hashing.__file__], _tables)


@kernel
def suspects(
    words: Words, english: npt.NDArray[np.bool_]
) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int32]]:
    """Of each text that is `english`: distinct words of CONFUSED_WORDS and ENDINGS, and words of
    JOINED_CHARS and more; 0 of others.
    """
    odd = np.zeros(len(english), np.int32)
    long = np.zeros(len(english), np.int32)
    for text in range(len(english)):
        if not english[text]:
            continue
        for value in words.vocabulary[words.starts[text] : words.starts[text + 1]]:
            if _IS_ONE[value & np.uint64(0xFFFF)]:
                found = np.searchsorted(_HASHES, value)
                odd[text] += found < len(_HASHES) and _HASHES[found] == value
        before = 0
        for end in words.ends[words.offsets[text] : words.offsets[text + 1]]:
            long[text] += end - before >= JOINED_CHARS
            before = end
    return odd, long
