from __future__ import annotations

import bz2
import lzma
from pathlib import Path
from types import ModuleType

import pytest

from pipeline.readers.streams import PLAIN_BYTES, BrokenStream, chunks, compression

TEXT = "水 water\n".encode() * 9


@pytest.mark.parametrize(("kind", "module"), [("bzip2", bz2), ("xz", lzma)])
def test_streams_one_after_another(tmp_path: Path, kind: str, module: ModuleType) -> None:
    path = tmp_path / "a"
    path.write_bytes(module.compress(TEXT) + module.compress(b"") + module.compress(b"end"))
    assert compression(str(path)) == kind
    assert b"".join(chunks(str(path))) == TEXT + b"end"
    path.write_bytes(module.compress(b""))
    assert (compression(str(path)), list(chunks(str(path)))) == (kind, [])


@pytest.mark.parametrize(("kind", "module"), [("bzip2", bz2), ("xz", lzma)])
def test_a_cut_stream_yields_what_stands_before(
    tmp_path: Path, kind: str, module: ModuleType
) -> None:
    path = tmp_path / "a"
    second = module.compress(b"second")
    for end, why in [(second[:-2], "ends before its end"), (b"no stream", f"corrupt {kind} data")]:
        path.write_bytes(module.compress(TEXT) + end)
        found = []
        with pytest.raises(BrokenStream, match=f"truncated_{kind}: .*{why}"):
            for chunk in chunks(str(path)):
                found.append(chunk)
        assert b"".join(found).removesuffix(b"second") == TEXT


@pytest.mark.parametrize("module", [bz2, lzma])
def test_a_small_file_that_holds_much_comes_in_small_pieces(
    tmp_path: Path, module: ModuleType
) -> None:
    path = tmp_path / "a"
    path.write_bytes(module.compress(b"\0" * 30_000_000))
    sizes = [len(chunk) for chunk in chunks(str(path))]
    assert (sum(sizes), max(sizes)) == (30_000_000, PLAIN_BYTES)
