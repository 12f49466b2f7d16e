"""Signal group `fineweb`: what FineWeb's own rules look at (Penedo et al. 2024, section 3.5).

Its share of characters in repeated lines is `gopher.dup_line_char_share`. Lines are stripped: in
datatrove a page with CRLF ends no line in punctuation and is dropped.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt
import pyarrow as pa

from filters.columns import Signal
from filters.endings import ends_terminally
from filters.pieces import Segments
from filters.segments import Texts
from filters.stop_words import lists_of, num_stop_words
from kernels.compile import kernel
from kernels.hashing import Bytes

SHORT_LINE = 30  # characters

FINEWEB = "Penedo et al. 2024, arXiv:2406.17557; datatrove fineweb_quality_filter.py"
RATIO = pa.float32()
KINDS = ("yue", "lzh")  # of Chinese, with a list of STOP_WORDS
COLUMNS: dict[str, Signal] = {
    "punctuation_line_share": Signal(
        RATIO, "lines", "lines that end in terminal punctuation", FINEWEB
    ),
    "short_line_share": Signal(RATIO, "lines", "lines of at most 30 characters", FINEWEB),
    "newline_ratio": Signal(RATIO, "line feeds per word", "line feeds / words", FINEWEB),
    **{
        f"num_{name}_words": Signal(
            pa.int32(),
            "words",
            f"distinct words of FineWeb2's list for {name}; null but for Chinese",
            f"FineWeb2 {name}_Hani, stopwords",
        )
        for name in KINDS
    },
}
RATIOS = tuple(name for name, signal in COLUMNS.items() if signal.type == RATIO)


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array | np.ndarray]:
    """All columns of `COLUMNS` for a batch; see filters/signals.py."""
    ratios = np.zeros((len(texts), len(RATIOS)), np.float32)
    _measure(texts.data, texts.segments, ratios)
    found: dict[str, pa.Array | np.ndarray] = {
        name: ratios[:, i].copy() for i, name in enumerate(RATIOS)
    }
    for name in KINDS:
        lists = lists_of(columns["lang"], {"zh": name})
        counts = num_stop_words(texts.segments.words, lists)
        found[f"num_{name}_words"] = pa.array(counts, mask=lists < 0)
    return found


@kernel
def _measure(data: Bytes, segments: Segments, ratios: npt.NDArray[np.float32]) -> None:
    words, lines, _, counts = segments
    for text in range(len(ratios)):
        first, last = lines.offsets[text], lines.offsets[text + 1]
        punctuated = short = 0
        for line in range(first, last):
            punctuated += ends_terminally(data, lines.begins[line], lines.ends[line])
            short += lines.chars[line] <= SHORT_LINE
        num_words = words.offsets[text + 1] - words.offsets[text]
        ratios[text, 0] = punctuated / max(last - first, 1)
        ratios[text, 1] = short / max(last - first, 1)
        ratios[text, 2] = counts.newlines[text] / max(num_words, 1)
