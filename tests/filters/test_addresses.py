"""Addresses: one form for all spellings, and the keys by which lists know them."""

from __future__ import annotations

import hypothesis.strategies as st
import pytest
from hypothesis import given

from filters.addresses import domain_keys, is_registry, parse, path_keys, site, word_keys


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://www.ab.com/", "www.ab.com", ""),
        ("HTTP://AB.COM:8080/A/b/?Q=1#top", "ab.com", "/a/b/?q=1"),
        ("https://user:pass@ab.com./x", "ab.com", "/x"),
        ("http://Bücher.example/%E8%B5%8C", "xn--bcher-kva.example", "/赌"),
        ("http://例子。中国", "xn--fsqu00a.xn--fiqs8s", ""),
        ("http://ＡＢ.com", "ab.com", ""),
        ("//ab.com/x", "ab.com", "/x"),
        ("ab.com:80?x", "ab.com", "?x"),
        ("https:\\\\ab.com\\x", "ab.com", "/x"),
        ("http://[2001:DB8::1]:80/x", "[2001:db8::1]", "/x"),
        ("http://a@b@ab.com", "ab.com", ""),
        *((url, "", "") for url in ("", " ", "https://", "mailto:me@ab.com", "data:text/html,a/b")),
    ],
)
def test_parse(url: str, host: str, path: str) -> None:
    assert parse(url) == (host, path)


def test_keys() -> None:
    assert domain_keys("www.ab.co.uk") == ["www.ab.co.uk", "ab.co.uk", "co.uk", "uk"]
    assert domain_keys("10.1.2.3") == ["10.1.2.3"]
    assert domain_keys("[::1]") == ["[::1]"]
    assert domain_keys("") == path_keys("", "/x") == []
    assert path_keys("www2.ab.com", "/x/y?z") == ["ab.com/x", "ab.com/x/y", "ab.com/x/y?z"]
    assert word_keys("ab-cd.com", "/essex") == ["*ab*", "*cd*", "*com*", "*essex*"]
    assert "*赌场*" in word_keys("ab.com", "/最好赌场页")
    assert "*中国*" in word_keys("xn--fsqu00a.xn--fiqs8s", "")


@pytest.mark.parametrize(
    ("host", "owner"),
    [
        ("www.ab.com", "ab.com"),
        ("a.b.co.uk", "b.co.uk"),
        ("co.uk", "co.uk"),
        ("x.me.github.io", "me.github.io"),
        ("a.b.c.kobe.jp", "b.c.kobe.jp"),  # *.kobe.jp
        ("x.city.kobe.jp", "city.kobe.jp"),  # !city.kobe.jp
        ("a.b.nosuchregistry", "b.nosuchregistry"),
        ("x.xn--fsqu00a.xn--fiqs8s", "xn--fsqu00a.xn--fiqs8s"),
        ("10.1.2.3", "10.1.2.3"),
        ("", ""),
    ],
)
def test_site(host: str, owner: str) -> None:
    assert site(host) == owner


def test_registries() -> None:
    assert [is_registry(name) for name in ("com", "co.uk", "c.kobe.jp", "com.cn")] == [True] * 4
    assert [is_registry(name) for name in ("ab.com", "github.io", "city.kobe.jp")] == [False] * 3


labels = st.text("abcxyz019-", min_size=1, max_size=8).filter(lambda label: label.strip("-0189"))
hosts = st.lists(labels, min_size=2, max_size=5).map(".".join)


@given(hosts, st.sampled_from(["", ":80", ":"]), st.sampled_from(["", "u@", "u:p@"]), st.booleans())
def test_spellings_have_one_form(host: str, port: str, user: str, upper: bool) -> None:
    spelt = host.upper() if upper else host
    assert parse(f"https://{user}{spelt}.{port}/") == parse(host)


@given(st.text(max_size=80))
def test_any_text_has_a_form(url: str) -> None:
    host, path = parse(url)
    assert host or not path
    assert site(host) in ([*domain_keys(host), ""])
    word_keys(host, path)
