"""Addresses in the form in which copies of a page have the same one."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from filters.canonical_urls import canonical


@pytest.mark.parametrize(
    ("url", "form"),
    [
        ("HTTPS://www.Example.com:443/A/%7Eb/?utm_id=x&b=2&a=1#top", "example.com/A/~b?a=1&b=2"),
        ("http://example.com", "example.com"),
        ("http://example.com/", "example.com"),
        ("http://user:pass@example.com./", "example.com"),
        ("https://example.com/index.html", "example.com"),
        ("https://example.com/index.php?id=3", "example.com?id=3"),
        ("https://example.com/reindex.html", "example.com/reindex.html"),
        ("https://example.com/news?id=1&&", "example.com/news?id=1"),
        ("https://example.com/news?UTM_Campaign=a&spm=a.b.c&gclid=1", "example.com/news"),
        ("https://example.com/news?sport=1&utmost=2", "example.com/news?sport=1&utmost=2"),
        ("https://example.com/a;jsessionid=0F1/b", "example.com/a/b"),
        ("https://example.com/#!/route", "example.com"),
        ("https://example.com/%e4%b8%ad%2f%20%ff", "example.com/中%2F%20%FF"),
        ("https://example.com/中%2F x", "example.com/中%2F%20x"),
        ("https://example.com/a?q=%26b%3D1", "example.com/a?q=%26b%3D1"),
        ("https://中国.cn/", "xn--fiqs8s.cn"),
        ("//example.com/a", "example.com/a"),
        ("https://www2.example.com/a", "example.com/a"),
        ("https://m.example.com/a", "m.example.com/a"),
        ("http://[::1]:80/x", "[::1]/x"),
        ("urn:isbn:9787", "urn:isbn:9787"),
        ("mailto:a@b.cn", "mailto:a@b.cn"),
        ("", ""),
    ],
)
def test_forms(url: str, form: str) -> None:
    assert canonical(url) == form


@given(st.text(max_size=60) | st.text("a.%2fF/?&=#;:@ 中", max_size=40).map("http://a.b/".__add__))
def test_any_text_has_a_form(url: str) -> None:
    canonical(url).encode("utf-8", "surrogatepass")


@given(st.text("aB.%2fF/?&=中", max_size=40).map("http://a.b/".__add__))
def test_a_form_is_its_own_form(url: str) -> None:
    form = canonical(url)
    assert canonical(form) == form


@given(st.lists(st.sampled_from(["a=1", "b=2", "c", "d=%E4"]), max_size=4), st.randoms())
def test_the_order_of_parameters_says_nothing(parts: list[str], order: random.Random) -> None:
    shuffled = order.sample(parts, len(parts))
    assert canonical("a.com/?" + "&".join(parts)) == canonical("a.com/?" + "&".join(shuffled))
