"""`assay gc`: what nothing refers to, shown; with --delete, removed.

Of a finished corpus that nobody holds: packed selections that no run and no mixture means, tokens
of edited documents and near copies across corpora that no mixture means, token ids of former
tokenizers, signal groups, edits and plain shards that the settings no longer name, parts that no
commit record names, and what killed attempts left. Held-out sets are never touched. What it cannot
read counts as used. Of a corpus on a store: objects that its manifest does not name.
"""

from __future__ import annotations

import argparse
import contextlib
import shutil
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from mixtures import edited_tokens
from mixtures.indexed import indexes_of
from mixtures.packed import continued, packing_held, packing_of
from mixtures.packing import measure
from mixtures.select import select, used_corpora
from mixtures.spec import load_mixture
from mixtures.tokens import tokenizer_of
from pipeline import linked, linked_contained, objects, publish, store, timings
from pipeline.added_tokenizers import listed
from pipeline.amounts import counted
from pipeline.corpus import CorpusError, locked, manifest
from pipeline.files import read_sealed
from pipeline.lease import LeaseError
from pipeline.shards import load_shards, spill_folder
from trainer.inventory import Inventory, look, num_bytes

TABLES = (
    "documents",
    "signals",
    "edits",
    "tokens",
    "rejects",
    "signatures",
    "copies",
    "pairs",
    "clusters",
    "contained",
    "joins",
)
EXAMPLE = """examples:
  assay gc                          what could go, and how much that is
  assay gc runs studies --delete
  assay gc s3://bucket/web mixtures

Runs and mixtures outside of the folders that you name are not seen: name all of them."""


@dataclass(frozen=True)
class Garbage:
    place: str  # path of a file or folder, or URL of an object
    why: str
    bytes: int


def gc(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay gc",
        description="Show what nothing refers to; with --delete, remove it.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("places", nargs="*", help="folders, URLs of corpora (default: here)")
    parser.add_argument("--delete", action="store_true", help="remove it (default: show it)")
    options = parser.parse_args(argv)
    found = look(options.places or ["."])
    _warn_of_users(found)
    total = 0
    for root in found.corpora:
        try:
            with locked(root), packing_held(root):
                for item in garbage(root, found):
                    print(f"{item.bytes / 1e6:>12,.1f} MB  {item.place}: {item.why}")
                    total += item.bytes
                    if options.delete:
                        remove(item.place)
                if options.delete and timings.path_of(root).exists():
                    timings.write(root)
        except (CorpusError, LeaseError) as error:
            print(f"left alone: {error}", file=sys.stderr)
    done = "removed" if options.delete else "could go; --delete removes it"
    print(
        f"{total / 1e6:,.1f} MB of {counted(len(found.corpora), 'corpus', 'corpora')} {done}; "
        f"asked: {counted(len(found.runs), 'run')}, {counted(len(found.mixtures), 'mixture')}"
    )
    return 0


def _warn_of_users(found: Inventory) -> None:
    """Packed windows are what mixtures and runs mean: where none is seen, they may lie elsewhere.
    No text is lost with them, but the time to pack them again."""
    packed = [root for root in found.corpora if any((root / "packed").glob("[!.]*"))]
    if packed and not found.runs and not found.mixtures:
        print(
            f"take care: {packed[0]} has packed selections, and no run or mixture lies in the "
            "folders that are named; name those in which they lie too, as in `assay gc runs "
            "mixtures`",
            file=sys.stderr,
        )


def remove(place: str) -> None:
    """Delete it; a folder first loses its name, so that a kill leaves none that looks whole."""
    path = Path(place)
    if objects.is_url(place):
        objects.delete(place)
    elif path.is_dir():
        nameless = path if path.suffix == ".tmp" else path.with_name(f".{path.name}.tmp")
        path.rename(nameless)
        shutil.rmtree(nameless)
    else:
        path.unlink(missing_ok=True)


def garbage(root: Path, found: Inventory) -> list[Garbage]:
    """What nothing refers to in the corpus at `root`; call it while holding the corpus.

    Raises:
        CorpusError: of another format version.
    """
    if (mirror := store.of(root)) is not None:
        return _objects(mirror.url)
    left = [(path, "left by a killed attempt") for path in sorted(root.rglob(".*.tmp"))]
    left += [(p, "left by a killed attempt") for p in sorted((root / "packed").glob(".*.attempt"))]
    if all((root / name).exists() for name in ("corpus.json", "inputs.json")):
        known = manifest(root)
        left += [(p, "left by a killed attempt") for p in sorted(root.glob(".finished*"))]
        left += _packed(root, found)
        left += _edited(root, found)
        left += _linked(root, found)
        left += _tokens(root, known["tokenizer"]["hash"], found)
        left += _unnamed(root, "signals", {"normalize", *known["signals"]})
        left += _unnamed(root, "edits", set(known.get("edits", ())))
        files = {spill_folder((s.source, p.file)) for s in load_shards(root) for p in s.pieces}
        for path in sorted((root / "cut").glob("*")):
            if path.relative_to(root) not in files:
                left.append((path, "plain shards of an input that is gone"))
        gone = {path for path, _ in left}
        left += [(path, "no commit record names it") for path in _orphans(root, gone)]
    return [Garbage(str(path), why, num_bytes(path)) for path, why in left if path.exists()]


def _objects(url: str) -> list[Garbage]:
    """Objects of a corpus on a store."""
    urls = [f"{url}/{name}" for name in publish.orphans(url)]
    why = "no manifest names it"
    return [Garbage(url, why, objects.info(url)["size"]) for url in urls]


def _packed(root: Path, found: Inventory) -> list[tuple[Path, str]]:
    meant = set(found.selections())
    for mixture in found.mixtures_of(root):
        try:
            meant |= selections_of(mixture)
        except ValueError as error:
            print(f"packed selections of {root} stay, for {mixture}: {error}", file=sys.stderr)
            return []
    return [
        (path, "no run or mixture means this selection")
        for path in sorted((root / "packed").glob("[!.]*"))
        if path.name not in meant
    ]


def _edited(root: Path, found: Inventory) -> list[tuple[Path, str]]:
    """Tokens of edited documents that no mixture means; they are made again when one asks."""
    meant = set()
    for mixture in found.mixtures_of(root):
        with contextlib.suppress(ValueError):
            known = load_mixture(mixture)
            tokenizer = tokenizer_of([root], known.tokenizer)
            meant.add(edited_tokens.folder_of(root, tokenizer, known.edits))
    return [
        (path, "tokens of edited documents that no mixture means")
        for path in sorted(root.glob(f"{edited_tokens.FOLDER}/*"))
        if path not in meant
    ]


def _linked(root: Path, found: Inventory) -> list[tuple[Path, str]]:
    """Near copies across corpora that no mixture means; they are found again when one asks."""
    meant = set()
    for mixture in found.mixtures_of(root):
        with contextlib.suppress(ValueError):
            known = load_mixture(mixture)
            roots, indexes = [*used_corpora(known).values()], indexes_of(known)
            meant.add(linked.folder_of(roots, indexes).name)
            meant.add(linked_contained.folder_of(roots).name)
    return [
        (path, "near copies across corpora that no mixture means")
        for path in sorted((root / linked.FOLDER).glob("[!.]*"))
        if path.name not in meant
    ]


def selections_of(mixture_path: Path) -> set[str]:
    """Hashes of the selections that a mixture means.

    Raises:
        ValueError: it cannot be used as it stands.
    """
    mixture = load_mixture(mixture_path)
    selection = select(mixture)
    found = set()
    for name, documents in selection.documents.items():
        root = Path(mixture.corpora[mixture.sources[name].corpus])
        packing = packing_of(mixture, root, selection.tokenizer)
        found.add(continued(root, measure(documents, packing)).selection)
    return found


def _tokens(root: Path, current: str, found: Inventory) -> list[tuple[Path, str]]:
    """Token ids of former tokenizers that no run refers to."""
    used = {current, *(added.hash for added in listed(root)), *found.tokenizers()}
    return [
        (folder, why)
        for path in sorted((root / "tokens").glob("[!.]*"))
        if path.name not in used
        for folder, why in (
            (root / "stats/tokens" / path.name, "commit records of a former tokenizer"),
            (root / "merged/tokens" / path.name, "their merged counts"),
            (path, "token ids of a former tokenizer"),
        )
    ]


def _unnamed(root: Path, family: str, named: set[str]) -> list[tuple[Path, str]]:
    """Signal groups or edits that the settings no longer name, and their commit records."""
    return [
        (folder, f"{family} that the settings no longer name")
        for path in sorted((root / family).glob("*"))
        if path.name not in named
        for folder in (root / "stats" / family / path.name, path)
    ]


def _orphans(root: Path, gone: set[Path]) -> Iterator[Path]:
    """Parts of tables that no commit record names."""
    records = [read_sealed(path) for path in (root / "stats").rglob("part-*.json")]
    if None in records:
        print(
            f"parts of {root} stay: a commit record is damaged, call `assay prepare --verify`",
            file=sys.stderr,
        )
        return
    named = {name for record in records if record is not None for name in record["outputs"]}
    for table in TABLES:
        for path in sorted((root / table).rglob("part-*")):
            if str(path.relative_to(root)) not in named and gone.isdisjoint(path.parents):
                yield path
