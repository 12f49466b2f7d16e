"""Tokenizers of a corpus beside its first: `assay tokenize` adds one, `assay prepare` keeps its
tokens current, a mixture chooses one by name or hash.

Each is what stands in `tokens/<hash>/`: tokenizer.json and policy.json as of the first, and
`added.json`, which says that it was asked for, under which name, and which engine is right for it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pipeline.config import ConfigError
from pipeline.files import read_sealed, write_sealed
from pipeline.settings import Tokenizer
from pipeline.tokenizer_engines import Engine

FILE = "added.json"


@dataclass(frozen=True)
class Added:
    """One tokenizer beside the first."""

    name: str
    hash: str
    bos: str | None
    eos: str | None
    engine: Engine

    @property
    def stage(self) -> str:
        """Of its tokens, and the folder of their commit records under stats/."""
        return f"tokens/{self.hash}"

    def settings(self, root: Path) -> Tokenizer:
        """The corpus's own copy, and the policy."""
        file = str(root / "tokens" / self.hash / "tokenizer.json")
        return Tokenizer(file=file, bos=self.bos, eos=self.eos)


def listed(root: Path, first: str = "") -> tuple[Added, ...]:
    """The tokenizers that were added to the corpus at `root`, by name; `first` is none of them."""
    found = [read_sealed(path) for path in (root / "tokens").glob(f"*/{FILE}")]
    known = (Added(**{k: v for k, v in one.items() if k != "seal"}) for one in found if one)
    return tuple(sorted((one for one in known if one.hash != first), key=lambda one: one.name))


def policies(root: Path, added: Iterable[Added]) -> dict[str, dict[str, Any]]:
    """What corpus.json keeps of each, by name: its policy, and its engine.

    Raises:
        ConfigError: one is damaged.
    """
    found = {}
    for one in added:
        path = root / "tokens" / one.hash / "policy.json"
        policy = read_sealed(path)
        if policy is None:
            raise ConfigError(f"{path} is damaged; add {one.name!r} again by `assay tokenize`")
        found[one.name] = policy | {"engine": one.engine}
    return found


def add(root: Path, added: Added) -> None:
    write_sealed(root / "tokens" / added.hash / FILE, asdict(added))


def drop(root: Path, name: str) -> Added:
    """Forget that a tokenizer was added; `assay gc` removes its tokens.

    Raises:
        ConfigError: none of this name was.
    """
    known = {one.name: one for one in listed(root)}
    if name not in known:
        raise ConfigError(
            f"{root}: no tokenizer {name!r} was added; added: {', '.join(known) or 'none'}"
        )
    (root / "tokens" / known[name].hash / FILE).unlink()
    return known[name]


def name_of(file: str) -> str:
    """How a tokenizer is called by default: a name of NAMES, a file's stem, or its folder's name
    where that says nothing."""
    path = Path(file)
    return path.parent.name or path.stem if path.stem == "tokenizer" else path.stem


def hashes(manifest: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    """(name, hash) of each tokenizer whose tokens a corpus holds, the first one first."""
    first = manifest["tokenizer"]["hash"]
    known = manifest.get("settings", {}).get("tokenizer")
    yield (name_of(known["file"]) if known else first), first
    for name, policy in manifest.get("tokenizers", {}).items():
        yield name, policy["hash"]
