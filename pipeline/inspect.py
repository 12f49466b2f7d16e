"""`assay inspect CORPUS ID|URL|PHRASE`: one document with all that is known about it.

A reject comes with its record, read again.
"""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import duckdb

from filters.presets import PRESETS, Rule, needs, reasons
from pipeline.config import check
from pipeline.corpus import CorpusError, manifest
from pipeline.finished import reading
from pipeline.rejects import read_again
from pipeline.settings import CorpusSettings
from pipeline.sql import connect

if TYPE_CHECKING:
    from filters.signals import Group

ID = re.compile(r"[0-9a-fA-F]{6,32}")  # of a document, content or reject, or its beginning
MAX_OTHERS = 10  # that are found so too
SHOWN_CHARS = 2_000  # of the text on a screen; --json gives all
EXAMPLE = """examples:
  assay inspect runs/web 3f9a1c
  assay inspect runs/web https://example.org/page
  assay inspect runs/web "a phrase of its text" --json

ID is an id or content_hash, or its first 6 digits or more; also the id of a reject."""

Row = dict[str, Any]
Groups = Mapping[str, "Group"]


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay inspect", epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    parser.add_argument("what", help="id, content_hash, address, or words of the text")
    parser.add_argument("--json", action="store_true", help="everything, as one JSON object")
    options = parser.parse_args(argv)
    with reading(options.corpus) as root:
        found = inspect(root, options.what)
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
            "presets": _presets(connection, row, _groups(root)),
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
            "heldout": _rows(
                connection,
                "select set, h.content_hash, m.jaccard, m.containment from heldout_matches m "
                "join heldout h on h.content_hash = m.heldout where m.content_hash = $1 "
                "union all select set, content_hash, 1, 1 from heldout where content_hash = $1",
                [content],
            ),
        }
    return found | {"verdict": _verdict(found)}


def show(found: Row) -> None:
    """Print for a person: why first, then what was measured, then the text."""
    if "reject" in found:
        for key, value in found["reject"].items():
            print(f"{key:<12}{value}")
        _show_text(found["again"])
        return
    row = dict(found["document"])
    text = row.pop("text")
    print(f"found by its {found['found_by']}" + _others(found["also_found"]))
    for line in found["verdict"]:
        print(line)
    for preset, rules in found["presets"].items():
        print(f"\n{preset}")
        for rule in rules:
            mark = {True: "pass", False: "FAIL", None: "no rule"}[rule["passes"]]
            bounds = f"{_number(rule['minimum'])} .. {_number(rule['maximum'])}"
            print(f"  {mark:<8}{rule['signal']:<36}{_number(rule['value']):>12}   {bounds}")
            if rule["passes"] is False:
                print(f"{'':<10}{rule['formula']}; bound: {rule['source']}")
    for table in ("copies", "pairs", "cluster", "heldout", "also_found"):
        if found[table]:
            print(f"\n{table}")
            for item in found[table]:
                print("  " + "  ".join(f"{k}={_number(v)}" for k, v in item.items()))
    print()
    for key, value in row.items():
        if isinstance(value, dict):
            fields = "  ".join(f"{k}={_number(v)}" for k, v in value.items())
            print(f"{key:<22}{fields}")
        elif value is not None:
            print(f"{key:<22}{_number(value)}")
    _show_text(text)


def _show_text(text: str) -> None:
    print(f"\n{text[:SHOWN_CHARS]}")
    if len(text) > SHOWN_CHARS:
        print(f"... {len(text) - SHOWN_CHARS:,} more characters; --json shows all")


def _others(also: list[Row]) -> str:
    if not also:
        return ""
    many = f"{len(also)} more" if len(also) < MAX_OTHERS else f"{MAX_OTHERS} or more others"
    return f"; {many} are found so too, the one of the first id is shown"


def _find(connection: duckdb.DuckDBPyConnection, what: str) -> tuple[str, list[Row]]:
    """How documents are found, by id, address or text, and the first of them in order of ids."""
    if ID.fullmatch(what):
        matches = _matches(
            connection, "starts_with(id, $1) or starts_with(content_hash, $1)", what.lower()
        )
        if len({m["content_hash"] for m in matches}) > 1:
            listed = "\n".join(f"  id {m['id']}  content_hash {m['content_hash']}" for m in matches)
            raise CorpusError(f"{what!r} begins more than one id; give more digits:\n{listed}")
        if matches or _rejects(connection, what):
            return "id", matches
    matches = _matches(connection, "url = $1 or canonical_url = $1", what)
    if matches:
        return "address", matches
    return "text", _matches(connection, "contains(text, $1)", what)


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


def _presets(
    connection: duckdb.DuckDBPyConnection, row: Row, groups: Groups
) -> dict[str, list[Row]]:
    """Each rule of each preset whose signals are there: its value, its bounds, and the outcome
    (None: no rule for this language, or no value)."""
    found: dict[str, list[Row]] = {}
    for preset, rules in PRESETS.items():
        if not needs(preset) - {"language"} <= set(row) or "lang" not in row:
            continue
        key = f"{row['lang']}-{row['lang_variant']}" if row["lang_variant"] else row["lang"]
        asked = [rule.value for rule in rules] + [f"not ({fails})" for _, fails in reasons(preset)]
        outcome = connection.execute(
            f"select {', '.join(asked)} from documents where id = ?", [row["id"]]
        )
        answers = outcome.fetchall()[0]
        found[preset] = []
        for rule, value, passes in zip(
            rules, answers[: len(rules)], answers[len(rules) :], strict=True
        ):
            bound = rule.bound(key) if row["lang"] in rule.bounds else None
            found[preset].append(
                {
                    "signal": rule.name,
                    "formula": formula(rule, groups),
                    "value": value,
                    "minimum": bound.minimum if bound else None,
                    "maximum": bound.maximum if bound else None,
                    "passes": passes,
                    "source": bound.source if bound else None,
                    "correction": bound.correction if bound else None,
                }
            )
    return found


def _groups(root: Path) -> Groups:
    """The signal groups that the corpus was prepared with."""
    from pipeline.groups import groups  # loads numba: 0.5 s

    return groups(check(manifest(root)["settings"], CorpusSettings, str(root / "corpus.json")))


def formula(rule: Rule, groups: Groups) -> str:
    """What a rule counts, and in which unit."""
    group, _, column = rule.signal.partition(".")
    columns = groups[group].columns if column else groups["language"].columns
    signal = columns.get(column or group)
    told = f"{signal.unit}: {signal.formula}" if signal else "of the text"  # num_chars
    return f"{told}; divided by {rule.per}" if rule.per else told


def _verdict(found: Row) -> list[str]:
    """Why the document is in or out, in sentences."""
    row = found["document"]
    lines = []
    if row["heldout"]:
        sets = ", ".join(sorted({item["set"] for item in found["heldout"]}))
        lines.append(f"out: held out, no mixture trains on it ({sets})")
    if row["duplicate"]:
        first = min(item["id"] for item in found["copies"])
        lines.append(f"out when copies are collapsed: an exact copy of {first}")
    if row["near_duplicate"]:
        lines.append(f"out when near duplicates go: {_near(found)}")
    lines = lines or ["in: not held out, not a copy"]
    if not row["languages"]["pass"]:
        lines.append(f"out of languages.pass: {row['lang']}, score {row['lang_score']:.4g}")
    for preset, rules in found["presets"].items():
        failed = [rule["signal"] for rule in rules if rule["passes"] is False]
        judged = [rule for rule in rules if rule["passes"] is not None]
        if failed:
            lines.append(f"out of {preset}.pass: {', '.join(failed)}")
        else:
            lines.append(f"{preset}.pass: " + ("yes" if judged else f"no rules for {row['lang']}"))
    return lines


def _near(found: Row) -> str:
    """Of what the document is a near duplicate."""
    if found["pairs"]:
        others = ", ".join(item["id"] for item in found["pairs"][:3])
        return f"a verified pair with {others}"
    size, cluster = found["cluster"][0]["size"], found["cluster"][0]["cluster"]
    return (
        f"of one of {size:,} texts in cluster {cluster}, of which one that comes before it stays "
        "(pairs of clusters this large are verified when documents are selected, and not stored)"
    )


def _reject(root: Path, connection: duckdb.DuckDBPyConnection, what: str) -> Row:
    """A reject by its id, and its record again."""
    rows = _rejects(connection, what)
    if not rows:
        raise CorpusError(
            f"{root}: no document or reject is meant by {what!r}; give an id or content_hash (6 "
            "digits or more), an address with ://, or words exactly as they stand in the text"
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


def _number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
