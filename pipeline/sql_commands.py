"""`assay sql CORPUS "SELECT ..."`: ask a corpus with one SELECT."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from pipeline.amounts import counted
from pipeline.files import replacing
from pipeline.finished import reading
from pipeline.syntax import SqlError, TableMacros, parse, text_literal

GRACE_SECONDS = 10  # after --timeout
SHOWN_ROWS = 1_000  # of a table on a screen; files get all
FORMATS = {"csv": "format csv, header true", "json": "format json", "parquet": "format parquet"}
EXAMPLE = """examples:
  assay sql runs/web "select lang, avg(gopher.pass::int) from documents group by all"
  assay sql runs/web "select reason, count(*) from rejects group by all" --format csv
  assay sql runs/web "from documents where kept" --format parquet --output kept.parquet
  assay sql runs/web "select mixture_source, count(*) from selected('mixture.yaml') group by all"

views: {views}; `describe documents` lists columns.
JSON is one object a line."""


def main(argv: list[str], macros: TableMacros | None = None) -> int:
    """`macros` are table functions that upper layers add: `selected('mixture.yaml')`."""
    parser = argparse.ArgumentParser(
        prog="assay sql", epilog=_epilog(argv), formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument("statement", help="one SELECT")
    parser.add_argument("--format", choices=["table", *FORMATS], default="table")
    parser.add_argument("--output", type=Path, help="file to write; default: standard output")
    parser.add_argument("--timeout", type=float, default=300, help="seconds (default %(default)g)")
    options = parser.parse_args(argv)
    if options.format == "parquet" and options.output is None:
        raise SqlError("Parquet is not for a screen; add --output FILE.parquet")
    if options.format == "table" and options.output is not None:
        raise SqlError("--output needs --format csv, json or parquet")
    parse(options.statement)
    from pipeline.sql import ask  # 0.5 s: a slip of the pen is told before it

    with (
        _ended_after(options.timeout + GRACE_SECONDS),
        reading(options.corpus) as root,
        ask(root, options.statement, macros=macros or {}, timeout_seconds=options.timeout) as rows,
    ):
        if options.format == "table":
            _show(rows)
        elif options.output is None:
            with tempfile.NamedTemporaryFile() as file:
                _write(rows, Path(file.name), options.format)
                sys.stdout.flush()
                shutil.copyfileobj(file.file, sys.stdout.buffer)
                sys.stdout.buffer.flush()
        else:
            with replacing(options.output) as temporary:
                num_rows = _write(rows, temporary, options.format)
            print(f"wrote {options.output}: {counted(num_rows, 'row')}", file=sys.stderr)
    return 0


def _epilog(argv: list[str]) -> str:
    """Examples, and the views where help is asked for: to know them takes 0.5 s."""
    if {"-h", "--help"}.isdisjoint(argv):
        return ""
    from pipeline.views import STANDARD_VIEWS

    return EXAMPLE.format(views=", ".join(STANDARD_VIEWS))


@contextmanager
def _ended_after(seconds: float) -> Iterator[None]:
    """End the process: DuckDB hears an interrupt between batches of 2,048 rows, and one batch of
    `repeat('a', 1000000000)` takes for ever."""

    def end() -> None:
        print("assay sql: stopped; the statement did not end when its time was up", file=sys.stderr)
        os._exit(2)

    last_resort = threading.Timer(seconds, end)
    last_resort.daemon = True
    last_resort.start()
    try:
        yield
    finally:
        last_resort.cancel()


def _show(rows: pa.RecordBatchReader) -> None:
    """DuckDB's own table: it knows how wide East Asian characters and emoji are."""
    shown, num_rows = [], 0
    for batch in rows:
        shown.append(batch.slice(0, SHOWN_ROWS - num_rows))
        num_rows += len(shown[-1])
        if num_rows >= SHOWN_ROWS:
            print(f"the first {SHOWN_ROWS:,} rows; --format csv gives all", file=sys.stderr)
            break
    table = pa.Table.from_batches(shown, rows.schema)
    width = shutil.get_terminal_size((160, 24)).columns
    duckdb.connect().from_arrow(table).show(max_rows=SHOWN_ROWS, max_width=width)


def _write(rows: pa.RecordBatchReader, path: Path, file_format: str) -> int:
    """Write in batches, by a connection of our own: nested columns have a form in all formats."""
    writer = duckdb.connect(config={"threads": 1})
    writer.register("answer", rows)
    options = f"{FORMATS[file_format]}, use_tmp_file false"
    written = writer.execute(f"copy answer to {text_literal(str(path))} ({options})")
    row = written.fetchone()
    assert row is not None
    return int(row[0])
