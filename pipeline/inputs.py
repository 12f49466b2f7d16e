"""Which files come in: what the globs of corpus.yaml match now, the corpus itself apart."""

from __future__ import annotations

import re
import sys

from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.readers.files import list_files, place
from pipeline.readers.formats import PAIRS, format_of
from pipeline.settings import CorpusSettings, Input
from pipeline.shards import Key

Files = list[tuple[str, str]]  # path, file: see list_files


def input_files(settings: CorpusSettings) -> dict[Key, str]:
    """Where each input file lies now; tells of files of the corpus itself, which are none.

    Raises:
        ConfigError: nothing matches, or no reader knows a file.
    """
    found: dict[Key, str] = {}
    for item in settings.inputs:
        try:
            files, own = files_of(item, settings.output)
            for path, file in files:
                if format_of(file) in PAIRS and item.decode is None:
                    raise ValueError(
                        f"{file} holds token ids; name the tokenizer.json that made them, as "
                        "`decode: tokenizer.json` of this source"
                    )
                found[item.source, file] = path
        except FileNotFoundError as error:
            raise ConfigError(
                f"source {item.source!r}: {error}; if its files are gone for good, take it out of "
                "`inputs`: --refresh drops what was made of them"
            ) from None
        except (OSError, ValueError) as error:
            raise ConfigError(f"source {item.source!r}: {error}") from None
        if own and not files:
            raise ConfigError(
                f"source {item.source!r}: all files that match {item.files} lie in the folder of "
                f"the corpus itself, {settings.output}; move them out of it, or name another "
                "`output`"
            )
        if own:
            left_out = f"{counted(len(own), 'file')} in the corpus itself left out, as {own[0]}"
            print(f"source {item.source!r}: {left_out}", file=sys.stderr)
    return found


def files_of(item: Input, output: str | None) -> tuple[Files, list[str]]:
    """Input files of a source, and the paths of those that its glob takes in though the corpus
    (`output`, or a `--limit` of it) holds them: its second run would read what its first made."""
    found = list_files(item.files)
    if output is None:
        return found, []
    corpus = re.compile(re.escape(place(output)) + r"(-limit-\d+)?/")
    own = {path for path, _ in found if corpus.match(place(path))}
    return [pair for pair in found if pair[0] not in own], sorted(own)
