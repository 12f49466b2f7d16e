from __future__ import annotations

from pipeline.predicates import conjuncts, predicate, predicate_columns


def test_predicates_are_printed_from_their_tree() -> None:
    assert predicate("lang = 'en' and gopher.pass") == "(((lang = 'en') AND gopher.pass))"
    assert predicate("a or /* x */ b -- c") == "((a OR b))"
    assert predicate("text like '%''); drop%'") == "((\"text\" ~~ '%''); drop%'))"
    assert predicate("\"select\" > 1 or lang = '中文'") == "(((\"select\" > 1) OR (lang = '中文')))"


def test_predicate_columns() -> None:
    assert predicate_columns("lang = 'en' and (gopher.num_words > 3 or lang is null)") == [
        "lang",
        "gopher.num_words",
    ]
    assert predicate_columns("meta['the author'] = 'x' and \"select\".b > 1") == [
        "meta['the author']",
        '"select".b',
    ]
    assert predicate_columns("list_filter([num_chars], x -> x > 1) = [1]") == ["num_chars"]
    assert predicate_columns("true") == []


def test_conjuncts_are_what_and_joins() -> None:
    found = conjuncts("lang = 'zh' and (num_chars > 1 and gopher.pass) and (a or b)")
    assert found == ["lang = 'zh'", "num_chars > 1", "gopher.pass", "a OR b"]
    assert conjuncts("true or false and x") == ["true OR (false AND x)"]
    assert conjuncts("(a > 1) between (b) and (c) and (a) in (1, 2) and not (x) and (y)::bool") == [
        "(a > 1) BETWEEN b AND c",
        "(a IN (1, 2))",
        "(NOT x)",
        "CAST(y AS bool)",
    ]
    for part in found:
        assert conjuncts(part) == [part]
