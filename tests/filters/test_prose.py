from __future__ import annotations

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.prose import prose


@pytest.mark.parametrize(
    ("text", "view"),
    [
        ("", ""),
        ("甲\n乙\tb  c", "甲 乙 b c"),
        (
            "# 标题\n[![Build](https://x.y/z.svg)](https://ci) 见[这里](http://a.b/c_(d))",
            "标题 Build 见这里",
        ),
        ("前\n```py\nprint(1)\n```\n后", "前 后"),
        ("前\n~~~\nnever closed", "前"),
        ("---\ntitle: x\n---\n正文", "正文"),
        ("用`pip install`安装，或https://example.com/a?b=1。好", "用 安装，或 。好"),
        ("联系a.b@c.com谢谢", "联系 谢谢"),
        ("<!-- no --><p class='a'>好&nbsp;的</p><script>let a = 1</script>", "好 的"),
        ("**粗** _斜_ ~~删~~ | 表 |", "粗 斜 删 表"),
        ("设$a_1$为{{ page.title }}值", "设 为 值"),
        ("[1]: http://a.b 'title'\n文", "文"),
        ('x\n.TH LS 1 "2020"\n.SH 名称\nls \\- 列出\n.B \\fI目录\\fR', "x 名称 ls - 列出 目录"),
        ('\'\\" no\n.de AP\n.ie !"\\\\$4"" .TP 5\n..\n.SH 名称\n.de B\nnever closed', "名称"),
        ("安装 node.js 后编辑 config.json", "安装 node.js 后编辑 config.json"),
        ("a < b and c > d & e", "a < b and c d & e"),
    ],
)
def test_prose(text: str, view: str) -> None:
    assert prose(text) == view


@given(st.text(st.sampled_from("a好`<>[]()!{}%$#*_\\.'\n @:/-&;~|")))
def test_result_is_one_stripped_line(text: str) -> None:
    assert " ".join(prose(text).split()) == prose(text)


@pytest.mark.parametrize("char", ["`", "[", "<", "a@", "www.", "(", "{{", "$", "\\", "~~~\n", "a"])
def test_no_pattern_is_quadratic(char: str) -> None:
    start = time.process_time()
    prose(char * 20_000)
    assert time.process_time() - start < 2.0
