"""What of corpus.yaml is refused before anything is written: it would fail later, or after hours be
told as an empty column."""

from __future__ import annotations

import difflib
import importlib.util
import re
from collections.abc import Iterable, Iterator
from pathlib import Path

from filters import classifier, language, lists, perplexity, url_lists
from pipeline import evaluation_items, given, inputs, objects
from pipeline.config import ConfigError
from pipeline.groups import editors, groups
from pipeline.settings import CorpusSettings

# What people write for a code: a country, ISO 639-2 and 639-3, an English name.
SPELLINGS = {
    "zh": "cn zho chi cmn yue wuu chinese",
    "en": "us gb eng english",
    "ja": "jp jpn japanese",
    "ko": "kr kor korean",
    "de": "deu ger german",
    "fr": "fra fre french",
    "es": "spa spanish",
    "ru": "rus russian",
}
MEANT = {spelling: code for code, words in SPELLINGS.items() for spelling in words.split()}


def refusals(path: str, settings: CorpusSettings) -> Iterator[str]:
    """What would be refused, as lines: told together where something else is missing too."""
    for refuse in (check, inputs.input_files):
        try:
            refuse(settings)
        except (ValueError, OSError) as error:
            yield f"{path}: {error}"


def check(settings: CorpusSettings) -> None:
    """Refuse what would fail later.

    Raises:
        ConfigError: an unknown signal group, edits or language, no such extractor, model, list
            `independent` file or evaluation set.
    """
    if settings.output is not None and objects.is_url(settings.output):
        objects.require_writable(settings.output)
    elif settings.output is not None:
        _require_own_folder(Path(settings.output))
    editors(settings)
    if next(iter(groups(settings))) != "language":
        raise ConfigError(
            f"key `signals`: {list(settings.signals)} must begin with 'language': held-out sets "
            "and all other groups go by the language of a document"
        )
    check_languages(settings.languages)
    if settings.extractor == "trafilatura" and importlib.util.find_spec("trafilatura") is None:
        raise ConfigError(
            "key `extractor`: trafilatura is not installed; `pip install 'assay[trafilatura]'`, "
            "or leave the key out for resiliparse"
        )
    models = {f"classifiers.{name}": path for name, path in settings.classifiers.items()}
    models |= {"perplexity": settings.perplexity} if settings.perplexity else {}
    for key, path in models.items():
        try:
            (perplexity if key == "perplexity" else classifier).load(path)
        except ValueError as error:
            raise ConfigError(f"key `{key}`: {error}") from None
    for name, path in settings.lists.items():
        try:
            lists.read(path)
        except ValueError as error:
            raise ConfigError(f"key `lists.{name}`: {error}") from None
    for key, named in (("block", settings.urls.block), ("allow", settings.urls.allow)):
        try:
            if files := url_lists.list_files(named):
                url_lists.table(files)  # what it makes is kept for the workers
        except ValueError as error:
            raise ConfigError(f"key `urls.{key}`: {error}") from None
    for _ in evaluation_items.read_items(settings.decontaminate):
        pass  # a bad line is told now, not after hours of ingest
    try:
        given.independent_version(settings.heldout)
    except OSError as error:
        raise ConfigError(f"key `heldout.independent`: {error}") from None


def _require_own_folder(output: Path) -> None:
    """No corpus in another: `assay gc` and `forget` of the outer one would go through its files."""
    for folder in output.resolve().parents:
        if (folder / "corpus.json").exists() or (folder / "inputs.json").exists():
            raise ConfigError(
                f"key `output`: {output} lies inside the corpus {folder}; name a folder beside it"
            )


def check_languages(languages: Iterable[str]) -> None:
    known = language.codes()
    for code in languages:
        if code not in known:
            plain = re.split("[-_]", code.lower())[0]  # of zh-Hans, en_US
            near = difflib.get_close_matches(plain, known, n=1, cutoff=0.6)
            near = [MEANT[plain]] if plain in MEANT else near
            hint = f"did you mean {near[0]!r}?" if near else f"known: {', '.join(known)}"
            raise ConfigError(f"key `languages`: no document is ever of language {code!r}; {hint}")
