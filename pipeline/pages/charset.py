"""Which encoding the bytes of a page are in, and its text.

Order: byte order mark; UTF-8 with enough evidence, also where a few bytes of it are damaged (beats
a wrong declaration); the declared charset (HTTP header, then <meta>) unless the bytes contradict
it; 7-bit encodings that only escapes betray (HZ, ISO-2022); UTF-16 by its NULs or its Han
characters; uchardet for the rest, which takes UTF-8 with one wrong byte for windows-1250. Of 95
pages of the UDHR corpus, which declare nothing, 90 come out right (at least 99 % of their
characters); of the other five, three are in fonts' own encodings (VPS, Dallak, Afenegus): there is
no codec.
"""

from __future__ import annotations

import codecs
import re

from resiliparse.parse.encoding import detect_encoding

SURE_UTF8_BYTES = 20  # non-ASCII bytes; by then another encoding is valid UTF-8 with p < 1e-5
MAX_FAULTS = 0.1  # U+FFFD among the non-ASCII characters: above, the encoding is wrong
# Faults for each continuation byte, up to which damaged UTF-8 is UTF-8: 5 Chinese characters vouch
# for one wrong byte. In 5.5 million pieces of 10 to 1,000 bytes of text in 24 other encodings never
# more than 7 bytes looked like that for one that did not (in 14 bytes), from 160 bytes on 3.
MAX_DAMAGE = 0.1
HEAD_BYTES = 2048  # where <meta> may declare the charset; WHATWG reads 1,024

# What a name means on the web, where it is not what it says (WHATWG Encoding Standard), and codecs
# that hold more: a superset decodes what its subset does.
CODECS = {
    "gb2312": "gb18030",
    "gbk": "gb18030",
    "x-gbk": "gb18030",
    "gb_2312-80": "gb18030",
    "chinese": "gb18030",
    "hz-gb-2312": "hz",
    "big5": "big5hkscs",
    "x-x-big5": "big5hkscs",
    "shift_jis": "cp932",
    "shift-jis": "cp932",
    "sjis": "cp932",
    "x-sjis": "cp932",
    "windows-31j": "cp932",
    "euc-kr": "cp949",
    "euc_kr": "cp949",
    "ks_c_5601-1987": "cp949",
    "x-euc-jp": "euc_jp",
    "iso2022_jp": "iso2022_jp_2",
    "iso-2022-jp": "iso2022_jp_2",
    "ascii": "cp1252",
    "us-ascii": "cp1252",
    "latin1": "cp1252",
    "iso-8859-1": "cp1252",
    "iso8859-1": "cp1252",
    "iso8859-9": "cp1254",
    "iso-8859-9": "cp1254",
    "tis-620": "cp874",
    "utf-16": "utf-8",  # bytes that could be read as ASCII to find this name are not UTF-16
    "utf-16le": "utf-8",
    "utf-16be": "utf-8",
}

# Codecs of Python that are no encoding of pages: they make bytes, need another error handler,
# inflate, or turn escapes into lone surrogates. A page that names one declares nothing.
NOT_FOR_PAGES = {
    "base64", "bz2", "hex", "quopri", "rot-13", "uu", "zlib",
    "idna", "punycode", "raw-unicode-escape", "undefined", "unicode-escape", "utf-7",
}  # fmt: skip

# uchardet's guesses that the web does not bear out: DOS code pages and rare parts of ISO 8859 for
# Latin text with few accents. The right one is nearly always windows-1252, for -16 its neighbour.
GUESSES = {
    "cp437": "cp1252",
    "cp852": "cp1252",
    "cp865": "cp1252",
    "iso8859-3": "cp1252",
    "iso8859-10": "cp1252",
    "iso8859-15": "cp1252",
    "iso8859-16": "iso8859-2",
}

BOMS = [
    (codecs.BOM_UTF8, "utf-8"),
    (codecs.BOM_UTF32_LE, "utf-32-le"),
    (codecs.BOM_UTF32_BE, "utf-32-be"),
    (codecs.BOM_UTF16_LE, "utf-16-le"),
    (codecs.BOM_UTF16_BE, "utf-16-be"),
]

_META = re.compile(
    rb"<meta[^>]{0,200}?charset\s*=\s*[\"']?\s*([\w.:-]+)|<\?xml[^>]{0,100}encoding\s*=\s*[\"']([\w.:-]+)",
    re.IGNORECASE,
)
_ASCII = bytes(range(128))
_NOT_C1 = bytes([*range(0x80), *range(0xA0, 0x100)])
_CONTROLS = bytes(code for code in range(32) if code not in b"\t\n\r\x1b")
_HAN = re.compile(r"[\u4e00-\u9fff\u3000-\u303f\uff00-\uffef\t -~\r\n]+")
_HZ = re.compile(rb"~\{(?:[\x21-\x77][\x21-\x7e])+~\}")


class BadCharset(ValueError):
    """No encoding that we know decodes the bytes."""


def decode(data: bytes, declared: str | None = None) -> tuple[str, str]:
    """Text and the name of the codec that decoded it; `declared` is that of the HTTP header.

    A character that the end of the data cuts is left out.

    Raises:
        BadCharset: none fits.
    """
    for mark, codec in BOMS:
        if data.startswith(mark):
            return _decode(data[len(mark) :], codec), codec
    utf8 = _as_utf8(data)
    candidates = _candidates(data, declared, valid=utf8 is not None)
    tried = dict.fromkeys(name for name in candidates if name is not None)
    for name in tried:
        if utf8 is not None and name == "utf-8":
            text, fits = utf8, _is_text(utf8)
        else:
            text = _decode(data, name)
            fits = _fits(text)
        if fits:
            return text, name
    raise BadCharset(f"{len(data):,} bytes fit none of {', '.join(tried)}")


def meta_charset(data: bytes) -> str | None:
    """The charset that HTML declares in its head."""
    match = _META.search(data, 0, HEAD_BYTES)
    return (match[1] or match[2]).decode("ascii", "replace") if match else None


def _candidates(data: bytes, declared: str | None, valid: bool) -> list[str | None]:
    """`valid`: the data are UTF-8."""
    utf8 = "utf-8" if valid else None
    seven_bit = data.isascii()
    evidence = len(data.translate(None, _ASCII)) if valid and not seven_bit else 0
    named = _codec(declared)
    return [
        utf8 if evidence >= SURE_UTF8_BYTES else None,
        named,
        _utf16(data),
        _utf16_han(data) if utf8 is None else None,
        _escaped(data) if seven_bit else None,
        utf8,
        _guess(data) if utf8 is None else None,
        "utf-8",
        "cp1252",
    ]


def _codec(name: str | None) -> str | None:
    """The Python codec for a declared or guessed name; None when there is none."""
    if not name:
        return None
    name = name.strip().lower()
    try:
        codec = codecs.lookup(CODECS.get(name, name)).name
    except LookupError:
        return None
    return None if codec in NOT_FOR_PAGES else codec


def _guess(data: bytes) -> str | None:
    guess = detect_encoding(data, html5_compatible=False)
    if guess == "cp1250" and not data.translate(None, _NOT_C1):
        guess = "iso8859-2"  # cp1250 has letters of its own at 80-9f: where none stands, it is not
    return _codec(GUESSES.get(guess, guess) if guess else None)


def _as_utf8(data: bytes) -> str | None:
    """The text, if the data are UTF-8 but for a few bytes."""
    text = _decode(data, "utf-8")
    found = text.count("\ufffd")
    faults = found - data.count("\ufffd".encode()) if found else 0  # without those that stand there
    continuation_bytes = len(data) - len(text)
    return text if faults <= MAX_DAMAGE * continuation_bytes else None


def _utf16(data: bytes) -> str | None:
    """UTF-16 without a mark: NULs (of ASCII characters) stand at every other byte only."""
    sample = data[:4096]
    even, odd = sample[::2].count(0), sample[1::2].count(0)
    if max(even, odd) * 20 < max(len(sample), 1) or min(even, odd) * 20 > max(even, odd):
        return None
    return "utf-16-be" if even > odd else "utf-16-le"


def _utf16_han(data: bytes) -> str | None:
    """Chinese in UTF-16 without a mark: nearly all Han, with the control bytes of 、。，, which no
    text in another encoding holds."""
    sample = data[:4096]
    if len(sample.translate(None, _CONTROLS)) > 0.995 * len(sample):
        return None
    for codec in ("utf-16-le", "utf-16-be"):
        text = _decode(sample, codec)
        if len(_HAN.sub("", text)) < 0.1 * len(text):
            return codec
    return None


def _escaped(data: bytes) -> str | None:
    """7-bit encodings, which look like ASCII."""
    if re.search(rb"\x1b\$[@B]|\x1b\$\([CDG]", data):
        return "iso2022_kr" if b"\x1b$)C" in data else "iso2022_jp_2"
    if b"\x1b$)C" in data:
        return "iso2022_kr"
    return "hz" if _HZ.search(data) else None


def _decode(data: bytes, codec: str) -> str:
    return codecs.getincrementaldecoder(codec)("replace").decode(data)


def _fits(text: str) -> bool:
    """Few U+FFFD among the non-ASCII characters, and no binary data."""
    faults = text.count("\ufffd")
    num_wide = len(text) - len(text.encode("ascii", "ignore")) if faults else 0
    return faults <= MAX_FAULTS * num_wide and _is_text(text)


def _is_text(text: str) -> bool:
    """No binary data."""
    return text.count("\0") * 100 <= len(text)
