"""`assay tokenize`: the tokens of another tokenizer, beside the first; text is read, never written.

A call goes on where a killed one stopped, and makes only parts that are missing. `assay prepare`
makes those of new input.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Iterator
from pathlib import Path

from pipeline import added_tokenizers, heap, store
from pipeline.settings import Tokenizer

EXAMPLE = """examples:
  assay tokenize runs/corpus                                    which tokenizers it has
  assay tokenize runs/corpus --tokenizer qwen.tiktoken --name qwen
  assay tokenize runs/corpus --drop qwen                        `assay gc` removes its tokens

A mixture chooses one by `tokenizer: qwen`. What a tokenizer may be: docs/tokens.md"""


def main(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay tokenize",
        description="Add another tokenizer's tokens to a corpus, beside its first. A second call "
        "makes only what is missing.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="a finished corpus: its folder, or its URL on a store")
    parser.add_argument("--tokenizer", help="as `tokenizer` in corpus.yaml: a file, or a name")
    parser.add_argument("--name", help="how mixtures call it (default: from its file)")
    parser.add_argument("--bos", help="token before each document (default: none)")
    parser.add_argument(
        "--eos", default="auto", help="token after each document, or `none` (default: its own)"
    )
    parser.add_argument("--drop", metavar="NAME", help="of an added tokenizer: forget it")
    parser.add_argument(
        "--workers", type=int, default=os.cpu_count() or 1, help="processes (default: one a core)"
    )
    options = parser.parse_args(argv)
    if options.workers < 1:
        parser.error(f"--workers {options.workers}: at least 1")
    heap.settle()  # before anything loads numpy or pyarrow
    from pipeline import beside, corpus

    root = store.folder(options.corpus)
    corpus.manifest(root)  # that it is one
    if options.tokenizer or options.drop:
        with corpus.locked(root):
            if options.drop:
                added_tokenizers.drop(root, options.drop)
                beside.describe(root)
            else:
                eos = None if options.eos == "none" else options.eos
                wanted = Tokenizer(file=options.tokenizer, bos=options.bos, eos=eos)
                beside.tokenize(root, wanted, options.name, options.workers)
    for line in table(root):
        print(line)
    return 0


def table(root: Path) -> Iterator[str]:
    """One line for each tokenizer of a corpus, the first one first."""
    from pipeline.corpus import manifest

    found = manifest(root)
    num_bytes = found["stages"]["ingest"]["totals"]["bytes"]
    policies = [found["tokenizer"], *found.get("tokenizers", {}).values()]
    for (name, identity), policy in zip(added_tokenizers.hashes(found), policies, strict=True):
        stage = "tokens" if policy is found["tokenizer"] else f"tokens/{identity}"
        tokens = found["stages"][stage]["totals"]["tokens"]
        per_token = f"{num_bytes / tokens:.2f} bytes each" if tokens else "no text"
        yield (
            f"{name:<20} {identity}  {tokens:>15,} tokens, {per_token}; ids below "
            f"{policy['vocab_size']:,}, {policy['dtype']}, {policy['engine']}"
        )
