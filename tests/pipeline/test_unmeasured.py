"""What is said of a signal group or preset that a corpus does not have."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest
import tiny_corpus

from pipeline.corpus import CorpusError
from pipeline.files import read_json, write_json
from pipeline.measured import presets_of
from pipeline.seeing.rules import count
from pipeline.sql import ask
from pipeline.syntax import SqlError
from pipeline.unmeasured import told

ADS = (
    "signal group 'ads' was not measured; write `signals: [default, ads]` into corpus.yaml and "
    "call `assay prepare`"
)
QUALITY = (
    "signal group 'quality' was not measured; write `classifiers: {quality: models/quality.bin}` "
    "into corpus.yaml and call `assay prepare`"
)
NEAREST = "no signal group or preset {!r}; did you mean {!r}?"
C4 = (
    "preset 'c4' needs the signals c4, which were not measured; write `signals: [default, c4]` "
    "into corpus.yaml and call `assay prepare`"
)


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """With the groups language and gopher."""
    return tiny_corpus.write(tmp_path_factory.mktemp("tiny"))


def refused(root: Path, sql: str) -> str:
    with pytest.raises(SqlError) as caught, ask(root, sql, macros={}, timeout_seconds=20):
        pass
    return str(caught.value)


@pytest.mark.parametrize(
    ("sql", "remedy"),
    [
        ("select ads.score from documents", ADS),
        ("select id from documents where ADS.score > 0.1", ADS),
        ("select ads from documents", ADS),
        ("select quality.score from documents", QUALITY),
        ("select avg(c4.pass::int) from documents", C4),
        ("select pass.c4 from sources", C4),
        ("select source, flagged.ads from sources", ADS),
        ("select goper.pass from documents", NEAREST.format("goper", "gopher")),
        ("select adds.score from documents", NEAREST.format("adds", "ads")),
    ],
)
def test_sql_says_what_is_missing(root: Path, sql: str, remedy: str) -> None:
    assert refused(root, sql).endswith(f"\n{remedy}")


def test_a_text_without_quotes_is_still_told_as_such(root: Path) -> None:
    for word in ("zh", "langg"):
        message = refused(root, f"select 1 from documents where lang = {word}")
        assert message.endswith(f"\nIf a text is meant: it stands in single quotes, '{word}'")


def test_the_report_of_rules_says_the_same(root: Path) -> None:
    with pytest.raises(CorpusError) as caught:
        count(root, "c4")
    assert str(caught.value) == f"{root}: {C4}"


def test_each_group_has_its_line(tmp_path: Path) -> None:
    root = tiny_corpus.write(tmp_path)
    found = read_json(root / "corpus.json")
    settings = found["settings"] | {"signals": ["default", "ads"], "faithful": ["c4"]}
    write_json(root / "corpus.json", found | {"settings": settings})
    assert "`signals: [default, ads, markup]`" in told(root, "markup")
    assert "`faithful: [c4, gopher]`" in told(root, "gopher_faithful")
    for key in ("urls", "perplexity", "lists"):
        assert f"; write `{key}: " in told(root, key)
    assert told(root, "gopher") == ""
    assert told(root, "language") == ""
    assert told(root, "nothing") == ""


def test_a_corpus_of_an_earlier_version_stays_readable(tmp_path: Path) -> None:
    """Its group has not all columns that a preset reads now."""
    root = tiny_corpus.write(tmp_path)
    for path in (root / "signals/gopher").iterdir():
        pq.write_table(pq.read_table(path).drop_columns("num_stop_words"), path)
    assert presets_of(root) == ()
    with ask(root, "from documents", macros={}, timeout_seconds=20) as batches:
        found = batches.read_all()
    assert "num_stop_words" not in [field.name for field in found.schema.field("gopher").type]
    older = "reads signals that an earlier version did not measure; call `assay prepare`: it"
    assert told(root, "gopher").startswith(f"preset 'gopher' {older}")
    with pytest.raises(CorpusError, match="earlier version"):
        count(root, "gopher")
    assert older in refused(root, "select avg(gopher.pass::int) from documents")
