from __future__ import annotations

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from kernels.names import names_in, slot

PAGE = b'<DIV class="nav side-bar\xc3\xa9x">Tea_1</div><x>\xe4\xbd\xa0end'


@pytest.mark.parametrize("name", ["div", "class", "nav", "side-bar", "x", "tea_1", "end"])
def test_names_that_stand_there(name: str) -> None:
    assert names_in(PAGE)[slot(name)] == 1


@pytest.mark.parametrize("name", ["na", "side", "bar", "tea", "sidebar", "rt", "katex"])
def test_parts_of_names_do_not(name: str) -> None:
    assert names_in(PAGE)[slot(name)] == 0


def test_an_empty_page_has_none() -> None:
    assert 1 not in names_in(b"")
    assert 1 not in names_in(b" <>\n")


def test_bytes_above_127_stand_for_themselves() -> None:
    assert [at for at, seen in enumerate(names_in("é。".encode())) if seen] == [
        0x80,
        0x82,
        0xA9,
        0xC3,
        0xE3,
    ]


@given(st.text(st.sampled_from("aB-_1 <>\n你é"), max_size=40))
def test_equal_to_the_names_of_a_regular_expression(text: str) -> None:
    names = re.findall(r"[a-z0-9_-]+", text.lower().encode().decode("ascii", "replace"))
    assert [at for at, seen in enumerate(names_in(text.encode())) if seen] == sorted(
        {slot(name) for name in names} | {byte for byte in text.encode() if byte >= 128}
    )


def test_names_share_few_slots() -> None:
    names = [f"{first}{last}" for first in "abcdefghij" for last in "klmnopqrst"]
    assert len({slot(name) for name in names}) == len(names)
