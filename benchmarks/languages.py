"""How often `lang` is right, by source: what a source says of itself against what is measured.

    ASSAY_SAMPLE=... ASSAY_CORPUS=... python benchmarks/languages.py [--man FOLDER] [--wrong SOURCE]

Truth is the source's own folder or locale name: a page of a Chinese manual that nobody translated
counts as wrong. Texts without a letter are left out. `kept`: with the least score of its language
too, as `languages.pass` asks. `--man`: a folder into which Debian's manpages-zh was unpacked:

    apt-get download manpages-zh && dpkg-deb -x manpages-zh_*.deb FOLDER

`--wrong` prints the documents of a source that got another language (they are not ours to publish).
"""

from __future__ import annotations

import argparse
import gzip
import os
import re
import sys
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import orjson
import pyarrow as pa
import pyarrow.parquet as pq

from filters.kept_languages import SHORT, SHORT_CHARS, thresholds
from filters.language import codes, measure
from filters.segments import Texts
from pipeline.readers import Piece, Record
from pipeline.readers.warc import read
from pipeline.settings import Input

Document = tuple[str, str, str]  # source, language by the source's own name, text

BATCH = 1_000
# What sources write that the model calls otherwise; of languages that it does not know (UDHR has
# dozens) all that counts is that they are none of ours.
NAMES = {"nb": "no", "mya": "my", "isl": "is", "slk": "sk", "mkd": "mk", "san": "sa", "jav": "jv"}
OURS = ("zh", "en", "ja", "ko")
UDHR = {"Chinese_Mandarin": "zh", "English": "en", "Japanese": "ja", "Korean": "ko"}
IN_ADDRESSES = re.compile(r"/([a-z]{2}(?:-[A-Za-z]{2})?)/|\.([a-z]{2}(?:-[a-z]{2})?)\.html")


def documents(folder: Path) -> Iterator[Document]:
    """All documents below a folder of JSONL, Parquet and WARC files."""
    for path in sorted(folder.iterdir()):
        if path.name.endswith(".jsonl.gz"):
            with gzip.open(path) as file:
                for row in map(orjson.loads, file):
                    yield row["source"], row.get("lang_hint") or "en", row["text"]
        elif path.suffix == ".parquet":
            for row in pq.read_table(path).to_pylist():
                yield row["source"], row["lang_hint"], row["text"]
        elif path.name.endswith(".warc.gz"):
            pages = read(Piece(str(path), path.name), Input(source="web", files=""), "resiliparse")
            for page in pages:
                if isinstance(page, Record):
                    yield *_by_address(page.fields["url"]), page.text


def man_pages(folder: Path) -> Iterator[Document]:
    """Chinese manual pages, as troff."""
    for path in sorted(folder.glob("**/man/zh_*/man*/*.gz")):
        if not path.is_symlink():
            text = gzip.decompress(path.read_bytes()).decode(errors="replace")
            yield "manpages-zh", path.parts[-3], text


def _by_address(url: str) -> tuple[str, str]:
    site = url.split("/")[2]
    if "udhr" in url:
        name = url.rsplit("/", 1)[1]
        return "udhr", next((code for start, code in UDHR.items() if name.startswith(start)), "?")
    found = IN_ADDRESSES.search(url)
    return site, (found[1] or found[2]) if found else "en"


def expected(hint: str) -> str:
    """Of a source's own name for a language the model's; `other`: one that it does not know."""
    plain = re.split("[-_]", hint)[0]
    code = NAMES.get(plain, plain)
    return code if code in codes() else "other"


def table(found: Iterator[Document], wrong: str) -> Iterator[dict[str, Any]]:
    """A row for each source and language."""
    least = thresholds(codes())
    rows: dict[tuple[str, str], dict[str, Counter[str]]] = {}
    spoken = (row for row in found if any(map(str.isalpha, row[2])))
    for batch in _batches(spoken):
        columns = measure(Texts(pa.array([text for *_, text in batch], pa.string())), {})
        measured = pa.table(dict(columns)).to_pylist()
        for (source, hint, text), row in zip(batch, measured, strict=True):
            lang = expected(hint)
            right = row["lang"] not in OURS if lang == "other" else row["lang"] == lang
            name = source, lang if lang in OURS else "others", "Hant" if _is_hant(hint) else ""
            counts = rows.setdefault(name, {"all": Counter(), "wrong": Counter()})
            short = SHORT if len(text) < SHORT_CHARS else {}
            passes = right and row["lang_score"] >= short.get(row["lang"], least[row["lang"]])
            counts["all"].update({"documents": 1, "right": right, "kept": passes})
            counts["all"][row["lang_variant"]] += 1
            if not right:
                counts["wrong"][row["lang"]] += 1
                if source == wrong:
                    print(f"{lang} {row['lang']} {row['lang_score']:.2f} {text[:300]!r}")
    for (source, lang, script), counts in sorted(rows.items()):
        n = counts["all"]
        yield {
            "source": source,
            "language": f"{lang} {script}".strip(),
            "documents": n["documents"],
            "right": n["right"] / n["documents"],
            "kept": n["kept"] / n["documents"],
            "others": counts["wrong"].most_common(4),
            "variants": [(v, n[v]) for v in ("Hans", "Hant", "lzh", "yue", "wuu", "") if n[v]],
        }


def _is_hant(hint: str) -> bool:
    return hint.replace("_", "-") in ("zh-TW", "zh-HK", "zh-Hant")


def _batches(found: Iterator[Document]) -> Iterator[list[Document]]:
    batch = []
    for document in found:
        batch.append(document)
        if len(batch) == BATCH:
            yield batch
            batch = []
    yield batch


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, prog="benchmarks/languages.py")
    parser.add_argument("--man", type=Path, help="folder with Debian's manpages-zh")
    parser.add_argument("--wrong", default="", help="source whose errors are printed")
    options = parser.parse_args()
    sets = [documents(Path(os.environ[name])) for name in ("ASSAY_SAMPLE", "ASSAY_CORPUS")]
    sets += [man_pages(options.man)] if options.man else []
    for found in sets:
        print("| source | language | documents | right | kept | others | variants |")
        print("| --- | --- | --- | --- | --- | --- | --- |")
        for row in table(found, options.wrong):
            named = [row["source"], row["language"], f"{row['documents']:,}"]
            shares = [f"{row['right']:.1%}", f"{row['kept']:.1%}"]
            lists = [
                ", ".join(f"{name or '-'} {count}" for name, count in row[key])
                for key in ("others", "variants")
            ]
            print(f"| {' | '.join(named + shares + lists)} |")
    return 0


if __name__ == "__main__":
    sys.exit(main())
