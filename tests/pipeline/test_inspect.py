from __future__ import annotations

import gzip
import json
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from filters.presets import PRESETS
from mixtures.questions import inspect as main
from pipeline import schema
from pipeline.corpus import CorpusError
from pipeline.files import read_sealed, write_sealed
from pipeline.inspect import inspect
from pipeline.seeing.document import bounds

REJECT = schema.document_id("web", "a.jsonl", 700).hex()


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("tiny")
    line = json.dumps({"text": "x" * 687}) + "\n"
    assert len(line) == 700
    (folder / "a.jsonl").write_bytes(line.encode() + b"{broken}\n")
    (folder / "b.jsonl").write_bytes(b"")
    return tiny_corpus.write(folder / "corpus", inputs=str(folder))


def identity(source: str, row: int) -> str:
    return str(tiny_corpus.identity(source, row).hex())


def test_found_by_id_prefix_content_hash_address_and_phrase(root: Path) -> None:
    wanted = identity("web", 3)
    content = tiny_corpus.content("今天天气很好").hex()
    for what in (wanted, wanted[:6].upper(), content, "https://example.org/web/3", "天气"):
        assert inspect(root, what)["document"]["id"] == wanted
    both = inspect(root, "天气")
    assert both["document"]["text"] == "今天天气很好"
    assert both["also_found"] == []


def test_a_near_duplicate_says_of_what(root: Path) -> None:
    found = inspect(root, identity("web", 2))
    assert [(pair["id"], pair["jaccard"]) for pair in found["pairs"]] == [
        (identity("web", 0), 0.75)
    ]
    assert found["cluster"][0]["size"] == 2
    assert found["verdict"] == [
        f"out when near duplicates go: a verified pair with {identity('web', 0)}",
        "out of gopher.pass: gopher.num_words, gopher.alpha_word_share, gopher.num_stop_words",
    ]


def test_copies_and_held_out_text(root: Path) -> None:
    copy = inspect(root, identity("web", 1))
    assert [item["id"] for item in copy["copies"]] == [identity("web", 0)]
    assert copy["verdict"][0] == (
        f"out when copies are collapsed: an exact copy of {identity('web', 0)}"
    )
    held = inspect(root, identity("qa", 1))
    assert held["verdict"][0] == "out: held out, no mixture trains on it (tiny/en/qa)"
    assert [(item["set"], item["containment"]) for item in held["heldout"]] == [("tiny/en/qa", 1.0)]
    assert inspect(root, identity("qa", 2))["verdict"][0] == "in: not held out, not a copy"


def test_each_rule_with_value_and_bounds(root: Path) -> None:
    rules = inspect(root, identity("web", 3))["presets"]["gopher"]
    assert [rule["signal"] for rule in rules] == [rule.signal for rule in PRESETS["gopher"]]
    assert rules[0]["formula"] == "words: words of the text"
    words = rules[0]
    assert (words["value"], words["passes"]) == (6, False)
    assert words["minimum"] == PRESETS["gopher"][0].bounds["zh"].minimum
    unruled = inspect(root, identity("web", 4))
    assert {rule["passes"] for rule in unruled["presets"]["gopher"]} == {None}
    assert unruled["verdict"][-1] == "gopher.pass: no rules for und"


def test_a_reject_is_read_again_in_full(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found = inspect(root, REJECT)
    assert found["reject"]["reason"] == "bad_json"
    assert found["again"] == "{broken}"
    assert main([str(root), REJECT[:8]]) == 0
    assert capsys.readouterr().out.splitlines()[-1] == "{broken}"


def reject(root: Path, file: str, offset: int, num_bytes: int, reason: str) -> None:
    """A corpus whose one reject is this."""
    row = {
        "id": bytes.fromhex(REJECT),
        "source": "web",
        "file": file,
        "offset": offset,
        "num_bytes": num_bytes,
        "stage": "ingest",
        "reason": reason,
        "detail": "",
        "excerpt": "what was kept",
    }
    tiny_corpus._table(root / "rejects/part-00000.parquet", [row], schema.REJECTS)


def test_a_reject_in_a_compressed_file(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "corpus", inputs=str(tmp_path))
    line = b'{"text": "' + b"x" * 687 + b'"}\n'
    long = b"{" + b"broken" * 1000 + b"}"
    (tmp_path / "a.jsonl").write_bytes(gzip.compress(line[:-1]) + gzip.compress(b"\n" + long))
    reject(root, "a.jsonl", 700, len(long), "bad_json")
    assert inspect(root, REJECT)["again"] == long.decode()


def test_a_reject_in_warc_comes_with_its_headers(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "corpus", inputs=str(tmp_path))
    reread(root, "a.warc.gz")
    pages = [f"WARC/1.0\r\nContent-Length: 4\r\n\r\npag{n}\r\n\r\n".encode() for n in range(3)]
    (tmp_path / "a.warc.gz").write_bytes(b"".join(map(gzip.compress, pages)))
    reject(root, "a.warc.gz", len(pages[0]), len(pages[1]) - 4, "http_status")
    assert inspect(root, REJECT)["again"] == "WARC/1.0\r\nContent-Length: 4\r\n\r\npag1"


def test_a_reject_in_parquet_is_its_row(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "corpus", inputs=str(tmp_path))
    reread(root, "a.parquet")
    raw = pa.array([b"a", b"b", b"c\xff"], pa.binary())
    table = pa.table({"text": pa.StringArray.from_buffers(3, *raw.buffers()[1:]), "n": [1, 2, 3]})
    pq.write_table(table, tmp_path / "a.parquet", row_group_size=2)
    reject(root, "a.parquet", 2, 2, "bad_utf8")
    assert inspect(root, REJECT)["again"] == '{"text":"c\ufffd","n":3}'


def test_a_reject_that_cannot_be_read_shows_what_was_kept(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "corpus", inputs=str(tmp_path))
    reread(root, "a.parquet")
    (tmp_path / "a.parquet").write_bytes(b"PAR1 no more")
    reject(root, "a.parquet", 0, 0, "bad_parquet")
    assert inspect(root, REJECT)["again"] == "what was kept"


def reread(root: Path, file: str) -> None:
    """Let source `web` come from another file."""
    found = read_sealed(root / "corpus.json")
    assert found is not None
    found["settings"]["inputs"][0]["files"] = str(root.parent / file)
    write_sealed(root / "corpus.json", found)


@pytest.mark.parametrize("word", ["decade", "123456"])
def test_a_word_of_hex_digits_is_still_a_phrase(tmp_path: Path, word: str) -> None:
    root = tiny_corpus.write(tmp_path / "corpus")
    path = root / "documents/part-00001.parquet"
    table = pq.read_table(path)
    texts = pa.array(["a", f"over a {word} ago", "b"])
    at = table.schema.get_field_index("text")
    pq.write_table(table.set_column(at, "text", texts), path)
    assert inspect(root, word)["document"]["source_id"] == "qa-1"


def test_a_near_duplicate_of_a_large_cluster(tmp_path: Path) -> None:
    """Its pairs are not stored."""
    root = tiny_corpus.write(tmp_path / "corpus")
    contents = sorted(tiny_corpus.content(tiny_corpus.TEXTS["web"][row]) for row in (0, 2))
    clusters = [
        {"content_hash": h, "cluster": contents[0], "size": 2, "large": True} for h in contents
    ]
    shingles = [{"content_hash": h, "shingles": [1, 2, 3]} for h in contents]
    name = "part-00000.parquet"
    tiny_corpus._table(root / "clusters" / name, clusters, schema.CLUSTERS)
    tiny_corpus._table(root / "pairs" / name, [], schema.PAIRS)
    tiny_corpus._table(root / "clusters/shingles" / name, shingles, schema.LARGE_CLUSTER_SHINGLES)
    assert inspect(root, identity("web", 2))["verdict"][0] == (
        f"out when near duplicates go: of one of 2 texts in cluster {contents[0].hex()}, of which "
        "one that comes before it stays (pairs of clusters this large are verified when documents "
        "are selected, and not stored)"
    )


def test_screen_and_json(root: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([str(root), "今天"]) == 0
    shown = capsys.readouterr().out
    assert shown.startswith("found by its text\nin: not held out, not a copy\nout of gopher.pass: ")
    assert shown.endswith("\n今天天气很好\n")
    assert "  FAIL    gopher.num_words                               6   80 .. 160000" in shown
    assert main([str(root), "今天", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["document"]["text"] == "今天天气很好"


def test_a_number_that_is_no_id_is_told_as_such(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "corpus")
    path = root / "documents/part-00001.parquet"
    table = pq.read_table(path)
    whole = "0123456789abcdef" * 2
    texts = pa.array(["a", f"over a decade {whole} ago", "b"])
    at = table.schema.get_field_index("text")
    pq.write_table(table.set_column(at, "text", texts), path)
    assert inspect(root, "decade")["found_by"] == "text: no id or content_hash begins with decade"
    assert inspect(root, "over a decade")["found_by"] == "text"
    with pytest.raises(CorpusError, match="32 digits are never looked for in texts"):
        inspect(root, whole)


def test_the_bound_in_force_for_a_kind_is_shown(tmp_path: Path) -> None:
    """A forum has no least number of words; code has no rules at all."""
    root = tiny_corpus.write(tmp_path / "corpus")
    path = root / "documents/part-00000.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("kind")
    kinds = pa.array(["web", "web", "code", "forum", "web"])
    pq.write_table(table.set_column(at, "kind", kinds), path)
    post = inspect(root, identity("web", 3))["presets"]["gopher"][0]
    assert post["signal"] == "gopher.num_words"
    assert (post["value"], post["minimum"], post["maximum"]) == (6, None, 160_000)
    assert post["passes"] is True
    code = inspect(root, identity("web", 2))
    assert {rule["minimum"] for rule in code["presets"]["gopher"]} == {None}
    assert code["verdict"][-1] == "gopher.pass: no rules for kind code"


def test_bounds_on_a_screen() -> None:
    rule = {"minimum": None, "maximum": 0.2, "is_below": True}
    assert bounds(rule) == "- .. <0.2"
    assert bounds(rule | {"minimum": 1, "maximum": 3, "is_below": False}) == "1 .. 3"


def test_nothing_found_says_what_can_be_given(root: Path) -> None:
    for what in ("no such words", "abcdef0123", "https://example.org/none"):
        with pytest.raises(CorpusError, match=r"no document or reject is meant by .*6 digits"):
            inspect(root, what)


def test_edits_with_what_stands_there(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    root = tiny_corpus.write(tmp_path / "corpus")
    document = tiny_corpus.identity("web", 3)  # 今天天气很好
    edits = [
        {"id": document, "start": 0, "end": 6, "kind": "email", "replacement": "[EMAIL]"},
        {"id": document, "start": 12, "end": 18, "kind": "line", "replacement": ""},
    ]
    for name, edit in zip(("privacy", "boilerplate"), edits, strict=True):
        tiny_corpus._table(root / f"edits/{name}/part-00000.parquet", [edit], schema.EDITS)
    found = read_sealed(root / "corpus.json")
    assert found is not None
    write_sealed(root / "corpus.json", found | {"edits": ["privacy", "boilerplate"]})
    assert [(e["stage"], e["kind"], e["text"]) for e in inspect(root, "今天")["edits"]] == [
        ("edits/boilerplate", "line", "很好"),
        ("edits/privacy", "email", "今天"),
    ]
    assert main([str(root), "今天"]) == 0
    shown = capsys.readouterr().out
    assert '\nedits/privacy: 1 edit\n  email           0 .. 6  "今天" -> [EMAIL]\n' in shown
    assert '\nedits/boilerplate: 1 edit\n  line            12 .. 18  "很好" -> nothing\n' in shown
    assert inspect(root, identity("web", 0))["edits"] == []
