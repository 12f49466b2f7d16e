"""The languages that a corpus is to keep, each from a score on: `languages` of corpus.yaml as SQL.

Like a preset it drops nothing and is not stored: the `documents` view offers it as
`languages.pass`, so another threshold costs one SQL statement.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

# Least `lang_score` where `languages` is a list. Each was published for lid.176, our model.
EVERY_LANGUAGE = 0.5  # cc_net, Wenzek et al. 2019, arXiv:1911.00359, section 3.3
BY_LANGUAGE = {"en": 0.65}  # RefinedWeb, FineWeb and DCLM
# They were chosen for pages; of short English the model is less sure, and still right: see docs.
SHORT_CHARS, SHORT = 200, {"en": 0.3}


def thresholds(languages: Iterable[str] | Mapping[str, float]) -> dict[str, float]:
    """Language -> least score, of a list of languages or of such a mapping."""
    if isinstance(languages, Mapping):
        return dict(languages)
    return {name: BY_LANGUAGE.get(name, EVERY_LANGUAGE) for name in languages}


def expression(languages: Iterable[str] | Mapping[str, float]) -> str:
    """SQL that is true where a document is of one of the languages, with at least its score; it is
    false elsewhere, never NULL. Codes are those of filters/language.py, so they need no quoting.
    Scores that are given hold for every length.
    """
    short = {} if isinstance(languages, Mapping) else SHORT
    kept = thresholds(languages)
    tests = [
        f"lang = '{name}' and lang_score >= {_score(score, short.get(name))}"
        for name, score in kept.items()
    ]
    return " or ".join(tests) or "false"


def _score(score: float, short: float | None) -> str:
    if short is None:
        return f"{score:.10g}"
    return f"case when num_chars < {SHORT_CHARS} then {short:.10g} else {score:.10g} end"
