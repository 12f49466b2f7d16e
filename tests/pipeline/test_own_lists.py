"""Key `lists` of corpus.yaml, from the file to SQL; what is wrong is told before anything runs."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import small_corpus
from small_corpus import assay

from pipeline.settings import load_corpus


def test_from_a_list_to_sql(tmp_path: Path) -> None:
    settings = small_corpus.write_inputs(tmp_path, 20)
    texts = ["買蘋果手機，華★為的也行", "苹果很好吃", "nothing of ours here"]
    with open(tmp_path / "zh.jsonl", "w", encoding="utf-8") as file:
        file.writelines(json.dumps({"text": text}) + "\n" for text in texts)
    assay(
        "tokenizer",
        "train",
        settings,
        "--vocab-size",
        "400",
        "--output",
        tmp_path / "tokenizer.json",
    )
    with open(settings, "a") as file:
        file.write("lists: {brands: brands.txt}\n")
    brands = tmp_path / "brands.txt"
    brands.write_text("苹果手机\n华为\n苹\n", encoding="utf-8")
    failed = assay("prepare", settings, check=False)
    assert failed.returncode == 2
    assert f"key `lists.brands`: {brands}, line 3: '苹' has 1 characters" in failed.stderr

    question = (
        "select lists.brands n, lists.brands_words w from documents where source = 'tales-zh'"
    )

    def counted() -> list[str]:
        assay("prepare", settings, "--workers", "1")
        found = assay("sql", tmp_path / "corpus", question + " order by all", "--format", "csv")
        return found.stdout.splitlines()[1:]

    brands.write_text("苹果手机\n华为\n", encoding="utf-8")
    assert counted() == ["0,[]", "0,[]", '2,"[苹果手机, 华为]"']
    brands.write_text("苹果\n", encoding="utf-8")  # a changed list is counted anew
    assert counted() == ["0,[]", "1,[苹果]", "1,[苹果]"]
    (tmp_path / "none.txt").write_text("没有的\n", encoding="utf-8")
    text = settings.read_text()
    settings.write_text(text.replace("{brands: brands.txt}", "{a: brands.txt, brands: none.txt}"))
    assert counted() == ["0,[]"] * 3
    settings.write_text(text.replace("{brands: brands.txt}", "{brands: brands.txt, a: none.txt}"))
    assert counted() == ["0,[]", "1,[苹果]", "1,[苹果]"]  # the names changed places


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        ("{Brands: a.txt}", "a name is made of a-z, 0-9 and _"),
        ("{a: a.txt, a_words: b.txt}", "a_words is the column with what is found of a"),
    ],
)
def test_names_of_lists(tmp_path: Path, lists: str, message: str) -> None:
    (tmp_path / "corpus.yaml").write_text(
        f"inputs: [{{source: a, files: a.jsonl}}]\ntokenizer: deepseek\nlists: {lists}\n"
    )
    with pytest.raises(Exception, match=message):
        load_corpus(tmp_path / "corpus.yaml")
