"""The faithful columns against datatrove itself, and our own rules against both, in one run.

    ASSAY_CORPUS=... [ASSAY_SAMPLE=...] python benchmarks/faithful.py [--documents 500]

For every English document: does our splitter give datatrove's words; is each signal of
`gopher_faithful`, `c4_faithful` and `fineweb_faithful` the number that datatrove compares with its
threshold, to the bit; does every filter give the same verdict, with the same reason. Then, rule by
rule, among the documents that datatrove keeps and among those it drops, how many fare the same by
its formulas over our words and sentences, and by our own preset; and where that are under 99 %, how
many for which cause (faithful_causes.py). The environment of datatrove is that of peers.py. Two CPU
minutes for 10 MB on either side, one for the causes.
"""

from __future__ import annotations

import argparse
import functools
import gzip
import hashlib
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pyarrow as pa
from environments import environment
from faithful_causes import CAUSES, FORMULAS, Splits, cause
from peers import HERE, REQUIREMENTS
from texts import files

from filters import faithful, faithful_groups, faithful_rules, spacy_words, text
from filters.presets import PRESETS, Bound
from filters.segments import Texts
from filters.signals import GROUPS

Values = dict[str, dict[str, Any]]  # group -> signal -> value

# datatrove's filter -> the group and the rules that stand for it.
FILTERS = {
    "gopher_repetition": ("gopher", faithful_rules.GOPHER_REPETITION),
    "gopher_quality": ("gopher", faithful_rules.GOPHER_QUALITY),
    "c4": ("c4", faithful_rules.C4),
    "c4_any_end": ("c4", faithful_rules.C4_ANY_END),
    "fineweb": ("fineweb", faithful_rules.FINEWEB),
}
# Signals of ours that stand for another: see filters/fineweb.py.
ELSEWHERE = {"fineweb.dup_line_char_share": "gopher.dup_line_char_share"}
BATCH = 200
ENOUGH = 0.99  # of the documents agree: no cause is asked for


class Document(NamedTuple):
    text: str
    theirs: dict[str, Any]  # of datatrove_signals.py
    same: Values  # ours, with datatrove's words
    words: Values  # ours, with our words
    own: Values  # our own groups


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__,
        prog="benchmarks/faithful.py",
        formatter_class=argparse.RawTextHelpFormatter,
    )
    parser.add_argument("--documents", type=int, help="of each file; default: all")
    options = parser.parse_args()
    paths = files("en")
    if "ASSAY_SAMPLE" in os.environ:
        paths = [*paths, Path(os.environ["ASSAY_SAMPLE"]) / "en.jsonl.gz"]
    found: list[Document] = []
    for path in paths:
        texts = list(_texts(path))[: options.documents]
        found += _documents(texts, _datatrove(texts))
        print(f"{path.name}: {len(texts):,} documents", flush=True)
    _print_equality(found)
    _print_verdicts(found)
    _print_agreement(found)
    _print_causes(found)
    return 0


def _texts(path: Path) -> Iterator[str]:
    with gzip.open(path) as stream:
        for line in stream:
            if found := orjson.loads(line)["text"]:
                yield found


def _datatrove(texts: Iterable[str]) -> list[dict[str, Any]]:
    """What datatrove finds in each text."""
    rows = [orjson.dumps({"id": str(at), "text": found}) for at, found in enumerate(texts)]
    variables = {**os.environ, "HF_HUB_OFFLINE": "1"}
    variables.pop("PYTHONPATH", None)
    with tempfile.TemporaryFile() as stream:
        stream.write(b"\n".join(rows))
        stream.seek(0)
        command = [environment("datatrove", REQUIREMENTS), str(HERE / "datatrove_signals.py")]
        done = subprocess.run(
            command, stdin=stream, stdout=subprocess.PIPE, env=variables, check=True
        )
    return [orjson.loads(line) for line in done.stdout.splitlines()]


def _documents(texts: list[str], theirs: list[dict[str, Any]]) -> Iterator[Document]:
    for first in range(0, len(texts), BATCH):
        batch = Texts(pa.array(texts[first : first + BATCH]))
        columns = {"lang": pa.array(["en"] * len(batch))}
        same = [
            pa.table(dict(measure(batch, columns))).to_pylist()
            for measure in faithful_groups.MEASURES.values()
        ]
        own = [
            pa.table(dict(GROUPS[name].measure(batch, columns))).to_pylist()
            for name in faithful_groups.MEASURES
        ]
        for at, found in enumerate(texts[first : first + BATCH]):
            yield Document(
                found,
                theirs[first + at],
                dict(zip(faithful_groups.MEASURES, (rows[at] for rows in same), strict=True)),
                _with(found, text.words, lambda line: len(text.sentences(line))),
                dict(zip(faithful_groups.MEASURES, (rows[at] for rows in own), strict=True)),
            )


def _with(found: str, words: Callable[[str], list[str]], sentences: Callable[[str], int]) -> Values:
    split = words(found)
    any_end = faithful.c4(found, sentences, any_end=True)
    return {
        "gopher": faithful.gopher(found, split),
        "c4": faithful.c4(found, sentences, any_end=False)
        | {f"{name}{faithful_groups.ANY_END}": value for name, value in any_end.items()},
        "fineweb": faithful.fineweb(found, split),
    }


def _print_equality(found: list[Document]) -> None:
    splits = sum(
        hashlib.sha256("\n".join(spacy_words.words(d.text)).encode()).hexdigest()
        == d.theirs["words"]
        for d in found
    )
    print(f"\nsame words as datatrove: {splits:,} of {len(found):,} documents")
    print(f"\n{'signal':<44}{'documents':>10}{'equal':>8}  largest difference")
    for group, columns in faithful_groups.COLUMNS.items():
        for name in columns:
            pairs = [
                (d.theirs["signals"][group][name], d.same[group][name])
                for d in found
                if name in d.theirs["signals"][group]  # not where it stopped before
            ]
            if not pairs:
                continue  # only its rule `empty` asks for it
            equal = sum(a == b for a, b in pairs)
            largest = max(abs(a - b) for a, b in pairs)
            print(f"{group + '_faithful.' + name:<44}{len(pairs):>10,}{equal:>8,}  {largest:.3g}")


def _print_verdicts(found: list[Document]) -> None:
    print(f"\n{'filter':<20}{'documents':>10}{'same verdict and reason':>26}")
    for name, (group, rules) in FILTERS.items():
        ours = [faithful_rules.first_reason(rules, d.same[group]) or "keep" for d in found]
        same = sum(a == d.theirs["verdicts"][name] for a, d in zip(ours, found, strict=True))
        print(f"{name:<20}{len(found):>10,}{same:>26,}")


def _print_agreement(found: list[Document]) -> None:
    print("\nagreement, rule by rule: of the documents that datatrove's rule keeps (drops),")
    print("how many its formula keeps (drops) over our words, and how many our own rule")
    print(f"{'rule':<34}{'kept':>8}{'words':>9}{'own':>9}{'dropped':>10}{'words':>9}{'own':>9}")
    for filter_name, (group, rules) in FILTERS.items():
        for signal, least, most, reason in rules:
            bound = Bound(least, most, "")
            own = _own_rule(group, signal, least is not None)
            counts: Counter[tuple[bool, str]] = Counter()
            for d in found:
                kept = _passes(bound, d.same[group][signal])
                counts[kept, "all"] += 1
                counts[kept, "words"] += _passes(bound, d.words[group][signal]) == kept
                if own:
                    counts[kept, "own"] += _passes(own[1], _own(d, own[0])) == kept
            shares = "".join(
                f"{counts[kept, 'all']:>{width},}"
                + _percent(counts[kept, "words"], counts[kept, "all"])
                + (_percent(counts[kept, "own"], counts[kept, "all"]) if own else f"{'-':>9}")
                for kept, width in ((True, 8), (False, 10))
            )
            label = f"{reason} (any end)" if filter_name == "c4_any_end" else reason
            print(f"{label:<34}{shares}")


def _print_causes(found: list[Document]) -> None:
    print(
        f"\nwhere under {ENOUGH:.0%} of the kept (dropped) agree: documents by cause; `formula` are"
    )
    print("those that only our own rule decides otherwise, and datatrove's over our words does not")
    heads = (*CAUSES, "own rule", "formula")
    print(f"{'rule':<34}{'':<10}{'of':>8}{'differ':>8}{''.join(f'{head:>10}' for head in heads)}")
    splits = Splits()
    for filter_name, (group, rules) in FILTERS.items():
        for signal, least, most, reason in rules:
            bound = Bound(least, most, "")
            own = _own_rule(group, signal, least is not None)
            for kept in (True, False):
                side = [d for d in found if _passes(bound, d.same[group][signal]) == kept]
                few = (1 - ENOUGH) * len(side)
                words = [d for d in side if _passes(bound, d.words[group][signal]) != kept]
                ours = [d for d in side if own and _passes(own[1], _own(d, own[0])) != kept]
                if len(words) <= few and len(ours) <= few:
                    continue
                counts: Counter[str] = Counter()
                if group in FORMULAS and len(words) > few:
                    passes = functools.partial(_passes, bound)
                    counts.update(cause(splits, d.text, group, signal, passes, kept) for d in words)
                formula = sum(_passes(bound, d.words[group][signal]) == kept for d in ours)
                numbers = (*(counts[name] for name in CAUSES), len(ours), formula)
                label = f"{reason} (any end)" if filter_name == "c4_any_end" else reason
                print(
                    f"{label:<34}{'kept' if kept else 'dropped':<10}{len(side):>8,}{len(words):>8,}"
                    + "".join(f"{number:>10,}" for number in numbers)
                )


def _own(document: Document, signal: tuple[str, str]) -> float:
    group, name = signal
    value: float = document.own[group][name]
    return value


def _own_rule(group: str, signal: str, lower: bool) -> tuple[tuple[str, str], Bound] | None:
    """Our signal of the same meaning, and its lower or upper bound for English."""
    ours = ELSEWHERE.get(f"{group}.{signal}", f"{group}.{signal}")
    for rule in PRESETS[group]:
        if rule.signal == ours and "en" in rule.bounds:
            own_group, _, name = ours.partition(".")
            bound = rule.bounds["en"]
            half = (bound.minimum, None) if lower else (None, bound.maximum)
            return (own_group, name), Bound(*half, bound.source)
    return None


def _passes(bound: Bound, value: float) -> bool:
    return (bound.minimum is None or value >= bound.minimum) and (
        bound.maximum is None or value <= bound.maximum
    )


def _percent(part: int, whole: int) -> str:
    return f"{100 * part / whole:>8.2f}%" if whole else f"{'-':>9}"


if __name__ == "__main__":
    sys.exit(main())
