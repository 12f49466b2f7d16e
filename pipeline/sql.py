"""One SELECT over a corpus.

What is refused, and why (tried on DuckDB 2.0): with external access off and the configuration
locked, COPY still overwrites files of the corpus and DROP VIEW works; a DELETE hides in a WITH. So
a statement is parsed first and must be one SELECT.
"""

from __future__ import annotations

import glob
import os
import re
import tempfile
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import duckdb
import pyarrow as pa

from pipeline import unmeasured
from pipeline.corpus import CorpusError
from pipeline.relations import Corpus, View
from pipeline.syntax import (
    SqlError,
    TableMacros,
    calls,
    names_in,
    parse,
    quoted,
    text_literal,
    with_tables,
)
from pipeline.views import STANDARD_VIEWS
from pipeline.whole import explain, short

BATCH_ROWS = 10_000
MEMORY_LIMIT = "2GB"  # of one question; what needs more goes to the disk


# --- a connection ---------------------------------------------------------------------------------


def connect(
    root: Path,
    views: Mapping[str, View] = STANDARD_VIEWS,
    *,
    names: frozenset[str] | None = None,
    memory_limit: str = MEMORY_LIMIT,
    threads: int | None = None,
    sketch: bool = False,
) -> duckdb.DuckDBPyConnection:
    """A connection with the views of the corpus at `root`, which can read that folder alone.

    `names` (lower case) are the columns and views that will be asked for; None: all. A view leaves
    out the joins that nobody asks for. Of a `sketch` all columns are there, and what is dear to
    work out is NULL. Raises CorpusError where `root` is not a finished corpus.
    """
    connection = duckdb.connect(
        config={
            "memory_limit": memory_limit,
            "threads": threads or os.cpu_count() or 1,
            "temp_directory": f"{tempfile.gettempdir()}/assay-duckdb-{os.getpid()}",
            "max_temp_directory_size": "20GB",
            "autoinstall_known_extensions": False,
            "autoload_known_extensions": False,
            "python_enable_replacements": False,  # or Python variables would be tables
        }
    )
    corpus = Corpus.open(root.resolve(), connection, names, sketch=sketch)
    folder = str(root.resolve())
    allowed = {folder, glob.escape(folder)}  # a pattern is checked as it stands, and then its files
    listed = ", ".join(map(text_literal, sorted(allowed)))
    connection.execute(f"set allowed_directories = [{listed}]")
    connection.execute("set enable_external_access = false")
    try:
        for name, view in views.items():
            if name == "documents" or corpus.asked(name):
                connection.execute(f"create view {quoted(name)} as {view(corpus)}")
    except duckdb.IOException as error:
        raise CorpusError(
            f"{root}: {str(error).splitlines()[0]}; let this user read it; what is damaged "
            "`assay prepare --verify` makes again"
        ) from None
    connection.execute("set lock_configuration = true")
    return connection


@contextmanager
def ask(
    root: Path,
    sql: str,
    *,
    macros: TableMacros,
    timeout_seconds: float,
    memory_limit: str = MEMORY_LIMIT,
) -> Iterator[pa.RecordBatchReader]:
    """The answer to one SELECT over the corpus at `root`.

    Raises:
        SqlError: not one SELECT, no such column, outside of the corpus, too slow, too large.
        CorpusError: a file of the corpus is damaged.
    """
    tree = parse(sql)
    names = names_in(tree, macros)
    # What may ask for any column is tried on a sketch first: what nobody can ask is told before
    # near duplicates are worked out.
    is_sketch = names is None and not calls(tree, macros)
    connection = connect(root, names=names, memory_limit=memory_limit, sketch=is_sketch)
    expired = threading.Event()

    def stop() -> None:
        expired.set()
        connection.interrupt()

    watchdog = threading.Timer(timeout_seconds, stop)
    watchdog.daemon = True
    watchdog.start()
    try:
        try:
            relation = connection.sql(with_tables(connection, sql, tree, macros))
        except (duckdb.BinderException, duckdb.CatalogException):
            with connect(root, sketch=True) as sketch:  # all columns: the message names them
                sketch.sql(with_tables(sketch, sql, tree, macros))
            is_sketch = True
        if is_sketch:
            connection = connect(root, memory_limit=memory_limit)
            relation = connection.sql(with_tables(connection, sql, tree, macros))
        yield relation.to_arrow_reader(BATCH_ROWS)
    except (duckdb.Error, pa.ArrowException, OSError) as error:
        if expired.is_set():
            raise SqlError(
                f"stopped after {timeout_seconds:g} seconds; ask for less (a join without a "
                "condition?), or give more time with --timeout"
            ) from None
        if isinstance(error, duckdb.OutOfMemoryException):
            raise SqlError(f"{str(error).splitlines()[0]}; ask for fewer rows or columns") from None
        if isinstance(error, duckdb.Error):
            mistake = isinstance(error, duckdb.ProgrammingError | duckdb.DataError)
            nameless = "Invalid Error: " in str(error)  # what DuckDB has no class for: bytes
            explain(root, error, search=nameless or not mistake)
            raise SqlError(f"{short(str(error))}{_hint(root, sql, str(error), macros)}") from None
        raise
    finally:
        watchdog.cancel()
        connection.close()


# --- statements -----------------------------------------------------------------------------------


def _hint(root: Path, sql: str, message: str, macros: TableMacros) -> str:
    """What is most likely meant, for the mistakes that everyone makes."""
    for name in re.findall(r"\b(?:pass|flagged)\.(\w+)", sql):  # of a source
        if why_not := unmeasured.told(root, name):
            return f"\n{why_not}"
    named = re.search(r'Referenced (column|table) "([^"]+)" not found', message)
    if named and (why_not := unmeasured.told(root, named[2])):
        return f"\n{why_not}"
    if named and named[1] == "table" and (near := unmeasured.nearest(root, named[2])):
        return f"\n{near}"
    if named and named[1] == "column":
        return f"\nIf a text is meant: it stands in single quotes, '{named[2]}'"
    outcome = re.search(r'Could not find key "(pass|reason)" in struct', message)
    for name in re.findall(rf"(\w+)\.{outcome[1]}\b", sql) if outcome else ():
        if why_not := unmeasured.told(root, name):
            return f"\n{why_not}"
    function = re.search(r"Scalar Function with name (\w+) does not exist", message)
    if function and function[1] in macros:
        return f"\n{function[1]} is a table: ... from {function[1]}('mixture.yaml')"
    return ""
