"""RefinedWeb, and DCLM's reproduction of it: Gopher's rules, and pages that lose few lines."""

from __future__ import annotations

from filters.presets.gopher import GOPHER
from filters.presets.rules import Rule, least, most

_REFINEDWEB = "RefinedWeb, Penedo et al. 2023, section G.2; DCLM dclm_baseline_refinedweb.yaml"

REFINEDWEB: tuple[Rule, ...] = (
    Rule("lang_score", {"en": least(0.65, _REFINEDWEB), "zh": least(0.65, _REFINEDWEB)}),
    *GOPHER,
    Rule(
        "lines.removed_word_share",
        {
            "en": most(0.05, _REFINEDWEB),
            "zh": most(
                0.05,
                _REFINEDWEB,
                "a line of one word is one of under 3 characters; counters are known in Chinese",
            ),
        },
    ),
)
DCLM = REFINEDWEB  # its heuristics are the same; its lists of addresses are other ones
