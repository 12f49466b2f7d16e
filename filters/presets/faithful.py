"""datatrove 0.10.1's own decisions, over its own numbers: filters/faithful_rules.py as presets."""

from __future__ import annotations

from filters import faithful_rules
from filters.presets.rules import Bound, Rule

FAITHFUL: dict[str, tuple[Rule, ...]] = {
    preset: tuple(
        Rule(f"{group}.{signal}", {"en": Bound(low, high, "datatrove 0.10.1")}, reason=reason)
        for signal, low, high, reason in rules
    )
    for preset, (group, rules) in faithful_rules.FAITHFUL.items()
}
