"""`assay tokenizer train`: an own byte-level BPE from the inputs of a corpus.yaml; `compare`."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Iterable
from pathlib import Path

import tokenizers
from tokenizers import decoders, models, pre_tokenizers, trainers

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import replacing
from pipeline.settings import load_corpus
from pipeline.tokenizer_files import SPLITS

END = "<|endoftext|>"
RULE = "cl100k"  # tiktoken_ext/openai_public.py
EXAMPLE = """examples:
  assay tokenizer train corpus.yaml --vocab-size 8000 --output tokenizer.json
  assay tokenizer train corpus.yaml --vocab-size 8000 --output own.json --shares zh=0.5,en=0.5

Without --shares, each language has the share of the sample that it has in the inputs.
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
    verb.add_argument(
        "--shares",
        help="of the sample's bytes, by language, as zh=0.5,en=0.5; `other` is all that are not "
        "named (default: as in the inputs)",
    )
    verb.add_argument(
        "--rule",
        choices=list(SPLITS),
        default=RULE,
        help="how text is split before it is merged; fast engines know all of these (default: "
        f"{RULE}, digits in threes)",
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
    from pipeline.tokenizer_sample import as_lines, documents, draw, parse_shares, taken

    num_bytes = parse_bytes(options.sample)
    shares = None if options.shares is None else parse_shares(options.shares)
    settings = load_corpus(options.corpus, tokenizer_exists=False)
    drawn = draw(documents(settings), num_bytes, shares)
    texts = [document.text for document in taken(drawn)]
    if not texts:
        raise ConfigError(
            f"{options.corpus}: no text to train on"
            + (f" in {', '.join(drawn)}; give other --shares" if shares else " in its inputs")
        )
    size = sum(lowest.num_bytes for lowest in drawn.values()) / 1e6
    print(f"training on {counted(len(texts), 'document')}, {size:.1f} MB", file=sys.stderr)
    for line in as_lines(drawn):
        print(line, file=sys.stderr)
    num_entries = train(texts, options.vocab_size, options.output, options.rule)
    print(f"wrote {options.output}: {num_entries:,} entries")
    return 0


def train(texts: Iterable[str], vocab_size: int, path: Path, rule: str = RULE) -> int:
    """Train a byte-level BPE on `texts`, write its tokenizer.json, return its number of entries.

    Deterministic: equal texts give equal bytes. One special token, `<|endoftext|>`, id 0, and no
    bos: the end token before a document says the same.

    Args:
        rule: a name of SPLITS. Rules that name a script (`\\p{Han}`) are none of these: fast
            engines do not know them.
    """
    smallest = 256 + 1  # all bytes and the end token
    if vocab_size < smallest:
        raise ConfigError(f"--vocab-size {vocab_size} is too small; give at least {smallest}")
    tokenizer = tokenizers.Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(tokenizers.Regex(SPLITS[rule]), "isolated"),
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


def parse_bytes(text: str) -> int:
    """'50MB' -> 50,000,000.

    Raises:
        ConfigError: not a number with kB, MB or GB.
    """
    match = re.fullmatch(r"(\d+(?:\.\d+)?)\s*([kMG]?)B?", text)
    if match is None:
        raise ConfigError(f"--sample {text!r} is not a size; write 500kB, 50MB or 1GB")
    return int(float(match[1]) * {"": 1, "k": 1e3, "M": 1e6, "G": 1e9}[match[2]])
