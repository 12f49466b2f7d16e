from __future__ import annotations

import re

import pyarrow as pa
from hypothesis import given
from hypothesis import strategies as st

from filters.markup import COLUMNS, measure
from filters.segments import Texts

TEXT = st.lists(
    st.sampled_from(
        [
            "http://",
            "https://",
            "www.",
            "a.cn/",
            "xml",
            "<",
            '":',
            ' "',
            "。",
            " ",
            "中",
            "w",
            "x",
            "s",
            "\n",
        ]
    ),
    max_size=30,
).map("".join)


def definition(text: str) -> dict[str, int]:
    urls = re.findall(r"https?://[^\x00-\x20\"'<>`\x7f-\U0010ffff]*", text)
    return {
        "num_urls": len(urls),
        "url_chars": sum(map(len, urls)),
        "num_www": text.count("www."),
        "num_xml": text.count("xml"),
        "num_tags": text.count("<"),
        "num_json_keys": text.count('":'),
    }


def rows(texts: list[str]) -> list[dict[str, int]]:
    columns = measure(Texts(pa.array(texts, pa.string())), {})
    assert list(columns) == list(COLUMNS)
    return pa.table({name: pa.array(columns[name]) for name in COLUMNS}).to_pylist()


@given(st.lists(TEXT, max_size=4))
def test_equals_definition(texts: list[str]) -> None:
    assert rows(texts) == [definition(text) for text in texts]


def test_an_address_ends_at_chinese() -> None:
    (row,) = rows(["见https://a.cn/b。然后"])
    assert (row["num_urls"], row["url_chars"]) == (1, 14)


def test_names_with_a_dot_are_no_addresses() -> None:  # MAP-NEO removes both
    (row,) = rows(["安装 node.js 后编辑 config.json"])
    assert row == dict.fromkeys(COLUMNS, 0)
