"""The signal groups of a corpus: those of the table that `signals` names, and those that other keys
of corpus.yaml make, each for itself: own lists, models, recipes as they were published.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable

from filters.signals import GROUPS, Group
from pipeline.config import ConfigError
from pipeline.settings import CorpusSettings

# Measured of every corpus: what the engine's speed is stated with.
DEFAULT = ("language", "gopher", "c4", "fineweb")
SETS: dict[str, tuple[str, ...]] = {"default": DEFAULT, "all": tuple(GROUPS)}

# Key of corpus.yaml -> what makes its groups: name -> group, in order.
MAKERS: dict[str, Callable[[CorpusSettings], dict[str, Group]]] = {}


def groups(settings: CorpusSettings) -> dict[str, Group]:
    """Name -> group, in the order in which they are measured.

    Raises:
        ConfigError: no group of that name; two of one name.
    """
    found: dict[str, Group] = {}
    for named in settings.signals:
        for name in SETS.get(named, (named,)):
            if name not in GROUPS:
                known = (*SETS, *GROUPS)
                near = difflib.get_close_matches(name, known, n=1, cutoff=0.5)
                hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
                raise ConfigError(f"key `signals`: no group {name!r}; {hint}")
            found[name] = GROUPS[name]
    for key, make in MAKERS.items():
        for name, group in make(settings).items():
            if name in found or name in GROUPS:
                raise ConfigError(
                    f"key `{key}`: {name!r} is the name of another signal group; choose another"
                )
            found[name] = group
    return found
