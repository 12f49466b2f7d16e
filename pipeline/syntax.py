"""SQL as DuckDB parses it: syntax trees, the names in them, and how to write names and texts."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from functools import cache
from typing import Any

import duckdb

# name of a table function -> (connection, its one text argument) -> name of a relation
TableMacros = Mapping[str, Callable[[duckdb.DuckDBPyConnection, str], str]]

READ_NODES = {"SELECT_NODE", "SET_OPERATION_NODE", "RECURSIVE_CTE_NODE", "CTE_NODE"}
NOWHERE = 2**64 - 1  # where the stars of `from documents` and `order by all` stand


class SqlError(ValueError):
    """A statement or predicate cannot be used; the message says what, where and the remedy."""


@cache
def parser() -> duckdb.DuckDBPyConnection:
    """A connection that only ever parses."""
    return duckdb.connect(config={"threads": 1, "enable_external_access": False})


def tree_of(sql: str) -> dict[str, Any]:
    row = parser().execute("select json_serialize_sql(?)", [sql]).fetchone()
    assert row is not None
    tree: dict[str, Any] = json.loads(row[0])
    if tree["error"]:
        raise SqlError(f"does not parse: {tree['error_message']}")
    return tree


def parse(sql: str) -> dict[str, Any]:
    """Syntax tree of a statement.

    Raises:
        SqlError: does not parse, is not one statement, or is anything but a SELECT.
    """
    try:
        statements = parser().extract_statements(sql)
    except duckdb.Error as error:
        raise SqlError(str(error)) from None
    if len(statements) != 1:
        raise SqlError(f"one SELECT at a time; found {len(statements)} statements")
    kind = statements[0].type.name
    if kind != "SELECT":
        raise SqlError(
            f"only SELECT is allowed, this is {kind}; a corpus is never changed by SQL, and "
            "`--format parquet --output FILE` writes an answer to a file"
        )
    tree = tree_of(sql)
    for node in nodes(tree):
        if str(node.get("type", "")).endswith("_NODE") and node["type"] not in READ_NODES:
            raise SqlError(f"only SELECT is allowed, also inside WITH; found {node['type']}")
    return tree


def nodes(tree: Any) -> Iterator[dict[str, Any]]:
    """All mappings in a syntax tree, parents first."""
    if isinstance(tree, dict):
        yield tree
        tree = tree.values()
    elif not isinstance(tree, list):
        return
    for child in tree:
        yield from nodes(child)


def names_in(tree: Any, macros: TableMacros) -> frozenset[str] | None:
    """Every name that stands in a statement, in lower case, and `<name>.*` of those that end a
    reference; None: it may mean any column (`*`, DESCRIBE, a whole row, SQL in a string, a macro).
    """
    names: set[str] = set()
    alone: set[str] = set()  # columns, or whole rows of a table
    tables: set[str] = set()
    orders = (node for node in nodes(tree) if node.get("type") == "ORDER_MODIFIER")
    ordering = {id(node) for order in orders for node in nodes(order)}
    for node in nodes(tree):
        if node.get("class") == "STAR":
            by_all = id(node) in ordering and node["query_location"] == NOWHERE
            if not by_all:  # that means no column beyond those selected
                return None
        if node.get("type") == "SHOW_REF":
            return None
        if node.get("function_name") in ("query", "query_table", *macros):
            return None
        if node.get("type") == "BASE_TABLE":
            tables |= {node["table_name"].lower(), node["alias"].lower()}
        if node.get("class") == "COLUMN_REF":
            names |= {part.lower() for part in node["column_names"]}
            names |= {f"{node['column_names'][-1].lower()}.*"}  # it may be a whole struct
            alone |= {node["column_names"][0].lower()} if len(node["column_names"]) == 1 else set()
        names |= {name.lower() for name in node.get("using_columns") or ()}
        if str(node.get("ref_type", "")).startswith("NATURAL"):
            return None
    return None if alone & tables else frozenset(names | tables)


def calls(tree: Any, macros: TableMacros) -> bool:
    """Whether one of these functions stands in a statement."""
    return any(node.get("function_name") in macros for node in nodes(tree))


def with_tables(
    connection: duckdb.DuckDBPyConnection, sql: str, tree: Any, macros: TableMacros
) -> str:
    """The statement with `selected('mixture.yaml')` and its like, where they stand as tables,
    replaced by the relations that `macros` make for them."""
    content = sql.encode()
    found = [
        node
        for node in nodes(tree)
        if node.get("type") == "TABLE_FUNCTION" and node["function"]["function_name"] in macros
    ]
    for node in sorted(found, key=lambda node: -int(node["query_location"])):
        function = node["function"]
        name, arguments = function["function_name"], function["arguments"]
        literals = [argument["expression"].get("literal", {}) for argument in arguments]
        if len(literals) != 1 or literals[0].get("kind") != "STRING":
            raise SqlError(f"{name}(...) takes one text in single quotes, as in {name}('a.yaml')")
        relation = quoted(macros[name](connection, literals[0]["text"]))
        begin = int(node["query_location"])  # in bytes of the statement
        end = begin + int(node["query_location_length"])  # of the alias, where there is one
        alias = quoted(node["alias"] or name)
        if node["column_name_alias"]:
            alias += f"({', '.join(map(quoted, node['column_name_alias']))})"
        content = content[:begin] + f"{relation} as {alias}".encode() + content[end:]
    return content.decode()


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def text_literal(text: str) -> str:
    return "'" + text.replace("'", "''") + "'"
