"""Pages that name each other as translations: what they say, who is joined, and a whole corpus."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

import corpus_parts
import hypothesis
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from hypothesis import strategies as st
from small_corpus import assay, chinese, english

from pipeline import schema
from pipeline.files import part_name
from pipeline.pages.extract import parse
from pipeline.pages.metadata import MAX_LINKS, alternates
from pipeline.readers import Piece, Record
from pipeline.readers.formats import read
from pipeline.seeing.asking import rows as asked
from pipeline.settings import Input
from pipeline.transforms import hreflang

URL = "https://a.org/zh/p"


def linked(*links: str) -> str:
    return "".join(f"<link {link}>" for link in links)


@pytest.mark.parametrize(
    ("head", "found"),
    [
        ("", {}),
        (
            linked(
                "rel=alternate hreflang=en href=https://a.org/en/p",
                "HREFLANG='zh-CN' REL='Alternate' HREF=' /zh/p '",
                "rel=alternate hreflang=x-default href=//b.org",
            ),
            {
                "en": "https://a.org/en/p",
                "zh-cn": "https://a.org/zh/p",
                "x-default": "https://b.org",
            },
        ),
        (  # the first of a language; no language, no alternate, no address
            linked(
                "rel=alternate hreflang=en href=/1",
                "rel=alternate hreflang=EN href=/2",
                "rel=alternate hreflang='' href=/3",
                "rel=canonical hreflang=fr href=/4",
                "rel=alternate hreflang=de href='http://[::1'",
                "rel=alternate hreflang=it href=mailto:x",
                f"rel=alternate hreflang=es href=/{'x' * 3_000}",
                "rel=alternate hreflang=pt",
            ),
            {"en": "https://a.org/1"},
        ),
        (
            "<base href=/x/>" + linked("rel=alternate hreflang=en href=p"),
            {"en": "https://a.org/x/p"},
        ),
    ],
)
def test_what_a_page_names(head: str, found: dict[str, str]) -> None:
    assert alternates(parse(f"<html><head>{head}</head><body>x</body></html>"), URL) == found


def test_a_list_is_bounded_and_a_relative_address_needs_that_of_the_page() -> None:
    many = linked(*(f"rel=alternate hreflang=x{n} href=https://a.org/{n}" for n in range(999)))
    page = parse(f"<head>{many}</head>")
    assert list(alternates(page, URL)) == [f"x{n}" for n in range(MAX_LINKS)]
    page = parse(f"<head>{linked('rel=alternate hreflang=en href=/p')}</head>")
    assert alternates(page, None) == {}


def record(url: str, html: str) -> bytes:
    """Of a WARC file."""
    head = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n"
    block = head + html.encode()
    lines = [
        "WARC/1.0",
        "WARC-Type: response",
        f"WARC-Target-URI: {url}",
        "WARC-Record-ID: <1>",
        "Content-Type: application/http; msgtype=response",
        f"Content-Length: {len(block)}",
    ]
    return "\r\n".join(lines).encode() + b"\r\n\r\n" + block + b"\r\n\r\n"


def kept(folder: Path, name: str, raw: bytes, *keep: str) -> Any:
    path = folder / name
    path.write_bytes(raw)
    source = Input(source="t", files="*", keep=keep)
    (found,) = read(Piece(str(path), name, num_bytes=len(raw)), source, "resiliparse")
    assert isinstance(found, Record)
    return found.fields.get("meta", {})


def test_it_is_kept_where_it_is_asked_for(tmp_path: Path) -> None:
    html = (
        "<html><head><link rel=alternate hreflang=en href='/en/页'>"
        "</head><body><p>text</p></body></html>"
    )
    raw = record("https://A.example:443/x", html)
    both = kept(tmp_path, "a.warc", raw, "WARC-Record-ID", "hreflang")
    assert both == {"WARC-Record-ID": "<1>", "hreflang": '{"en":"https://A.example:443/en/页"}'}
    assert kept(tmp_path, "a.warc", raw, "hreflang") == {"hreflang": both["hreflang"]}
    assert kept(tmp_path, "a.warc", raw) == {}
    page = html.replace("/en/页", "https://a.org/en").encode()
    assert kept(tmp_path, "a.html", page, "hreflang") == {"hreflang": '{"en":"https://a.org/en"}'}
    assert kept(tmp_path, "a.html", page) == {}


# --- who is joined --------------------------------------------------------------------------------


Said = tuple[str | None, Any]  # the address of a page, and its list


def groups(
    root: Path, parts: list[list[Said]], own: dict[str, str] | None = None
) -> list[set[str]]:
    """The addresses of the pages of each group, and whoever is of none by itself."""
    numbers = corpus_parts.write(root, [[f"text {n}" for n in range(len(part))] for part in parts])
    addresses: dict[bytes, str | None] = {}
    for part, said in zip(numbers, parts, strict=True):
        path = root / "documents" / part_name(part)
        rows = pq.read_table(path).to_pylist()
        for row, (url, names) in zip(rows, said, strict=True):
            row["url"], row["canonical_url"] = url, (own or {}).get(url or "")
            text = names if isinstance(names, str) else json.dumps(names)
            row["meta"] = [] if names is None else [("hreflang", text)]
            addresses[row["id"]] = url
        pq.write_table(pa.Table.from_pylist(rows, schema.DOCUMENTS), path)
    hreflang.join(root, numbers)
    found: dict[str, set[str]] = {}
    for part in numbers:
        ids = pq.read_table(root / "documents" / part_name(part))["id"].combine_chunks()
        for key, name in zip(ids, hreflang.names(root, part, ids).to_pylist(), strict=True):
            found.setdefault(name or key.as_py().hex(), set()).add(str(addresses[key.as_py()]))
    return sorted(found.values(), key=sorted)


def page(name: str) -> str:
    return f"https://a.org/{name}"


def test_pages_that_name_each_other_are_one_group_in_any_spelling(tmp_path: Path) -> None:
    first, second = page("en/1"), page("zh/1")
    said: list[Said] = [
        (f"{first}?utm_source=x", {"en": first, "zh": "http://www.A.org:80/zh/1/#top"}),
        (second, [first, second]),
        (page("fr/1"), {"zh": second}),  # which does not name it
        (page("plain"), None),
        (None, {"zh": second}),
        (page("broken"), "{"),
        (page("odd"), [1, None, ""]),
        (page("number"), "7"),
    ]
    assert groups(tmp_path, [said]) == [
        {str(None)},
        {page("broken")},
        {said[0][0], second},
        {page("fr/1")},
        {page("number")},
        {page("odd")},
        {page("plain")},
    ]


def test_a_page_is_known_by_its_canonical_address_where_its_list_has_it(tmp_path: Path) -> None:
    said: list[Said] = [
        (page("go?to=1"), [page("en"), page("zh")]),
        (page("zh"), [page("en"), page("zh")]),
        (page("other"), [page("zh")]),
    ]
    own = {page("go?to=1"): page("en"), page("other"): page("front")}
    assert groups(tmp_path, [said], own) == [{page("go?to=1"), page("zh")}, {page("other")}]


def test_incomplete_lists_are_joined_over_what_they_have_in_common(tmp_path: Path) -> None:
    """en - zh - fr: no page names all; and two that name one which was not crawled."""
    said: list[Said] = [
        (page("en"), [page("zh")]),
        (page("zh"), [page("en"), page("fr")]),
        (page("fr"), [page("zh")]),
        (page("b/en"), [page("b/ja")]),
        (page("b/zh"), [page("b/ja")]),
    ]
    assert groups(tmp_path, [said[:1], said[1:]]) == [
        {page("b/en"), page("b/zh")},
        {page("en"), page("fr"), page("zh")},
    ]


@pytest.mark.parametrize(("number", "joined"), [(MAX_LINKS, 1), (MAX_LINKS + 1, MAX_LINKS + 1)])
def test_an_address_that_too_many_name_joins_none(tmp_path: Path, number: int, joined: int) -> None:
    """The front page of another language, linked from every page of a site."""
    said: list[Said] = [(page(str(n)), [page("en")]) for n in range(number)]
    assert len(groups(tmp_path, [said])) == joined


def test_a_front_page_that_names_itself_joins_no_site(tmp_path: Path) -> None:
    said: list[Said] = [(page(str(n)), [page("en"), page(str(n))]) for n in range(5)]
    said.append((page("en"), [page("en"), page("zh")]))
    assert len(groups(tmp_path, [said])) == 6


def test_the_name_is_the_same_in_a_corpus_of_each_language(tmp_path: Path) -> None:
    names = []
    for at, url in enumerate((page("en"), page("zh"))):
        root = tmp_path / str(at)
        groups(root, [[(url, [page("en"), page("zh")])]])
        names += pq.read_table(hreflang.outputs(root)[0])["name"].to_pylist()
    assert len(names) == 2
    assert names[0] == names[1]


NAMES = [page(name) for name in "abcdefgh"]


@hypothesis.settings(max_examples=30, deadline=None)
@hypothesis.given(
    said=st.dictionaries(st.sampled_from(NAMES), st.lists(st.sampled_from(NAMES), max_size=4)),
    num_parts=st.integers(1, 4),
)
def test_against_the_definition_in_any_sharding(said: dict[str, list[str]], num_parts: int) -> None:
    edges = {
        (url, other)
        for url, names in said.items()
        for other in names
        if other != url and (not said.get(other) or url in said[other])
    }
    of = {name: {name} for name in NAMES}
    for a, b in edges:
        both = of[a] | of[b]
        of |= dict.fromkeys(both, both)
    told = {url for url, names in said.items() if names}
    wanted = {frozenset(of[url] & told) for url in told}
    wanted |= {frozenset([url]) for url in said.keys() - told}
    pages = list(said.items())
    parts: list[list[Said]] = [list(pages[n::num_parts]) for n in range(num_parts)]
    with tempfile.TemporaryDirectory() as folder:
        assert set(map(frozenset, groups(Path(folder), parts))) == wanted


# --- a corpus -------------------------------------------------------------------------------------


def web_page(url: str, text: str, links: dict[str, str]) -> bytes:
    head = linked(*(f"rel=alternate hreflang={k} href='{v}'" for k, v in links.items()))
    body = "".join(f"<p>{paragraph}</p>" for paragraph in text.split("\n"))
    return record(url, f"<html><head><title>t</title>{head}</head><body>{body}</body></html>")


def test_prepare_mix_and_inspect(tmp_path: Path) -> None:
    """English is held out, Chinese has no sets: translations of what is held out go all the same,
    and a pair stands in one window, the Chinese page first."""
    raw = b""
    for n in range(60):
        links = {"en": page(f"pages/{n}"), "zh": f"//cn.a.org/{7 * n}"}
        raw += web_page(page(f"pages/{n}?utm_source=x"), english(n + 1_000), links)
        raw += web_page(f"https://cn.a.org/{7 * n}", chinese(n + 1_000), links)
    (tmp_path / "web.warc").write_bytes(raw)
    settings = tmp_path / "corpus.yaml"
    settings.write_text(
        "inputs: [{source: web, files: web.warc, kind: web, keep: [hreflang]}]\n"
        "languages: [en]\ntokenizer: tokenizer.json\nshard_bytes: 40000\n"
        "heldout: {share: 0.1}\ntranslation_group: {hreflang: true}\noutput: corpus\n"
    )
    tokenizer = tmp_path / "tokenizer.json"
    assay("tokenizer", "train", settings, "--vocab-size", "600", "--output", tokenizer)
    assay("prepare", settings, "--workers", "1")
    root = tmp_path / "corpus"
    found = asked(
        root,
        "select translation_group as name, count(*) as n, count(distinct lang) as languages, "
        "bool_and(heldout) as held, bool_or(heldout) as leaks from documents group by 1",
    )
    assert len(found) == 60
    assert {(row["n"], row["languages"]) for row in found} == {(2, 2)}
    assert all(row["held"] == row["leaks"] for row in found)
    num_held = sum(row["held"] for row in found)
    assert 0 < num_held < 60
    assert {row["language"] for row in asked(root, "select language from heldout")} == {"en"}
    held = asked(
        root, "select id, translation_group as g from documents where heldout order by lang"
    )
    said = assay("inspect", root, held[-1]["id"]).stdout
    assert f"no mixture trains on it (as one of its translation group, {held[-1]['g']})" in said
    (tmp_path / "mixture.yaml").write_text(
        "corpora: {web: corpus}\nsequence_length: 4096\npacking: best_fit\n"
        "sources: {all: {from: web, group: translation_group, group_order: \"lang = 'en'\"}}\n"
    )
    tokens = 4096
    plan = tmp_path / "plan.json"
    mixed = assay("mix", tmp_path / "mixture.yaml", "--tokens", str(tokens), "--json")
    plan.write_text(mixed.stdout)
    shown = json.loads(
        assay("windows", plan, "--batch-tokens", "4096", "--step", "1", "--json").stdout
    )
    urls = [row["url"] for row in shown]
    numbers = [int(url.rpartition("/")[2].partition("?")[0]) for url in urls]
    assert [url.startswith("https://cn.") for url in urls] == [True, False] * (len(urls) // 2)
    assert numbers[::2] == [7 * n for n in numbers[1::2]]
    again = assay("prepare", settings, "--workers", "1").stdout
    assert again.splitlines()[-1].startswith("nothing to do, all stages stand")
