"""How often `hosts.random_label` calls real hosts random and random ones ordinary, and how many
real pages the preset `hacked` flags. Numbers only.

    python benchmarks/hosts.py FOLDER ...

Real: the hosts of all http addresses in FOLDER/*.jsonl.gz, each once. Random: labels of letters,
of letters and digits, and of hexadecimal digits, 2,000 of each length, by a fixed seed. Pages:
those of FOLDER/*.warc.gz, at their own address, at one of an institution, at a random one.
"""

from __future__ import annotations

import argparse
import gzip
import random
import re
import string
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

import duckdb
import pyarrow as pa

from filters.addresses import parse
from filters.hosts import measure, randomness
from filters.normalize import normalize
from filters.presets import expression, needs
from filters.presets.hacked import RANDOM_FROM
from filters.segments import Texts
from filters.signals import GROUPS
from pipeline.readers import Piece, Record
from pipeline.readers.formats import read
from pipeline.settings import Input

ALPHABETS = {
    "letters": string.ascii_lowercase,
    "letters and digits": string.ascii_lowercase + string.digits,
    "hexadecimal": "0123456789abcdef",
}
LENGTHS = (5, 6, 8, 12)
TIMES = 2_000
_ADDRESS = re.compile(r"https?://[A-Za-z0-9._-]+")


def hosts(folders: Iterable[Path]) -> list[str]:
    found: set[str] = set()
    for path in sorted(path for folder in folders for path in folder.glob("*.jsonl.gz")):
        with gzip.open(path, "rt", encoding="utf-8") as lines:
            found.update(parse(url)[0] for line in lines for url in _ADDRESS.findall(line))
    return sorted(found - {""})


def pages(folders: Iterable[Path]) -> Iterator[Record]:
    for path in sorted(path for folder in folders for path in folder.glob("*.warc.gz")):
        for item in read(Piece(str(path), path.name), Input(source="p", files="*"), "resiliparse"):
            if isinstance(item, Record):
                yield item


def flagged(found: Sequence[Record]) -> Iterator[tuple[str, int, int]]:
    """(at which address, pages that are judged, pages flagged)."""
    batch = Texts(pa.array([normalize(page.text)[0] for page in found], pa.large_string()))
    language = GROUPS["language"].measure(batch, {})
    columns = {name: pa.array(column) for name, column in language.items()}
    own = [page.fields["domain"] for page in found]
    at = {
        "its own": own,
        "x.edu.cn": ["x.edu.cn"] * len(own),
        "qxk7zv.com": ["qxk7zv.com"] * len(own),
    }
    for named, domains in at.items():
        read_columns = columns | {"domain": pa.array(domains, pa.string())}
        table = columns | {"kind": pa.array(["web"] * len(own))}
        for group in sorted(needs("hacked") - {"language"}):
            made = GROUPS[group].measure(batch, read_columns)
            table[group] = pa.table({n: pa.array(c) for n, c in made.items()}).to_struct_array()
        with duckdb.connect() as connection:
            connection.register("documents", pa.table(table))
            asked = (
                f"select count(p), count(*) filter (not p) from (select {expression('hacked')} as p"
            )
            judged, fails = connection.execute(f"{asked} from documents)").fetchall()[0]
        yield named, judged, fails


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("folders", nargs="+", type=Path)
    folders = parser.parse_args().folders
    real = hosts(folders)
    columns = {"domain": pa.array(real, pa.string())}
    scores = pa.array(measure(Texts(columns["domain"]), columns)["random_label"]).to_pylist()
    share = sum(score >= RANDOM_FROM for score in scores) / max(len(scores), 1)
    print(f"real hosts: {len(real):,}, called random {100 * share:.1f} %")
    generator = random.Random(0)
    for name, alphabet in ALPHABETS.items():
        for length in LENGTHS:
            labels = ("".join(generator.choices(alphabet, k=length)) for _ in range(TIMES))
            found = sum(randomness(label) >= RANDOM_FROM for label in labels)
            print(f"{name}, {length} characters: called random {100 * found / TIMES:.0f} %")
    if found_pages := list(pages(folders)):
        for named, judged, fails in flagged(found_pages):
            print(f"pages at {named}: {judged:,} judged, {fails:,} hacked")


if __name__ == "__main__":
    main()
