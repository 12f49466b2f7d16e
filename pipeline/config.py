"""Settings files: YAML to checked, immutable models.

Every settings file of the project (corpus.yaml, mixture.yaml, run.yaml, study.yaml) is a pydantic
model derived from `Settings`; `load` is the one way in. An unknown key is refused with the nearest
known one, a wrong value with its place, the value and what is expected.
"""

from __future__ import annotations

import difflib
from collections.abc import Mapping
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError

# What pydantic calls by Python's names.
_EXPECTED = {
    "tuple_type": "expected a list, as in `[a, b]`",
    "dict_type": "expected `name: value` lines",
    "model_type": "expected `key: value` lines",
    "too_short": "expected at least one entry",
}


class ConfigError(ValueError):
    """A settings file cannot be used; the message names file, key, value and remedy."""


class Settings(BaseModel):
    """Base of all settings: immutable, unknown keys refused, defaults checked too."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)


Model = TypeVar("Model", bound=Settings)


def load(path: str | Path, model: type[Model]) -> Model:
    """Read and check a YAML file.

    Raises:
        ConfigError: no such file, not YAML, not a mapping, or a key or value that `model` refuses.
    """
    path = Path(path)
    try:
        raw = yaml.safe_load(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise ConfigError(f"{path}: no such file; is the path relative to {Path.cwd()}?") from None
    except yaml.MarkedYAMLError as error:  # without its snippet: `path` may be any file
        mark = error.problem_mark
        place = f"line {mark.line + 1}, column {mark.column + 1}: " if mark else ""
        raise ConfigError(f"{path}: not readable as YAML: {place}{error.problem}") from None
    except (yaml.YAMLError, UnicodeDecodeError):
        raise ConfigError(
            f"{path}: not readable as YAML: it holds bytes that no text has"
        ) from None
    except OSError as error:
        raise ConfigError(f"{path}: {error.strerror}") from None
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else type(raw).__name__
        raise ConfigError(f"{path}: expected `key: value` lines, found {found}")
    return check(raw, model, str(path))


def check(raw: Mapping[str, Any], model: type[Model], place: str) -> Model:
    """Check a mapping against `model`; `place` (a file name) opens every message."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        items = error.errors()
        # A list whose only entry was refused counts as too short: the entry's message says it all.
        others = [item for item in items if item["type"] != "too_short"]
        messages = [_message(item, model) for item in others or items]
        raise ConfigError("\n".join(f"{place}: {message}" for message in messages)) from None


def _message(item: Any, model: type[BaseModel]) -> str:
    location = [str(part) for part in item["loc"]]
    key = ".".join(location)
    if item["type"] == "extra_forbidden":
        known = _known_keys(model, item["loc"][:-1])
        near = difflib.get_close_matches(location[-1], known, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"known keys: {', '.join(known)}"
        return f"unknown key `{key}` (value {item['input']!r}); {hint}"
    if item["type"] == "missing":
        return f"key `{key}` is missing"
    text = str(_EXPECTED.get(item["type"], item["msg"].removeprefix("Value error, ")))
    if not location:  # a check of the whole file: its message names what it speaks of
        return text
    value = "" if isinstance(item["input"], Mapping) else f" (value {item['input']!r})"
    return f"key `{key}`: {text}{value}"


def _known_keys(model: Any, location: tuple[Any, ...]) -> list[str]:
    """Keys that the model at `location` knows; steps through lists, mappings and unions."""
    models = _models(model)
    for part in location:
        fields = [m.model_fields[part] for m in models if part in m.model_fields]
        if fields:
            models = [m for field in fields for m in _models(field.annotation)]
    return sorted({field.alias or name for m in models for name, field in m.model_fields.items()})


def _models(annotation: Any) -> list[type[BaseModel]]:
    if isinstance(annotation, type) and issubclass(annotation, BaseModel):
        return [annotation]
    return [m for argument in get_args(annotation) for m in _models(argument)]
