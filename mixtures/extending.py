"""`extends: base.yaml`: a mixture that says only how it differs from another.

Mappings are merged key by key, everything else is replaced, and `null` takes a key of the base
away. What comes out is the mixture written out, and nothing knows afterwards that it was not.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from pipeline.config import ConfigError, read
from pipeline.objects import is_url


def written_out(path: Path) -> dict[str, Any]:
    """The keys of a mixture file with those of the files that it extends; folders in these are
    absolute.

    Raises:
        ConfigError: a file is missing or no YAML, or extends itself.
    """
    return _written_out(path, ())


def _written_out(path: Path, extending: tuple[Path, ...]) -> dict[str, Any]:
    try:
        raw = read(path)
    except ConfigError as error:
        if not extending:
            raise
        raise ConfigError(f"{extending[-1]}: key `extends`: {error}") from None
    name = raw.pop("extends", None)
    if name is None:
        return raw
    if not isinstance(name, str):
        raise ConfigError(f"{path}: key `extends`: expected the path of a mixture (value {name!r})")
    chain = (*extending, path.resolve())
    base = path.resolve().parent / name
    if base.resolve() in chain:
        told = " extends ".join(map(str, (*chain[chain.index(base.resolve()) :], base.resolve())))
        raise ConfigError(f"{path}: key `extends`: {told}: a circle; let one of them extend none")
    return _merged(_placed(_written_out(base, chain), base.resolve().parent), raw)


def _placed(raw: dict[str, Any], folder: Path) -> dict[str, Any]:
    """With the folders of corpora and indexes as they are seen from anywhere."""
    found = dict(raw)
    if isinstance(raw.get("corpora"), dict):
        found["corpora"] = {name: _from(folder, place) for name, place in raw["corpora"].items()}
    if isinstance(raw.get("not_in"), list):
        found["not_in"] = [_from(folder, place) for place in raw["not_in"]]
    return found


def _from(folder: Path, place: Any) -> Any:
    return str(folder / place) if isinstance(place, str) and not is_url(place) else place


def _merged(base: dict[str, Any], over: dict[str, Any]) -> dict[str, Any]:
    found = dict(base)
    for key, value in over.items():
        if value is None and key in base:
            del found[key]
        elif isinstance(value, dict) and isinstance(base.get(key), dict):
            found[key] = _merged(base[key], value)
        else:
            found[key] = value
    return found
