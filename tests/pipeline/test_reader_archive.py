from __future__ import annotations

import bz2
import gzip
import io
import lzma
import random
import tarfile
import tracemalloc
import zipfile
from pathlib import Path

import fsspec
import pytest
import zstandard

from pipeline.readers import Bad, Piece, Record, archive
from pipeline.readers.formats import cut, read
from pipeline.settings import Input

MEMBER = 1 << 36
SOURCE = Input(source="t", files="*")
Found = list[tuple[int, str]]


def items(path: Path, shard_bytes: int = 1 << 30) -> list[Record | Bad]:
    pieces = cut(str(path), path.name, shard_bytes)
    assert pieces is not None
    return [item for piece in pieces for item in read(piece, SOURCE, "resiliparse")]


def brief(found: list[Record | Bad]) -> Found:
    return [(i.offset, i.text if isinstance(i, Record) else i.reason) for i in found]


def zipped(path: Path, members: dict[str, bytes]) -> Path:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as file:
        for name, data in members.items():
            file.writestr(name, data)
    return path


def tarred(members: dict[str, bytes]) -> bytes:
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as file:
        for name, data in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            file.addfile(info, io.BytesIO(data))
    return out.getvalue()


MEMBERS = {
    "books/": b"",
    "books/天.txt": "天气很好。\n".encode("gb18030") * 20,
    "a.jsonl.gz": gzip.compress(b'{"text":"one","id":7}\n{"text":"two"}\n{"text"\n'),
    "../b.md": b"# Title\n\nbody\n",
    "page.html": "<title>题</title><p>正文".encode(),
    "empty.txt": b"",
    "c.png": b"\x89PNG",
    "inner.zip": b"PK",
    "__MACOSX/._b.md": b"\0\5\x16\7",
}
FOUND: Found = [
    (0, "天气很好。\n" * 20),
    (MEMBER, "one"),
    (MEMBER + 22, "two"),
    (MEMBER + 37, "bad_json"),
    (2 * MEMBER, "# Title\n\nbody\n"),
    (3 * MEMBER, "正文"),
    (5 * MEMBER, "no_reader"),
    (6 * MEMBER, "no_reader"),
    (7 * MEMBER, "no_reader"),
]


def test_zip(tmp_path: Path) -> None:
    found = items(zipped(tmp_path / "a.zip", MEMBERS))
    assert brief(found) == FOUND
    assert found[1] == Record(MEMBER, 21, "one", {"source_id": "7"})
    assert found[2] == Record(MEMBER + 22, 14, "two", {"source_id": "a.jsonl.gz"})
    assert found[4] == Record(
        2 * MEMBER,
        14,
        "# Title\n\nbody\n",
        {"source_id": "../b.md", "charset": "utf-8", "title": "Title"},
    )
    assert isinstance(found[3], Bad)
    assert found[3].detail.startswith("a.jsonl.gz: Expecting ':' delimiter")
    assert isinstance(found[6], Bad)
    assert found[6].detail == "c.png: no reader for its suffix"
    assert isinstance(found[7], Bad)
    assert found[7].detail == "inner.zip: an archive in an archive is not read; unpack it first"


def test_a_zip_is_cut_at_members(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", MEMBERS)
    pieces = cut(str(path), path.name, 30)
    assert pieces is not None
    assert [(piece.begin, piece.end) for piece in pieces] == [(0, 1), (1, 2), (2, 4), (4, 8)]
    assert items(path, 30) == items(path)


@pytest.mark.parametrize(
    ("name", "pack"),
    [
        ("a.tar", bytes),
        ("a.tar.gz", gzip.compress),
        ("a.tgz", gzip.compress),
        ("a.tar.bz2", bz2.compress),
        ("a.tar.xz", lzma.compress),
        ("a.tar.zst", zstandard.ZstdCompressor().compress),
    ],
)
def test_tar(tmp_path: Path, name: str, pack: type[bytes]) -> None:
    path = tmp_path / name
    path.write_bytes(pack(tarred({k: v for k, v in MEMBERS.items() if k != "books/"})))
    assert brief(items(path)) == FOUND


def test_names_in_the_encoding_of_their_system(tmp_path: Path) -> None:
    """Windows zips write names in GBK without the flag of UTF-8, which zipfile reads as DOS."""
    raw = "天气预报.txt".encode("gbk")
    data = zipped(tmp_path / "a.zip", {"x" * len(raw): b"a"}).read_bytes()
    (tmp_path / "a.zip").write_bytes(data.replace(b"x" * len(raw), raw))
    with tarfile.open(tmp_path / "a.tar", "w", encoding="gbk", format=tarfile.GNU_FORMAT) as file:
        info = tarfile.TarInfo("天气预报.txt")
        info.size = 1
        file.addfile(info, io.BytesIO(b"a"))
    for name in ("a.zip", "a.tar"):
        assert [i.fields["source_id"] for i in items(tmp_path / name) if isinstance(i, Record)] == [
            "天气预报.txt"
        ]


def test_encrypted_broken_and_swollen_members_cost_themselves(tmp_path: Path) -> None:
    members = {
        "secret.txt": b"secret",
        "broken.txt": b"broken" * 100,
        "bomb.txt": b"\0" * 30_000_000,
        "good.txt": b"good",
    }
    path = zipped(tmp_path / "a.zip", members)
    data = bytearray(path.read_bytes())
    data[data.index(b"PK\x01\x02") + 8] |= 1  # the first entry of the directory: encrypted
    at = data.index(b"broken.txt") + len("broken.txt")
    data[at + 5] ^= 0xFF
    path.write_bytes(bytes(data))
    found = items(path)
    assert brief(found) == [
        (0, "encrypted"),
        (MEMBER, "bad_member"),
        (2 * MEMBER, "zip_bomb"),
        (3 * MEMBER, "good"),
    ]
    (tmp_path / "cut.zip").write_bytes(path.read_bytes()[:-30])
    (bad,) = items(tmp_path / "cut.zip")
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.num_bytes) == ("bad_zip", path.stat().st_size - 30)
    (tmp_path / "empty.zip").write_bytes(b"")
    assert items(tmp_path / "empty.zip") == []


def test_members_are_unpacked_in_the_corpus(tmp_path: Path) -> None:
    """Where the next run finds what a killed one left; the system's folder may be memory."""
    path = zipped(tmp_path / "a.zip", {"a.jsonl": b'{"text":"one"}\n{"text":"two"}\n'})
    corpus = tmp_path / "corpus"
    corpus.mkdir()
    records = read(Piece(str(path), path.name, room=str(corpus)), SOURCE, "")
    assert next(records).offset == 0
    (left,) = corpus.iterdir()
    assert left.read_bytes() == b'{"text":"one"}\n{"text":"two"}\n'
    assert left in corpus.rglob(".*.tmp")  # as files.remove_temporaries looks for
    assert [record.offset for record in records] == [15]
    assert list(corpus.iterdir()) == []


def test_each_unreadable_piece_has_a_place_of_its_own(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", {"a.txt": b"a", "b.txt": b"b"})
    pieces = cut(str(path), path.name, 1)
    assert pieces is not None
    path.write_bytes(path.read_bytes()[:-30])
    found = [item for piece in pieces for item in read(piece, SOURCE, "")]
    assert brief(found) == [(-1, "bad_zip"), (-2, "bad_zip")]


def test_a_member_above_the_limit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(archive, "MAX_MEMBER_BYTES", 5)
    path = zipped(tmp_path / "a.zip", {"a.txt": b"123456", "b.txt": b"12345"})
    assert brief(items(path)) == [(0, "too_long"), (MEMBER, "12345")]


def test_links_are_no_files(tmp_path: Path) -> None:
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        link = tarfile.TarInfo("passwd.txt")
        link.type, link.linkname = tarfile.SYMTYPE, "/etc/passwd"
        file.addfile(link)
    (bad,) = items(tmp_path / "a.tar")
    assert isinstance(bad, Bad)
    assert (bad.reason, bad.detail) == (
        "no_reader",
        "passwd.txt: a link or a device, not a file",
    )


TEXTS = {f"{i}.txt": f"text {i}".encode() for i in range(3)}


def test_a_broken_header_of_a_tar_costs_its_member(tmp_path: Path) -> None:
    """tarfile alone ends there without a word, and loses the third member too."""
    data = bytearray(tarred(TEXTS))
    data[1024 + 150] ^= 1  # the checksum of the second header
    (tmp_path / "a.tar").write_bytes(data)
    found = items(tmp_path / "a.tar")
    assert brief(found) == [(0, "text 0"), (MEMBER, "bad_tar"), (2 * MEMBER, "text 2")]
    assert found[1] == Bad(MEMBER, 1024, "bad_tar", "a.tar: no header before '2.txt'")


def test_two_tars_joined(tmp_path: Path) -> None:
    (tmp_path / "a.tar").write_bytes(tarred({"a.txt": b"a"}) + tarred({"b.txt": b"b"}))
    assert brief(items(tmp_path / "a.tar")) == [(0, "a"), (MEMBER, "b")]


@pytest.mark.parametrize(
    ("size", "expected"),
    [
        (1024 + 512 + 3, [(0, "text 0"), (MEMBER, "bad_member"), (2 * MEMBER, "bad_tar")]),
        (1024 + 100, [(0, "text 0"), (MEMBER, "bad_tar")]),
        (100, [(0, "bad_tar")]),
        (0, []),
    ],
)
def test_a_tar_that_ends_early(tmp_path: Path, size: int, expected: Found) -> None:
    (tmp_path / "a.tar").write_bytes(tarred(TEXTS)[:size])
    assert brief(items(tmp_path / "a.tar")) == expected


def test_a_packed_tar_that_ends_early(tmp_path: Path) -> None:
    packed = gzip.compress(tarred({"a.txt": b"a", "b.txt": bytes(range(256)) * 8}), 0)
    (tmp_path / "a.tar.gz").write_bytes(packed[:2000])
    assert [reason for _, reason in brief(items(tmp_path / "a.tar.gz"))] == [
        "a",
        "bad_member",
        "truncated_gzip",
    ]


def test_archives_of_a_store(tmp_path: Path) -> None:
    path = zipped(tmp_path / "a.zip", MEMBERS)
    store = fsspec.filesystem("memory")
    store.pipe("/assay-archives/a.zip", path.read_bytes())
    store.pipe("/assay-archives/a.tar.gz", gzip.compress(tarred(TEXTS)))
    for name, expected in [
        ("a.zip", FOUND),
        ("a.tar.gz", [(i * MEMBER, f"text {i}") for i in range(3)]),
    ]:
        url = f"memory://assay-archives/{name}"
        pieces = cut(url, name, 30)
        assert pieces is not None
        found = [item for piece in pieces for item in read(piece, SOURCE, "resiliparse")]
        assert brief(found) == expected


def test_many_members_in_little_memory(tmp_path: Path) -> None:
    """tarfile keeps each header that it read: 1 kB, a gigabyte for a million members."""
    with tarfile.open(tmp_path / "a.tar", "w") as file:
        for number in range(3_000):
            info = tarfile.TarInfo(f"{number}.txt")
            info.size = 1
            file.addfile(info, io.BytesIO(b"a"))
    tracemalloc.start()
    assert [item.offset for item in items(tmp_path / "a.tar")] == [
        number * MEMBER for number in range(3_000)
    ]
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 4_000_000  # 1 MB of chunks; 6 MB with the headers kept


def test_a_member_that_is_not_what_its_name_says(tmp_path: Path) -> None:
    noise = b"\x1f\x9d" + random.Random(5).randbytes(5_000)
    members = {"a.jsonl.gz": noise, "b.txt.gz": b"text", "c.txt": b"more"}
    path = zipped(tmp_path / "a.zip", members)
    bad, *others = items(path)
    assert isinstance(bad, Bad)
    assert (bad.offset, bad.reason) == (0, "not_gzip")
    assert bad.detail.startswith("a.jsonl.gz: neither gzip nor text: the file begins with 1f 9d")
    assert brief(others) == [(MEMBER, "text"), (2 * MEMBER, "more")]
