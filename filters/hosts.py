"""Signal group `hosts`: what a host says about who may write there, whatever the page says.

`institution`: the host stands under a suffix that is kept for schools, governments and armed forces
(edu.cn, gov.cn, ac.uk, edu), or under org.cn. `random_label`: how random the least ordinary of its
labels looks. Neither says anything against a page; a page of a casino there does, because both are
how hacked hosts and farms of subdomains look. The preset `hacked` asks for both.

A label is cut at - and _; a part of fewer than SHORTEST characters, of digits alone or in punycode
is ordinary (www, m, 163, 12306). Of another, by the letters of ordinary labels,

    surprise = mean over its pairs of characters of -log2 p(second | first)
    random_label = (surprise - ORDINARY) / (RANDOM - ORDINARY), in 0..1

p is counted, with one added to each pair, in the labels of the Public Suffix List (5,600 words and
names of places) and in Pinyin, whose syllables stand beside each other in any order. A pair of
digits costs DIGITS, one of a digit and a letter MIXED.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from collections import Counter
from collections.abc import Mapping

import pyarrow as pa

from filters.addresses import domain_keys, institutions, ordinary_labels, parse, site
from filters.columns import Signal
from filters.pinyin import SYLLABLES
from filters.segments import Texts

SHORTEST = 5
LONGEST_HOST = 253  # RFC 1035; what is longer is no host
ORDINARY, RANDOM = 4.0, 7.0  # bits a pair: the median of real labels is 4.0, of random ones 6.1
DIGITS, MIXED = 4.0, 6.5
PINYIN_WEIGHT = 8  # a syllable counts as so many labels: half of all pairs are then Pinyin

_PARTS = re.compile(r"[^a-z0-9]+")
_LETTERS = 26

COLUMNS: dict[str, Signal] = {
    "institution": Signal(
        pa.bool_(), "text", "the host is under a suffix of an institution", "Public Suffix List"
    ),
    "random_label": Signal(
        pa.float32(), "characters", "0..1: how random a label looks; 0 without an address", "assay"
    ),
    "label": Signal(pa.string(), "text", "that label; empty where none looks random", "assay"),
    "site": Signal(
        pa.string(),
        "text",
        "the domain that was registered; empty without one",
        "Public Suffix List",
    ),
}


def measure(texts: Texts, columns: Mapping[str, pa.Array]) -> Mapping[str, pa.Array]:
    """All columns of `COLUMNS` for a batch, by its `domain`; see filters/signals.py."""
    found = [_of(domain or "") for domain in columns["domain"].to_pylist()]
    return {
        name: pa.array([row[at] for row in found], signal.type)
        for at, (name, signal) in enumerate(COLUMNS.items())
    }


@functools.lru_cache(65_536)
def _of(domain: str) -> tuple[bool, float, str, str]:
    """The columns of a host."""
    host = parse(domain)[0] if len(domain) <= LONGEST_HOST else ""
    domains = domain_keys(host)
    registered = site(host)
    labels = host.removesuffix(registered.partition(".")[2]).split(".") if len(domains) > 1 else []
    score, label = max(((randomness(label), label) for label in labels), default=(0.0, ""))
    is_institution = not institutions().isdisjoint(domains)
    return is_institution, score, label if score else "", registered


def randomness(label: str) -> float:
    """0..1 of the least ordinary part of a label."""
    if label.startswith("xn--"):
        return 0.0
    parts = [p for p in _PARTS.split(label) if len(p) >= SHORTEST and not p.isdigit()]
    surprise = max(map(_surprise, parts), default=0.0)
    return min(max((surprise - ORDINARY) / (RANDOM - ORDINARY), 0.0), 1.0)


def _surprise(part: str) -> float:
    pairs, firsts = _counts()
    bits = 0.0
    for first, second in itertools.pairwise(part):
        num_digits = first.isdigit() + second.isdigit()
        if num_digits:
            bits += DIGITS if num_digits == 2 else MIXED
        else:
            bits -= math.log2((pairs[first + second] + 1) / (firsts[first] + _LETTERS))
    return bits / (len(part) - 1)


@functools.cache
def _counts() -> tuple[Counter[str], Counter[str]]:
    """Pairs of letters in ordinary labels and Pinyin, and how often each begins with its first."""
    pairs: Counter[str] = Counter()
    for word in ordinary_labels():
        pairs.update(map("".join, itertools.pairwise(word)))
    for syllable in SYLLABLES:
        for pair in map("".join, itertools.pairwise(syllable)):
            pairs[pair] += PINYIN_WEIGHT
    begins = Counter(syllable[0] for syllable in SYLLABLES)
    for end, num_ends in Counter(syllable[-1] for syllable in SYLLABLES).items():
        for begin, num_begins in begins.items():
            pairs[end + begin] += PINYIN_WEIGHT * num_ends * num_begins // len(SYLLABLES)
    firsts: Counter[str] = Counter()
    for pair, times in pairs.items():
        firsts[pair[0]] += times
    return pairs, firsts
