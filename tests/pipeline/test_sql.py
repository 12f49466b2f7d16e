from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import tiny_corpus

from filters.presets import PROSE_GROUPS, expression
from filters.signals import GROUPS
from pipeline import schema
from pipeline.corpus import CorpusError
from pipeline.files import read_json, write_json
from pipeline.sql import ask, connect
from pipeline.sql_commands import main
from pipeline.syntax import SqlError, names_in, tree_of


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_corpus.write(tmp_path_factory.mktemp("tiny"))


def rows(root: Path, sql: str, **options: Any) -> list[tuple[Any, ...]]:
    with ask(root, sql, macros=options.get("macros", {}), timeout_seconds=20) as reader:
        table = reader.read_all()
    return list(zip(*(column.to_pylist() for column in table.columns), strict=True))


def test_documents_row_by_row(root: Path) -> None:
    found = rows(
        root,
        "select source_id, lang, gopher.num_words, num_tokens, part, heldout, duplicate, "
        "near_duplicate, kept, meta.author from documents order by source, source_id",
    )
    assert tiny_corpus.identity("web", 0) < tiny_corpus.identity("web", 1)
    first, third = (tiny_corpus.content(tiny_corpus.TEXTS["web"][row]) for row in (0, 2))
    assert first < third
    assert found == [
        ("qa-0", "en", 6, 7, 1, True, False, False, False, "李"),
        ("qa-1", "en", 6, 8, 1, True, False, False, False, None),
        ("qa-2", "zh", 4, 5, 1, False, False, False, True, None),
        ("web-0", "en", 6, 7, 0, False, False, False, True, "李"),
        ("web-1", "en", 6, 7, 0, False, True, False, False, None),
        ("web-2", "en", 6, 7, 0, False, False, True, False, None),
        ("web-3", "zh", 6, 7, 0, False, False, False, True, None),
        ("web-4", "und", 0, 1, 0, False, False, False, True, None),
    ]


def test_hashes_are_hex(root: Path) -> None:
    found = rows(root, "select id, content_hash from documents where source_id = 'web-3'")
    assert found == [
        (tiny_corpus.identity("web", 3).hex(), tiny_corpus.content("今天天气很好").hex())
    ]


def test_presets_are_expressions_over_stored_columns(root: Path) -> None:
    by_hand = rows(root, f"select id, {expression('gopher')} from documents order by id")
    assert rows(root, "select id, gopher.pass from documents order by id") == by_hand
    assert sorted((passes for _, passes in by_hand), key=str) == [False] * 7 + [None]
    assert "pass" not in pq.read_schema(root / "signals/gopher/part-00000.parquet").names


@pytest.mark.parametrize(
    ("languages", "kept"),
    [
        (["zh", "en"], {"en": True, "zh": True, "und": False}),
        (["zh"], {"en": False, "zh": True, "und": False}),
        ({"zh": 0.9, "en": 0.95}, {"en": False, "zh": True, "und": False}),  # scores are .9
        ([], {"en": False, "zh": False, "und": False}),
    ],
)
def test_kept_languages(
    tmp_path: Path, languages: list[str] | dict[str, float], kept: dict[str, bool]
) -> None:
    root = tiny_corpus.write(tmp_path)
    found = read_json(root / "corpus.json")
    write_json(root / "corpus.json", found | {"settings": {"languages": languages}})
    query = "select distinct lang, languages.pass from documents"
    assert dict(rows(root, query)) == kept
    assert dict(rows(root, "select lang, (d.languages).pass from documents d")) == kept


@pytest.mark.parametrize(
    ("view", "expected"),
    [
        ("shards", [(0, "web", 5, 82), (1, "qa", 3, 74)]),
        ("stages", [("ingest", "f1", '{"documents": 8}', 1.5)]),
    ],
)
def test_small_views(root: Path, view: str, expected: list[tuple[Any, ...]]) -> None:
    assert rows(root, f"select * from {view}") == expected


def test_sources(root: Path) -> None:
    columns = "source, documents, bytes, tokens, kept_share, duplicate_share"
    assert rows(root, f"select {columns} from sources") == [
        ("qa", 3, 74, 20, 1 / 3, 0.0),
        ("web", 5, 82, 29, 3 / 5, 2 / 5),
    ]


def test_timings_are_those_of_the_commit_records(root: Path) -> None:
    sizes = [p.stat().st_size for p in sorted((root / "documents").iterdir())]
    found = rows(root, "select stage, part, bytes, seconds, cpu_seconds from timings order by part")
    assert found == [
        ("ingest", 0, sizes[0], 0.5, 0.25),
        ("ingest", 1, sizes[1], 0.5, 0.25),
    ]
    assert rows(root, "select stage, sum(cpu_seconds) from timings group by all") == [
        ("ingest", 0.5)
    ]


@pytest.mark.parametrize("name", ["it's", 'a "b"', "x[1]", "x*", "what?", "{a,b}", "语料 一"])
def test_any_folder_name(tmp_path: Path, name: str) -> None:
    """Also one that is a pattern which matches a neighbour."""
    root = tiny_corpus.write(tmp_path / name)
    for neighbour in ("x1", "xy", "whatX", "a"):
        (tmp_path / neighbour / "documents").mkdir(parents=True)
        (tmp_path / neighbour / "documents" / "part-00000.parquet").write_bytes(b"no Parquet")
    query = "select count(*), sum(gopher.num_words), sum(near_duplicate::int) from documents"
    assert rows(root, query) == [(8, 40, 1)]


def test_other_views(root: Path) -> None:
    assert rows(root, 'select reason, "offset" from rejects') == [("bad_json", 700)]
    a, b = sorted(tiny_corpus.content(tiny_corpus.TEXTS["web"][i]).hex() for i in (0, 2))
    assert rows(root, "select * from pairs") == [(a, b, 0.75)]
    assert rows(root, "select content_hash, cluster, size from clusters order by 1") == [
        (a, a, 2),
        (b, a, 2),
    ]
    assert rows(root, "select set, text from heldout") == [
        ("tiny/en/qa", "what is held out stays out")
    ]


def test_tables_without_files_are_empty(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path)
    for table in ("rejects", "pairs", "clusters", "heldout", "heldout/matches"):
        for path in (root / table).glob("*.parquet"):
            path.unlink()
    for view in ("rejects", "pairs", "clusters", "heldout"):
        assert rows(root, f"select count(*) from {view}") == [(0,)]
    assert rows(root, "select count(*) from documents where kept") == [(7,)]


def test_a_query_over_one_signal_reads_neither_text_nor_other_groups(root: Path) -> None:
    con = connect(root, names=frozenset({"documents", "gopher", "num_words"}))
    plan = con.sql("explain select avg(gopher.num_words) from documents").fetchall()[0][1]
    assert "num_words" in plan
    assert "title" not in plan
    assert "han_share" not in plan
    assert "dup_line_share" not in plan


def test_names_in() -> None:
    def names(sql: str) -> frozenset[str] | None:
        return names_in(tree_of(sql), {"selected": lambda _, text: text})

    assert names("select Lang, count(*) from documents group by gopher.pass") == {
        *("gopher", "pass", "pass.*"),
        *("lang", "lang.*", "documents", ""),
    }
    assert names("select a from b order by all") == {"a", "a.*", "b", ""}
    for sql in (
        "select * from documents",
        "select documents from documents",
        "select d from documents d",
        "describe documents",
        "from documents",
        "from documents where kept order by all",
        "select id from selected('a')",
        "select columns('a.*') from documents",
        "from query('select 1')",
    ):
        assert names(sql) is None


def test_unknown_columns_are_named_with_the_nearest(root: Path) -> None:
    with pytest.raises(SqlError, match='(?s)"langg" not found.*"lang"'):
        rows(root, "select langg from documents".replace("\n", " "))


@pytest.mark.parametrize("file_format", ["csv", "json", "parquet"])
def test_files(root: Path, tmp_path: Path, file_format: str) -> None:
    output = tmp_path / f"out.{file_format}"
    statement = "select text, meta from documents where source = 'web' order by \"offset\" limit 1"
    assert main([str(root), statement, "--format", file_format, "--output", str(output)]) == 0
    if file_format == "parquet":
        assert pq.read_table(output).to_pylist() == [
            {"text": "the cat sat on the mat", "meta": {"author": "李"}}
        ]
    elif file_format == "json":
        assert json.loads(output.read_text("utf-8")) == {
            "text": "the cat sat on the mat",
            "meta": {"author": "李"},
        }
    else:
        assert output.read_text("utf-8") == "text,meta\nthe cat sat on the mat,{'author': 李}\n"
    assert [path.name for path in tmp_path.iterdir()] == [output.name]


def test_screen(root: Path, capfd: pytest.CaptureFixture[str]) -> None:
    assert main([str(root), "select text, lang from documents where lang = 'zh' order by 1"]) == 0
    assert "│ 今天天气很好  │ zh      │" in capfd.readouterr().out
    assert (
        main([str(root), "select lang from documents where kept order by 1", "--format", "csv"])
        == 0
    )
    assert capfd.readouterr().out == "lang\nen\nund\nzh\nzh\n"
    with pytest.raises(SqlError, match="add --output"):
        main([str(root), "select 1", "--format", "parquet"])


def test_table_macros_stand_where_tables_stand(root: Path) -> None:
    def selected(connection: Any, file: str) -> str:
        assert file == "混合.yaml"
        connection.register("chosen rows", pa.table({"id": [tiny_corpus.identity("qa", 2).hex()]}))
        return "chosen rows"

    sql = "select '中', text from documents join selected('混合.yaml') using (id)"
    assert rows(root, sql, macros={"selected": selected}) == [("中", "你好，世界 😀")]
    with pytest.raises(SqlError, match=r"selected\('a.yaml'\)"):
        rows(root, "from selected(1)", macros={"selected": selected})


@pytest.mark.parametrize(
    "sql",
    [
        "select text from selected('a') as s where s.id is not null",
        "select text from selected('a') s where s.id is not null",
        "select s.text from selected('a') as s join selected('b') as t using (id)",
        "select s.text from selected('a') s join selected('b') t on s.id = t.id",
        "select s.text from selected('a') as s(x, text), selected('b') where x = selected.id",
        'select "s t".text from selected ( \'a\' )  /* 甲 */  as "s t"',
        "select text from selected('a')",
    ],
)
def test_aliases_of_table_macros(root: Path, sql: str) -> None:
    def selected(connection: Any, file: str) -> str:
        kept = pa.table({"id": [tiny_corpus.identity("qa", 2).hex()]})
        connection.register(f"ids {file}", kept)
        connection.execute(
            f'create or replace temp view "rows {file}" as select id, text from documents '
            f'join "ids {file}" using (id)'
        )
        return f"rows {file}"

    assert rows(root, sql, macros={"selected": selected}) == [("你好，世界 😀",)]


def test_schema_columns_are_all_shown(root: Path) -> None:
    described = [name for name, *_ in rows(root, "describe documents")]
    assert described[: len(schema.DOCUMENTS)] == schema.DOCUMENTS.names


def test_the_two_mistakes_that_everyone_makes_are_answered(root: Path) -> None:
    with pytest.raises(SqlError, match="it stands in single quotes, 'zh'"):
        rows(root, "select count(*) from documents where lang = zh")
    macros = {"selected": lambda connection, path: "documents"}
    with pytest.raises(SqlError, match=r"selected is a table: ... from selected\('mixture.yaml'\)"):
        rows(root, "select 1 from documents where selected('m.yaml')", macros=macros)


def test_files_that_are_gone_or_cannot_be_opened_are_named(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path / "tiny")
    counts = root / "tokens" / tiny_corpus.TOKENIZER_HASH / "counts"
    first = root / "documents" / "part-00000.parquet"
    first.unlink()
    first.symlink_to("nowhere")
    with pytest.raises(CorpusError, match=r"IO Error: .*part-00000.parquet.*; let this user read"):
        rows(root, "from documents")
    shutil.rmtree(counts)
    (root / "documents" / "part-00000.parquet").unlink()
    with pytest.raises(CorpusError, match=r"nothing is left of the table tokens/.*/counts, though"):
        rows(root, "select num_tokens from documents")


def test_rules_for_prose_say_nothing_of_code(tmp_path: Path) -> None:
    """Part 1 is of kind `code`; what its files hold stays."""
    root = tiny_corpus.write(tmp_path)
    path = root / "documents/part-00001.parquet"
    table = pq.read_table(path)
    at = table.schema.get_field_index("kind")
    pq.write_table(table.set_column(at, "kind", pa.array(["code"] * 3, pa.string())), path)
    for group in (*PROSE_GROUPS, "markup"):
        for part, num in enumerate((5, 3)):
            columns = {"score": [0.5] * num, "evidence": [["a"]] * num}
            file = root / f"signals/{group}/part-{part:05d}.parquet"
            file.parent.mkdir(parents=True, exist_ok=True)
            pq.write_table(pa.table(columns), file)
    found = read_json(root / "corpus.json")
    write_json(root / "corpus.json", found | {"signals": ["language", *PROSE_GROUPS, "markup"]})
    for group in PROSE_GROUPS:
        question = (
            f"select distinct kind, {group}.score, {group}.evidence from documents order by 1"
        )
        assert rows(root, question) == [("code", None, None), ("web", 0.5, ["a"])]
    assert rows(root, "select distinct markup.score from documents") == [(0.5,)]
    assert rows(root, "select count(*) from documents where ads.score < 1") == [(5,)]
    assert rows(root, "select median.ads.score from sources order by source") == [(None,), (0.5,)]


def test_groups_for_prose_are_groups() -> None:
    assert set(PROSE_GROUPS) <= GROUPS.keys()


def test_from_without_select_gives_every_column(root: Path) -> None:
    def columns(sql: str) -> list[str]:
        with ask(root, sql, macros={}, timeout_seconds=20) as reader:
            return list(reader.schema.names)

    everything = columns("select * from documents")
    assert {"gopher", "lang", "num_tokens", "near_duplicate", "kept"} <= set(everything)
    assert columns("from documents") == everything
    assert columns("from documents where kept order by all limit 1") == everything


def test_what_does_not_bind_is_told_before_near_duplicates_are_worked_out(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def dear(*_: object) -> None:
        raise AssertionError("nobody asked for near duplicates")

    monkeypatch.setattr("pipeline.unique.near_unique", dear)
    for wrong in ("select langg from documents", "select x.y from documents", "from documentss"):
        with pytest.raises(SqlError, match=r"Binder Error|Catalog Error"):
            rows(root, wrong)
    with pytest.raises(AssertionError, match="nobody asked"):
        rows(root, "select * from documents")
