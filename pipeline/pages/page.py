"""A page's bytes to its text and its columns."""

from __future__ import annotations

import json
from collections.abc import Container
from typing import Any

from pipeline.pages.charset import decode, meta_charset
from pipeline.pages.extract import main_text, parse
from pipeline.pages.metadata import alternates, metadata


class NoText(ValueError):
    """Nothing is left of a page when its markup is taken away."""


def html_page(
    data: bytes,
    declared: str | None,
    extractor: str,
    keep: Container[str] = (),
    url: str | None = None,
) -> tuple[str, dict[str, Any]]:
    """Main text and columns of an HTML page.

    Args:
        declared: the charset of the HTTP header.
        keep: with "hreflang", `meta` has that field where the page links its translations.
        url: of the page.

    Raises:
        BadCharset: the bytes are in no encoding that we know.
        NoText: the page holds no text.
    """
    html, charset = decode(data, declared or meta_charset(data))
    page = parse(html)
    fields = {"charset": charset, **metadata(page)}
    if "hreflang" in keep and (links := alternates(page, url)):
        fields["meta"] = {"hreflang": json.dumps(links, ensure_ascii=False, separators=(",", ":"))}
    text = main_text(page, extractor)
    if not text.strip():
        raise NoText(f"{len(data):,} bytes of HTML hold no text")
    return text, fields


def text_page(data: bytes, declared: str | None) -> tuple[str, dict[str, Any]]:
    """Text and columns of a plain text page; line ends stay as they are."""
    text, charset = decode(data, declared)
    if not text.strip():
        raise NoText(f"{len(data):,} bytes hold no text")
    return text, {"charset": charset}
