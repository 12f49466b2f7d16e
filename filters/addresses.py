"""Addresses of pages: their host and path in one form, and the keys by which lists know them.

Two spellings of one address have one form: `HTTPS://user@WWW.Bücher.example.:443/A%42#top` is host
`www.xn--bcher-kva.example` and path `/ab`. A host is in lower case and in punycode (IDNA 2003, as
Python encodes it), without credentials, port and final dot; a path with its query is unquoted and
in lower case, without fragment and final slash.
"""

from __future__ import annotations

import functools
import re
import unicodedata
from pathlib import Path
from urllib.parse import unquote

SUFFIXES_FILE = "words/public_suffixes.tsv"  # in filters/
MAX_PREFIXES = 32  # of a path: entries that go deeper are refused
MAX_HAN = 8  # characters of a Han word that is looked for inside a run

_AUTHORITY = re.compile(r"(?:[a-z][a-z0-9+.-]*:)?[/\\]{2,}", re.IGNORECASE)
_OTHER = re.compile(r"[a-z][a-z0-9+.-]*:(?![\d/\\])[^/\\]*@?", re.IGNORECASE)  # mailto:, data:
_HOST_END = re.compile(r"[/\\?#]")
_PORT = re.compile(r":\d*$")
_WWW = re.compile(r"www\d*\.(?=.*\.)")
_BOUNDARY = re.compile(r"[/?&]|$")
_TOKEN = re.compile(r"[^\W_]+")
_INSTITUTIONS = ("edu", "gov", "mil", "org.cn")
_INSTITUTION = re.compile(r"(?:ac|edu|gov|mil|gob|gouv|govt|go|police|sch|k12|school)\.[a-z]{2}")
_LETTERS = re.compile("[a-z]{3,}")
_HAN_RUN = re.compile(r"[\u3400-\u4dbf\u4e00-\u9fff]+")


def parse(url: str) -> tuple[str, str]:
    """Host and path; both empty where there is no host."""
    host, path = split(url)
    return host, unquote(path.partition("#")[0]).lower().replace("\\", "/").rstrip("/")


def split(url: str) -> tuple[str, str]:
    """Host, and what stands behind it as it is; both empty where there is no host."""
    url = url.strip()
    start = _AUTHORITY.match(url)
    if start is None and _OTHER.match(url):
        return "", ""
    rest = url[start.end() :] if start else url
    end = _HOST_END.search(rest)
    host, path = (rest[: end.start()], rest[end.start() :]) if end else (rest, "")
    host = _host(host.rpartition("@")[2])
    return (host, path) if host else ("", "")


def _host(host: str) -> str:
    host = unquote(_PORT.sub("", host))
    host = unicodedata.normalize("NFKC", host).replace("。", ".").lower().strip(".")
    if host.isascii():
        return host
    try:
        return host.encode("idna").decode("ascii")
    except UnicodeError:  # a label that is too long, or none at all
        return host


def without_www(host: str) -> str:
    return _WWW.sub("", host, count=1)


def domain_keys(host: str) -> list[str]:
    """The host, and each domain that it stands under: `a.b.c`, `b.c`, `c`."""
    labels = host.split(".")
    if not host or labels[-1].isdigit() or host.startswith("["):  # an address in numbers
        return [host] if host else []
    return [".".join(labels[at:]) for at in range(len(labels))]


def path_keys(host: str, path: str) -> list[str]:
    """The host without its www, with each beginning of the path that ends at a / ? or &."""
    if not host or not path:
        return []
    ends = [match.start() for match in _BOUNDARY.finditer(path, 1)][:MAX_PREFIXES]
    return [without_www(host) + path[:end] for end in ends]


def word_keys(host: str, path: str) -> list[str]:
    """`*word*` for each run of letters and digits, and for each Han word inside a run of Han."""
    if "xn--" in host:
        host = _unicode(host)
    tokens = set(_TOKEN.findall(host + path))
    for token in tuple(tokens):
        if not token.isascii():
            for run in _HAN_RUN.findall(token):
                tokens.update(
                    run[at : at + length]
                    for length in range(1, MAX_HAN + 1)
                    for at in range(len(run) - length + 1)
                )
    return [f"*{token}*" for token in sorted(tokens)]


def _unicode(host: str) -> str:
    try:
        return host.encode("ascii").decode("idna")
    except UnicodeError:
        return host


@functools.cache
def _suffixes() -> dict[str, str]:
    """Rule of the Public Suffix List -> its section, icann or private."""
    text = (Path(__file__).parent / SUFFIXES_FILE).read_text(encoding="ascii")
    return dict(line.split("\t") for line in text.splitlines())


@functools.cache
def institutions() -> frozenset[str]:
    """Suffixes that are kept for schools, governments and armed forces: `edu`, `edu.cn`, `ac.uk`;
    and `org.cn`, where in China an association registers."""
    return frozenset(
        rule
        for rule, section in _suffixes().items()
        if section == "icann" and (rule in _INSTITUTIONS or _INSTITUTION.fullmatch(rule))
    )


@functools.cache
def ordinary_labels() -> frozenset[str]:
    """Words of the Public Suffix List, mostly names of trades and places, of 3 letters or more."""
    words = {word for rule in _suffixes() for word in re.split("[.-]", rule)}
    return frozenset(word for word in words if _LETTERS.fullmatch(word))


def is_registry(domain: str) -> bool:
    """Is it a domain under which anyone registers, such as `com` or `co.uk`?"""
    rules = _suffixes()
    above = domain.partition(".")[2]
    return f"!{domain}" not in rules and "icann" in (rules.get(domain), rules.get(f"*.{above}"))


def site(host: str) -> str:
    """The domain that one owner registered: `a.b.co.uk` is of `b.co.uk`, `me.github.io` of itself;
    a public suffix and an address in numbers are of themselves."""
    rules = _suffixes()
    domains = domain_keys(host)
    for at, domain in enumerate(domains):
        if f"!{domain}" in rules:
            return domain
        above = domain.partition(".")[2]
        if domain in rules or f"*.{above}" in rules or not above:
            return domains[max(at - 1, 0)]
    return host
