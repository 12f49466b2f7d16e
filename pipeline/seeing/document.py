"""A document on a screen: why first, then what was measured, then the text."""

from __future__ import annotations

import json
from typing import Any

from pipeline.amounts import counted

Row = dict[str, Any]

MAX_OTHERS = 10  # that are found so too
SHOWN_CHARS = 2_000  # of the text on a screen; --json gives all
SHOWN_EDITS = 12  # of a stage
SHOWN_OF_EDIT = 60  # characters
TABLES = ("copies", "pairs", "cluster", "holders", "substrings", "heldout", "also_found")
SHOWN_ROWS = 50  # of a table


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
    for line in (*found.get("mixture", ()), *found["verdict"]):
        print(line)
    for preset, rules in found["presets"].items():
        print(f"\n{preset}")
        for rule in rules:
            mark = {True: "pass", False: "FAIL", None: "no rule"}[rule["passes"]]
            value = number(rule["value"])
            print(f"  {mark:<8}{rule['signal']:<36}{value:>12}   {bounds(rule)}")
            if rule["passes"] is False:
                print(f"{'':<10}{rule['formula']}; bound: {rule['source']}")
    _show_edits(found["edits"])
    for table in TABLES:
        if found[table]:
            print(f"\n{table}")
            for item in found[table][:SHOWN_ROWS]:
                print("  " + "  ".join(f"{k}={number(v)}" for k, v in item.items()))
    print()
    for key, value in row.items():
        if isinstance(value, dict):
            fields = "  ".join(f"{k}={number(v)}" for k, v in value.items())
            print(f"{key:<22}{fields}")
        elif value is not None:
            print(f"{key:<22}{number(value)}")
    _show_text(text)


def bounds(rule: Row) -> str:
    """The bounds of a rule, as in `50 .. 100000`; `.. <0.2`: 0.2 itself fails."""
    below = "<" * rule["is_below"]
    return f"{number(rule['minimum'])} .. {below}{number(rule['maximum'])}"


def _show_edits(edits: list[Row]) -> None:
    """Of each stage what it would take away or replace, in bytes of the text."""
    for stage in dict.fromkeys(edit["stage"] for edit in edits):
        of_stage = [edit for edit in edits if edit["stage"] == stage]
        print(f"\n{stage}: {counted(len(of_stage), 'edit')}")
        for edit in of_stage[:SHOWN_EDITS]:
            now = json.dumps(edit["text"][:SHOWN_OF_EDIT], ensure_ascii=False)
            more = " ..." if len(edit["text"]) > SHOWN_OF_EDIT else ""
            new = edit["replacement"] or "nothing"
            place = f"{edit['start_byte']} .. {edit['end_byte']}"
            print(f"  {edit['kind']:<16}{place}  {now}{more} -> {new}")
        if len(of_stage) > SHOWN_EDITS:
            print(f"  ... {len(of_stage) - SHOWN_EDITS:,} more; --json shows all")


def _show_text(text: str) -> None:
    print(f"\n{text[:SHOWN_CHARS]}")
    if len(text) > SHOWN_CHARS:
        print(f"... {len(text) - SHOWN_CHARS:,} more characters; --json shows all")


def _others(also: list[Row]) -> str:
    if not also:
        return ""
    many = f"{len(also)} more" if len(also) < MAX_OTHERS else f"{MAX_OTHERS} or more others"
    return f"; {many} are found so too, the one of the first id is shown"


def number(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else "-" if value is None else str(value)
