"""Ways in which text breaks, done to real text by real codecs, in lines that a seed chooses."""

from __future__ import annotations

import random
import re
from collections.abc import Callable

Break = Callable[[str, random.Random], str]

_TYPOGRAPHIC = {"'": "’", ' "': " “", '"': "”", " - ": " — ", "...": "…"}
_SYLLABLES = "xùn liàn mó xíng shù jù dà yǔ yán de shì zài yǒu hé wén zhōng guó rén lǜ ér".split()
_SIMILAR = {"未": "末", "日": "曰", "已": "己", "入": "人", "土": "士", "天": "夭", "千": "干"}


def _typographic(text: str) -> str:
    """English as word processors and web editors write it: what is only ASCII cannot break."""
    for plain, mark in _TYPOGRAPHIC.items():
        text = text.replace(plain, mark)
    return text


def _recoded(*codecs: str) -> Break:
    """Encoded with the first codec, decoded with the second, encoded with the third ..."""

    def break_(text: str, _: random.Random) -> str:
        for codec, other in zip(codecs[::2], codecs[1::2], strict=True):
            text = text.encode(codec, "replace").decode(other, "replace")
        return text

    return break_


def _web_recoded(*codecs: str) -> Break:
    recode = _recoded(*codecs)
    return lambda text, rng: recode(_typographic(text), rng)


def _lost_bytes(codec: str) -> Break:
    """One byte in 200 is gone: characters are cut in the middle."""

    def break_(text: str, rng: random.Random) -> str:
        data = bytes(byte for byte in text.encode(codec, "replace") if rng.random() > 0.005)
        return data.decode(codec, "replace")

    return break_


def _pinyin(text: str, rng: random.Random) -> str:
    return re.sub("[一-鿿]", lambda m: f"{m[0]}({rng.choice(_SYLLABLES)})", text)


def _similar(text: str, rng: random.Random) -> str:
    """Half of the characters that recognition confuses."""
    return "".join(_SIMILAR.get(c, c) if rng.random() < 0.5 else c for c in text)


def _english_ocr(text: str, rng: random.Random) -> str:
    """A tenth of the places where recognition confuses letters."""
    confused = {"m": "rn", "h": "li", "l": "1", "o": "0", "e": "c", "w": "vv", "d": "cl"}
    return re.sub("[mhloewd]", lambda m: confused[m[0]] if rng.random() < 0.1 else m[0], text)


def _split_words(text: str, rng: random.Random) -> str:
    """A fifth of the words of eight letters and more are cut by a space."""

    def cut(match: re.Match[str]) -> str:
        at = rng.randrange(3, len(match[0]) - 2)
        return f"{match[0][:at]} {match[0][at:]}" if rng.random() < 0.2 else match[0]

    return re.sub("[a-z]{8,}", cut, text)


def _hyphenated(text: str, rng: random.Random) -> str:
    """Lines of about 60 characters, a word cut at the end of one in two."""
    done = ""
    width = 0
    for word in re.split(r"( |\n)", text):
        if width + len(word) > 60 and len(word) > 5 and rng.random() < 0.5:
            word = f"{word[:3]}-\n{word[3:]}"
        elif width > 60 and word == " ":
            word = "\n"
        done += word
        width = len(word.rpartition("\n")[2]) + (0 if "\n" in word else width)
    return done


def _paged(text: str, rng: random.Random) -> str:
    """A page number and a running head after every 25 lines of at most 80 characters."""
    done: list[str] = []
    for line in text.split("\n"):
        for begin in range(0, max(len(line), 1), 80):
            done.append(line[begin : begin + 80])
            if len(done) % 27 == 25:
                done += [str(len(done) // 27 + 1), "Annual Report — 年度报告"]
    return "\n".join(done)


# Kind -> what it does to Chinese, or to English, text.
CHINESE: dict[str, Break] = {
    "utf-8 as gb18030": _recoded("utf-8", "gb18030"),
    "utf-8 as big5": _recoded("utf-8", "big5"),
    "utf-8 as cp1252": _recoded("utf-8", "cp1252"),
    "utf-8 as latin-1": _recoded("utf-8", "latin-1"),
    "gb18030 as utf-8": _recoded("gb18030", "utf-8"),
    "gb18030 as big5": _recoded("gb18030", "big5"),
    "gb18030 as latin-1": _recoded("gb18030", "latin-1"),
    "big5 as gb18030": _recoded("big5", "gb18030"),
    "gb18030 as utf-8 as gb18030": _recoded("gb18030", "utf-8", "utf-8", "gb18030"),
    "utf-8 as gb18030, twice": _recoded("utf-8", "gb18030", "utf-8", "gb18030"),
    "utf-8 as latin-1, twice": _recoded("utf-8", "latin-1", "utf-8", "latin-1"),
    "bytes of utf-8 lost": _lost_bytes("utf-8"),
    "bytes of gb18030 lost": _lost_bytes("gb18030"),
    "pinyin in brackets": _pinyin,
    "spaces between characters": lambda text, _: re.sub("(?<=[一-鿿])(?=[一-鿿])", " ", text),
    "similar characters": _similar,
    "page numbers and heads": _paged,
}
ENGLISH: dict[str, Break] = {
    "utf-8 as cp1252": _web_recoded("utf-8", "cp1252"),
    "utf-8 as latin-1": _web_recoded("utf-8", "latin-1"),
    "utf-8 as gb18030": _web_recoded("utf-8", "gb18030"),
    "utf-8 as mac-roman": _web_recoded("utf-8", "mac-roman"),
    "utf-8 as cp437": _web_recoded("utf-8", "cp437"),
    "utf-8 as cp1252, twice": _web_recoded("utf-8", "cp1252", "utf-8", "cp1252"),
    "cp1252 as utf-8": _web_recoded("cp1252", "utf-8"),
    "no spaces": lambda text, _: text.replace(" ", ""),
    "half of the spaces": lambda text, rng: re.sub(
        " ", lambda _: " " if rng.random() < 0.5 else "", text
    ),
    "letters apart": lambda text, _: re.sub("(?<=[A-Za-z])(?=[A-Za-z])", " ", text),
    "split words": _split_words,
    "hyphenated lines": _hyphenated,
    "confused letters": _english_ocr,
    "page numbers and heads": _paged,
}
WHOLE = ("page numbers and heads", "hyphenated lines")  # speak of the whole document


def broken(kind: str, how: Break, text: str, share: float, seed: int) -> str:
    """`text` with that share of its lines broken: at least one, of those with most letters."""
    rng = random.Random(seed)
    if share == 1 or kind in WHOLE:
        return how(text, rng)
    lines = text.split("\n")
    full = [i for i, line in enumerate(lines) if sum(map(str.isalpha, line)) >= 15]
    full = full or list(range(len(lines)))
    for at in rng.sample(full, max(1, round(share * len(full)))):
        lines[at] = how(lines[at], rng)
    return "\n".join(lines)
