"""What `--shares` of `assay tokenizer train` changes: bytes per token of Chinese and English.

    python benchmarks/tokenizer_shares.py [--sample 2MB] [--vocab-size 16000]

Trains on documents of a mostly English set of ASSAY_CORPUS, as they come and half and half, and
counts the tokens of other documents (ASSAY_SAMPLE, what it has in common with the training text
left out).
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

from pipeline.config import check
from pipeline.settings import CorpusSettings
from pipeline.tokenizer_commands import parse_bytes, train
from pipeline.tokenizer_compare import compare
from pipeline.tokenizer_sample import Document, as_lines, documents, draw, taken

ENGLISH = ("rust-rfcs-en", "python-peps-en", "ethereum-eips-en", "nltk-movie-reviews")
CHINESE = ("d2l-zh", "trpl-zh")
HALF = {"zh": 0.5, "en": 0.5}


def drawn(folder: str, names: tuple[str, ...], num_bytes: int, shares: dict[str, float] | None):
    inputs = [{"source": name, "files": f"{folder}/{name}.jsonl.gz"} for name in names]
    raw = {"inputs": inputs, "tokenizer": "deepseek", "output": "none"}
    return draw(documents(check(raw, CorpusSettings, "here")), num_bytes, shares)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sample", default="2MB")
    parser.add_argument("--vocab-size", type=int, default=16_000)
    options = parser.parse_args()
    num_bytes = parse_bytes(options.sample)
    corpus, sample = os.environ["ASSAY_CORPUS"], os.environ["ASSAY_SAMPLE"]
    with tempfile.TemporaryDirectory() as folder:
        files, seen = [], set[str]()
        for name, shares in (("plain", None), ("half", HALF)):
            found = drawn(corpus, ENGLISH + CHINESE, num_bytes, shares)
            print(name, *as_lines(found), sep="\n")
            texts = [document.text for document in taken(found)]
            seen.update(texts)
            files.append(str(Path(folder) / f"{name}.json"))
            train(texts, options.vocab_size, Path(files[-1]))
        others = taken(drawn(sample, ("en", "zh"), num_bytes, HALF))
        unseen = [Document(d.language, "sample", d.text) for d in others if d.text not in seen]
        print(f"counted on {len(unseen):,} documents")
        for row in compare(files, unseen)[0]:
            if row.source == "all":
                print(
                    f"{Path(row.tokenizer).stem:<6} {row.language:<4} {row.bytes / 1e6:.2f} MB, "
                    f"{row.bytes_per_token:.3f} bytes/token, "
                    f"{row.vocabulary_used:.1%} of the vocabulary"
                )


if __name__ == "__main__":
    main()
