"""HTML to main text.

The page is parsed once (resiliparse, lexbor), rewritten (`rewrites.py`), and its text taken without
what `BOILERPLATE` selects. resiliparse's own `main_content` (2.0) is not used: it drops every list
and every text node of one 3-byte character, so "见<a>链接</a>。" loses its first word and its stop.
"""

from __future__ import annotations

from collections.abc import Callable

from resiliparse.extract.html2text import extract_plain_text
from resiliparse.parse.html import HTMLTree

from kernels.names import names_in
from pipeline.pages.rewrites import HAN_BYTES, join_wrapped_han, rewrite
from pipeline.pages.tree import Page, Tree, select

MAIN = "main, [role=main]"
MIN_MAIN_SHARE = 0.2  # of the text of the body that <main> must hold to be taken as the page

# What is no main text on the web: navigation, chrome, widgets. CSS selectors. `[hidden]` is not
# among them: scripts show it later, and some LibreOffice help pages hold all their text in it.
BOILERPLATE = [
    "nav", "footer", "aside", "dialog", "template", "button", "select", "textarea", "svg",
    "[role=navigation]", "[role=contentinfo]", "[role=search]", "[role=menu]", "[role=dialog]",
    "[aria-hidden=true]",
    ".nav", ".navbar", ".navigation", ".navheader", ".navfooter", ".menu", ".breadcrumb",
    ".breadcrumbs", ".pagination", ".pager", ".sidebar", ".sphinxsidebar", "#sidebar", ".related",
    ".toc", "#toc", ".footer", "#footer", ".copyright", ".skip-link", ".sr-only",
    ".cookie", ".cookies", ".cookie-banner", ".advert", ".ads", ".social", ".share", ".sharing",
    ".headerlink", ".permalink", ".viewcode-link", ".viewcode-back", ".mw-editsection", ".noprint",
]  # fmt: skip


def parse(html: str) -> Page:
    """A page and its tree, line breaks between Han characters taken out."""
    names = names_in(html.encode())
    joined = join_wrapped_han(html) if any(names[byte] for byte in HAN_BYTES) else html
    return Page(HTMLTree.parse(joined), html, names)


def main_text(page: Page, extractor: str) -> str:
    """Main text of a page; all its text where no main text is found. Changes its tree.

    Raises:
        ValueError: no such extractor.
        ModuleNotFoundError: the extractor is not installed.
    """
    if extractor not in EXTRACTORS:
        raise ValueError(f"unknown extractor {extractor!r}; known: {', '.join(EXTRACTORS)}")
    if page.tree.body is None:
        return ""
    rewrite(page)
    return EXTRACTORS[extractor](page) or _text(page.tree, [])


def _resiliparse(page: Page) -> str:
    body = page.tree.body
    main = select(body, MAIN) if page.may_hold(MAIN) else ()
    if len(main) == 1:
        size = len(main[0].text_content)
        # The text of the body is never longer than the page, and costs more to ask for.
        if size >= MIN_MAIN_SHARE * len(page.html) or size >= MIN_MAIN_SHARE * len(
            body.text_content
        ):
            body.replace_children(main[0])
    return _text(page.tree, [selector for selector in BOILERPLATE if page.may_hold(selector)])


def _trafilatura(page: Page) -> str:
    try:
        import trafilatura
    except ModuleNotFoundError as error:
        raise ModuleNotFoundError(
            "extractor: trafilatura is not installed; pip install 'assay[trafilatura]', or choose "
            "`extractor: resiliparse`"
        ) from error
    text = trafilatura.extract(
        page.tree.document.html, include_comments=False, include_tables=True, deduplicate=False
    )
    return (text or "").strip()


EXTRACTORS: dict[str, Callable[[Page], str]] = {
    "resiliparse": _resiliparse,
    "trafilatura": _trafilatura,
}


def _text(tree: Tree, skip: list[str]) -> str:
    text = extract_plain_text(tree, preserve_formatting=True, alt_texts=False, skip_elements=skip)
    return "\n".join([line.rstrip(" \t") for line in text.split("\n")]).strip("\n")
