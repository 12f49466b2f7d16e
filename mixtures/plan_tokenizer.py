"""The tokenizer of a plan, wherever it stands, if it is the one whose ids the windows hold."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path

from mixtures.packed import PUBLISH
from mixtures.plan import Plan
from pipeline import disk, objects, tokenizer
from pipeline.config import ConfigError
from pipeline.files import SUSPECTS, replacing
from pipeline.objects import is_url
from pipeline.settings import Tokenizer


def tokenizer_file(plan: Plan) -> Path:
    """tokenizer.json on this machine; that of a plan on a store is kept under its hash.

    Raises:
        ConfigError: it is missing, damaged, or another tokenizer.
    """
    place = plan.tokenizer_file
    if not is_url(place):
        _checked(plan, Path(place).read_bytes() if Path(place).exists() else None)
        return Path(place)
    kept = disk.cache_folder() / "tokenizers" / f"{plan.tokenizer}.json"
    with suppress(FileNotFoundError, ConfigError):
        _checked(plan, kept.read_bytes())
        return kept
    data = None
    with suppress(FileNotFoundError):
        data = objects.read(place)
    whole = _checked(plan, data)
    with replacing(kept) as temporary:
        temporary.write_bytes(whole)
    return kept


def _checked(plan: Plan, data: bytes | None) -> bytes:
    place = plan.tokenizer_file
    if data is None:
        raise ConfigError(_not_usable(plan, "is missing"))
    try:
        found = tokenizer.read(data, place, Tokenizer(file=place, eos=None))
    except ConfigError:
        raise ConfigError(_not_usable(plan, f"is no tokenizer.json {SUSPECTS}")) from None
    name = tokenizer.name_of(json.loads(found.json), plan.bos_id, plan.eos_id)
    if name != plan.tokenizer:
        what = f"is another tokenizer, or damaged {SUSPECTS}: its hash is {name}"
        raise ConfigError(_not_usable(plan, what))
    return data


def _not_usable(plan: Plan, what: str) -> str:
    return (
        f"{plan.tokenizer_file} {what}; the windows hold ids of tokenizer {plan.tokenizer}. "
        "`assay prepare --verify` writes that of a corpus again, that of a published plan "
        f"{PUBLISH}"
    )
