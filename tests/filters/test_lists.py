"""Own lists: what is counted of them, and what of a bad list is told."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pytest

from filters.lists import Entry, columns, measure, read
from filters.segments import Texts

BRANDS = "# ours\n苹果手机\n华为\tphone\r\nMake Money\n\nviagra~\tpills\n!大有作为\n"


def written(folder: Path, name: str, text: str | bytes) -> str:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return str(path)


def test_read(tmp_path: Path) -> None:
    assert read(written(tmp_path, "brands.txt", "\ufeff" + BRANDS)) == [
        Entry("苹果手机", "", False),
        Entry("华为", "phone", False),
        Entry("Make Money", "", False),
        Entry("viagra~", "pills", False),
        Entry("大有作为", "", True),
    ]


def test_counts_and_words(tmp_path: Path) -> None:
    paths = (
        ("brands", written(tmp_path, "brands.txt", BRANDS)),
        ("fruit", written(tmp_path, "fruit.txt", "苹果\n")),
    )
    texts = Texts(
        pa.array(
            ["買蘋果手機，華★為", "", "make\nMONEY with v1agra, v1agra", "华为大有作为", "吃苹果"]
        )
    )
    found = measure(paths, texts, {})
    assert list(found) == list(columns(paths))
    table = pa.table({name: pa.array(values) for name, values in found.items()})
    assert table.schema.types == [signal.type for signal in columns(paths).values()]
    assert table.to_pydict() == {
        "brands": [2, 0, 3, 1, 0],
        "brands_words": [
            ["苹果手机", "phone:华为"],
            [],
            ["pills:viagra", "Make Money"],
            ["phone:华为"],
            [],
        ],
        "fruit": [1, 0, 0, 0, 1],
        "fruit_words": [["苹果"], [], [], [], ["苹果"]],
    }


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("", r"list.txt: no entries; write a phrase a line"),
        ("# only\n!大有作为\n", r"list.txt: no entries"),
        ("ok\n色\n", r"list.txt, line 2: '色' has 1 characters; an entry has 2 to 64"),
        ("a" * 65, r"line 1: 'a+' has 65 characters"),
        ("ok\n\n华为\nＯＫ\n", r"line 4: 'ＯＫ' stands in line 1 already"),
        ("华为\n華為\n", r"line 2: '華為' stands in line 1 already"),
        ("华为\n苹果".encode("gb18030"), r"line 1: not UTF-8: .*save the list as UTF-8"),
        ("华为\n苹果".encode("utf-16-le"), r"line 2: not UTF-8: .*`iconv -f utf-16le -t utf-8`"),
        (b"ok\0", r"line 1: not UTF-8: .*utf-16le"),
        ("ok\n华\ufffd\n", r"line 2: not UTF-8: .*save the list"),
        ("ok\r色\r", r"line 2: .色. has 1 characters"),
        ("~\n", r"line 1: '~' has 0 characters"),
    ],
)
def test_bad_lists(tmp_path: Path, content: str | bytes, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        read(written(tmp_path, "list.txt", content))


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
@pytest.mark.parametrize("charset", ["utf-8", "utf-8-sig", "utf-16"])
def test_lists_as_editors_save_them(tmp_path: Path, charset: str, end: str) -> None:
    content = end.join(["# brands", "苹果手机", "", "华为\tphone", ""])
    assert read(written(tmp_path, "list.txt", content.encode(charset))) == [
        Entry("苹果手机", "", False),
        Entry("华为", "phone", False),
    ]


def test_a_list_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"no.txt: No such file or directory; a list is a file"):
        read(str(tmp_path / "no.txt"))


def test_edge_documents(tmp_path: Path) -> None:
    """Every text has a value: nothing, punctuation, one character or phrase for ever."""
    path = written(tmp_path, "brands.txt", BRANDS)
    counts = {
        "": 0, "a": 0, "的": 0, "\n": 0, "。，！？…": 0, "\u200b\ufffd\x00": 0, "😀": 0,
        "a" * 200_000: 0, "华" * 200_000: 0, "华为" * 100_000: 100_000,
        "make money " * 90_000: 90_000,  # 1 MB in one line
        "华为\r\n" * 3: 3,
    }  # fmt: skip
    found = measure((("brands", path),), Texts(pa.array(list(counts), pa.string())), {})
    assert pa.array(found["brands"]).to_pylist() == list(counts.values())
    words = pa.array(found["brands_words"]).to_pylist()
    assert [bool(listed) for listed in words] == [count > 0 for count in counts.values()]
    assert words[-1] == ["phone:华为"]
