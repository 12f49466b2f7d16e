from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import zlib
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest
import zstandard

from pipeline.readers import Bad, Piece, Record
from pipeline.readers.formats import READERS, cut, read
from pipeline.readers.streams import PLAIN_BYTES, BrokenStream, chunks, compression
from pipeline.settings import Input

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
    for end, why in [
        (second[:-2], f"truncated_{kind}: the {kind} stream ends before its end"),
        (b"no stream", f"damaged_{kind}: corrupt {kind} data"),
    ]:
        path.write_bytes(module.compress(TEXT) + end)
        found = []
        with pytest.raises(BrokenStream, match=why):
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


PACK: dict[str, tuple[str, Callable[[bytes], bytes]]] = {
    "gzip": (".gz", lambda data: gzip.compress(data, mtime=0)),
    "zstd": (".zst", zstandard.ZstdCompressor(write_checksum=True).compress),
    "bzip2": (".bz2", bz2.compress),
    "xz": (".xz", lzma.compress),
}
LONG = "".join(f"{n}: 水 water {n * 7_919}\n" for n in range(20_000)).encode()
NOISE = random.Random(5).randbytes(50_000)


def fault(path: Path) -> str:
    """The reason for which a stream ends."""
    try:
        for _ in chunks(str(path)):
            pass
    except BrokenStream as error:
        return error.reason
    return "none"


@pytest.mark.parametrize("kind", PACK)
def test_cut_off_is_not_damaged(tmp_path: Path, kind: str) -> None:
    suffix, pack = PACK[kind]
    packed = pack(LONG)
    path = tmp_path / f"a{suffix}"
    for share in (0.01, 0.3, 0.7, 0.99):
        path.write_bytes(packed[: int(len(packed) * share)])
        assert fault(path) == f"truncated_{kind}"
    for share in (0.01, 0.3, 0.5, 0.99):
        flipped = bytearray(packed)
        flipped[int(len(packed) * share)] ^= 1
        path.write_bytes(flipped)
        assert fault(path) == f"damaged_{kind}"
    path.write_bytes(packed)
    assert fault(path) == "none"


@pytest.mark.parametrize("name", ["jsonl", "json", "warc", "text", "html", "csv", "mediawiki"])
@pytest.mark.parametrize("kind", PACK)
def test_what_its_name_says_that_it_is_and_is_not(tmp_path: Path, name: str, kind: str) -> None:
    """One clear reject, also of a file of many pieces; no row of garbage."""
    file = f"a{READERS[name].suffixes[0]}{PACK[kind][0]}"
    begins = b"\x1f\x9d\x90\x01"  # compress(1)
    (tmp_path / file).write_bytes(begins + NOISE)
    pieces = cut(str(tmp_path / file), file, 10_000)
    assert pieces is not None
    source = Input(source="s", files="*")
    (bad,) = (item for piece in pieces for item in read(piece, source, "resiliparse"))
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.detail) == (
        f"not_{kind}",
        f"neither {kind} nor text: the file begins with 1f 9d 90 01",
    )


@pytest.mark.parametrize("encoding", ["utf-8", "gb18030", "utf-16"])
def test_text_under_the_name_of_a_packed_file_is_text(tmp_path: Path, encoding: str) -> None:
    """What a download that unpacks on the way leaves."""
    path = tmp_path / "a.txt.gz"
    text = "今天天气很好，我们去公园散步。\n" * 50
    path.write_bytes(text.encode(encoding))
    (record,) = read(Piece(str(path), path.name), Input(source="s", files="*"), "resiliparse")
    assert isinstance(record, Record)
    assert record.text == text


def test_a_tar_under_the_name_of_a_packed_one(tmp_path: Path) -> None:
    path = tmp_path / "a.tar.gz"
    with tarfile.open(path, "w") as archive:
        member = tarfile.TarInfo("a.txt")
        member.size = len(TEXT)
        archive.addfile(member, io.BytesIO(TEXT))
    (record,) = read(Piece(str(path), path.name), Input(source="s", files="*"), "resiliparse")
    assert isinstance(record, Record)
    assert record.text == TEXT.decode()


def test_all_before_a_flipped_byte_stands(tmp_path: Path) -> None:
    packed = bytearray(PACK["gzip"][1](LONG))
    packed[len(packed) // 2] ^= 0xFF
    path = tmp_path / "a.gz"
    path.write_bytes(packed)
    found = bytearray()
    with pytest.raises(BrokenStream, match="damaged_gzip: corrupt gzip data"):
        for chunk in chunks(str(path)):
            found += chunk
    before = zlib.decompressobj(31).decompress(bytes(packed[: len(packed) // 2 - 10]))
    assert found.startswith(before)
    assert LONG.startswith(before)
