from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pipeline.pages.wikitext import plain_text


@pytest.mark.parametrize(
    ("wikitext", "expected"),
    [
        ("'''Water''' is ''wet''.", "Water is wet."),
        ("[[水分子|H<sub>2</sub>O]]和[[水]]，[[:Category:水|分类]]", "H2O和水，分类"),
        ("a[[File:x.jpg|thumb|right|A [[caption]]]] b [[分类:水]][[Category:W]][[fr:Eau]]", "a b"),
        ("[[War: a story]][[zh-yue:水]] [[en:Tea|tea]]", "War: a story tea"),
        ("text<ref name=a>note {{cite}}</ref><ref name=b/> goes on", "text goes on"),
        ("{{Infobox|a={{b}}}}水（{{lang|en|Water}}，）是", "水是"),
        ("a\n== Head ''x'' ==\n\n\n\nb", "a\n\nHead x\n\nb"),
        ("* one\n** two\n# three\n; term : meaning\n", "* one\n** two\n* three\nterm meaning"),
        ("{|\n|+ Title\n! A !! B\n|-\n| 1 || 2 [[x]]\n|}", "Title\nA | B\n1 | 2 x"),
        ('{|\n|-\n| a || colspan="2" {{yes}} || bgcolor=red {{no}}\n|}', "a | |"),
        ("* {{template}}\n* item\n** {{template}}", "* item"),
        ("[http://a.example label] [http://a.example] http://b.example", "label http://b.example"),
        ("a&nbsp;&amp;b &lt;c> <!-- no --> <nowiki>[[kept]]</nowiki>", "a &b <c> [[kept]]"),
        ("x<br>y<br />z", "x\ny\nz"),
        ("<gallery>\nFile:x|y\n</gallery>__TOC__\n----\nend", "end"),
        ("<math>x^2</math> and <code>a</code>", "x^2 and a"),
        ("-{zh-hans:软件;zh-hant:軟體}-和-{只有}-，-{zh-tw:台; zh-hk:港}-", "软件和只有，台"),
        ("-{T|zh-hans:标题}--{H|zh-cn:a;zh-tw:b}-正文-{A|zh-cn:甲;zh-tw:乙}-", "正文甲"),
        ("", ""),
        ("{{open [[link|x <b>y", "{{open [[link|x <b>y"),
    ],
)
def test_plain_text(wikitext: str, expected: str) -> None:
    assert plain_text(wikitext) == expected


@given(st.text(alphabet="水a \n'[]{}|<>/=*#-:br&;", max_size=60))
def test_any_markup_comes_through(wikitext: str) -> None:
    assert plain_text(wikitext) == plain_text(wikitext).strip()


@given(st.text(alphabet="水火 abc，。🙂", max_size=60))
def test_text_without_markup_stays(text: str) -> None:
    assert plain_text(text).split() == text.split()
