"""Numbers that pages of documentation say of lists and tables are those of the lists and tables."""

from __future__ import annotations

import tomllib
from collections import Counter
from pathlib import Path

import pytest

from filters import ads, broken, copied, privacy
from filters.ad_phrases import ENTRIES
from filters.confused_han import PAIRS
from filters.generated import FEATURES
from filters.kept_languages import BY_LANGUAGE, EVERY_LANGUAGE
from filters.presets import CUTS, OWN, RECIPES
from filters.shipped import CATEGORIES
from filters.signals import GROUPS

ROOT = Path(__file__).resolve().parents[2]
WORDS = ROOT / "filters" / "words"


def lines(name: str) -> list[list[str]]:
    text = (WORDS / name).read_text(encoding="utf-8")
    return [line.split("\t") for line in text.splitlines() if line and not line.startswith("#")]


def chrome() -> list[str]:
    return list(tomllib.loads((WORDS / "chrome.toml").read_text(encoding="utf-8"))["rules"])


STRENGTHS = Counter(row[2] for row in lines("unsafe.tsv"))
FACTS: dict[str, list[str]] = {
    "advertising.md": [
        f"({sum(entry.kind != 'mirror' for entry in ENTRIES):,}, ours)",
        f"{len(chrome())} rules",
        f"{len(lines('synonyms.tsv')):,} sets",
        *(f"`{name}`" for name in chrome()),
        *(f"`ads.{name}`" for name in ads.COLUMNS if name != "evidence"),
        *(f"`copied.{name}`" for name in copied.COLUMNS if name != "evidence"),
        f"`ads.score < {CUTS['ads.score'][0]}`",
        f"`copied.score < {CUTS['copied.score'][0]}`",
    ],
    "unsafe.md": [
        *(f"| {strength} | {count} |" for strength, count in STRENGTHS.items()),
        *(f"`{name}`" for name in CATEGORIES),
    ],
    "broken.md": [
        f"{len(PAIRS)} pairs",
        f"`score >= {CUTS['broken.score'][0]}`",
        *(f"| {name} |" for name in broken.COLUMNS if name not in ("score", "evidence")),
    ],
    "generated.md": [f"{len(FEATURES)} features", f"{len(lines('style.tsv'))} rows"],
    "privacy.md": [f"`{text}`" for kind, by in privacy.REPLACEMENTS.items() for text in (kind, by)],
    "language.md": [
        f"{score:.2g}".lstrip("0") for score in (EVERY_LANGUAGE, *BY_LANGUAGE.values())
    ],
    "presets.md": [f"| **{name}** |" for name in (*RECIPES, *OWN)],
    "filters.md": [f"`{name}`" for name in GROUPS],
}


@pytest.mark.parametrize("page", FACTS)
def test_a_page_says_what_the_code_has(page: str) -> None:
    text = (ROOT / "docs" / page).read_text(encoding="utf-8")
    assert [fact for fact in FACTS[page] if fact not in text] == []
