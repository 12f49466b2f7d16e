"""`assay tokenizer train`: an own byte-level BPE from the inputs of a corpus.yaml; `compare`."""

from __future__ import annotations

import argparse
import heapq
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import tokenizers
import xxhash
from tokenizers import decoders, models, pre_tokenizers, trainers

from filters.normalize import normalize
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import replacing
from pipeline.inputs import input_files
from pipeline.readers import Piece, Record
from pipeline.readers.formats import read
from pipeline.schema import document_id
from pipeline.settings import CorpusSettings, load_corpus

END = "<|endoftext|>"
# cl100k's splitting rule (tiktoken_ext/openai_public.py): published, known to fastokens, digits in
# threes. An own rule would fall back to `tokenizers`, at a thirtieth of the speed.
SPLIT = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
    r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
MAX_CHARS = 200_000  # of one document: no book may be a large part of a sample
EXAMPLE = """example:
  assay tokenizer train corpus.yaml --vocab-size 8000 --output tokenizer.json

Small studies on a CPU want 4,000 to 16,000 entries: the output layer is most of a small model."""

COMPARE_EXAMPLE = """example:
  assay tokenizer compare tokenizer.json deepseek --corpus runs/corpus

not back: documents that decode to another text; bytes: tokens of a single byte, in which what the
vocabulary lacks is spelt; vocabulary: the share of it that stands in the text."""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay tokenizer", epilog=EXAMPLE, formatter_class=argparse.RawTextHelpFormatter
    )
    verbs = parser.add_subparsers(dest="verb", required=True)
    verb = verbs.add_parser(
        "train",
        help="train a byte-level BPE on the inputs of a corpus.yaml",
        epilog=EXAMPLE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    verb.add_argument("corpus", type=Path, help="corpus.yaml; its `tokenizer` need not exist yet")
    verb.add_argument("--vocab-size", type=int, required=True, help="entries, at least 257")
    verb.add_argument("--output", type=Path, required=True, help="tokenizer.json to write")
    verb.add_argument(
        "--sample", default="20MB", help="text to train on; 1 MB takes 1 to 2 s (default 20MB)"
    )
    verb.add_argument("--overwrite", action="store_true", help="replace an --output that stands")
    against = verbs.add_parser(
        "compare",
        help="what tokenizers make of the same text, by language and source",
        epilog=COMPARE_EXAMPLE,
        formatter_class=argparse.RawTextHelpFormatter,
    )
    against.add_argument("tokenizers", nargs="+", help="as `tokenizer` in corpus.yaml")
    against.add_argument("--corpus", required=True, help="a finished corpus, whose text is taken")
    against.add_argument("--sample", default="20MB", help="text of it, by hash (default 20MB)")
    against.add_argument("--split", help="of tiktoken's ranks: how text is split")
    against.add_argument("--json", action="store_true", help="JSON instead of a table")
    options = parser.parse_args(argv)
    return _compare(options) if options.verb == "compare" else _train(options)


def _compare(options: argparse.Namespace) -> int:
    from pipeline import store
    from pipeline.corpus import manifest
    from pipeline.tokenizer_compare import as_json, as_table, compare, sample

    root = store.folder(options.corpus)
    manifest(root)  # that it is one
    documents = sample(root, parse_bytes(options.sample))
    if not documents:
        raise ConfigError(f"{root} has no text to compare tokenizers on")
    found = compare(options.tokenizers, documents, split=options.split)
    for line in [as_json(*found)] if options.json else as_table(*found):
        print(line)
    return 0


def _train(options: argparse.Namespace) -> int:
    if options.output.exists() and not options.overwrite:
        raise ConfigError(
            f"{options.output} stands already, and every corpus made with it would be tokenized "
            "again; give another --output, or --overwrite"
        )
    settings = load_corpus(options.corpus, tokenizer_exists=False)
    texts = sample(documents(settings), parse_bytes(options.sample))
    num_bytes = sum(len(text.encode()) for text in texts)
    print(
        f"training on {counted(len(texts), 'document')}, {num_bytes / 1e6:.1f} MB", file=sys.stderr
    )
    num_entries = train(texts, options.vocab_size, options.output)
    print(f"wrote {options.output}: {num_entries:,} entries")
    return 0


def train(texts: Iterable[str], vocab_size: int, path: Path) -> int:
    """Train a byte-level BPE on `texts`, write its tokenizer.json, return its number of entries.

    Deterministic: equal texts give equal bytes. One special token, `<|endoftext|>`, id 0, and no
    bos: the end token before a document says the same.
    """
    smallest = 256 + 1  # all bytes and the end token
    if vocab_size < smallest:
        raise ConfigError(f"--vocab-size {vocab_size} is too small; give at least {smallest}")
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(SPLIT), "isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocab_size,
        special_tokens=[END],
        initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False,
    )
    tokenizer.train_from_iterator(texts, trainer)
    with replacing(path) as temporary:
        temporary.write_text(tokenizer.to_str(), encoding="utf-8")
    num_entries: int = tokenizer.get_vocab_size()
    return num_entries


def documents(settings: CorpusSettings) -> Iterator[tuple[bytes, str]]:
    """(id, normalized text) of every readable document of the inputs."""
    sources = {item.source: item for item in settings.inputs}
    for (source, file), path in input_files(settings).items():
        for item in read(Piece(path, file), sources[source], settings.extractor):
            if isinstance(item, Record):
                text, _ = normalize(item.text)
                if text.strip():
                    yield document_id(source, file, item.offset), text


def sample(documents: Iterable[tuple[bytes, str]], num_bytes: int) -> list[str]:
    """The documents of smallest id hash whose text reaches `num_bytes`, ordered by that hash.

    Depends on the set of documents alone, not on their order; holds no more than the sample.
    """
    heap: list[tuple[int, str]] = []  # largest hash on top, negated
    total = 0
    for identity, text in documents:
        heapq.heappush(heap, (-xxhash.xxh3_64_intdigest(identity), text[:MAX_CHARS]))
        total += len(text[:MAX_CHARS].encode())
        while total - (largest := len(heap[0][1].encode())) >= num_bytes:
            heapq.heappop(heap)
            total -= largest
    return [text for _, text in sorted(heap, reverse=True)]


def parse_bytes(text: str) -> int:
    """'50MB' -> 50,000,000.

    Raises:
        ConfigError: not a number with kB, MB or GB.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", text)
    if match is None:
        raise ConfigError(f"--sample {text!r} is not a size; write 500kB, 50MB or 1GB")
    return int(float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]])
