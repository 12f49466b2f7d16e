"""CONFUSED of filters/confused_han.py: `python benchmarks/confused_han.py FOLDER ...`

Of each word of two Han that was counted 300 times and more (filters/words/han_words.tsv), one is
put in the place of another that recognition takes for it. What is then a word, or part of one, is
left out, and so is what stands in human text more than once for a hundred times that the right word
does. What is rarer there is kept: it mostly is what recognition left (己经).
"""

from __future__ import annotations

import re
import sys
from collections import Counter, defaultdict
from collections.abc import Sequence
from pathlib import Path

from human_texts import DAMAGED, documents

WORDS = Path(__file__).parent.parent / "filters" / "words" / "han_words.tsv"
SOURCE_BYTES = 3_000_000
MIN_COUNT = 300
MOST = 0.01
TWINS = (  # what is meant, what is read
    *"未末 日曰 已己 天夭 土士 千干 于干 入人 治冶 候侯 何伺 王玉 住往 今令".split(),
    *"因困 体休 折析 析折 拨拔 拔拨 免兔 乌鸟 晴睛 即既 贷货 冒昌 崇祟".split(),
)


def main(folders: Sequence[str]) -> None:
    rows = (line.split("\t") for line in WORDS.read_text(encoding="utf-8").splitlines())
    words = {word: int(count) for word, count in rows}
    inside = {word[at : at + 2] for word in words for at in range(len(word) - 1)}
    made = {
        word[:at] + read + word[at + 1 :]: (word, read)
        for word, count in words.items()
        if len(word) == 2 and count >= MIN_COUNT
        for meant, read in map(tuple, TWINS)
        for at in (0, 1)
        if word[at] == meant and word[:at] + read + word[at + 1 :] not in inside
    }
    pairs: Counter[str] = Counter()
    for one in documents(folders, SOURCE_BYTES):
        if one.genre != DAMAGED:
            for run in re.findall("[\u4e00-\u9fff]{2,}", one.text):
                pairs.update(run[at : at + 2] for at in range(len(run) - 1))
    found: dict[str, tuple[list[str], list[str]]] = defaultdict(lambda: ([], []))
    for wrong, (word, read) in made.items():
        if pairs[wrong] <= MOST * pairs[word]:
            at = 0 if wrong[0] == read and word[0] != read else 1
            found[read][at].append(wrong[1 - at])
    for read, (after, before) in sorted(found.items()):
        print(f'    "{read}": ("{"".join(sorted(after))}", "{"".join(sorted(before))}"),')


if __name__ == "__main__":
    main(sys.argv[1:])
