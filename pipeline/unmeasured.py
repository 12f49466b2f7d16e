"""What to say of a signal group or preset that a corpus does not have: what is missing, the nearest
name, and the line of corpus.yaml that measures it.
"""

from __future__ import annotations

import difflib
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from filters.presets import PRESETS, needs
from pipeline.corpus import manifest
from pipeline.measured import presets_of

FAITHFUL = "_faithful"
# Groups that keys of their own make, and what such a key looks like.
OWN_KEYS = {
    "urls": "urls: {block: [blocked.txt]}",
    "perplexity": "perplexity: models/lm.npz",
    "lists": "lists: {brands: brands.txt}",
    "across": "across: [site_lines]",
    "quality": "classifiers: {quality: models/quality.bin}",
    "contamination": "decontaminate: {sets: {gsm8k: evals/gsm8k/*.jsonl}}",
}


def told(root: Path, name: str) -> str:
    """Why a signal group or preset is no column of the corpus; "" where it is one, or neither."""
    from filters.signals import GROUPS  # loads numba: 0.5 s, for an error alone

    found = manifest(root)
    measured, name = set(found["signals"]), name.lower()
    if name in PRESETS:
        missing = sorted(needs(name) - measured)
        what = f"preset {name!r} needs the signals {', '.join(missing)}, which were not measured"
    elif name in (*GROUPS, *OWN_KEYS):
        missing = [] if name in measured else [name]
        what = f"signal group {name!r} was not measured"
    else:
        return ""
    if not missing and name in PRESETS and name not in presets_of(root):
        return (
            f"preset {name!r} reads signals that an earlier version did not measure; call "
            "`assay prepare`: it measures what is missing"
        )
    if not missing:
        return ""
    lines = " and ".join(f"`{line}`" for line in _lines(missing, found["settings"]))
    return f"{what}; write {lines} into corpus.yaml and call `assay prepare`"


def nearest(root: Path, name: str) -> str:
    """The signal group or preset that is most likely meant, as a question; "" if none is near."""
    from filters.signals import GROUPS

    known = dict.fromkeys((*manifest(root)["signals"], *PRESETS, *GROUPS))
    near = difflib.get_close_matches(name.lower(), known, n=1, cutoff=0.6)
    return f"no signal group or preset {name!r}; did you mean {near[0]!r}?" if near else ""


def _lines(missing: Iterable[str], settings: Mapping[str, Any]) -> list[str]:
    """What corpus.yaml is to say so that these groups are measured."""
    faithful = [name.removesuffix(FAITHFUL) for name in missing if name.endswith(FAITHFUL)]
    own = [OWN_KEYS[name] for name in missing if name in OWN_KEYS]
    table = [name for name in missing if name not in OWN_KEYS and not name.endswith(FAITHFUL)]
    lines = []
    if table:
        lines.append(f"signals: [{', '.join([*settings.get('signals', ['default']), *table])}]")
    if faithful:
        lines.append(f"faithful: [{', '.join([*settings.get('faithful', ()), *faithful])}]")
    return lines + own
