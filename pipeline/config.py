"""Settings files: YAML to checked, immutable models.

Every settings file of the project (corpus.yaml, mixture.yaml, run.yaml, study.yaml) is a pydantic
model derived from `Settings`; `load` is the one way in. An unknown key is refused with the nearest
known one, a wrong value with its place, the value and what is expected.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, TypeVar, get_args

import yaml
from pydantic import BaseModel, ConfigDict, ValidationError, ValidationInfo, field_validator

from pipeline import disk

# What pydantic says in Python's terms, by its name for the error; {} are filled by pydantic.
_NUMBER = "expected a number, as in 0.05, which is 5 %"
_WHOLE_NUMBER = "expected a whole number, as in 64"
_EXPECTED = {
    "tuple_type": "expected a list, as in `[a, b]`",
    "dict_type": "expected `name: value` lines",
    "model_type": "expected `key: value` lines",
    "too_short": "expected at least one entry",
    "string_type": 'expected text; what YAML takes for something else needs quotes, as in "no"',
    "bool_type": "expected true or false",
    "bool_parsing": "expected true or false",
    "float_type": _NUMBER,
    "float_parsing": _NUMBER,
    "finite_number": "expected a number that is not infinite and not `.nan`",
    "int_type": _WHOLE_NUMBER,
    "int_parsing": _WHOLE_NUMBER,
    "int_from_float": _WHOLE_NUMBER,
    "greater_than": "expected more than {gt:,}",
    "greater_than_equal": "expected {ge:,} or more",
    "less_than": "expected less than {lt:,}",
    "less_than_equal": "expected {le:,} or less",
    "literal_error": "expected {expected}",
}

_NUMBERS = (int, int | None, float, float | None)
_FOLLOW = {"too_short", "default_factory_not_called"}  # from another error


class ConfigError(ValueError):
    """A settings file cannot be used; the message names file, key, value and remedy."""


class Settings(BaseModel):
    """Base of all settings: immutable, unknown keys refused, defaults checked too."""

    model_config = ConfigDict(extra="forbid", frozen=True, validate_default=True)

    @field_validator("*", mode="before")
    @classmethod
    def _is_no_switch(cls, value: object, info: ValidationInfo) -> object:
        """pydantic takes true for 1."""
        field = cls.model_fields[info.field_name or ""]
        if isinstance(value, bool) and field.annotation in _NUMBERS:
            raise ValueError(_WHOLE_NUMBER if field.annotation in _NUMBERS[:2] else _NUMBER)
        return value


Model = TypeVar("Model", bound=Settings)


def load(path: str | Path, model: type[Model]) -> Model:
    """Read and check a YAML file.

    Raises:
        ConfigError: no such file, not YAML, not a mapping, or a key or value that `model` refuses.
    """
    return checked(read(path), model, Path(path))


def checked(raw: Mapping[str, Any], model: type[Model], path: Path) -> Model:
    """What was read from `path`, as `load` gives it."""
    if other := _other_kind(raw, model):
        raise ConfigError(f"{path}: {other}")
    return check(raw, model, str(path))


def read(path: str | Path) -> dict[str, Any]:
    """The keys of a YAML file, each once.

    Raises:
        ConfigError: no such file, not YAML, or not a mapping.
    """
    path = Path(path)
    try:
        raw = yaml.load(path.read_text(encoding="utf-8"), _EachKeyOnce)
    except IsADirectoryError:
        inside = sorted(path.glob("*.y*ml"))
        remedy = f"as {inside[0]}" if inside else "which names it: README.md shows one of each kind"
        raise ConfigError(f"{path}: a folder; expected a YAML file, {remedy}") from None
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
        raise ConfigError(disk.told(error) or f"{path}: {error.strerror}") from None
    if not isinstance(raw, dict):
        found = "nothing" if raw is None else type(raw).__name__
        raise ConfigError(f"{path}: expected `key: value` lines, found {found}")
    return raw


# Of each kind of file the keys that it must have, and what it is for.
KINDS = {
    "corpus.yaml": (("inputs", "tokenizer"), "`assay prepare` and `assay tokenizer train`"),
    "mixture.yaml": (("corpora", "sources"), "`assay mix`, and what takes a mixture"),
    "run.yaml": (("mixture", "model", "tokens"), "`assay train`"),
    "study.yaml": (("question", "arms"), "`assay ablate`"),
    "quality.yaml": (("positive", "negative"), "`assay classifier train`"),
}


def _other_kind(raw: Mapping[str, Any], model: type[Settings]) -> str:
    """What is said of a file of another kind than the wanted one; "" where it may be that."""
    known = set(_known_keys(model, ()))
    for kind, (needed, verbs) in KINDS.items():
        if set(needed) <= raw.keys() and not set(needed) <= known:
            wanted = [k for k, (others, _) in KINDS.items() if set(others) <= known]
            expected = f"; expected a {wanted[0]}, with {_listed(KINDS[wanted[0]][0])}"
            return (
                f"this is a {kind}, for {verbs}: it has {_listed(needed)}"
                f"{expected if wanted else ''}"
            )
    return ""


def _listed(keys: Sequence[str]) -> str:
    return " and ".join(f"`{key}`" for key in keys)


class _EachKeyOnce(yaml.SafeLoader):
    """Of a key that stands twice YAML takes the last without a word. Seen while the text is taken
    apart: later `<<` brings keys in, which others may replace."""

    def compose_mapping_node(self, anchor: Any) -> yaml.MappingNode:
        node: yaml.MappingNode = super().compose_mapping_node(anchor)
        first: dict[tuple[str, str], int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                continue
            before = first.get((key.tag, key.value))
            if before is not None:
                twice = f"key `{key.value}` stands twice, first in line {before}; keep one"
                raise yaml.MarkedYAMLError(problem=twice, problem_mark=key.start_mark)
            first[key.tag, key.value] = key.start_mark.line + 1
        return node


def check(raw: Mapping[str, Any], model: type[Model], place: str) -> Model:
    """Check a mapping against `model`; `place` (a file name) opens every message."""
    try:
        return model.model_validate(raw)
    except ValidationError as error:
        items = error.errors()
        # A list whose only entry was refused counts as too short, and of a key that was refused no
        # other is worked out: the first message says it all.
        others = [item for item in items if item["type"] not in _FOLLOW]
        messages = _messages(others or items, raw, model)
        raise ConfigError("\n".join(f"{place}: {message}" for message in messages)) from None
    except ValueError as error:  # of a default that is worked out from other keys
        raise ConfigError(f"{place}: {error}") from None


def _messages(items: Sequence[Any], raw: Any, model: type[BaseModel]) -> Iterator[str]:
    """One message a key: of one that may be this or that, pydantic refuses each by itself."""
    by_key: dict[tuple[str, ...], list[Any]] = {}
    for item in sorted(items, key=lambda item: item["type"] == "literal_error"):
        by_key.setdefault(_key(item["loc"], raw), []).append(item)
    for location, refused in by_key.items():
        key, item = ".".join(location), refused[0]
        if item["type"] == "extra_forbidden":
            known = _known_keys(model, item["loc"][:-1])
            hint = _nearest(location[-1], known) or f"; known keys: {', '.join(known)}"
            yield f"unknown key `{key}` (value {item['input']!r}){hint}"
        elif item["type"] == "missing":
            told = _described(model, location[-1]) if len(location) == 1 else ""
            yield f"key `{key}` is missing{told}"
        else:
            text = "; or ".join(map(_expected, refused)).replace("; or expected", "; or")
            value = "" if isinstance(item["input"], Mapping) else f" (value {item['input']!r})"
            # A check of the whole file names what it speaks of itself.
            yield f"key `{key}`: {text}{value}" if location else text


def _described(model: Any, name: str) -> str:
    """What the description of a key of the file itself says of it, as a remedy."""
    field = model.model_fields.get(name)
    return f"; {field.description}" if field is not None and field.description else ""


def _key(location: tuple[Any, ...], raw: Any) -> tuple[str, ...]:
    """Without pydantic's names for the ways in which a value was tried; an entry of a list is
    counted from 1, as in `phases.2nd.until`."""
    key = []
    for part in location:
        if isinstance(raw, Mapping):
            if part not in raw and part != location[-1]:
                continue
            key.append(str(part))
            raw = raw.get(part)
        elif isinstance(part, int):
            key.append(_ordinal(part + 1))
            raw = raw[part] if isinstance(raw, list) and part < len(raw) else None
    return tuple(key)


def _ordinal(number: int) -> str:
    teen = number // 10 % 10 == 1
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def _expected(item: Any) -> str:
    expected = _EXPECTED.get(item["type"])
    if expected is None:
        return str(item["msg"]).removeprefix("Value error, ")
    text = expected.format_map(item.get("ctx", {}))
    if item["type"] == "model_type" and item["input"] is None:
        text += ", and nothing stands there; write them, or take the key out"
    if item["type"] == "literal_error":
        text += _nearest(str(item["input"]), re.findall(r"'([^']*)'", text))
    return text


def _nearest(value: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(value, known, n=1, cutoff=0.5)
    return f"; did you mean `{near[0]}`?" if near else ""


def suggestion(name: str, known: Iterable[str]) -> str:
    """The end of an error about a name that is not known."""
    names = list(known)
    near = difflib.get_close_matches(name, names, n=1, cutoff=0.5)
    return f"did you mean {near[0]!r}?" if near else f"known: {', '.join(names)}"


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
