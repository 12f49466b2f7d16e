"""Addresses: of mail and of machines. Rules as in private_numbers.py."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterator

from filters.private_numbers import Span

# Of what RFC 5322 allows in a local part what people use: an = or a quote before a name is none of
# it. Labels as in RFC 1035; a top-level domain is letters, so name@1.2.3 (a version) is no address.
_OF_LOCAL = frozenset(b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789._%+-")
_DOMAIN = re.compile(
    rb"(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.){1,8}"
    rb"(?:[a-z]{2,24}|[A-Z]{2,24})(?![A-Za-z0-9@-])"
)
# RFC 2606 and 6761: names for documentation and tests; git@ is how a repository is written.
_NOBODY = re.compile(
    rb"^git@|[@.](?:example(?:\.(?:com|org|net))?|test|invalid|localhost|local)$", re.I
)
# icon@2x.png and style@media.css are files.
_FILE = re.compile(
    rb"@\dx\.|\.(?:png|jpe?g|gif|svg|webp|bmp|ico|css|html?|json|xml|ya?ml|txt|pdf)$", re.I
)


def emails(text: bytes, begin: int, end: int) -> Iterator[Span]:
    local = begin
    while local > max(0, begin - 65) and text[local - 1] in _OF_LOCAL:
        local -= 1
    while local < begin and text[local] in b".%+-":
        local += 1
    domain = _DOMAIN.match(text, end)
    if domain is None or not 1 <= begin - local <= 64:
        return
    if local and text[local - 1] == 0x3A and b"://" in text[max(0, local - 100) : local]:
        return  # user:password@host
    found = text[local : domain.end()]
    if not _NOBODY.search(found) and not _FILE.search(found):
        yield local, domain.end()


_IPV4 = re.compile(
    rb"(?<![A-Za-z0-9_.-])(?:\d{1,3}\.){3}\d{1,3}(?![A-Za-z0-9_])(?!-[A-Za-z0-9])(?!\.\d)"
)
_VERSION = re.compile(
    "(?:[A-Za-z]/|\\b(?:v|ver|versions?|release|build|update|rev|kernel|section|chapter|oid)|版(?:本(?:号)?)?"
    "|第|章|节)[^0-9A-Za-z]{0,3}$".encode(),
    re.I,
)
_MACHINE = re.compile(
    "(?:\\bip|addr|host|server|dns|ping|from|gateway|peer|client|地址|服务器|主机)[^\\n0-9\\]]{0,20}$"
    "|//$|@$|\\(\\[$".encode(),
    re.I,
)
_PORT = re.compile(rb":\d{2,5}(?!\d)|/\d{1,2}(?!\d)")
# The head of a section, at the start of its line: 36.7.2.1. SQLDA (64 of 70 hits in PostgreSQL's
# manual).
_LINE_START = re.compile(rb"(?:^|\n)[ \t]*$")
_HEADING = re.compile(rb"\.(?:[ \t]|\xc2\xa0)+\S")  # or a no-break space
# Four small numbers are versions and sections more often than addresses (2.6.32.71, 9.0.8112):
# below this first number something beside them has to speak of a machine.
_SMALL = 24


def ipv4(text: bytes, begin: int, end: int) -> Iterator[Span]:
    for match in _IPV4.finditer(text, begin, end + 2):
        groups = match[0].split(b".")
        if any(len(group) > 1 and group[0] == 0x30 for group in groups):
            continue
        if max(map(int, groups)) > 255 or not _is_public(match[0].decode()):
            continue
        before = text[max(0, match.start() - 24) : match.start()]
        if _VERSION.search(before):
            continue
        if _HEADING.match(text, match.end()) and _LINE_START.search(before):
            continue
        if int(groups[0]) >= _SMALL or _MACHINE.search(before) or _PORT.match(text, match.end()):
            yield match.span()


_IPV6 = re.compile(rb"[23][0-9A-Fa-f]{3}:[0-9A-Fa-f:]{2,34}(?:\.\d{1,3}){0,3}(?![A-Za-z0-9_])")


def ipv6(text: bytes, begin: int, end: int) -> Iterator[Span]:
    match = _IPV6.match(text, begin)
    found = match[0].rstrip(b":") if match else b""
    if found.count(b":") >= 2 and _is_public(found.decode()):
        yield begin, begin + len(found)


# Public resolvers: Google, Cloudflare, Quad9, 114DNS, AliDNS, DNSPod.
_EVERYBODYS = frozenset(
    "8.8.8.8 8.8.4.4 1.1.1.1 1.0.0.1 9.9.9.9 114.114.114.114 223.5.5.5 119.29.29.29".split()
)


def _is_public(written: str) -> bool:
    """Reserved, private and documentation ranges (RFC 5737, 3849) are nobody's."""
    try:
        address = ipaddress.ip_address(written)
    except ValueError:
        return False
    return address.is_global and not address.is_multicast and written not in _EVERYBODYS
