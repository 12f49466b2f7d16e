"""Pinyin in brackets behind Han, as readers for learners and broken copies have it.

With a tone, 训(xùn)练(liàn) or 训练（xùnliàn）, it is pinyin. Without, 训(xun) or 训练(xunlian),
English stands there as often: 机器(machine), 他(he). So what is written in small letters counts
only if it is made of syllables, no more than Han stand before it, and if MIN_DIFFERENT such places
differ and are half of all in small letters.
"""

from __future__ import annotations

import functools
import re

MIN_DIFFERENT = 3
_HAN = "[\u3400-\u9fff]"
_TONES = "āáǎàēéěèīíǐìōóǒòūúǔùǖǘǚǜńňǹ"
# A pass for each bracket, and that first: `re` looks for one character four times as fast as for
# one of two, and from a Han on it would stop at each of them.
_BRACKETS = tuple(
    re.compile(rf"{bracket}(?<={_HAN}{bracket})([a-zü{_TONES} ’']{{1,24}})[)）]")
    for bracket in (r"\(", "（")
)
_TONED = re.compile(f"[{_TONES}]")
_PLAIN = re.compile("[a-z' ]+")
_MOST_HAN = 8  # of a word

_BEGINS_Y, _BEGINS_U = "i|ian|iao|ie|in|ing|iu", "ou|u|uan|ui|un|uo"
_FINALS = {  # by what they may begin with; GB/T 16159
    "": "a|ai|an|ang|ao|e|ei|en|eng|er|o|ou",
    "b|p|m": f"a|ai|an|ang|ao|e|ei|en|eng|o|ou|u|{_BEGINS_Y}",
    "f": "a|an|ang|ei|en|eng|o|ou|u",
    "d|t|n|l": f"a|ai|an|ang|ao|e|ei|en|eng|ia|iang|ong|v|ve|ue|{_BEGINS_Y}|{_BEGINS_U}",
    "g|k|h": f"a|ai|an|ang|ao|e|ei|en|eng|ong|ua|uai|uang|{_BEGINS_U}",
    "j|q|x": f"ia|iang|iong|u|uan|ue|un|{_BEGINS_Y}",
    "zh|ch|sh": f"a|ai|an|ang|ao|e|ei|en|eng|i|ong|ua|uai|uang|{_BEGINS_U}",
    "r|z|c|s": f"a|ai|an|ang|ao|e|ei|en|eng|i|ong|{_BEGINS_U}",
    "y": "a|an|ang|ao|e|i|in|ing|o|ong|ou|u|uan|ue|un",
    "w": "a|ai|an|ang|ei|en|eng|o|u",
}
_SYLLABLE = "|".join(f"(?:{begins})(?:{ends})" for begins, ends in _FINALS.items())
SYLLABLES = tuple(
    begin + end
    for begins, ends in _FINALS.items()
    for begin in begins.split("|")
    for end in ends.split("|")
)


@functools.cache
def _at_most(num_syllables: int) -> re.Pattern[str]:
    return re.compile(rf"(?:(?:{_SYLLABLE})[' ]?){{1,{num_syllables}}}")


def in_brackets(text: str) -> list[str]:
    """Such brackets of a text, with what stands in them."""
    matches = (match for pattern in _BRACKETS for match in pattern.finditer(text))
    found = sorted(matches, key=re.Match.start)
    toned = [match[0] for match in found if _TONED.search(match[1])]
    plain = [match for match in found if _PLAIN.fullmatch(match[1])]
    read = [match[0] for match in plain if _is_read(text, match)]
    if len(set(read)) < MIN_DIFFERENT or 2 * len(read) < len(plain):
        return toned
    return toned + read


def _is_read(text: str, match: re.Match[str]) -> bool:
    """Is it made of so many syllables as may be those of the Han before it?"""
    before = text[max(0, match.start() - _MOST_HAN) : match.start()]
    num_han = len(before) - len(before.rstrip("".join(set(re.findall(_HAN, before)))))
    return _at_most(num_han).fullmatch(match[1]) is not None
