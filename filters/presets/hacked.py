"""Pages that do not belong where they stand: what a casino or a forger of papers put on the host of
a university or an office, and the subdomains that farms of one template make up.

It never flags by the address alone, and a page of an institution about gambling speaks of it and
sells nothing: it must advertise too. What an institution does sell (courses, places, halls) it may
advertise. Pornography advertises with words of its own kind alone, so there it is enough. All cuts
are those of `clean` or above, so that what fails here fails there: this says which of it is hacked.
"""

from __future__ import annotations

from filters.presets.clean import CUTS, LANGUAGES
from filters.presets.rules import Rule, below

RANDOM_FROM = 0.5  # 5.5 bits a pair: docs/addresses.md, Hosts
PORNOGRAPHY = 0.5  # several phrases, eight in 1,000 words
_ADS, _UNSAFE = CUTS["ads.score"][0], CUTS["unsafe.score"][0]
_RANDOM = f"hosts.random_label >= {RANDOM_FROM}"
_SOLD = "greatest(unsafe.gambling, unsafe.pornography, unsafe.fraud)"


def _rule(signal: str, cut: float, where: str, reason: str) -> Rule:
    bound = below(cut, "docs/addresses.md, Hosts")
    return Rule(signal, dict.fromkeys(LANGUAGES, bound), where=where, reason=reason)


HACKED: tuple[Rule, ...] = (
    _rule(
        "ads.score",
        _ADS,
        f"hosts.institution and {_SOLD} >= {_UNSAFE}",
        "shady advertisement on the host of an institution",
    ),
    _rule("ads.score", _ADS, _RANDOM, "advertisement on a random host"),
    _rule(
        "unsafe.pornography",
        PORNOGRAPHY,
        f"(hosts.institution or {_RANDOM})",
        "pornography on the host of an institution or a random host",
    ),
)
