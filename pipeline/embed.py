"""`assay embed CORPUS --with my_model.py:embed`: a vector for each text, by a function of yours.

The function takes a list of texts and returns an array [num_texts, dimensions]. What it gave is
kept every CHUNK texts, so a killed call goes on where it stopped; copies are embedded once; a later
call embeds what is new. The result is an attached group: `assay attach` says what becomes of it.
"""

from __future__ import annotations

import argparse
import importlib
import importlib.util
import inspect
import itertools
import shutil
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import schema, store
from pipeline.amounts import counted
from pipeline.attach import attach, attached_path
from pipeline.clock import telling
from pipeline.config import ConfigError
from pipeline.corpus import locked, part_paths
from pipeline.embeddings import COLUMN, NAME, UNFINISHED, embeddings, made_by
from pipeline.files import file_hash, replacing
from pipeline.finished import reading

CHUNK = 2_048  # texts
TELL_SECONDS = 10.0
READ_ROWS = 1_000
EXAMPLE = """example:
  assay embed runs/web --with my_model.py:embed

with my_model.py (`pip install sentence-transformers`):
  from sentence_transformers import SentenceTransformer
  model = SentenceTransformer("BAAI/bge-m3")
  def embed(texts):
      return model.encode(texts, batch_size=32)

then, in mixture.yaml:
  unique: semantic
  semantic: {threshold: 0.95}    # `assay dedup semantic runs/web` shows pairs by cosine"""

Embed = Callable[[list[str]], Any]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay embed",
        description="Embeddings of all texts of a corpus, by a function of yours.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument(
        "--with",
        dest="function",
        required=True,
        metavar="FILE.py:NAME",
        help="or module:name; takes a list of texts, returns an array [num_texts, dimensions]",
    )
    parser.add_argument("--name", default=NAME, help="of the group (default %(default)s)")
    parser.add_argument("--batch", type=int, default=64, help="texts a call (default %(default)s)")
    parser.add_argument(
        "--replace", action="store_true", help="forget embeddings by another function"
    )
    options = parser.parse_args(argv)
    if options.batch < 1:
        parser.error(f"--batch {options.batch}: at least 1")
    function, by = load(options.function)
    root = store.folder(options.corpus)
    made = embed(root, function, by, options.name, options.batch, replace=options.replace)
    print(f"wrote {root / 'signals' / options.name}: {counted(made, 'text')} embedded")
    return 0


def load(name: str) -> tuple[Embed, str]:
    """The function, and what says which it is: its name and a hash of its file.

    Raises:
        ConfigError: no such file, module or function.
    """
    place, _, attribute = name.rpartition(":")
    if not place or not attribute:
        raise ConfigError(f"--with {name}: expected FILE.py:NAME or module:name")
    try:
        module = _file(Path(place)) if place.endswith(".py") else importlib.import_module(place)
    except ModuleNotFoundError as error:
        raise ConfigError(f"--with {name}: {error}") from None
    function = getattr(module, attribute, None)
    if not callable(function):
        raise ConfigError(f"--with {name}: {place} has no function {attribute!r}")
    source = inspect.getsourcefile(module)
    assert source is not None, f"{place} is Python"
    return function, f"{Path(source).name}:{attribute}, {file_hash(Path(source))}"


def _file(path: Path) -> Any:
    if not path.exists():
        raise ConfigError(f"--with {path}: no such file; is it relative to {Path.cwd()}?")
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module
    spec.loader.exec_module(module)
    return module


def embed(
    root: Path, function: Embed, by: str, name: str, batch: int, *, replace: bool = False
) -> int:
    """Embed every content that has no vector yet, and attach all; how many were embedded.

    Raises:
        ConfigError: those that stand are by another function, or it gives no such array.
        CorpusError: another process embeds here.
    """
    aside = root / UNFINISHED / name
    with locked(aside):
        hashes, vectors = pa.array([], schema.HASH), None
        if attached_path(root, name).exists() and not replace:
            if made_by(root, name) != by:
                raise ConfigError(
                    f"{root}: embeddings {name!r} are by "
                    f"{made_by(root, name) or 'an attached file'}, this function is {by}; give "
                    "another --name, or --replace them"
                )
            hashes, vectors = embeddings(root, name)
        for stale in set(aside.glob("*.parquet")) - set(_chunks(aside, by)):
            stale.unlink()  # of another function
        parts = [pq.read_table(path) for path in _chunks(aside, by)]
        known = set(hashes.to_pylist()).union(*(t["content_hash"].to_pylist() for t in parts))
        before = len(known)
        with reading(root) as folder:
            total = _num_texts(folder)
            texts = telling(
                _texts(folder, known),
                lambda n: f"embed: {before + n:,} of at most {total:,} texts",
                TELL_SECONDS,
            )
            for number in itertools.count(len(parts)):
                part = _embedded(itertools.islice(texts, CHUNK), function, batch)
                if not part.num_rows:
                    break
                with replacing(_chunk(aside, by, number)) as temporary:
                    pq.write_table(part, temporary)
                parts.append(part)
        if parts:
            if vectors is not None:  # a call that was killed may have attached some of the parts
                again = pa.concat_tables(parts)["content_hash"].combine_chunks()
                old = np.asarray(pc.invert(pc.is_in(hashes, value_set=again)))
                parts.append(_table(hashes.filter(pa.array(old)), vectors[old]))
            file = aside / "whole.parquet"
            pq.write_table(pa.concat_tables(parts), file)
            attach(root, file, "content_hash", name, replace=True, by=by)
        shutil.rmtree(aside)
    return len(known) - before


def _chunk(aside: Path, by: str, number: int) -> Path:
    return aside / f"{by.rpartition(' ')[2]}-{number:06d}.parquet"


def _chunks(aside: Path, by: str) -> list[Path]:
    return sorted(aside.glob(_chunk(aside, by, 0).name.replace("000000", "*")))


def _num_texts(root: Path) -> int:
    return sum(pq.ParquetFile(p).metadata.num_rows for p in part_paths(root, "documents"))


def _texts(root: Path, known: set[bytes]) -> Iterator[tuple[bytes, str]]:
    """Each content that is not known, which it then is, and its text; in the order of parts."""
    for path in part_paths(root, "documents"):
        rows = pq.ParquetFile(path).iter_batches(READ_ROWS, columns=["content_hash", "text"])
        for table in rows:
            for key, text in zip(table["content_hash"], table["text"], strict=True):
                content = key.as_py()
                if text.is_valid and content not in known:
                    known.add(content)
                    yield content, text.as_py()


def _embedded(pairs: Iterator[tuple[bytes, str]], function: Embed, batch: int) -> pa.Table:
    hashes: list[bytes] = []
    found: list[np.ndarray] = []
    while some := list(itertools.islice(pairs, batch)):
        contents, texts = zip(*some, strict=True)
        given = function(list(texts))
        try:
            vectors = np.asarray(given, np.float32)
        except (TypeError, ValueError) as error:
            raise ConfigError(
                f"--with: for {len(texts)} texts the function gave {type(given).__name__}, which "
                f"is no array of numbers ({error}); expected [{len(texts)}, dimensions]"
            ) from None
        if found and found[0].shape[1:] != vectors.shape[1:]:
            raise ConfigError(
                f"--with: for the text of content {contents[0].hex()} the function gave "
                f"{vectors.shape[-1]} dimensions, before it {found[0].shape[1]}"
            )
        if vectors.ndim != 2 or len(vectors) != len(texts) or not np.isfinite(vectors).all():
            raise ConfigError(
                f"--with: for {len(texts)} texts, the first of content {contents[0].hex()}, the "
                f"function gave an array of shape {vectors.shape}"
                f"{'' if np.isfinite(vectors).all() else ' with NaN or infinity'}; expected "
                f"[{len(texts)}, dimensions] of finite numbers"
            )
        hashes += contents
        found.append(vectors)
    return _table(pa.array(hashes, schema.HASH), np.concatenate([*found] or [np.zeros((0, 1))]))


def _table(hashes: pa.Array, vectors: np.ndarray) -> pa.Table:
    values = pa.array(vectors.astype(np.float32).ravel(), pa.float32())
    lists = pa.FixedSizeListArray.from_arrays(values, vectors.shape[1])
    return pa.table({"content_hash": hashes, COLUMN: lists.cast(pa.list_(pa.float32()))})
