"""Predicates that stay predicates.

Tried on DuckDB 2.0: `true); copy (...) to '...'; select (1=1` breaks out of a string that is put
together, and `a) or (b` out of its brackets. So a predicate is parsed alone and printed again from
its syntax tree.
"""

from __future__ import annotations

import json
import re
from functools import cache
from typing import Any

from pipeline.syntax import SqlError, nodes, parser, quoted, text_literal, tree_of

# What a predicate may consist of. No SUBQUERY, WINDOW, STAR, PARAMETER, POSITIONAL_REFERENCE.
EXPRESSIONS = {"COLUMN_REF", "CONSTANT", "COMPARISON", "CONJUNCTION", "OPERATOR", "FUNCTION",
               "CAST", "CASE", "BETWEEN", "COLLATE", "LAMBDA", "TYPE"}  # fmt: skip
BRACKETED = {"COMPARISON", "CONJUNCTION", "BETWEEN"}  # DuckDB prints these so
# Of DuckDB's macros, those that are plain functions of their arguments; scalar functions must be
# CONSISTENT in duckdb_functions().
MACROS = re.compile(r"(list|array|map)_\w+|split_part|if|nullif|fdiv")
# CONSISTENT by DuckDB's word, but not a function of the document alone, or not for a predicate.
NOT_FOR_PREDICATES = re.compile(r"__internal.*|json_(de)?serialize.*|version|age|error|.*_log.*")


def predicate(expression: str) -> str:
    """A WHERE expression, checked, printed from its syntax tree, in brackets.

    Raises:
        SqlError: not one expression, or with modifiers, subqueries, aggregates, windows, or
            functions whose value is not determined by the document.
    """
    return f"({_printed(_expression_tree(expression))})"


def conjuncts(expression: str) -> list[str]:
    """What `and` joins in a predicate, each as SQL: all must be true."""
    tree = _expression_tree(expression)
    root = tree["statements"][0]["node"]
    found, left = [], list(root["select_list"])
    while left:
        node = left.pop(0)
        if node.get("type") == "CONJUNCTION_AND":
            left = node["children"] + left
            continue
        root["select_list"] = [node]
        text = _printed(tree)
        found.append(text[1:-1] if node["class"] in BRACKETED else text)
    return found


def _printed(tree: dict[str, Any]) -> str:
    text = parser().execute("select json_deserialize_sql(?::json)", [json.dumps(tree)]).fetchone()
    assert text is not None
    return str(text[0]).removeprefix("SELECT ")


def predicate_columns(expression: str) -> list[str]:
    """The columns that a predicate reads, as SQL, in the order in which they first stand."""
    found = list(nodes(_expression_tree(expression)))
    bound = {
        parameter["column_names"][0]
        for node in found
        if node.get("class") == "LAMBDA"
        for parameter in nodes(node["lhs"])
        if parameter.get("class") == "COLUMN_REF"
    }
    keys = {}  # of meta['author']
    for node in found:
        if node.get("type") in ("ARRAY_EXTRACT", "STRUCT_EXTRACT"):
            parent, key = node["children"]
            if key.get("literal", {}).get("kind") == "STRING":
                keys[id(parent)] = f"[{text_literal(key['literal']['text'])}]"
    columns = [
        ".".join(map(_quoted_where_needed, node["column_names"])) + keys.get(id(node), "")
        for node in found
        if node.get("class") == "COLUMN_REF" and node["column_names"][0] not in bound
    ]
    return list(dict.fromkeys(columns))


def _expression_tree(expression: str) -> dict[str, Any]:
    try:
        tree = tree_of(f"SELECT {expression}")
    except SqlError as error:
        raise SqlError(f"predicate {expression!r}: {error}") from None
    plain = tree_of("SELECT 1")
    root, empty = tree["statements"][0]["node"], plain["statements"][0]["node"]
    for key, value in empty.items():
        if key != "select_list" and root.get(key) != value:
            raise SqlError(
                f"predicate {expression!r}: one expression is expected, nothing after it ({key})"
            )
    if len(tree["statements"]) != 1 or len(root["select_list"]) != 1:
        raise SqlError(f"predicate {expression!r}: one expression is expected; join with `and`")
    if root["select_list"][0]["alias"]:
        raise SqlError(f"predicate {expression!r}: an expression has no alias; remove it")
    for node in nodes(root["select_list"]):
        kind = node.get("class")
        if kind is not None and kind not in EXPRESSIONS:
            raise SqlError(
                f"predicate {expression!r}: {kind.lower()} is not allowed here; only columns, "
                "constants, operators and functions of one document"
            )
        if kind == "FUNCTION" and not _is_plain(node["function_name"].lower()):
            raise SqlError(
                f"predicate {expression!r}: function {node['function_name']} is not allowed here; "
                "its value does not follow from one document (or there is no such function)"
            )
    return tree


@cache
def _plain_functions() -> frozenset[str]:
    rows = parser().execute(
        "select function_name from duckdb_functions() group by 1 having bool_or("
        "function_type = 'scalar' and stability = 'CONSISTENT' or function_type = 'macro' and "
        f"regexp_full_match(function_name, {text_literal(MACROS.pattern)}))"
    )
    return frozenset(name for (name,) in rows.fetchall())


def _is_plain(name: str) -> bool:
    return name in _plain_functions() and NOT_FOR_PREDICATES.fullmatch(name) is None


def _quoted_where_needed(name: str) -> str:
    plain = re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]*", name) and name.lower() not in _keywords()
    return name if plain else quoted(name)


@cache
def _keywords() -> frozenset[str]:
    query = "select keyword_name from duckdb_keywords() where keyword_category = 'reserved'"
    return frozenset(word for (word,) in parser().execute(query).fetchall())
