"""The signal groups of a corpus: those of the table that `signals` names, and those that other keys
of corpus.yaml make, each for itself: own lists, models, recipes as they were published. And the
rules that change text, which `edits` names.
"""

from __future__ import annotations

import functools
import importlib.util
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from filters import (
    addresses,
    cards,
    classifier,
    faithful,
    faithful_groups,
    lists,
    perplexity,
    url_lists,
    urls,
)
from filters.editors import EDITORS, Editor
from filters.signals import GROUPS, Group
from pipeline import schema
from pipeline.config import ConfigError, suggestion
from pipeline.fingerprint import versions
from pipeline.settings import CorpusSettings
from pipeline.transforms import across_edits, decontaminate, substrings

# Measured of every corpus: what the engine's speed is stated with.
DEFAULT = ("language", "gopher", "c4", "fineweb")
SETS: dict[str, tuple[str, ...]] = {"default": DEFAULT, "all": tuple(GROUPS)}

# What stands in `documents` beside groups.
TAKEN = {*schema.DOCUMENTS.names, *schema.TOKEN_COUNTS.names, *GROUPS["language"].columns}


def _classifiers(settings: CorpusSettings) -> dict[str, Group]:
    return {
        name: Group(
            functools.partial(classifier.measure, model),
            classifier.COLUMNS,
            ("filters.classifier",),
            cards.files(model),
        )
        for name, model in settings.classifiers.items()
    }


def _perplexity(settings: CorpusSettings) -> dict[str, Group]:
    if settings.perplexity is None:
        return {}
    return {
        "perplexity": Group(
            functools.partial(perplexity.measure, settings.perplexity),
            perplexity.COLUMNS,
            ("filters.perplexity",),
            cards.files(settings.perplexity),
        )
    }


def edges_of(settings: Mapping[str, Any]) -> dict[str, str | None]:
    """Learned group -> hash of the edges in the card that these settings name, as it is now."""
    models = dict(settings["classifiers"])
    if settings["perplexity"]:
        models["perplexity"] = settings["perplexity"]
    return {name: cards.edges_hash(model) for name, model in models.items()}


def has_other_edges(found: Mapping[str, Any], group: str) -> bool:
    """Was `group` of the corpus with this manifest measured with other edges than its card has now?
    Not told of a corpus of an earlier version, or where the card is not on this machine."""
    measured = found.get("edges", {}).get(group)
    now = edges_of(found["settings"]).get(group)
    return bool(measured and now and measured != now)


def _lists(settings: CorpusSettings) -> dict[str, Group]:
    paths = tuple(settings.lists.items())
    if not paths:
        return {}
    return {
        "lists": Group(
            functools.partial(lists.measure, paths),
            lists.columns(paths),
            ("filters.lists",),
            (*(path for _, path in paths), *lists.FILES),
            settings=[name for name, _ in paths],
        )
    }


def _faithful(settings: CorpusSettings) -> dict[str, Group]:
    if settings.faithful and importlib.util.find_spec("spacy") is None:
        raise ConfigError(
            "key `faithful`: datatrove's words are those of spaCy, which is not installed; "
            "pip install 'assay[faithful]', or leave the key out"
        )
    return {
        f"{name}_faithful": Group(
            faithful_groups.MEASURES[name],
            faithful_groups.COLUMNS[name],
            ("filters.faithful_groups",),
            (faithful.MARKS_FILE,),
            settings=versions(["spacy"]),
        )
        for name in settings.faithful
    }


def _urls(settings: CorpusSettings) -> dict[str, Group]:
    try:
        block = url_lists.list_files(settings.urls.block)
        allow = url_lists.list_files(settings.urls.allow)
    except ValueError as error:
        raise ConfigError(f"key `urls`: {error}") from error
    if not block and not allow:
        return {}
    files = [path for _, path in (*block, *allow)]
    return {
        "urls": Group(
            functools.partial(urls.measure, block, allow),
            urls.COLUMNS,
            ("filters.urls",),
            (addresses.SUFFIXES_FILE, *files),
            ("url",),
            [[category for category, _ in block], len(allow)],
        )
    }


def _contamination(settings: CorpusSettings) -> dict[str, Group]:
    if not settings.decontaminate.sets:
        return {}
    root = Path(settings.output or "")  # stages.py knows better where the index is
    return {decontaminate.NAME: decontaminate.group(root, settings.decontaminate)}


def _across(settings: CorpusSettings) -> dict[str, Group]:
    if not settings.across.units:
        return {}
    return {
        across_edits.NAME: Group(
            across_edits.not_by_text,
            across_edits.columns(settings.across),
            ("pipeline.transforms.across_edits",),
            settings=_share(settings),
        )
    }


def _share(settings: CorpusSettings) -> float | None:
    return None if settings.across.site_lines is None else settings.across.site_lines.share


def _substrings(settings: CorpusSettings) -> dict[str, Group]:
    if settings.substrings.min_bytes is None:
        return {}
    modules = ("pipeline.transforms.substrings",)
    return {substrings.NAME: Group(across_edits.not_by_text, substrings.COLUMNS, modules)}


# Key of corpus.yaml -> what makes its groups: name -> group, in order.
MAKERS: dict[str, Callable[[CorpusSettings], dict[str, Group]]] = {
    "faithful": _faithful,
    "urls": _urls,
    "classifiers": _classifiers,
    "perplexity": _perplexity,
    "lists": _lists,
    "decontaminate": _contamination,
    "across": _across,
    "substrings": _substrings,
}


def groups(settings: CorpusSettings) -> dict[str, Group]:
    """Name -> group, in the order in which they are measured.

    Raises:
        ConfigError: no group of that name; two of one name.
    """
    found: dict[str, Group] = {}
    for named in settings.signals:
        for name in SETS.get(named, (named,)):
            if name not in GROUPS:
                hint = suggestion(name, (*SETS, *GROUPS))
                raise ConfigError(f"key `signals`: no group {name!r}; {hint}")
            found[name] = GROUPS[name]
    for key, make in MAKERS.items():
        for name, group in make(settings).items():
            if name in TAKEN:
                raise ConfigError(f"key `{key}`: {name!r} is the name of a column; choose another")
            if name in found or name in GROUPS:
                raise ConfigError(
                    f"key `{key}`: {name!r} is the name of another signal group; choose another"
                )
            found[name] = group
    return found


def editors(settings: CorpusSettings) -> dict[str, Editor]:
    """Name -> editor, in the order of `edits`.

    Raises:
        ConfigError: no editor of that name, or none without another key.
    """
    known = dict(EDITORS)
    if settings.decontaminate.sets:
        root = Path(settings.output or "")
        known[decontaminate.NAME] = decontaminate.editor(root, settings.decontaminate)
    for unit in settings.across.units:
        modules = ("pipeline.transforms.across_edits",)
        known[unit] = Editor(across_edits.not_by_text, modules, settings=_share(settings))
    if settings.substrings.min_bytes is not None:
        modules = ("pipeline.transforms.substrings",)
        known[substrings.NAME] = Editor(across_edits.not_by_text, modules)
    for name in settings.edits:
        if name in across_edits.COUNTED and name not in known:
            raise ConfigError(
                f"key `edits`: {name!r} are not looked for; add `across: [{name}]`, or the name to "
                "that list"
            )
        if name == decontaminate.NAME and name not in known:
            raise ConfigError(
                f"key `edits`: {name!r} takes out evaluation items, of which there are none; name "
                "sets, as in `decontaminate: {sets: {gsm8k: evals/gsm8k/*.jsonl}}`"
            )
        if name == substrings.NAME and name not in known:
            raise ConfigError(
                f"key `edits`: {name!r} are not looked for; add `substrings: {{min_bytes: 300}}`"
            )
        if name not in known:
            raise ConfigError(f"key `edits`: no edits {name!r}; {suggestion(name, known)}")
    return {name: known[name] for name in settings.edits}
