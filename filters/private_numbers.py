"""Numbers that belong to one person: telephones, identity cards, bank cards, passports.

Each rule takes a text (UTF-8 bytes) and the range of a mark (private_marks.py) and yields ranges.
A number counts only by itself: not as a part of a longer one, of a word, an address or a path. The
borders are bytes of ASCII, so a Han character beside it is one, where `\\b` is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date

from filters.private_marks import PASSPORT_REACH

Span = tuple[int, int]

# What may stand before and after: no letter, digit or sign that makes it a piece of something.
_BEFORE = rb"(?<![A-Za-z0-9_.=&%#@])(?<![A-Za-z/]/)(?<![A-Za-z0-9]-)"
_AFTER = rb"(?![A-Za-z0-9_@])(?![.-]\d)"
_DASH = rb"(?:[- ]|\xef\xbc\x8d|\xe2\x80[\x93\x94])"  # also － – —
_CHINA = rb"(?:(?:\+|00)86" + _DASH + rb"?)"
# Ministry of Industry and Information Technology, numbering plan of 2024: what begins a mobile
# number; 14 of a SIM for machines left out.
_MOBILE = re.compile(
    _BEFORE + rb"(?<!\+)(?:" + _CHINA + rb"|86" + _DASH + rb")?"
    rb"1(?:3\d|4[5-9]|5[0-35-9]|6[2567]|7[0-8]|8\d|9[0-35-9])([- ]?)(\d{4})\1(\d{4})" + _AFTER
)
_AREA = rb"(?:10|2[0-57-9]|[3-9]\d\d)"  # 010 Beijing, 02x the large cities, 03xx to 09xx the others
_LANDLINE = re.compile(
    _BEFORE
    + rb"(?:"
    + _CHINA
    + rb"?(?:(?:\(|\xef\xbc\x88)0"
    + _AREA
    + rb"(?:\)|\xef\xbc\x89) ?|0"
    + _AREA
    + _DASH
    + rb")|"
    + _CHINA
    + _AREA
    + _DASH
    + rb")"
    rb"[2-8](?:\d{6,7}|\d{3}[- ]\d{4})" + _AFTER  # not 3 and 4: British 0871
)
# North American Numbering Plan: area and exchange begin with 2 to 9. 555-01xx is for fiction.
_AMERICAN = re.compile(
    _BEFORE + rb"(?<![+-])(?:\+?1[-. ])?(?:\([2-9]\d\d\) ?|[2-9]\d\d[-.])"
    rb"(?!555[-.]01)[2-9]\d\d[-. ]\d{4}" + _AFTER
)
_INTERNATIONAL = re.compile(
    rb"(?<![A-Za-z0-9_+)\]])\(?\+[1-9]\d{0,3}\)?(?:[-. ]?\(?\d{1,4}\)?){2,6}" + _AFTER
)


def phones(text: bytes, begin: int, end: int) -> Iterator[Span]:
    window = max(0, begin - 4), end + 2  # with a bracket or a plus before, and what stands after
    for match in _MOBILE.finditer(text, *window):
        if len(set(match[2] + match[3])) > 2:  # 13800000000 and the like are nobody's
            yield match.span()
    for match in _LANDLINE.finditer(text, *window):
        yield match.span()
    for match in _AMERICAN.finditer(text, *window):
        yield match.span()
    for match in _INTERNATIONAL.finditer(text, *window):
        digits = re.sub(rb"\D", b"", match[0])
        if 8 <= len(digits) <= 15 and (len(digits) >= 10 or len(match[0]) > len(digits) + 1):
            yield match.span()


# GB/T 2260: what begins the number of a place.
_PROVINCES = frozenset(
    b"11 12 13 14 15 21 22 23 31 32 33 34 35 36 37 41 42 43 44 45 46 50 51 52 53 54 61 62 63 64 65 "
    b"71 81 82 83".split()
)
_WEIGHTS = (7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2)  # GB 11643-1999, 7.3
_ID = re.compile(rb"(?<![A-Za-z0-9_])(?:[1-8]\d{16}[\dXx]|[1-8]\d{14})(?![A-Za-z0-9_])")
_ID_WORDS = re.compile("身份|证件|證件|居民|ID (?:card|number|no)|identity".encode(), re.I)


def resident_ids(text: bytes, begin: int, end: int) -> Iterator[Span]:
    """Chinese resident identity numbers: 18 digits with their checksum; 15, which have none, only
    where a word before says so."""
    for match in _ID.finditer(text, begin, end + 2):
        found = match[0]
        if found[:2] not in _PROVINCES:
            continue
        if len(found) == 18:
            if _is_date(found[6:14]) and b"10X98765432"[_remainder(found)] == found.upper()[17]:
                yield match.span()
        elif _is_date(b"19" + found[6:12]) and _ID_WORDS.search(text, max(0, begin - 40), begin):
            yield match.span()


def _remainder(found: bytes) -> int:
    return sum(weight * (digit - 48) for weight, digit in zip(_WEIGHTS, found, strict=False)) % 11


def _is_date(found: bytes) -> bool:
    try:
        return date(int(found[:4]), int(found[4:6]), int(found[6:])).year >= 1900
    except ValueError:
        return False


# Of cards that Chinese and American banks issue (ISO/IEC 7812): UnionPay 62, Visa 4, Mastercard 51
# to 55 and 2221 to 2720, American Express 34 and 37, Discover 6011 and 65, JCB 35.
_CARD = re.compile(
    rb"(?<![A-Za-z0-9_.=&%#/-])"
    rb"(?:\d{4}([ -]?)\d{4}\1\d{4}\1\d{4}(?:\1\d{3})?|3[47]\d\d([ -]?)\d{6}\2\d{5})"
    rb"(?![A-Za-z0-9_])(?![.-]\d)"
)
_ISSUER = re.compile(rb"62|4|5[1-5]|2(?:22[1-9]|2[3-9]|[3-6]|7[01]|720)|3[457]|6011|65")
_CARD_WORDS = re.compile(
    "卡号|卡號|银行|銀行|信用卡|账号|帐号|帳號|card|account|visa|amex|unionpay".encode(), re.I
)


def bank_cards(text: bytes, begin: int, end: int) -> Iterator[Span]:
    """Numbers of bank cards, by issuer and Luhn's digit. One in ten numbers passes Luhn by chance,
    so one without groups needs a word before it, or the 62 of UnionPay and its 16 or 19 digits."""
    for match in _CARD.finditer(text, begin, end + 2):
        digits = re.sub(rb"\D", b"", match[0])
        if not _ISSUER.match(digits) or not _luhn(digits) or len(set(digits)) < 3:
            continue
        grouped = len(match[0]) > len(digits)
        near = _CARD_WORDS.search(text, max(0, begin - 40), begin)
        if grouped or digits.startswith(b"62") or near:
            yield match.span()


def _luhn(digits: bytes) -> bool:
    values = [digit - 48 for digit in reversed(digits)]
    doubled = (sum(divmod(2 * value, 10)) for value in values[1::2])
    return (sum(values[::2]) + sum(doubled)) % 10 == 0


_PASSPORT = re.compile(rb"(?<![A-Za-z0-9_])(?:[A-Za-z]{1,2})?\d{7,9}(?![A-Za-z0-9_])")


def passports(text: bytes, begin: int, end: int) -> Iterator[Span]:
    """A number of 7 to 9 digits, one or two letters before it, after a word that says so: passports
    have no checksum, and E12345678 alone is a part number as often."""
    for match in _PASSPORT.finditer(text, max(0, begin - 2), end + 1):
        if match.end() > begin and match.start() > begin - PASSPORT_REACH:
            yield match.span()
