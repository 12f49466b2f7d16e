"""Each attack that was seen to work on DuckDB 2.0, and its neighbours."""

from __future__ import annotations

import hashlib
import time
from pathlib import Path

import pytest
import tiny_corpus

from pipeline.predicates import predicate
from pipeline.sql import ask, connect
from pipeline.sql_commands import main
from pipeline.syntax import SqlError


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tiny_corpus.write(tmp_path_factory.mktemp("tiny") / "it's a corpus")


def digest(root: Path) -> dict[str, str]:
    files = sorted(path for path in root.parent.rglob("*") if path.is_file())
    return {str(path): hashlib.sha256(path.read_bytes()).hexdigest() for path in files}


def run(root: Path, sql: str, timeout_seconds: float = 20) -> None:
    with ask(root, sql, macros={}, timeout_seconds=timeout_seconds) as rows:
        rows.read_all()


@pytest.mark.parametrize(
    "sql",
    [
        "copy documents to '{root}/documents/part-00000.parquet'",
        "copy (select 1) to '{root}/x.csv'",
        "export database '{root}/x'",
        "drop view documents",
        "create table x as select 1",
        "create or replace view documents as select 1",
        "insert into documents select * from documents",
        "delete from documents",
        "with gone as (delete from documents returning *) select * from gone",
        "with a as (select 1), b as (insert into documents values (1) returning *) select * from b",
        "attach '{root}/x.db'",
        "install httpfs",
        "load httpfs",
        "set threads = 1",
        "set enable_external_access = true",
        "reset memory_limit",
        "pragma database_size",
        "call pragma_version()",
        "explain analyze select 1",
        "begin",
        "select 1; drop view documents",
        "select 1; select 2",
        "prepare a as select 1",
        "checkpoint",
        "vacuum",
        "use temp",
        "",
        "-- nothing",
    ],
)
def test_only_one_select(root: Path, sql: str) -> None:
    before = digest(root)
    with pytest.raises(SqlError, match=r"only SELECT|one SELECT|Parser Error|does not parse"):
        run(root, sql.replace("{root}", str(root).replace("'", "''")))
    assert digest(root) == before


@pytest.mark.parametrize(
    "sql",
    [
        "select * from read_text('/etc/passwd')",
        "select * from '/etc/passwd'",
        "select * from read_csv('/etc/passwd')",
        "select * from read_blob('{root}/../outside.txt')",
        "select * from glob('/*')",
        "select * from read_parquet('https://example.org/a.parquet')",
        "select * from read_json('s3://bucket/a.json')",
        "select getenv('HOME')",
        "select * from query('copy documents to ''x''')",
        "select * from secret_python_variable",
    ],
)
def test_nothing_outside_is_read(root: Path, sql: str) -> None:
    (root.parent / "outside.txt").write_text("secret")
    secret_python_variable = [1]
    assert secret_python_variable == [1]
    with pytest.raises(SqlError, match=r"Permission|does not exist|Parser|Binder|Invalid"):
        run(root, sql.replace("{root}", str(root).replace("'", "''")))


def test_the_configuration_is_locked(root: Path) -> None:
    connection = connect(root)
    for sql in ("set enable_external_access = true", "set allowed_directories = ['/']"):
        with pytest.raises(Exception, match=r"locked|Cannot"):
            connection.execute(sql)


@pytest.mark.parametrize(
    "sql",
    [
        "select count(*) from range(1000000000) a, range(1000000000) b",
        "select sum(length(a.text) * b.range) from documents a, range(100000000000) b",
        "with recursive t as (select 1 n union all select n + 1 from t) select max(n) from t",
    ],
)
def test_endless_statements_are_stopped(root: Path, sql: str) -> None:
    start = time.monotonic()
    with pytest.raises(SqlError, match=r"stopped after 0\.5 seconds; ask for less .* --timeout"):
        run(root, sql, timeout_seconds=0.5)
    assert time.monotonic() - start < 5


def test_an_endless_answer_is_stopped_and_leaves_no_file(root: Path, tmp_path: Path) -> None:
    output = tmp_path / "x.csv"
    sql = "select a.range from range(1000000000) a, range(1000000000) b"
    argv = [str(root), sql, "--format", "csv", "--output", str(output), "--timeout", "0.5"]
    with pytest.raises(SqlError, match=r"stopped after 0\.5 seconds"):
        main(argv)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        ("true); copy (select 1) to '/tmp/x'; select (1=1", "does not parse"),
        ("a) or (b", "does not parse"),
        ("a /* open", "does not parse"),
        ("", "does not parse"),
        ("select 1", "does not parse"),
        ("1; select 2", "one expression"),
        ("a, b", "one expression"),
        ("a order by b", "modifiers"),
        ("a limit 3", "modifiers"),
        ("distinct a", "modifiers"),
        ("a from documents", "from_table"),
        ("a from documents where b", "from_table"),
        ("a group by b", "group_expressions"),
        ("a qualify b", "qualify"),
        ("a using sample 3", "sample"),
        ("a union select 1", "one expression"),
        ("a as b", "no alias"),
        ("exists (select 1)", "subquery is not allowed"),
        ("id in (select id from documents)", "subquery is not allowed"),
        ("row_number() over () < 3", "window is not allowed"),
        ("*", "star is not allowed"),
        ("columns('a')", "star is not allowed"),
        ("? > 1", "parameter is not allowed"),
        ("$1 = 2", "parameter is not allowed"),
        ("#1 = 2", "positional_reference is not allowed"),
        ("default", "default is not allowed"),
        ("random() > 0.5", "function random is not allowed"),
        ("now() > crawl_date", "function now is not allowed"),
        ("uuid() = id", "function uuid is not allowed"),
        ("sum(num_chars) > 1", "function sum is not allowed"),
        ("read_text('/etc/passwd') is null", "function read_text is not allowed"),
        ("getenv('HOME') = 'x'", "function getenv is not allowed"),
        ("current_setting('threads') = 1", "function current_setting is not allowed"),
        ("nextval('a') = 1", "function nextval is not allowed"),
        ("sleep_ms(1) is null", "function sleep_ms is not allowed"),
        ("error('x')", "function error is not allowed"),
        ("case when true then random() end > 0", "function random is not allowed"),
        ("list_transform([1], x -> random()) = [1]", "function random is not allowed"),
    ],
)
def test_predicates_stay_predicates(expression: str, message: str) -> None:
    with pytest.raises(SqlError, match=message) as caught:
        predicate(expression)
    assert f"predicate {expression!r}: " in str(caught.value)
