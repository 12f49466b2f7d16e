"""`assay freeze`: what a corpus or mixture is, in one file; `assay verify`: is it still so?"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from mixtures.indexed import indexes_of
from mixtures.packed import continued, folder_of, packing_of, read_packed
from mixtures.packing import measure
from mixtures.select import select
from mixtures.spec import load_mixture
from pipeline.config import check
from pipeline.corpus import CorpusError
from pipeline.damage import require_whole
from pipeline.files import write_json
from pipeline.finished import reading
from pipeline.freeze import (
    FROZEN_VERSION,
    MUST_AGREE,
    REMEDIES,
    changed_inputs,
    check_version,
    differences,
    differing,
    frozen_corpus,
)
from pipeline.settings import CorpusSettings


def freeze(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay freeze",
        description="Write one file with all that a corpus or mixture is made from: inputs, lists "
        "and models by hash, settings, versions, code, and a digest of every table.",
        epilog="examples:\n  assay freeze runs/web --output web.frozen.json\n"
        "  assay freeze s3://bucket/web --output web.frozen.json\n"
        "  assay freeze mixture.yaml --output mixture.frozen.json",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("what", help="folder or URL of a corpus, or mixture.yaml")
    parser.add_argument("--output", type=Path, required=True, help="file to write")
    options = parser.parse_args(argv)
    write_json(options.output, frozen(options.what, whole=True))
    print(f"wrote {options.output}; check it with `assay verify {options.output}`")
    return 0


def frozen(place: str | Path, whole: bool = False) -> dict[str, Any]:
    """What a frozen file of a corpus or mixture holds.

    Args:
        whole: refuse a corpus of which a file is damaged; 1 GB of files take 0.2 s.
    """
    if not str(place).endswith((".yaml", ".yml")):
        return {"frozen": FROZEN_VERSION, "corpora": {"corpus": _corpus(place, whole)}}
    what = Path(place)
    mixture = load_mixture(what)
    corpora = {name: _corpus(root, whole) for name, root in mixture.corpora.items()}
    settings = mixture.model_dump(mode="json", by_alias=True, exclude={"corpora", "not_in"})
    if mixture.not_in:
        settings["not_in"] = [known.fingerprint() for known in indexes_of(mixture)]
    return {
        "frozen": FROZEN_VERSION,
        "corpora": corpora,
        "mixture": {"file": str(what.resolve()), "settings": settings, "packed": _packed(what)},
    }


def _corpus(place: str | Path, whole: bool = False) -> dict[str, Any]:
    with reading(place) as root:
        if whole:
            require_whole(root)
        return frozen_corpus(root)


def _packed(path: Path) -> dict[str, dict[str, Any]]:
    """Source -> its selection, and the hash of each file of it where it is packed."""
    mixture = load_mixture(path)
    selection = select(mixture)
    found = {}
    for name, documents in selection.documents.items():
        root = Path(mixture.corpora[mixture.sources[name].corpus])
        packing = packing_of(mixture, root, selection.tokenizer)
        packed = continued(root, measure(documents, packing))
        files = folder_of(root, packed.selection)
        standing = (files / "manifest.json").exists()
        found[name] = {
            "selection": packed.selection,
            "documents": packed.num_documents,
            "tokens": packed.tokens_in,
            "windows": list(packed.windows),
            "files": _files(files) if standing else None,
        }
    return found


def _files(packed: Path) -> dict[str, Any]:
    """Hash of each packed file, after its bytes were read and compared."""
    read_packed(packed, hashes=True)
    files: dict[str, Any] = json.loads((packed / "manifest.json").read_text("utf-8"))["files"]
    return files


def verify(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay verify",
        description="Compare a corpus or mixture, and the input files that are still there, with "
        "its frozen file: what differs, and why. Exit code 0 where inputs, tokenizer, held-out "
        "sets and all tables are the same, else 2.",
        epilog="examples:\n  assay verify web.frozen.json\n"
        "  assay verify web.frozen.json /mnt/copy/web\n"
        "  assay verify web.frozen.json --rebuild /mnt/again",
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("frozen", type=Path, help="file of `assay freeze`")
    parser.add_argument("corpus", nargs="?", help="default: where it lay when frozen")
    parser.add_argument(
        "--rebuild",
        type=Path,
        metavar="FOLDER",
        help="make the corpus again from its inputs and settings, into FOLDER/<name>, and compare",
    )
    parser.add_argument("--workers", type=int, default=1, help="of --rebuild (default: 1)")
    options = parser.parse_args(argv)
    found = check_version(_read(options.frozen), options.frozen)
    if (options.corpus or options.rebuild) and len(found["corpora"]) > 1:
        parser.error("this file holds several corpora: verify them where they lie")
    same = True
    for name, before in found["corpora"].items():
        place = options.corpus or before["folder"]
        if options.rebuild:
            place = rebuild(before, options.rebuild, options.workers)
        lines = differences(before, _corpus(place))
        if not options.rebuild:  # which compared them first
            lines = _input_files(before) + lines
        same &= _told(f"corpus {name} ({place})", lines)
    if "mixture" in found and not (options.corpus or options.rebuild):
        mixture = found["mixture"]
        now = frozen(Path(mixture["file"]))["mixture"]
        lines = [
            (section, line)
            for section in ("packed", "settings")
            for line in differing("", mixture[section], now[section])
        ]
        same &= _told(f"mixture ({mixture['file']})", lines, must=("packed",))
    return 0 if same else 2


def _input_files(before: dict[str, Any]) -> list[tuple[str, str]]:
    """What differs of the files that the corpus was made from, as they lie now. One that is gone
    does not make the corpus another: a copy may lie where its inputs do not."""
    changed, gone = changed_inputs(before)
    lines = [("inputs", line) for line in changed]
    if len(gone) == len(before["inputs"]):
        return [("input files", "none is here, so only the corpus was compared")]
    return lines + [("input files", line) for line in gone]


def _read(path: Path) -> Any:
    try:
        return json.loads(path.read_text("utf-8"))
    except ValueError:
        raise CorpusError(
            f"{path}: not readable as JSON; a frozen file comes from `assay freeze`"
        ) from None


def _told(what: str, lines: list[tuple[str, str]], must: tuple[str, ...] = MUST_AGREE) -> bool:
    """Print what differs; returns whether all that must agree does."""
    same = not any(section in must for section, _ in lines)
    print(f"{what}: {'the same' if same else 'differs'}")
    for section, line in dict.fromkeys(lines):
        print(f"  {section}: {line}")
    for section in dict.fromkeys(section for section, _ in lines if section in REMEDIES):
        print(f"  to mend {section}: {REMEDIES[section]}")
    return same


def rebuild(before: dict[str, Any], above: Path, workers: int) -> Path:
    """Make a frozen corpus again in `above`; returns where it stands.

    Raises:
        CorpusError: input files are not what they were, or the folder is taken.
    """
    root: Path = above.resolve() / before["name"]  # held-out sets carry the name of the folder
    if "-limit-" in before["name"]:
        raise CorpusError(f"{before['name']}: a corpus of --limit is not made again; freeze all")
    if root.exists():
        raise CorpusError(f"{root} stands already; name another folder for --rebuild")
    changed = [line for lines in changed_inputs(before) for line in lines]
    if changed:
        listed = "\n".join(f"  {line}" for line in changed)
        raise CorpusError(
            f"inputs are not what they were, so nothing was made:\n{listed}\nput them back"
        )
    from pipeline import runners
    from pipeline.prepare import prepare

    settings = check(before["settings"], CorpusSettings, "frozen settings")
    settings = settings.model_copy(update={"output": str(root)})
    prepare(settings, runners.choose("processes", workers, [], str(root)))
    return root
