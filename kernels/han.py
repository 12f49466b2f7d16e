"""Traditional to simplified Chinese, one character at a time.

For comparing text across scripts, not for rewriting it: characters with several simplified forms
get OpenCC's first one (乾 becomes 干, also in 乾坤). Origin and licence: filters/words/README.md.
"""

from __future__ import annotations

from pathlib import Path

SIMPLIFIED = Path(__file__).with_name("simplified.tsv")

TRADITIONAL_TO_SIMPLIFIED: dict[str, str] = {
    line[0]: line[2] for line in SIMPLIFIED.read_text(encoding="utf-8").splitlines()
}
