"""Views by source and by domain, of the lines that documents repeat, and of labels.

What is dear is worked out when it is named: medians read every signal, `pass` those of its presets,
repeated lines all text.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from pipeline import measured
from pipeline.corpus import part_paths
from pipeline.finished import home
from pipeline.relations import FLAT_GROUPS, Corpus
from pipeline.seeing.labels import read as read_labels
from pipeline.syntax import quoted

SHORTEST_LINE = 6  # characters; shorter ones repeat by chance: "}", "Note:"


def sources(corpus: Corpus) -> str:
    """One row a source."""
    return f"{_places(corpus, 'source')} order by source"


def domains(corpus: Corpus) -> str:
    """One row a domain; documents without an address are one row, of NULL."""
    return f"{_places(corpus, 'domain')} order by documents desc, domain"


def lines(corpus: Corpus) -> str:
    """One row for each line that stands in more than one document of a domain or source."""
    del corpus
    return f"{_repeated('source, domain')} order by documents desc, line"


def labels(corpus: Corpus) -> str:
    """One row a label of a reviewer."""
    corpus.connection.register("labels of the corpus", read_labels(home(corpus.root)))
    return 'select * from "labels of the corpus"'


def _repeated(by: str) -> str:
    return (
        f"select {by}, line, count(distinct id) as documents from (select id, source, domain, "
        "trim(unnest(string_split(text, chr(10)))) as line from documents) "
        f"where length(line) >= {SHORTEST_LINE} group by all having count(distinct id) > 1"
    )


def _places(corpus: Corpus, by: str) -> str:
    tokens = "sum(num_tokens)::bigint" if corpus.manifest.get("tokenizer") else "null::bigint"
    columns = [
        by,
        "count(*) as documents",
        "sum(num_bytes)::bigint as bytes",
        f"{tokens} as tokens",
        "avg(kept::int) as kept_share",
        "avg((duplicate or near_duplicate)::int) as duplicate_share",
    ]
    if corpus.asked("median"):
        columns.append(f"{_medians(corpus)} as median")
    for name, shares in (("pass", _passing(corpus)), ("flagged", _flagged(corpus))):
        if shares and corpus.asked(name):
            columns.append(f"struct_pack({shares}) as {name}")
    totals = f"select {', '.join(columns)} from documents group by {by}"
    also, joins = [], []
    if corpus.asked("compression_ratio"):
        compressed = f"compression of {by}"
        corpus.connection.register(compressed, COMPRESSION[by](corpus))
        also.append("compression_ratio")
        joins.append(
            f"left join {quoted(compressed)} as c on c.place is not distinct from totals.{by}"
        )
    if corpus.asked("most_repeated_line"):
        also += ["most_repeated_line", "documents_with_it"]
        joins.append(
            f"left join (select {by} as place, arg_max(line, documents) as most_repeated_line, "
            f"max(documents) as documents_with_it from ({_repeated(by)}) group by 1) as repeated "
            f"on repeated.place is not distinct from totals.{by}"
        )
    return f"select {', '.join(['totals.*', *also])} from ({totals}) as totals {' '.join(joins)}"


def _passing(corpus: Corpus) -> str:
    """Of each preset, the share of the documents that it judges which pass it."""
    return ", ".join(f"{quoted(p)} := avg({quoted(p)}.pass::int)" for p in corpus.presets)


def _flagged(corpus: Corpus) -> str:
    """Of each detector of `clean`, the share of the documents that it judges which it flags."""
    flags = measured.flags(corpus.groups)
    return ", ".join(f"{quoted(group)} := avg(({flag})::int)" for group, flag in flags.items())


def _medians(corpus: Corpus) -> str:
    """A struct of structs: the median of every number that was measured."""
    groups = []
    for name, fields in corpus.numbers.items():
        prefix = "" if name in FLAT_GROUPS else f"{quoted(name)}."
        if fields:
            medians = ", ".join(f"{quoted(f)} := median({prefix}{quoted(f)})" for f in fields)
            groups.append(f"{quoted(name)} := struct_pack({medians})")
    return f"struct_pack({', '.join(groups)})"


def _stored(corpus: Corpus) -> pa.Table:
    """Of each source, bytes of text for a byte of it as zstd has it in `documents`: 3 is usual, 10
    is a template. A part holds one source, so the footers of the files say it."""
    raw, stored = Counter[str](), Counter[str]()
    for path in part_paths(corpus.root, "documents"):
        file = pq.ParquetFile(path)
        groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
        if not groups:
            continue
        columns = [groups[0].column(i).path_in_schema for i in range(groups[0].num_columns)]
        source = groups[0].column(columns.index("source")).statistics.min
        for group in groups:
            text = group.column(columns.index("text"))
            raw[source] += text.total_uncompressed_size
            stored[source] += text.total_compressed_size
    return _ratios(raw, stored)


def _compressed(corpus: Corpus) -> pa.Table:
    """The same of each domain: its texts in a row group, compressed together as they are stored."""
    raw, stored = Counter[str | None](), Counter[str | None]()
    zstd = pa.Codec("zstd", compression_level=1)
    for path in part_paths(corpus.root, "documents"):
        file = pq.ParquetFile(path)
        for number in range(file.num_row_groups):
            group = file.read_row_group(number, columns=["domain", "text"])
            group = group.filter(pc.field("text").is_valid())  # null: forgotten
            texts = group.group_by("domain").aggregate([("text", "list")])
            for row in texts.to_pylist():
                text = "".join(row["text_list"]).encode()
                raw[row["domain"]] += len(text)
                stored[row["domain"]] += len(zstd.compress(text))
    return _ratios(raw, stored)


def _ratios(raw: Counter[Any], stored: Counter[Any]) -> pa.Table:
    ratios = [raw[place] / stored[place] for place in raw]
    return pa.table({"place": pa.array(list(raw), pa.string()), "compression_ratio": ratios})


COMPRESSION = {"source": _stored, "domain": _compressed}
