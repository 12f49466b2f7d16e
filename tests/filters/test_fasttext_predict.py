"""The definition is the package `fasttext`: same label, same probability, any model."""

from __future__ import annotations

import importlib.metadata
import struct
from functools import cache
from pathlib import Path
from typing import Any

import fasttext
import numpy as np
import pyarrow as pa
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from filters.fasttext_file import Classifier, read
from filters.fasttext_predict import predict
from filters.language import MODEL
from kernels.arrow import string_buffers

SENTENCES = {
    "zh": "今天 天气 很好 我们 去 公园 散步 他用Python3写 程序 😀",
    "en": "the weather is fine today so we walk don't you think",
    "fr": "il fait beau aujourd'hui déjà été nous marchons",
    "de": "das Wetter ist heute schön wir gehen spazieren",
}
ODD_TEXTS = ["", "a", "the weather 今天", "</s> the", "the </s> 天气", "__label__en x", "x"]


@cache
def installed() -> Any:
    """Five packages on PyPI own a module `fasttext`; an answer of another one proves nothing."""
    assert set(importlib.metadata.packages_distributions()["fasttext"]) == {"fasttext-numpy2-wheel"}
    return fasttext.load_model(str(MODEL))


@cache
def model() -> Classifier:
    return read(MODEL)


def ours(classifier: Classifier, texts: list[str]) -> list[tuple[str | None, float]]:
    data, offsets = string_buffers(pa.array(texts, pa.string()))
    labels, scores = predict(classifier.network, data, offsets[:-1], offsets[1:])
    return [
        (None if label < 0 else classifier.labels[label], float(score))
        for label, score in zip(labels, scores, strict=True)
    ]


def theirs(classifier: Any, texts: list[str]) -> list[tuple[str | None, float]]:
    found = zip(*classifier.predict(texts), strict=True)
    return [
        (label[0].removeprefix("__label__"), float(score[0])) if label else (None, 0.0)
        for label, score in found
    ]


@given(
    st.text(
        st.sampled_from("aB你好のー한й<>_/s \t\r\v\f\0\u3000\x85…😀é")
        | st.characters(codec="utf-8"),
        max_size=80,
    ).map(lambda text: text.replace("\n", " "))
)
@example("</s>")
@example("你好 </s> the weather")
@example("__label__zh __label__xx")
@example("\0a\0")
def test_equal_to_the_package(text: str) -> None:
    assert ours(model(), [text]) == theirs(installed(), [text])


def test_a_line_feed_is_a_space() -> None:
    assert ours(model(), ["the weather\nis fine\n"]) == ours(model(), ["the weather is fine"])
    assert ours(model(), []) == []


def model_file(
    loss: int, minn: int, maxn: int, word_ngrams: int, quantized: str, version: int = 12
) -> bytes:
    """A model with random numbers, as fastText 0.9.2 writes it; training in the wheel is not
    reproducible and now and then ends in NaN."""
    rng = np.random.default_rng(17)
    words = [b"</s>", *sorted({w for text in SENTENCES.values() for w in text.encode().split()})]
    labels = [f"__label__{name}".encode() for name in SENTENCES]
    dim, bucket = 10, 1000
    kept = rng.permutation(bucket)[:300] if quantized == "pruned" else []
    settings = (dim, 5, 5, 1, 5, word_ngrams, loss, 3, bucket, minn, maxn, 100)
    size = len(words) + len(labels)
    pruned = len(kept) if quantized == "pruned" else -1
    parts = [struct.pack("<14id", 793712314, version, *settings, 1e-4)]
    parts.append(struct.pack("<3i2q", size, len(words), len(labels), 1000, pruned))
    for i, entry in enumerate([*words, *labels]):
        parts.append(entry + b"\0" + struct.pack("<qb", 100 - i, i >= len(words)))
    parts.extend(struct.pack("<2i", number, row) for row, number in enumerate(kept))
    rows = len(words) + (len(kept) if quantized == "pruned" else bucket)
    parts.append(bytes([quantized != "dense"]))
    parts.append(matrix(rng, rows, dim, quantized != "dense", quantized == "norms"))
    parts.append(bytes([quantized == "output"]))
    parts.append(matrix(rng, len(labels), dim, quantized == "output", quantized == "output"))
    return b"".join(parts)


def matrix(rng: np.random.Generator, rows: int, dim: int, quantized: bool, norms: bool) -> bytes:
    if not quantized:
        return struct.pack("<2q", rows, dim) + floats(rng, rows * dim)
    codes, width = 4, 3  # of 10 numbers: three parts of 3, one of 1
    parts = [struct.pack("<?2qi", norms, rows, dim, rows * codes), rng.bytes(rows * codes)]
    parts += [struct.pack("<4i", dim, codes, width, 1), floats(rng, dim * 256)]
    if norms:
        parts += [rng.bytes(rows), struct.pack("<4i", 1, 1, 1, 1), floats(rng, 256)]
    return b"".join(parts)


def floats(rng: np.random.Generator, size: int) -> bytes:
    return rng.normal(size=size).astype("<f4").tobytes()


@pytest.mark.parametrize("quantized", ["dense", "quantized", "pruned", "norms", "output"])
@pytest.mark.parametrize(
    ("loss", "minn", "maxn", "word_ngrams"),
    [(3, 0, 0, 1), (3, 0, 0, 3), (1, 2, 4, 1), (2, 1, 3, 2), (4, 3, 3, 1), (1, 0, 0, 2)],
)
def test_every_kind_of_model(
    tmp_path: Path, loss: int, minn: int, maxn: int, word_ngrams: int, quantized: str
) -> None:
    path = tmp_path / "model"
    path.write_bytes(model_file(loss, minn, maxn, word_ngrams, quantized))
    texts = [*SENTENCES.values(), *ODD_TEXTS, " ".join(SENTENCES.values())]
    expected = theirs(fasttext.load_model(str(path)), texts)
    for (label, score), (known, probability) in zip(ours(read(path), texts), expected, strict=True):
        assert label == known
        assert score == pytest.approx(probability, abs=1e-6)


def test_version_11_had_no_subwords_in_classifiers(tmp_path: Path) -> None:
    path = tmp_path / "model"
    path.write_bytes(model_file(3, 2, 4, 1, "dense", version=11))
    texts = [*SENTENCES.values(), *ODD_TEXTS]
    assert ours(read(path), texts) == theirs(fasttext.load_model(str(path)), texts)


def test_what_is_no_model_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.bin"
    path.write_bytes(b"no model" * 20)
    with pytest.raises(ValueError, match="is no supervised fastText model of version 11 or 12"):
        read(path)
