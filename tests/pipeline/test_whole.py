"""What readers say of damaged files: one line with the file and the remedy, nothing changed."""

from __future__ import annotations

import random
import shutil
from pathlib import Path

import pyarrow as pa
import pytest

from mixtures import questions
from pipeline import whole
from pipeline.commits import record_path
from pipeline.corpus import CorpusError
from pipeline.finished import reading
from pipeline.sql_commands import main
from pipeline.syntax import SqlError

QUERIES = {
    "documents": "select text, num_bytes from documents",
    "signals/gopher": "select avg(gopher.dup_line_char_share) from documents",
}


@pytest.fixture
def corpus(many_parts: Path, tmp_path: Path) -> Path:
    return Path(shutil.copytree(many_parts, tmp_path / "web"))


@pytest.mark.parametrize("table", QUERIES)
def test_sql_over_damaged_parquet_names_the_file_and_the_remedy(
    corpus: Path, table: str, capsys: pytest.CaptureFixture[str]
) -> None:
    """What still decodes is answered: SQL hashes nothing before something fails."""
    path = corpus / table / "part-00001.parquet"
    before = path.read_bytes()
    places = random.Random(7).choices(range(len(before)), k=24)
    places += range(len(before) - 60, len(before), 4)  # the footer
    message = (
        f"{path} is damaged: not the bytes that its commit record names (the disk, or another "
        "program?); `assay prepare CORPUS.yaml --verify` makes it again, or tells what to do"
    )
    said = []
    for at in places:
        path.write_bytes(before[:at] + bytes([before[at] ^ 32]) + before[at + 1 :])
        try:
            main([str(corpus), QUERIES[table], "--format", "csv"])
        except (CorpusError, SqlError) as error:  # SqlError: a column has another name now
            said.append(str(error))
    assert said.count(message) >= 5
    assert [told for told in said if told != message and "does not have a column" not in told] == []
    assert list(corpus.glob(".finished*")) == []
    assert record_path(corpus, "ingest", 1).exists(), "readers withdraw nothing"


def test_other_readers_name_it_too(corpus: Path) -> None:
    path = corpus / "signals/language/part-00000.parquet"
    path.write_bytes(b"PAR1" + bytes(200) + b"PAR1")
    with pytest.raises(CorpusError, match=f"{path} is damaged"):
        questions.inspect([str(corpus), "abcdef0"])


def test_mistakes_in_a_statement_are_no_damage_and_quote_no_whole_texts(corpus: Path) -> None:
    (corpus / "joins/sketches/part-00000.arrow").write_bytes(b"damaged")
    for statement, said in (
        ("select textt from documents", 'Binder Error: Referenced column "textt" not found'),
        ("select text::int from documents", "Conversion Error: Could not convert string '"),
    ):
        with pytest.raises(SqlError) as caught:
            main([str(corpus), statement])
        assert str(caught.value).startswith(said)
        assert len(str(caught.value)) < 1_100


def test_a_message_without_a_file_finds_it_by_hashes(
    corpus: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(KeyError), reading(corpus):
        raise KeyError("nothing is damaged: it is told as what it is")
    path = corpus / "clusters/part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(CorpusError, match=f"{path} is damaged"), reading(corpus):
        raise KeyError("content_hash")
    with pytest.raises(CorpusError, match="mine"), reading(corpus):
        raise CorpusError("mine: with a remedy of its own")
    with pytest.raises(BrokenPipeError), reading(corpus):
        raise BrokenPipeError(32, "Broken pipe")
    monkeypatch.setattr(whole, "SEARCH_SECONDS", -1)
    unread = "web: a file is damaged, it seems \\(not a Parquet file\\); `assay prepare"
    with pytest.raises(CorpusError, match=unread), reading(corpus):
        raise pa.ArrowInvalid("not a Parquet file")
    with pytest.raises(KeyError) as ours, reading(corpus):
        raise KeyError("content_hash")
    assert ours.value.__notes__ == [
        f"Is a file of {corpus} damaged? `assay prepare CORPUS.yaml --verify` makes it again, or "
        "tells what to do"
    ]


def test_want_of_memory_and_what_readers_do_not_read_are_no_damage(corpus: Path) -> None:
    (corpus / "joins/sketches/part-00000.arrow").write_bytes(b"damaged")
    with pytest.raises(KeyError), reading(corpus):
        raise KeyError("content_hash")
    path = corpus / "clusters/part-00000.parquet"
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(MemoryError), reading(corpus):
        raise pa.ArrowMemoryError("malloc of size 64 failed")
