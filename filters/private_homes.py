"""Addresses of homes, as hints: Chinese ones down to the room, and streets of the United States and
the United Kingdom with their postal code. Rules as in private_numbers.py.

What an institution or a shop gives as its address is not wanted: a floor, a tower, a suite, or a
company's name before the street, and it is none.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from filters.private_numbers import Span

# Down to the room of a block of flats: 中山路12号3号楼502室. A street and a number alone are as
# often those of a shop, and so is what names a floor, a tower or a mall.
# Read from its end: the room, the block, the street. Each takes as much as it can, which of all
# addresses that end there is the longest.
_HOME = re.compile(
    r"[室户戶]\d{1,4}(?:"
    r"[\u4e00-\u9fff0-9（）()—-]{0,12}(?:楼号|樓號|[栋棟幢座]|元单|元單)(?:\d{1,3}|[A-Z])"
    r"[\u4e00-\u9fffA-Za-z0-9（）()—-]{0,24}[路街道巷弄村里园苑城庭区號号]"
    r"|[号號]\d{1,4}弄\d{1,4}[路街道])"  # as in Shanghai: 张江路100弄5号201室
    r"[\u4e00-\u9fffA-Za-z0-9]{2,30}"
)
_CLAUSE = re.compile(r"[，。；：、！？,;:!?\s]")
_SHOP = re.compile("大厦|大廈|广场|廣場|商场|中心|写字楼|科技|商铺|[层層]|\\d楼")
_REACH = 150  # bytes: 50 Han characters


def rooms(text: bytes, begin: int, end: int) -> Iterator[Span]:
    last = end + 3
    before = text[max(0, begin - _REACH) : last].decode("utf-8", "ignore")
    match = _HOME.match(before[::-1])
    if match and not _SHOP.search(_CLAUSE.split(before)[-1]):
        yield last - len(match[0].encode()), last


# A number, a street by its kind, a town, and the postal code: 221 Baker Street, Springfield, IL
# 62704. Without the code a street is as often a stage of a tale. Names of kinds: United States
# Postal Service, Publication 28, appendix C1, the commonest, and those of British towns.
_KINDS = (
    rb"(?:St(?:reet)?|Ave(?:nue)?|R(?:oad|d)|B(?:oulevard|lvd)|Dr(?:ive)?|L(?:ane|n)|C(?:our)?t"
    rb"|Cir(?:cle)?|Pl(?:ace)?|Ter(?:race)?|Way|P(?:arkway|kwy)|Tr(?:ai)?l|Sq(?:uare)?"
    rb"|H(?:ighway|wy)|Close|Gardens|Crescent|Mews|Grove|Hill|Row|Walk)\.?"
)
_SIDE = rb"(?:[NSEW]|[NS][EW]|North|South|East|West)\.?"
_NAME = rb"(?:[A-Z][a-z'.-]{1,20}[A-Za-z]?|\d{1,3}(?:st|nd|rd|th)) "
_NEXT = rb"(?:, ?|,?[ \t]*\r?\n[ \t]*)"  # the next part, on the same line or the next
_STREET = (
    rb"(?<![\w.,$#/-])(?:(?:Flat|Apt\.?|Unit) \w{1,4}" + _NEXT + rb")?"
    rb"\d{1,6}[A-Za-z]?,? (?:" + _SIDE + rb" )?(?:" + _NAME + rb"){1,4}" + _KINDS + rb"(?: " + _SIDE
    + rb")?(?:(?:" + _NEXT + rb"| )(?:(?:Apt|Apartment|Unit|Flat)\.? ?#? ?|# ?)\w{1,5})?"
)  # fmt: skip
_TOWN = rb"[A-Z][a-z'.-]{1,20}(?: [A-Z][a-z'.-]{1,20}){0,3}"
_US = re.compile(
    _STREET + _NEXT + _TOWN + rb",? (?:A[KLRZ]|C[AOT]|D[CE]|FL|GA|HI|I[ADLN]|K[SY]|LA|M[ADEINOST]"
    rb"|N[CDEHJMVY]|O[HKR]|P[AR]|RI|S[CD]|T[NX]|UT|V[AT]|W[AIVY]) \d{5}(?:-\d{4})?(?![\w-])"
)
_UK = re.compile(  # letters of the inward code: Royal Mail, Programmers' Guide, edition 7
    _STREET + rb"(?:" + _NEXT + _TOWN + rb"){1,2}(?:" + _NEXT + rb"| )"
    rb"[A-Z]{1,2}\d[A-Z\d]? \d[ABD-HJLNP-UW-Z]{2}(?![\w-])"
)
_OFFICE = re.compile(
    rb"\b(?:Inc|Corp|LLC|Ltd|Limited|PLC|Co|Company|Foundation|Institute|University|College|School"
    rb"|Library|Department|Dept|Ministry|Office|Bank|Church|Hospital|Society|Association|Press"
    rb"|Publish(?:ing|ers)|Hotel|Restaurant|Store|Shop|Museum|Headquarters)\b", re.I
)  # fmt: skip
_STREET_REACH = 200  # bytes before the code
_OFFICE_REACH = 60  # bytes before the street


def streets(text: bytes, begin: int, end: int) -> Iterator[Span]:
    first, last = max(0, begin - _STREET_REACH), end + 8
    for code in (_US, _UK):
        for match in code.finditer(text, first, last):
            start, stop = match.span()
            if stop <= begin or _OFFICE.search(text, max(0, start - _OFFICE_REACH), start):
                continue
            yield start, stop


def homes(text: bytes, begin: int, end: int) -> Iterator[Span]:
    yield from rooms(text, begin, end)
    yield from streets(text, begin, end)
