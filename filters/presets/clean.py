"""The cuts of our own detectors: a page that none of them calls an advertisement, unsafe, damaged,
copied or written by a machine.

Each number is the one at which its page of docs/ states recall and false alarms, by genre and
source; benchmarks/detectors.py, which prints them, takes it from here. They are known of English
and Chinese alone. `boilerplate.char_share` has no cut: the lines go, and the page stays.
"""

from __future__ import annotations

from filters.presets.rules import Rule, below

LANGUAGES = ("en", "zh")
CUTS: dict[str, tuple[float, str]] = {  # from here on flagged; page of docs/: why
    "ads.score": (0.2, "advertising.md: fitted on own examples and human text"),
    "unsafe.score": (0.3, "unsafe.md: one severe phrase in 187 words, or a milder one in 104"),
    "broken.score": (0.1, "broken.md: one character of 1,000 is wrong"),
    "copied.score": (0.4, "advertising.md: one phrase of a mirror has .33, two have .5"),
    "generated.score": (0.5, "generated.md: flags .5 % of the pieces it was fitted on"),
}

CLEAN: tuple[Rule, ...] = tuple(
    Rule(signal, {language: below(cut, f"docs/{why}") for language in LANGUAGES})
    for signal, (cut, why) in CUTS.items()
)
