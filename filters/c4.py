"""Signal group `c4`: what C4's rules for lines and pages look at (Raffel et al. 2019, section 2.2).

C4 drops lines, then pages by what is left. Here nothing is dropped: the group says how many lines
each rule would take, and how many lines, words and sentences would be left (`*_after`).

Units are those of filters/text.py, so a line of Chinese is not one word, and 。 ends a sentence.
Left out: `[12]` and `[edit]` stay in the text, and bad words have no list here.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from filters.columns import Signal
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


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    listed = pc.index_in(columns["lang"], value_set=pa.array(list(LINE_WORDS)))
    numbers = np.array([*LINE_WORDS.values(), -1], np.int32)
    fewest = numbers[pc.fill_null(listed, len(LINE_WORDS)).to_numpy(zero_copy_only=False)]
    counts = np.zeros((len(texts), len(COLUMNS)), np.int32)
    _measure(texts.data, texts.segments, fewest, counts)
    found = {name: counts[:, i].copy() for i, name in enumerate(COLUMNS)}
    return found | {name: pa.array(found[name], mask=fewest < 0) for name in BY_LANGUAGE}


@kernel
def _measure(data: Bytes, segments: Segments, fewest: Positions, counts: Positions) -> None:
    _, lines, paragraphs, _ = segments
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
            row[0] += 1
            row[1] += terminal
            row[2] += long_word
            row[3] += javascript
            row[4] += policy
            row[5] += phrases[LOREM_IPSUM]
            row[6] += phrases[CURLY_BRACKET]
            row[8] += short
            if terminal and not (long_word or short or javascript or policy):
                row[9] += 1
                row[10] += lines.words[line]
                row[11] += lines.sentences[line]
