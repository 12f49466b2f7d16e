"""Signal group and editor `c4`: C4's rules for lines and pages (Raffel et al. 2019, section 2.2).

C4 drops lines, then pages by what is left. Here nothing is dropped: the group says how many lines
each rule would take, and how many lines, words and sentences would be left (`*_after`). The editor
takes those lines away, with their line feeds, from texts of a mixture that names it; of
`kind: code`, and of languages without rules, none.

Units are those of filters/text.py, so a line of Chinese is not one word, and 。 ends a sentence.
Left out: `[12]` and `[edit]` stay in the text, and bad words have no list here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
from filters.edits import Edits, whole_lines
from filters.endings import ends_in_ellipsis, ends_terminally
from filters.names import Positions
from filters.phrases import (
    CURLY_BRACKET,
    JAVASCRIPT,
    LOREM_IPSUM,
    POLICY,
    count_phrases,
)
from filters.pieces import Segments
from filters.segments import Texts
from kernels.compile import kernel
from kernels.hashing import Bytes

# The fewest words of a line. en: the paper, datatrove and dolma (TFDS has 5, and never 3). zh: 1.6
# characters for a word. A language without an entry has no line rules: its columns are null.
LINE_WORDS = {"en": 3, "zh": 5}

C4 = "Raffel et al. 2019, arXiv:1910.10683, section 2.2"
COUNT = pa.int32()
COLUMNS: dict[str, Signal] = {
    "num_lines": Signal(COUNT, "lines", "lines with text", C4),
    "num_terminal_lines": Signal(
        COUNT, "lines", "lines that end in terminal punctuation, and not in an ellipsis", C4
    ),
    "num_long_word_lines": Signal(
        COUNT, "lines", "lines with a word of over 1,000 characters", "datatrove c4_filters.py"
    ),
    "num_javascript_lines": Signal(COUNT, "lines", "lines that name JavaScript", C4),
    "num_policy_lines": Signal(
        COUNT, "lines", "lines with a phrase of terms of use, privacy or cookies", C4
    ),
    "num_lorem_ipsum": Signal(COUNT, "phrases", "times of lorem ipsum", C4),
    "num_curly_brackets": Signal(COUNT, "characters", "times of {", C4),
    "num_sentences": Signal(COUNT, "sentences", "sentences of the text", "assay"),
    "num_short_lines": Signal(
        COUNT, "lines", "lines of under 3 words (zh: 5); null without a number", C4
    ),
    "lines_after": Signal(COUNT, "lines", "lines that no rule takes; null likewise", C4),
    "words_after": Signal(COUNT, "words", "words of those lines; null likewise", C4),
    "sentences_after": Signal(
        COUNT, "sentences", "sentences of those lines, each by itself; null likewise", C4
    ),
}
BY_LANGUAGE = tuple(COLUMNS)[-4:]

# Why a line goes: a bit of each. The edit of one with several is of the first.
REASONS = ("no_terminal", "long_word", "javascript", "policy", "short")
_NO_TERMINAL, _LONG_WORD, _JAVASCRIPT, _POLICY, _SHORT = (1 << i for i in range(len(REASONS)))


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    fewest = _fewest(columns["lang"])
    counts = np.zeros((len(texts), len(COLUMNS)), np.int32)
    _measure(texts.data, texts.segments, fewest, counts)
    found = {name: counts[:, i].copy() for i, name in enumerate(COLUMNS)}
    return found | {name: pa.array(found[name], mask=fewest < 0) for name in BY_LANGUAGE}


def find(texts: Texts, columns: Mapping[str, pa.Array]) -> Edits:
    """The lines that go, as edits; see filters/editors.py."""
    lines = texts.segments.lines
    fewest = _fewest(columns["lang"])
    counts = np.zeros((len(texts), len(COLUMNS)), np.int32)
    faults = _measure(texts.data, texts.segments, fewest, counts)
    ruled = (fewest >= 0) & ~np.asarray(pc.equal(columns["kind"], "code"))
    rows = np.repeat(np.arange(len(texts)), np.diff(lines.offsets))
    (gone,) = np.nonzero((faults != 0) & ruled[rows])
    starts, ends = whole_lines(texts, rows[gone], lines.begins[gone])
    bits = faults[gone]
    lowest = np.log2(bits & (~bits + 1)).astype(np.int64)
    kinds = pa.array(REASONS).take(pa.array(lowest))
    return Edits(rows[gone], starts, ends, kinds, pa.array([""] * len(gone), pa.string()))


def _fewest(languages: pa.Array) -> Positions:
    """The fewest words of a line; -1 in a language without rules."""
    listed = pc.index_in(languages, value_set=pa.array(list(LINE_WORDS)))
    numbers = np.array([*LINE_WORDS.values(), -1], np.int32)
    found: Positions = numbers[pc.fill_null(listed, len(LINE_WORDS)).to_numpy(zero_copy_only=False)]
    return found


@kernel
def _measure(data: Bytes, segments: Segments, fewest: Positions, counts: Positions) -> Bytes:
    """Fill `counts`; bits of REASONS for each line."""
    _, lines, paragraphs, _ = segments
    faults = np.zeros(lines.offsets[len(fewest)], np.uint8)
    phrases = np.zeros(4, np.int32)
    for text in range(len(fewest)):
        row = counts[text]
        for paragraph in range(paragraphs.offsets[text], paragraphs.offsets[text + 1]):
            row[7] += paragraphs.sentences[paragraph]
        for line in range(lines.offsets[text], lines.offsets[text + 1]):
            begin, end = lines.begins[line], lines.ends[line]
            terminal = ends_terminally(data, begin, end) and not ends_in_ellipsis(data, begin, end)
            long_word = lines.long_words[line] > 0
            short = lines.words[line] < fewest[text]
            phrases[:] = 0
            count_phrases(data, begin, end, phrases)
            javascript = phrases[JAVASCRIPT] > 0
            policy = phrases[POLICY] > 0
            fault = 0 if terminal else _NO_TERMINAL
            fault |= _LONG_WORD if long_word else 0
            fault |= _JAVASCRIPT if javascript else 0
            fault |= _POLICY if policy else 0
            fault |= _SHORT if short else 0
            faults[line] = fault
            row[0] += 1
            row[1] += terminal
            row[2] += long_word
            row[3] += javascript
            row[4] += policy
            row[5] += phrases[LOREM_IPSUM]
            row[6] += phrases[CURLY_BRACKET]
            row[8] += short
            if fault == 0:
                row[9] += 1
                row[10] += lines.words[line]
                row[11] += lines.sentences[line]
    return faults
