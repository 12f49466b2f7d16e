"""The text that benchmarks run on: $ASSAY_CORPUS where it is set, else the quickstart's data."""

from __future__ import annotations

import gzip
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

QUICKSTART = Path(__file__).resolve().parents[1] / "examples" / "quickstart" / "data"
# Language -> its files in the quickstart; in $ASSAY_CORPUS a file's name ends in -<language>.
QUICKSTART_FILES = {"en": ("manual", "packages"), "zh": ("laws", "reviews")}


def files(language: str) -> list[Path]:
    """JSONL files of a language.

    Raises:
        FileNotFoundError: there are none.
    """
    corpus = os.environ.get("ASSAY_CORPUS")
    if corpus:
        found = sorted(Path(corpus).glob(f"*-{language}.jsonl.gz"))
    else:
        found = [QUICKSTART / f"{name}.jsonl.gz" for name in QUICKSTART_FILES[language]]
    if not found or not all(path.exists() for path in found):
        raise FileNotFoundError(
            f"no text in {language}: {corpus or QUICKSTART}; call examples/quickstart/data.py, or "
            f"set ASSAY_CORPUS to a folder with *-{language}.jsonl.gz"
        )
    return found


def jsonl_files() -> list[Path]:
    """All JSONL files: those of $ASSAY_CORPUS, else those of the quickstart.

    Raises:
        FileNotFoundError: there are none.
    """
    folder = Path(os.environ.get("ASSAY_CORPUS") or QUICKSTART)
    found = sorted(folder.glob("*.jsonl.gz"))
    if not found:
        raise FileNotFoundError(f"no *.jsonl.gz in {folder}")
    return found


def lines(language: str, num_bytes: int) -> list[bytes]:
    """JSONL lines, the files in turn, until their text reaches `num_bytes`."""
    streams = [_lines(path) for path in files(language)]
    found: list[bytes] = []
    while streams and num_bytes > 0:
        for stream in list(streams):
            line = next(stream, None)
            if line is None:
                streams.remove(stream)
            else:
                found.append(line)
                num_bytes -= len(line)
    return found


def texts(language: str, num_bytes: int) -> pa.Array:
    """The texts of `lines`, as one Arrow array."""
    found = [json.loads(line)["text"] for line in lines(language, num_bytes)]
    return pa.array([text for text in found if text], pa.string())


def warc_files() -> list[Path]:
    """WARC files of $ASSAY_CORPUS, else those of the quickstart."""
    found = sorted(Path(os.environ.get("ASSAY_CORPUS") or QUICKSTART).glob("*.warc.gz"))
    if not found:
        raise FileNotFoundError("no *.warc.gz beside the JSONL files")
    return found


def _lines(path: Path) -> Iterator[bytes]:
    with gzip.open(path) as stream:
        yield from stream
