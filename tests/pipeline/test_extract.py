"""Golden pages: tests/golden/pages/*.html -> *.txt, both written by hand."""

from __future__ import annotations

import builtins
from pathlib import Path

import pytest

from pipeline.pages.extract import main_text, parse
from pipeline.pages.page import NoText, html_page

GOLDEN = Path(__file__).parents[1] / "golden" / "pages"


@pytest.mark.parametrize("name", sorted(path.stem for path in GOLDEN.glob("*.html")))
def test_golden(name: str) -> None:
    html = (GOLDEN / f"{name}.html").read_text(encoding="utf-8")
    assert main_text(parse(html), "resiliparse") + "\n" == (GOLDEN / f"{name}.txt").read_text(
        encoding="utf-8"
    )


def test_trafilatura_sees_the_rewritten_page() -> None:
    words = "The number of molecules is 10<sup>25</sup>, as anyone can count. " * 5
    html = f"<html><body><article><p>{words}</p></article></body></html>"
    text = main_text(parse(html), "trafilatura")
    assert text == ("The number of molecules is 10²⁵, as anyone can count. " * 5).strip()


def test_trafilatura_keeps_the_rows_of_a_table() -> None:
    words = "The number of molecules is large, as anyone can count. " * 5
    rows = "<tr><th>Name</th><th>Value</th></tr><tr><td>alpha</td><td>one</td></tr>"
    html = f"<html><body><article><p>{words}</p><table>{rows}</table></article></body></html>"
    text = main_text(parse(html), "trafilatura")
    assert text == f"{words.strip()}\nName | Value\nalpha | one"


def test_trafilatura_missing_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    real = builtins.__import__

    def without(name: str, *args: object, **kwargs: object) -> object:
        if name == "trafilatura":
            raise ModuleNotFoundError(name)
        return real(name, *args, **kwargs)  # type: ignore[arg-type]

    monkeypatch.setattr(builtins, "__import__", without)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'assay\[trafilatura\]'"):
        main_text(parse("<p>x"), "trafilatura")


def test_unknown_extractor() -> None:
    with pytest.raises(ValueError, match="unknown extractor 'x'; known: resiliparse, trafilatura"):
        main_text(parse("<p>x"), "x")


@pytest.mark.parametrize("html", [b"<html></html>", b"<script>x</script>", b"<p> &nbsp;</p>"])
def test_a_page_without_text(html: bytes) -> None:
    with pytest.raises(NoText, match=f"{len(html)} bytes of HTML hold no text"):
        html_page(html, None, "resiliparse")


def test_many_rows_take_linear_time() -> None:
    """resiliparse's node lists are quadratic to go through: 600 rows took 2 s."""
    html = "<table>" + "<tr><td>a</td><td>b</td></tr>" * 5_000 + "</table>"
    assert main_text(parse(html), "resiliparse") == "\n".join(["a | b"] * 5_000)
