"""`assay ls`: corpora, packed selections, indexes, runs, studies and mixtures under some folders,
and who uses whom.

A run names what it trained on in plan.json: selections by hash, so that a corpus may have moved. A
mixture names corpora; which selections it means is worked out where that counts: garbage.py.
"""

from __future__ import annotations

import argparse
import contextlib
import os
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml

from mixtures.commands import table
from mixtures.extending import written_out
from pipeline import copy_index, store
from pipeline.amounts import counted
from pipeline.config import load
from pipeline.files import is_held, read_json, read_sealed
from pipeline.finished import standing
from pipeline.objects import is_url
from pipeline.prices import Prices
from pipeline.schema import FORMAT_VERSION

NOT_LOOKED_INTO = ("checkpoints", "node_modules", "__pycache__")
SHOWN_USERS = 3
UNFINISHED = ": run `assay prepare` for it again"
LEFT_UNFINISHED = f"; a run left it unfinished{UNFINISHED}"
EXAMPLE = """examples:
  assay ls
  assay ls runs studies --prices prices.yaml
  assay ls s3://bucket/web mixtures
"""


@dataclass
class Inventory:
    """What lies under some folders."""

    corpora: list[Path] = field(default_factory=list)  # finished or not
    runs: list[Path] = field(default_factory=list)
    mixtures: list[Path] = field(default_factory=list)  # those of a planned run are left out
    indexes: list[Path] = field(default_factory=list)  # of `assay dedup index`

    def selections(self) -> dict[str, list[Path]]:
        """Hash of each packed selection that a run refers to -> these runs."""
        return self._plans(lambda plan: [source["selection"] for source in plan["sources"]])

    def tokenizers(self) -> dict[str, list[Path]]:
        """Hash of each tokenizer that a run refers to -> these runs."""
        return self._plans(lambda plan: [plan["tokenizer"]])

    def _plans(self, named: Any) -> dict[str, list[Path]]:
        users: dict[str, list[Path]] = {}
        for run in self.runs:
            if (run / "plan.json").exists():
                for name in named(read_json(run / "plan.json")):
                    users.setdefault(name, []).append(run)
        return users

    def mixtures_of(self, corpus: Path) -> list[Path]:
        """Mixture files that name this corpus."""
        here = {corpus, corpus.resolve()}
        return [path for path in self.mixtures if not here.isdisjoint(corpora_of(path))]


def look(places: Sequence[str | Path]) -> Inventory:
    """All that lies under these folders, and the corpora at these URLs; a corpus or run is not
    looked into for others.

    Raises:
        FileNotFoundError: there is no such folder, or no corpus at a URL.
    """
    found = Inventory()
    for place in places:
        if is_url(str(place)):
            found.corpora.append(_stored(str(place)))
            continue
        folder = Path(place)
        if not folder.is_dir():
            raise FileNotFoundError(2, "no such folder", str(folder))
        for inside, inner, files in os.walk(folder):
            at = Path(inside)
            if "inputs.json" in files or "corpus.json" in files:
                found.corpora.append(at)
                inner.clear()
                continue
            if copy_index.MANIFEST in files and "keys" in inner:
                found.indexes.append(at)
                inner.clear()
                continue
            if "run.json" in files or "run.key" in files:
                found.runs.append(at)
            if "plan.json" not in files:
                found.mixtures += [at / name for name in files if _is_mixture(at / name)]
            inner[:] = sorted(n for n in inner if n not in NOT_LOOKED_INTO and n[0] != ".")
    for paths in (found.corpora, found.runs, found.mixtures, found.indexes):
        paths[:] = sorted({path.resolve() for path in paths})
    return found


def _stored(url: str) -> Path:
    root = store.folder(url)
    if not any((root / name).exists() for name in ("inputs.json", "corpus.json")):
        raise FileNotFoundError(2, "no corpus", url)
    return root


def _is_mixture(path: Path) -> bool:
    return path.suffix in (".yaml", ".yml") and bool(_corpora_keys(path))


def corpora_of(mixture: Path) -> set[Path]:
    """The folders that a mixture file names."""
    named = map(str, _corpora_keys(mixture))
    return {
        store.cache(place) if is_url(place) else (mixture.parent / place).resolve()
        for place in named
    }


def _corpora_keys(path: Path) -> list[Any]:
    try:
        raw = yaml.safe_load(path.read_text("utf-8"))
        if isinstance(raw, dict) and "extends" in raw:
            raw = written_out(path)
    except (OSError, ValueError, yaml.YAMLError):  # not ours
        return []
    named = raw.get("corpora") if isinstance(raw, dict) and "sources" in raw else None
    return list(named.values()) if isinstance(named, dict) else []


def num_bytes(path: Path) -> int:
    """Of a file, of all files of a folder, or of a corpus on a store."""
    if store.of(path) is not None:
        return store.num_bytes(path)
    if path.is_file():
        return path.stat().st_size
    sizes: dict[int, int] = {}  # by inode: links count once
    for place, _, files in os.walk(path):
        for name in files:
            with contextlib.suppress(FileNotFoundError):  # a run at work: it has another name now
                stat = os.lstat(f"{place}/{name}")
                sizes[stat.st_ino] = stat.st_size
    return sum(sizes.values())


# --- the verb -------------------------------------------------------------------------------------


def ls(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay ls",
        description="Corpora, packed selections, runs and studies: sizes on disk, who uses whom.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("places", nargs="*", help="folders, URLs of corpora (default: here)")
    parser.add_argument("--prices", type=Path, help="prices.yaml: cost of each run and corpus")
    options = parser.parse_args(argv)
    prices = load(options.prices, Prices) if options.prices else None
    places = options.places or ["."]
    rows = list(listed(look(places), prices))
    if not rows:
        print(f"no corpus, run or mixture in {', '.join(places)}")
        return 0
    print("\n".join(table([("what", "size", "holds", "used by"), *rows])))
    return 0


def listed(found: Inventory, prices: Prices | None = None) -> Iterator[tuple[str, ...]]:
    """(what, size, holds, used by) of everything that was found."""
    selections = found.selections()
    for root in found.corpora:
        users = found.mixtures_of(root)
        packed = [p for p in sorted((root / "packed").glob("*")) if (p / "manifest.json").exists()]
        users += [run for path in packed for run in selections.get(path.name, ())]
        users = list(dict.fromkeys(users))  # a run may read several selections
        holds = _corpus(root) + _storage(num_bytes(root), prices)
        yield f"corpus {_near(root)}", _size(root), holds, _users(users)
        for path in packed:
            users = selections.get(path.name, [])
            yield f"  packed/{path.name}", _size(path), _packed(path), _users(users)
    for path in found.indexes:
        yield f"index {_near(path)}", _size(path), _index(path), ""
    for run in found.runs:
        kind = "run of a study" if (run / "run.key").exists() else "run"
        yield f"{kind} {_near(run)}", _size(run), _run(run, prices), ""
    for path in found.mixtures:
        yield f"mixture {_near(path)}", _size(path), ", ".join(map(_near, corpora_of(path))), ""


def _corpus(root: Path) -> str:
    folder = standing(root)
    at_work = is_held(root / ".lock")
    if not (folder / "corpus.json").exists():
        # Of a corpus on a store the writer may be anywhere.
        return "unfinished" + ("" if at_work or store.of(root) is not None else UNFINISHED)
    found = read_sealed(folder / "corpus.json")
    if found is None:
        return "damaged: `assay prepare --verify` tells more, and mends it"
    if found["format"] != FORMAT_VERSION:
        return f"format {found['format']}: another version of assay reads it"
    stages = found["stages"]
    totals = {name: stages.get(name, {}).get("totals", {}) for name in ("ingest", "tokens")}
    return (
        f"{counted(totals['ingest'].get('documents', 0), 'document')}, "
        f"{counted(totals['tokens'].get('tokens', 0), 'token')}"
        + ("" if folder == root else "; a run is changing it" if at_work else LEFT_UNFINISHED)
    )


def _index(folder: Path) -> str:
    found = read_sealed(folder / copy_index.MANIFEST, strict=True)
    if found is None:
        return "damaged: make it again with `assay dedup index`"
    documents = sum(group["documents"] for group in found["groups"])
    return f"{counted(documents, 'document')} of {', '.join(g['corpus'] for g in found['groups'])}"


def _packed(folder: Path) -> str:
    found = read_sealed(folder / "manifest.json")
    if found is None:
        return "damaged: delete the folder, and it will be packed again"
    documents, windows = found["num_documents"], sum(found["windows"])
    return f"{counted(documents, 'document')}, {counted(windows, 'window')}"


def _run(folder: Path, prices: Prices | None) -> str:
    path = folder / "run.json"
    if not path.exists():
        return "not begun"
    record = read_json(path)
    if record["status"] != "finished":
        return str(record["status"])
    totals, unit = record["totals"], "GPU" if "cuda" in record["device"] else "process"
    hours = totals["seconds"] * record["processes"] / 3600
    cost = ""
    if prices is not None and unit == "GPU":
        cost = f", {hours * prices.gpu_hour:,.2f} {prices.currency}"
    return f"{totals['tokens']:,} tokens, {hours:,.2f} {unit} hours{cost}"


def _storage(size: int, prices: Prices | None) -> str:
    if prices is None:
        return ""
    return f", {size / 1e9 * prices.storage_gb_month:,.2f} {prices.currency} a month"


def _users(users: Sequence[Path]) -> str:
    names = [_near(path) for path in users]
    more = f" and {len(names) - SHOWN_USERS} more" if len(names) > SHOWN_USERS else ""
    return ", ".join(names[:SHOWN_USERS]) + more if names else "nobody here"


def _near(path: Path) -> str:
    """A path as seen from here, where it lies below; of a corpus on a store its URL."""
    if store.of(path) is not None:
        return store.place(path)
    here = Path.cwd()
    return str(path.relative_to(here)) if path.is_relative_to(here) else str(path)


def _size(path: Path) -> str:
    return f"{num_bytes(path) / 1e6:,.1f} MB"
