"""Lists of addresses: what they match, what they refuse, and what a million entries cost."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given

from filters.addresses import domain_keys, is_registry
from filters.segments import Texts
from filters.url_lists import find, key, list_files, table
from filters.urls import COLUMNS, measure


@pytest.fixture(autouse=True)
def _own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("kernels.cache.cache_bases", lambda: [tmp_path / "cache"])
    monkeypatch.setattr("filters.url_lists.cache_bases", lambda: [tmp_path / "cache"])


def written(path: Path, *lines: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return str(path)


def rows(urls: list[str | None], block: list[str], allow: list[str]) -> list[dict[str, object]]:
    columns = {"url": pa.array(urls, pa.string())}
    texts = Texts(pa.array(["" for _ in urls], pa.string()))
    found = measure(list_files(block), list_files(allow), texts, columns)
    assert {name: column.type for name, column in found.items()} == {
        name: signal.type for name, signal in COLUMNS.items()
    }
    return pa.table(dict(found)).to_pylist()


BLOCKED = {  # entry -> addresses that it blocks, and that it does not
    "ab.com": (
        ["http://ab.com", "https://www.ab.com/x", "http://a.b.AB.com.:80", "//u:p@ab.com/x"],
        ["http://ab.community", "http://xab.com", "http://ab.com.cn", "http://x.org/ab.com"],
    ),
    "https://www.ab.com/": (["http://ab.com", "http://x.ab.com"], ["http://bc.com"]),
    "www2.ab.co.uk": (["http://ab.co.uk/"], ["http://bc.co.uk"]),
    "ab.com/bad/": (
        ["http://ab.com/bad", "https://www.ab.com/Bad/x", "http://ab.com/bad?x=1", "ab.com/b%61d"],
        ["http://ab.com/badge", "http://ab.com", "http://x.ab.com/bad", "http://ab.com/x/bad"],
    ),
    "ab.com/p?id=3": (["http://ab.com/p?id=3&x"], ["http://ab.com/p?id=33", "http://ab.com/p"]),
    "*casino*": (
        ["http://my-casino.com", "http://ab.com/top_casino.html", "http://ab.com/CASINO"],
        ["http://casinos.com", "http://ab.com/mycasino"],
    ),
    "*赌场*": (["http://ab.com/最好赌场", "http://赌场.com"], ["http://ab.com/赌/场"]),
    ".xxx": (["http://ab.xxx", "http://a.b.xxx/x"], ["http://xxx.com"]),
    "bücher.example": (["http://www.xn--bcher-kva.example", "http://BÜCHER.example"], []),
    "XN--BCHER-KVA.example": (["http://bücher.example"], []),
    "1.2.3.4": (["http://1.2.3.4:80/x"], ["http://11.2.3.4", "http://4.1.2.3.4"]),
    "[::1]": (["http://[::1]:8080/"], ["http://[::2]/"]),
}


@pytest.mark.parametrize("entry", BLOCKED)
def test_what_an_entry_blocks(entry: str, tmp_path: Path) -> None:
    hit, missed = BLOCKED[entry]
    found = rows([*hit, *missed], [written(tmp_path / "own.txt", entry)], [])
    assert [row["blocked"] for row in found] == [True] * len(hit) + [False] * len(missed)
    assert {tuple(row["categories"]) for row in found[: len(hit)]} == {("own",)}  # type: ignore[arg-type]


def test_ut1_categories_allow_lists_and_evidence(tmp_path: Path) -> None:
    written(tmp_path / "ut1/adult/domains", "# comment", "", "bad.com", "both.com")
    written(tmp_path / "ut1/adult/urls", "ok.com/bad")
    written(tmp_path / "ut1/gambling/domains", "both.com")
    written(tmp_path / "ut1/README", "not a category")
    allow = written(tmp_path / "trusted.txt", "good.bad.com", "*wiki*")
    urls = ["http://both.com", "http://good.bad.com", "http://ok.com/bad/x", None, "http://ok.com"]
    found = rows(urls, [str(tmp_path / "ut1")], [allow])
    assert [row["blocked"] for row in found] == [True, False, True, False, False]
    assert [row["allowed"] for row in found] == [False, True, False, False, False]
    assert found[0]["categories"] == ["adult", "gambling"]
    assert found[0]["entries"] == ["adult: both.com", "gambling: both.com"]
    assert found[1]["entries"] == ["adult: bad.com"]
    assert found[2]["entries"] == ["adult: ok.com/bad"]
    assert [row["site"] for row in found] == ["both.com", "bad.com", "ok.com", "", "ok.com"]
    assert rows(urls, [str(tmp_path / "ut1" / "adult")], [])[0]["categories"] == ["adult"]


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("0.0.0.0 ab.com", "line 2: '0.0.0.0 ab.com' has white space inside: write one entry"),
        ("casino", r"line 2: 'casino' is no domain: write .* a word as \*casino\*"),
        ("co.uk", r"line 2: 'co.uk' is where anyone registers: .* write \.co\.uk"),
        ("*two words*", "line 2: .* is not one word"),
        ("/path", "line 2: '/path' is no domain"),
        ("ab.com/" + "x/" * 40, "line 2: .* goes deeper than 31 parts: cut it"),
    ],
)
def test_bad_lines_are_named(line: str, message: str, tmp_path: Path) -> None:
    path = written(tmp_path / "own.txt", "ab.com", line)
    with pytest.raises(ValueError, match=f"{path}, {message}.*, or delete the line"):
        table(list_files([path]))


def test_a_byte_order_mark_is_no_part_of_the_first_entry(tmp_path: Path) -> None:
    path = tmp_path / "own.txt"
    path.write_bytes(b"\xef\xbb\xbfab.com\r\nbc.com\r\n")
    found = rows(["http://ab.com/x", "http://bc.com", "http://cd.com"], [str(path)], [])
    assert [row["blocked"] for row in found] == [True, True, False]


def test_bad_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "latin").write_bytes(b"ab.com\nb\xfccher.de\n")
    with pytest.raises(ValueError, match=r"latin, line 2: not UTF-8 .*; convert the file"):
        table(list_files([str(tmp_path / "latin")]))
    with pytest.raises(ValueError, match=r"empty: no entry in it; fill it, or leave it out"):
        table(list_files([written(tmp_path / "empty", "# nothing")]))
    (tmp_path / "ut1/adult").mkdir(parents=True)
    patterns = written(tmp_path / "ut1/adult/expressions", "(^|[-.])x+")
    with pytest.raises(ValueError, match="of UT1 hold regular expressions, which are not read; na"):
        list_files([patterns])
    domains = written(tmp_path / "ut1/adult/domains", "ab.com")
    assert list_files([str(tmp_path / "ut1")]) == (("adult", domains),), "passed over"
    for name in ("none.txt", "cache"):
        (tmp_path / "cache").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match=rf"{name}: no list of addresses; give a file"):
            list_files([str(tmp_path / name)])


labels = st.text("abcx", min_size=1, max_size=2)
hosts = st.lists(labels, min_size=2, max_size=4).map(".".join).filter(lambda h: not is_registry(h))


@given(st.sets(hosts, min_size=1, max_size=30), st.lists(hosts, max_size=30))
def test_lookups_equal_the_definition(
    tmp_path_factory: pytest.TempPathFactory, entries: set[str], asked: list[str]
) -> None:
    path = written(tmp_path_factory.mktemp("lists") / "own.txt", *entries)
    lists = table(list_files([path]))
    for host in asked:
        expected = any(host == entry or host.endswith(f".{entry}") for entry in entries)
        assert bool(find(lists, domain_keys(host))) == expected


@given(hosts)
def test_the_fast_way_into_a_table_is_the_slow_one(host: str) -> None:
    assert key(host) == key(f"http://{host.upper()}./") == host


def test_a_table_is_made_once_and_again_where_it_is_damaged(tmp_path: Path) -> None:
    path = written(tmp_path / "own.txt", "ab.com", "bc.com")
    made = table(list_files([path]))
    assert isinstance(made.hashes, np.memmap)
    expected = made.hashes.tolist()
    (kept,) = (tmp_path / "cache/assay/urls").glob("*.hashes.npy")
    kept.write_bytes(kept.read_bytes()[:-8])
    table.__globals__["_table"].cache_clear()
    assert table(list_files([path])).hashes.tolist() == expected
    written(tmp_path / "own.txt", "cd.com")
    os.utime(path, ns=(1, 1))
    assert len(table(list_files([path])).hashes) == 1


MILLION = """
import sys, time
from filters.url_lists import find, list_files, table
begun = time.process_time()
lists = table(list_files([sys.argv[1]]))
made = time.process_time() - begun
begun = time.process_time()
hits = find(lists, [f"site{n}.example{n % 7}.org" for n in range(100_000)])
peak = next(line for line in open("/proc/self/status") if line.startswith("VmHWM"))
print(made, time.process_time() - begun, len(hits), len(lists.hashes), int(peak.split()[1]) // 1024)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the peak is from /proc")
def test_a_million_entries(tmp_path: Path) -> None:
    path = tmp_path / "domains"
    with open(path, "w") as stream:
        stream.writelines(f"site{n}.example{n % 7}.org\n" for n in range(50_000, 1_050_000))

    def run() -> list[float]:
        found = subprocess.run(
            [sys.executable, "-c", MILLION, str(path)],
            cwd=Path(__file__).parents[2],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "kept")},
            capture_output=True,
            text=True,
            check=True,
        )
        return [float(number) for number in found.stdout.split()]

    made, looked_up, hits, entries, megabytes = run()
    assert (hits, entries) == (50_000, 1_000_000)
    assert made < 20  # CPU seconds: 3 on an idle machine
    again, looked_up_again, *_, megabytes_again = run()
    assert again < 2  # only the list's hash
    assert max(looked_up, looked_up_again) < 3
    assert megabytes < 150
    assert megabytes_again < 100


def test_edge_addresses(tmp_path: Path) -> None:
    """Every address has a value, whatever stands in it, and in linear time."""
    block = [written(tmp_path / "own", "ab.com", "*casino*")]
    clean = [
        None,
        "",
        "a",
        "的",
        "\n",
        "://",
        "http://",
        "//",
        "...",
        "?#",
        "http://[::1",
        "%",
        "\x00",
    ]
    clean += ["a" * 200_000, "/" * 200_000, "." * 200_000, "http://x.org/" + "a/" * 100_000]
    found = rows(clean, block, [])
    assert [(row["blocked"], row["allowed"]) for row in found] == [(False, False)] * len(clean)
    assert [(row["categories"], row["entries"]) for row in found] == [([], [])] * len(clean)
    assert None not in [row["site"] for row in found]
    long = ["http://ab.com/" + "a/" * 100_000, "http://x.org/" + "casino-" * 50_000]
    assert [row["blocked"] for row in rows(long, block, [])] == [True, True]
