"""Verbs that ask a corpus and may name a mixture: `assay sql`, `inspect` and `report`. What reads
mixtures is loaded when one is named: it takes half a second.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import duckdb
import pyarrow as pa

from pipeline.config import ConfigError
from pipeline.syntax import quoted


def sql(argv: list[str]) -> int:
    from pipeline import sql_commands

    return sql_commands.main(argv, {"selected": selected})


def inspect(argv: list[str]) -> int:
    from pipeline.inspect import main

    return main(argv, _explain)


def report(argv: list[str]) -> int:
    from pipeline.report_commands import main

    return main(argv, _predicates)


def _explain(file: str, root: Path, found: dict[str, Any]) -> list[str]:
    from mixtures.explain import explain

    return explain(file, root, found)


def _predicates(file: str, root: Path) -> dict[str, tuple[str, str | None]]:
    from mixtures.spec import load_mixture, sources_of

    found = sources_of(load_mixture(file), root)
    return {name: (source.where, source.missing) for name, source in found.items()}


def selected(connection: duckdb.DuckDBPyConnection, mixture_path: str) -> str:
    """Make the relation of `selected('mixture.yaml')`: the documents of this corpus that the
    mixture gives to a source, with `mixture_source`. Returns its name."""
    [(allowed,)] = connection.execute("select current_setting('allowed_directories')").fetchall()
    folders = {Path(folder) for folder in allowed}  # what the connection may read: its corpus
    rows, view = f"rows of {mixture_path}", f"selected {mixture_path}"
    connection.register(rows, _chosen(mixture_path, folders))
    connection.execute(
        f"create or replace temp view {quoted(view)} as select documents.*, mixture_source "
        f"from documents join {quoted(rows)} using (id)"
    )
    return view


def _chosen(mixture_path: str, folders: set[Path]) -> pa.Table:
    """Ids (hex) and sources of the documents that a mixture takes from the corpus in `folders`."""
    from mixtures.select import select
    from mixtures.spec import load_mixture

    mixture = load_mixture(mixture_path)
    names = [n for n, root in mixture.corpora.items() if Path(root).resolve() in folders]
    if not names:
        raise ConfigError(
            f"{mixture_path} does not read this corpus, but {', '.join(mixture.corpora.values())}"
        )
    ids: list[str] = []
    sources: list[str] = []
    for name, documents in select(mixture).documents.items():
        if mixture.sources[name].corpus in names:
            ids += [document.tobytes().hex() for document in documents.id]
            sources += [name] * len(documents)
    columns = {"id": pa.array(ids, pa.string()), "mixture_source": pa.array(sources, pa.string())}
    return pa.table(columns)
