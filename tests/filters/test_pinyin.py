"""Pinyin in brackets: with tones, without, and the English that stands there as often."""

from __future__ import annotations

import pytest

from filters.pinyin import in_brackets


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("训(xùn)练（liàn）", ["(xùn)", "（liàn）"]),
        ("训练(xùnliàn)", ["(xùnliàn)"]),
        ("训(xun)练(lian)难(nan)", ["(xun)", "(lian)", "(nan)"]),
        ("训练(xunlian)、西安(xi'an)、绿色(lvse)", ["(xunlian)", "(xi'an)", "(lvse)"]),
        ("训(xun)练(lian)", []),  # fewer than three
        ("训(xun)练(xun)难(xun)", []),  # that differ
        ("训(xunlian)练(lianxi)难(nande)", []),  # more syllables than Han
        ("北京(Beijing)、上海(Shanghai)、西安(Xi'an)", []),  # names, for those who cannot read Han
        ("机器(machine)、文件(file)、列表(list)、图(graph)", []),
        ("他(he)、她(she)、我(me)，以及学习(learning)、训练(training)、模型(model)、层(layer)", []),
        ("甲(a1) xun(xun) (lian) ，(nan)", []),
        ("", []),
    ],
)
def test_what_is_read_aloud(text: str, found: list[str]) -> None:
    assert in_brackets(text) == found
