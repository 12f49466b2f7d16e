"""`assay inspect CORPUS ID|URL|PHRASE`: one document with all that is known about it.

A reject comes with its record, read again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import duckdb

from pipeline import forgotten
from pipeline.corpus import CorpusError
from pipeline.finished import reading
from pipeline.rejects import read_again
from pipeline.seeing import decisions
from pipeline.seeing.document import MAX_OTHERS, show
from pipeline.sql import connect

ID_DIGITS = 32
# Of a document, content or reject, or its beginning.
ID = re.compile(rf"[0-9a-fA-F]{{6,{ID_DIGITS}}}")
EXAMPLE = """examples:
  assay inspect runs/web 3f9a1c
  assay inspect runs/web https://example.org/page
  assay inspect runs/web "a phrase of its text" --json
  assay inspect runs/web 3f9a1c --mixture mixture.yaml     why that takes it, or leaves it out

ID is an id or content_hash, or its first 6 digits or more; also the id of a reject."""

Row = dict[str, Any]
Explain = Callable[[str, Path, Row], list[str]]  # (mixture.yaml, corpus, what `inspect` found)


def main(argv: list[str], explain: Explain) -> int:
    """`explain` is of an upper layer: it says what a mixture does with a document."""
    parser = argparse.ArgumentParser(
        prog="assay inspect", epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument("what", help="id, content_hash, address, or words of the text")
    parser.add_argument("--mixture", metavar="FILE", help="say also why that takes it, or does not")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")
    options = parser.parse_args(argv)
    with reading(options.corpus) as root:
        found = inspect(root, options.what)
        if options.mixture and "reject" in found:
            raise CorpusError(f"{options.what!r} is a reject: no mixture can take it")
        if options.mixture:
            found["mixture"] = explain(options.mixture, root, found)
    if options.json:
        print(json.dumps(found, ensure_ascii=False, indent=1, default=str))
    else:
        show(found)
    return 0


def inspect(root: Path, what: str) -> Row:
    """All that is known about a document, or about a reject.

    Raises:
        CorpusError: nothing, or more than one id, is meant by `what`.
    """
    with connect(root) as connection:
        how, matches = _find(connection, what)
        row, others = _first(connection, matches)
        if row is None:
            return _reject(root, connection, what)
        content = row["content_hash"]
        found = {
            "found_by": how,
            "document": row,
            "also_found": others,
            "presets": decisions.presets(connection, row),
            "edits": _edits(connection, row),
            "copies": _rows(
                connection,
                "select id, source, url from documents where content_hash = ? and id <> ?",
                [content, row["id"]],
            ),
            "pairs": _rows(
                connection,
                "select other as content_hash, jaccard, any_value(d.id) as id, any_value(d.url) as "
                "url, any_value(left(d.text, 100)) as excerpt from (select case when a = $1 then b "
                "else a end as other, jaccard from pairs where a = $1 or b = $1) join documents d "
                "on d.content_hash = other group by all order by jaccard desc, other",
                [content],
            ),
            "cluster": _rows(
                connection, "select * from clusters where content_hash = ?", [content]
            ),
            "holders": _rows(
                connection,
                "select other as content_hash, containment, any_value(d.id) as id, "
                "any_value(d.url) as url, any_value(left(d.text, 100)) as excerpt from (select "
                "case when c.content_hash = $1 then holder else c.content_hash end as other, "
                "containment from contained c where c.content_hash = $1 or holder = $1 and "
                "num_shingles = holder_shingles) join documents d on d.content_hash = other "
                "group by all order by containment desc, other",
                [content],
            ),
            "substrings": _rows(
                connection,
                "select s.start_byte, s.end_byte, s.copies, s.first, min(o.id) as also_in from "
                "substrings s left join substrings o on o.key = s.key and o.id <> s.id "
                "where s.id = ? group by all order by s.start_byte, s.end_byte, s.copies",
                [row["id"]],
            ),
            "heldout": _rows(
                connection,
                "select set, h.content_hash, m.jaccard, m.containment from heldout_matches m "
                "join heldout h on h.content_hash = m.heldout where m.content_hash = $1 "
                "union all select set, content_hash, 1, 1 from heldout where content_hash = $1",
                [content],
            ),
        }
    return found | {"verdict": [*decisions.verdict(found), *decisions.stale(root)]}


def _find(connection: duckdb.DuckDBPyConnection, what: str) -> tuple[str, list[Row]]:
    """How documents are found, by id, address or text, and the first of them in order of ids."""
    if ID.fullmatch(what):
        matches = _matches(
            connection, "starts_with(id, $1) or starts_with(content_hash, $1)", what.lower()
        )
        if len({m["content_hash"] for m in matches}) > 1:
            listed = "\n".join(f"  id {m['id']}  content_hash {m['content_hash']}" for m in matches)
            raise CorpusError(f"{what!r} begins more than one id; give more digits:\n{listed}")
        if matches or _rejects(connection, what) or len(what) == ID_DIGITS:
            return "id", matches
    matches = _matches(connection, "url = $1 or canonical_url = $1", what)
    if matches:
        return "address", matches
    how = "text"
    if ID.fullmatch(what):
        how += f": no id or content_hash begins with {what}"
    return how, _matches(connection, "contains(text, $1)", what)


def _matches(connection: duckdb.DuckDBPyConnection, where: str, value: str) -> list[Row]:
    columns = "id, content_hash, source, url"
    query = f"select {columns} from documents where {where} order by id limit {MAX_OTHERS + 1}"
    return _rows(connection, query, [value])


def _first(
    connection: duckdb.DuckDBPyConnection, matches: list[Row]
) -> tuple[Row | None, list[Row]]:
    """The whole row of the first match, and the others."""
    if not matches:
        return None, []
    row = _rows(connection, "select * from documents where id = ?", [matches[0]["id"]])[0]
    return row, matches[1:]


def _edits(connection: duckdb.DuckDBPyConnection, row: Row) -> list[Row]:
    """What a mixture may change in the text, stage by stage, with what stands there now."""
    found = _rows(
        connection,
        "select 'edits/' || name as stage, kind, start_byte, end_byte, replacement from edits "
        "where id = ? order by all",
        [row["id"]],
    )
    data = row["text"].encode()
    return [edit | {"text": data[edit["start_byte"] : edit["end_byte"]].decode()} for edit in found]


def _reject(root: Path, connection: duckdb.DuckDBPyConnection, what: str) -> Row:
    """A reject by its id, and its record again."""
    rows = _rejects(connection, what)
    if not rows and ID.fullmatch(what) and (told := forgotten.told(root, what.lower())):
        raise CorpusError(f"{root}: {told}")
    if not rows:
        raise CorpusError(
            f"{root}: no document or reject is meant by {what!r}; give an id or content_hash (6 "
            "digits or more), an address with ://, or words exactly as they stand in the text "
            "(some, where it is no id: 32 digits are never looked for in texts)"
        )
    return {"reject": rows[0], "again": read_again(root, rows[0])}


def _rejects(connection: duckdb.DuckDBPyConnection, what: str) -> list[Row]:
    if ID.fullmatch(what) is None:
        return []
    query = "select * from rejects where starts_with(id, ?) order by id"
    return _rows(connection, query, [what.lower()])


def _rows(connection: duckdb.DuckDBPyConnection, query: str, values: list[Any]) -> list[Row]:
    result = connection.execute(query, values)
    names = [column[0] for column in result.description]
    return [dict(zip(names, row, strict=True)) for row in result.fetchall()]
