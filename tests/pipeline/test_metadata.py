from __future__ import annotations

from datetime import date
from typing import Any

import pytest

from pipeline.pages.extract import parse
from pipeline.pages.metadata import metadata


def of(head: str, body: str = "") -> dict[str, Any]:
    html = f"<html><head>{head}</head><body>{body}</body></html>"
    return metadata(parse(html))


def test_a_page_that_says_nothing() -> None:
    assert of("") == {}


def test_title_address_and_robots() -> None:
    assert of(
        "<title> A\n title </title><meta name='Robots' content='noindex, noai'>"
        "<link rel='alternate canonical' href='https://a.example/x'>"
        "<meta property='og:url' content='https://a.example/other'>"
    ) == {
        "title": "A title",
        "robots_meta": "noindex, noai",
        "canonical_url": "https://a.example/x",
    }


@pytest.mark.parametrize(
    ("head", "body"),
    [
        ("<meta property='article:published_time' content='2024-03-01T10:00:00+08:00'>", ""),
        ("<meta name='DC.date' content='20240301'>", ""),
        ("", "<meta itemprop='datePublished' content='2024-03-01'>"),
        ('<script type="application/ld+json">[{"datePublished": "2024-03-01"}]</script>', ""),
        (
            '<script type="application/ld+json">{"@graph": [{"@type": "x"}, '
            '{"datePublished": "2024-03-01T00:00Z"}]}</script>',
            "",
        ),
        ('<script type="application/ld+json">{broken</script>', "<time datetime='2024-03-01'>x"),
        ("<meta name='date' content='yesterday'>", "<time datetime='2024-03-01 10:00'>x</time>"),
    ],
)
def test_published_date(head: str, body: str) -> None:
    assert of(head, body) == {"published_date": date(2024, 3, 1)}


def test_what_is_no_date_is_passed_over() -> None:
    assert of("<meta name='date' content='2024-13-41'>") == {}


@pytest.mark.parametrize(
    ("head", "body", "licence", "evidence"),
    [
        (
            "",
            '<a href="https://creativecommons.org/licenses/by-sa/4.0/deed.zh">x</a>',
            "CC-BY-SA-4.0",
            '<a href="https://creativecommons.org/licenses/by-sa/4.0/deed.zh">',
        ),
        (
            '<link rel="license" href="https://a.example/terms">',
            '<a href="http://creativecommons.org/licenses/by/3.0/">x</a>',
            "https://a.example/terms",
            '<link rel="license" href="https://a.example/terms">',
        ),
        (
            "",
            '<a rel="license" href="https://creativecommons.org/publicdomain/zero/1.0/">x</a>',
            "CC0-1.0",
            '<a rel="license" href="https://creativecommons.org/publicdomain/zero/1.0/">',
        ),
        (
            '<meta name="DC.rights" content="© 2026 The Authors">',
            "",
            "© 2026 The Authors",
            '<meta name="DC.rights" content="© 2026 The Authors">',
        ),
    ],
)
def test_licence(head: str, body: str, licence: str, evidence: str) -> None:
    assert of(head, body) == {"licence": licence, "licence_evidence": evidence}
