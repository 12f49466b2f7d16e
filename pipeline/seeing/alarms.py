"""What a person should look at before training: one phrase over few domains, one template.

Thresholds are ours: on ordinary sources (docs, laws, forums of the sample) nothing is told but page
chrome, which `edits: [boilerplate]` takes out.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from pipeline.amounts import counted
from pipeline.seeing.asking import Row, rows

FEW_DOMAINS = 3  # of a phrase that bursts ...
MANY_DOMAINS = 10  # ... in a source of at least so many
MANY_DOCUMENTS = 20  # in which a phrase stands
TEMPLATE_SHARE = 0.3  # of a source's documents with the same line
CLUSTER_SHARE = 0.1  # of a source's documents in one cluster of near duplicates
SHOWN = 5  # of a kind
PHRASE_BYTES = 24  # of a phrase inside of lines, at least: 8 Han, four English words

_PHRASES = f"""
with totals as (select source, count(*) as documents, count(distinct domain) as domains
                from documents group by 1),
phrases as (select source, line, sum(documents)::bigint as documents,
                   count(distinct domain) as domains from lines group by all)
select p.source, p.line, p.documents, p.domains, t.documents as of_documents,
       p.documents >= {TEMPLATE_SHARE} * t.documents as is_template
from phrases as p join totals as t using (source)
where p.documents >= {MANY_DOCUMENTS} and (p.documents >= {TEMPLATE_SHARE} * t.documents
      or (p.domains between 1 and {FEW_DOMAINS} and t.domains >= {MANY_DOMAINS}))
order by p.documents desc, p.line"""
# Of the sources that could burst, what stands between marks: letters, digits, spaces, apostrophes.
_INSIDE = f"""
with totals as (select source, count(*) as documents, count(distinct domain) as domains
                from documents group by 1 having count(distinct domain) >= {MANY_DOMAINS}),
pieces as (select source, domain, id, trim(unnest(string_split_regex(
             text, '[^\\p{{L}}\\p{{M}}\\p{{N}} ''’]+'))) as phrase
           from documents where source in (select source from totals)),
phrases as (select source, phrase, count(distinct id)::bigint as documents,
                   count(distinct domain) as domains
            from pieces where strlen(phrase) >= {PHRASE_BYTES} group by all)
select p.source, p.phrase, p.documents, p.domains, t.documents as of_documents
from phrases as p join totals as t using (source)
where p.documents >= {MANY_DOCUMENTS} and p.domains between 1 and {FEW_DOMAINS}
order by p.documents desc, p.phrase"""
_CLUSTERS = f"""
with totals as (select source, count(*) as documents from documents group by 1),
found as (select d.source, c.cluster, count(*) as documents
          from documents as d join clusters as c using (content_hash) group by all)
select f.source, f.cluster, f.documents, t.documents as of_documents
from found as f join totals as t using (source)
where f.documents >= {MANY_DOCUMENTS} and f.documents >= {CLUSTER_SHARE} * t.documents
order by f.documents desc, f.cluster"""


def alarms(root: Path) -> list[str]:
    """One line each; reads all text."""
    phrases = rows(root, _PHRASES)
    templates = [row for row in phrases if row["is_template"]]
    bursts = [row for row in phrases if not row["is_template"]]
    # A phrase of a line that was told is no news.
    inside = [
        row
        for row in rows(root, _INSIDE)
        if not any(row["phrase"] in line["line"] for line in phrases)
    ]
    return [
        *_shown(templates, lambda row: f"the line {row['line'][:60]!r} stands in {_share(row)}"),
        *_shown(
            bursts,
            lambda row: (
                f"the line {row['line'][:60]!r} stands in {_share(row)}, of "
                f"{counted(row['domains'], 'domain')}"
            ),
        ),
        *_shown(
            inside,
            lambda row: (
                f"the phrase {row['phrase'][:60]!r} stands in {_share(row)}, of "
                f"{counted(row['domains'], 'domain')}"
            ),
        ),
        *_shown(
            rows(root, _CLUSTERS),
            lambda row: f"near copies of one text are {_share(row)}, cluster {row['cluster'][:12]}",
        ),
    ]


def _share(row: Row) -> str:
    documents = counted(row["documents"], "document")
    return f"{documents} ({row['documents'] / row['of_documents']:.0%}) of source {row['source']}"


def _shown(found: list[Row], line: Callable[[Row], str]) -> list[str]:
    more = [f"... and {len(found) - SHOWN} more of this kind"] if len(found) > SHOWN else []
    return [*map(line, found[:SHOWN]), *more]
