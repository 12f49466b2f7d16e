"""The licence that a page states, with the tag or link that states it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from pipeline.pages.tree import Page, select

_CC = re.compile(
    r"creativecommons\.org/(?:licenses/([a-z-]+)/(\d\.\d)|publicdomain/(zero|mark)/(\d\.\d))",
    re.IGNORECASE,
)
_RELATION = re.compile(r"\b(?i:rel)\s*=")
_PUBLIC_DOMAIN = {"zero": "CC0", "mark": "PDM"}
RIGHTS = ("dc.rights", "dcterms.rights", "dcterms.license", "dc.license", "copyright")


def licence(page: Page, metas: Mapping[str, str]) -> tuple[str | None, str | None]:
    """(licence, evidence). A `rel=license` link first, then a Creative Commons link, then <meta>.

    A licence is a short name (`CC-BY-SA-4.0`) where its address says so, else what the page gives.
    """
    if "creativecommons.org/" in page.html or _names_licence(page.html):
        links = select(
            page.tree.document,
            'a[rel~="license"], link[rel~="license"], a[href*="creativecommons.org/"]',
        )
        for link in sorted(
            links, key=lambda link: "license" not in (link.get_attribute("rel") or "")
        ):
            href = link.get_attribute("href") or ""
            if href and ("license" in (link.get_attribute("rel") or "") or _CC.search(href)):
                return short_name(href), opening_tag(link)
    for name in RIGHTS:
        if name in metas:
            meta = page.tree.document.query_selector(
                f'meta[name="{name}" i], meta[property="{name}" i]'
            )
            if meta is not None:
                return short_name(metas[name]), opening_tag(meta)
    return None, None


def _names_licence(html: str) -> bool:
    """`rel=` and `license` stand in one tag."""
    at = html.find("license")
    while at >= 0:
        begin = max(html.rfind("<", 0, at), html.rfind(">", 0, at)) + 1
        if _RELATION.search(html, begin, at):
            return True
        at = html.find("license", at + 1)
    return False


def short_name(address: str) -> str:
    """`CC-BY-SA-4.0` for an address of Creative Commons, else the text itself."""
    match = _CC.search(address)
    if match is None:
        return " ".join(address.split())[:200]
    if match[3]:
        return f"{_PUBLIC_DOMAIN[match[3].lower()]}-{match[4]}"
    return f"CC-{match[1].upper()}-{match[2]}"


def opening_tag(node: Any) -> str:
    """The tag as evidence, without what it holds."""
    html: str = node.outer_html
    return html[: html.find(">") + 1][:500]
