"""What a page says of itself: title, address, dates, robots, licence. Columns of DOCUMENTS."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from datetime import date
from typing import Any
from urllib.parse import urljoin

from pipeline.pages.licence import licence
from pipeline.pages.tree import Page, select

# Names of <meta> (name or property, lower case) that give the date of publication, best first.
PUBLISHED = (
    "article:published_time",
    "datepublished",
    "dc.date.issued",
    "dcterms.issued",
    "dc.date",
    "pubdate",
    "publishdate",
    "date",
)
TIMES = "time[datetime]"
MAX_LINKS = 256  # to translations, of a page: no site has more languages and regions
MAX_ADDRESS = 2_083  # characters of such an address: more than a browser takes is no address
_DATE = re.compile(r"(\d{4})-(\d\d)-(\d\d)|(\d{4})(\d\d)(\d\d)(?!\d)")


def metadata(page: Page) -> dict[str, Any]:
    """Columns that the page fills; a column that it does not is missing."""
    metas = dict(reversed(list(_metas(page))))  # the first of a name counts
    found_licence, evidence = licence(page, metas)
    title = " ".join((page.tree.title or "").split())
    fields = {
        "title": title or metas.get("og:title"),
        "canonical_url": _canonical(page) or metas.get("og:url"),
        "published_date": _published(page, metas),
        "robots_meta": metas.get("robots"),
        "licence": found_licence,
        "licence_evidence": evidence,
    }
    return {name: value for name, value in fields.items() if value is not None}


def alternates(page: Page, url: str | None) -> dict[str, str]:
    """Addresses of a page in other languages, and its own, by `hreflang` in lower case: the first
    MAX_LINKS of <link rel="alternate" hreflang>; of one language the first.

    Args:
        url: of the page; without one a relative address is none.
    """
    found: dict[str, str] = {}
    if "hreflang" not in page.html.lower():
        return found
    base = page.tree.document.query_selector("base[href]")
    origin = _joined(url or "", base.get_attribute("href").strip()) if base is not None else url
    for link in select(page.tree.document, "link[hreflang][href]"):
        language = link.get_attribute("hreflang").strip().lower()
        address = _joined(origin or "", link.get_attribute("href").strip())
        alternate = "alternate" in (link.get_attribute("rel") or "").lower().split()
        if language and alternate and "://" in address and len(address) <= MAX_ADDRESS:
            found.setdefault(language, address)
        if len(found) == MAX_LINKS:
            break
    return found


def _joined(base: str, address: str) -> str:
    try:
        return urljoin(base, address)
    except ValueError:  # a host in brackets that is none
        return ""


def _metas(page: Page) -> Iterator[tuple[str, str]]:
    everywhere = page.tree.head is None or page.may_hold(
        "[itemprop]"
    )  # microdata stands in the body
    for node in select(page.tree.document if everywhere else page.tree.head, "meta[content]"):
        for attribute in ("name", "property", "itemprop"):
            name = node.get_attribute(attribute)
            content = node.get_attribute("content").strip()
            if name and content:
                yield name.strip().lower(), content


def _canonical(page: Page) -> str | None:
    if "canonical" not in page.html:
        return None
    link = page.tree.document.query_selector('link[rel~="canonical"][href]')
    return (link.get_attribute("href").strip() or None) if link is not None else None


def _published(page: Page, metas: dict[str, str]) -> date | None:
    """<meta>, then JSON-LD, then the first <time>; what is no date is passed over."""
    times = select(page.tree.document, TIMES) if page.may_hold(TIMES) else ()
    stated = [metas[name] for name in PUBLISHED if name in metas]
    for value in [
        *stated,
        *_linked_data(page),
        *(t.get_attribute("datetime") for t in times[:1]),
    ]:
        found = _date(value)
        if found is not None:
            return found
    return None


def _linked_data(page: Page) -> Iterator[str]:
    if "datePublished" not in page.html:
        return
    for script in select(page.tree.document, 'script[type="application/ld+json"]'):
        try:
            yield from _dates_in(json.loads(script.text_content))
        except (ValueError, RecursionError):
            continue


def _dates_in(value: Any) -> Iterator[str]:
    if isinstance(value, list):
        for item in value:
            yield from _dates_in(item)
    elif isinstance(value, dict):
        if isinstance(value.get("datePublished"), str):
            yield value["datePublished"]
        yield from _dates_in(value.get("@graph"))


def _date(value: str) -> date | None:
    match = _DATE.match(value.strip())
    if match is None:
        return None
    year, month, day = (int(part) for part in match.groups() if part)
    try:
        return date(year, month, day)
    except ValueError:
        return None
