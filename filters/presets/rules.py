"""What a preset is made of, and the SQL of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

HAN_PER_WORD = 1.6  # characters of a Chinese word; FineWeb2's segmenter cuts words of 1.5 to 2


@dataclass(frozen=True)
class Bound:
    """Smallest and largest value that passes, both inclusive unless `is_below`."""

    minimum: float | None
    maximum: float | None
    source: str
    correction: str = ""  # what was wrong in the original, and how it is here
    is_below: bool = False  # the maximum itself fails

    @property
    def is_off(self) -> bool:
        """Is there no rule?"""
        return self.minimum is None and self.maximum is None


def least(minimum: float, source: str, correction: str = "") -> Bound:
    return Bound(minimum, None, source, correction)


def most(maximum: float, source: str, correction: str = "") -> Bound:
    return Bound(None, maximum, source, correction)


def below(maximum: float, source: str) -> Bound:
    return Bound(None, maximum, source, is_below=True)


def off(reason: str) -> Bound:
    """A language goes without the rule, and why."""
    return Bound(None, None, "", reason)


@dataclass(frozen=True)
class Rule:
    """A measure and its bounds. A rule has one for each language of its preset; a kind of Chinese
    (`zh-lzh`: the `lang_variant`) without one of its own has that of `zh`.
    """

    signal: str  # as in the `documents` view
    bounds: Mapping[str, Bound]
    per: str = ""  # a count by which the signal is divided
    where: str = ""  # SQL: of which documents it is asked, where not of all
    reason: str = ""  # what a document that fails is said to be dropped for; "": the rule's name

    @property
    def name(self) -> str:
        named = f"{self.signal} / {self.per}" if self.per else self.signal
        return f"{named} where {self.where}" if self.where else named

    @property
    def value(self) -> str:
        """What is bounded, in SQL."""
        return f"{self.signal} / greatest({self.per}, 1)" if self.per else self.signal

    def bound(self, key: str) -> Bound:
        """Of a language, or of a language and variant."""
        return self.bounds[key] if key in self.bounds else self.bounds[key.split("-")[0]]


# What the kind of a source changes. The rules were made for web pages: code is no prose, and has no
# rules; an answer, a post or a line of dialogue is short by nature, so no minimum of characters,
# words, sentences or lines counts (ChineseWebText's minimum of 200 characters drops question and
# answer, poems and dialogue).
WITHOUT_RULES = ("code",)
# Signal groups that are rules for prose by themselves: of code they say nothing. An identifier is
# no word of an advertisement, a table of bytes no broken text.
PROSE_GROUPS = ("ads", "broken", "copied", "generated", "spun", "unsafe")
SHORT_KINDS = ("qa", "forum", "dialogue")
LENGTHS = (
    *("num_chars", "gopher.num_words", "c4.num_sentences", "c4.sentences_after"),
    *("lines.mean_chars", "lines.num_long"),
)


def in_force(rule: Rule, bound: Bound, kind: str) -> Bound:
    """The bound as it stands for a kind of source; `passes` says the same in SQL."""
    is_exempt = rule.signal in LENGTHS and kind in SHORT_KINDS
    return replace(bound, minimum=None) if is_exempt else bound


def passes(rule: Rule, bound: Bound) -> str:
    """SQL of one rule for one language."""
    tests = []
    if bound.minimum is not None:
        short = f" or kind in {SHORT_KINDS}" if rule.signal in LENGTHS else ""
        tests.append(f"({rule.value} >= {bound.minimum:.10g}{short})")
    if bound.maximum is not None:
        sign = "<" if bound.is_below else "<="
        tests.append(f"{rule.value} {sign} {bound.maximum:.10g}")
    passing = " and ".join(tests)
    return f"(not ({rule.where}) or {passing})" if rule.where else passing


def by_language(rules: Sequence[Rule], sql: Callable[[str], str]) -> str:
    """`sql` of the key of a document's language and variant; NULL for languages without rules."""
    keys = list(dict.fromkeys(key for rule in rules for key in rule.bounds))
    cases = []
    for language in (key for key in keys if "-" not in key):
        found = sql(language)
        variants = [key for key in keys if key.startswith(f"{language}-")]
        if variants:
            named = (f"when '{key.split('-')[1]}' then {sql(key)}" for key in variants)
            found = f"case lang_variant {' '.join(named)} else {found} end"
        cases.append(f"when '{language}' then {found}")
    return f"case lang {' '.join(cases)} end"


def of_prose(sql: str, kind: str = "kind") -> str:
    """NULL for kinds of sources that are no prose; `kind` is its column in SQL."""
    listed = ", ".join(f"'{name}'" for name in WITHOUT_RULES)
    return f"case when {kind} in ({listed}) then null else {sql} end"
