"""The `assay` command. `VERBS` is the whole of it: verb, function behind it, one line of help.

A function is imported when its verb is called, so `assay --help` loads neither torch nor Beam, and
no verb loads both. Each takes the arguments after the verb and returns the exit code.

Exit codes: 0 done; 1 a fault of ours, with its traceback, or the log that holds it; 2 a mistake
that the user can mend, as one message; 130 interrupted; 143 stopped by SIGTERM.
"""

from __future__ import annotations

import difflib
import importlib
import importlib.metadata
import os
import signal
import sys
import traceback
from collections.abc import Sequence
from typing import ClassVar

from pipeline import disk

VERBS: dict[str, tuple[str, str]] = {
    "prepare": ("pipeline.commands:prepare", "raw files to a measured, tokenized corpus"),
    "sql": ("mixtures.questions:sql", "ask a corpus with one SELECT"),
    "inspect": ("mixtures.questions:inspect", "one document with all that is known about it"),
    "sample": ("pipeline.seeing.sample:main", "random documents that a predicate keeps and drops"),
    "review": ("pipeline.seeing.review:main", "label documents by hand, blind, key by key"),
    "compare": ("pipeline.seeing.compare:main", "what is new, gone and other in a second corpus"),
    "dedup": ("mixtures.dedup_commands:main", "is it right; bands and rows; what was had before"),
    "attach": ("pipeline.attach:main", "add your own columns to a corpus"),
    "embed": ("pipeline.embed:main", "a vector for each text, by a model of yours"),
    "tokenizer": ("pipeline.tokenizer_commands:main", "a tokenizer trained on your own inputs"),
    "tokenize": ("pipeline.tokenize_commands:main", "another tokenizer's tokens beside the first"),
    "classifier": ("pipeline.learned.classifier_commands:main", "quality learnt from examples"),
    "perplexity": ("pipeline.learned.perplexity_commands:main", "how expected a text is"),
    "labels": (
        "pipeline.learned.labels_commands:main",
        "a sample judged by a model, and by people",
    ),
    "mix": ("mixtures.commands:mix", "the plan of a mixture, before anything runs"),
    "export": ("mixtures.interchange.export:main", "tokens and windows for other trainers"),
    "train": ("trainer.commands:train", "train a model on a mixture"),
    "checkpoint": ("trainer.checkpoint_commands:main", "the checkpoints of a run; are they whole"),
    "advise": ("trainer.advice_commands:main", "learning rate and batch by published laws"),
    "shape": ("trainer.shape_commands:main", "what the shape of a model comes to; muP checked"),
    "windows": ("trainer.seen:main", "the documents of a step, and the steps of a document"),
    "model": ("trainer.interchange.commands:main", "to transformers, and from it, with a proof"),
    "evaluate": ("trainer.commands:evaluate", "bits per byte of the held-out sets"),
    "ablate": ("trainer.ablation.commands:ablate", "which data is better, and how sure is that"),
    "freeze": ("mixtures.freeze_commands:freeze", "one file that says what a corpus or mixture is"),
    "verify": ("mixtures.freeze_commands:verify", "is a corpus or mixture still what was frozen"),
    "card": ("pipeline.card:main", "the data card of a corpus, as Markdown"),
    "ls": ("trainer.inventory:ls", "corpora, packed selections, runs and studies, and their sizes"),
    "gc": ("trainer.garbage:gc", "what nothing refers to: shown, and with --delete removed"),
    "forget": ("trainer.forget:forget", "take documents out of a corpus, its tokens and windows"),
    "report": ("mixtures.questions:report", "what became of the input of a corpus"),
}
DUCKDB_INTERRUPTED = "Query interrupted"  # what becomes of a signal that meets it at work
PACKAGES = ("kernels", "filters", "dedup", "pipeline", "mixtures", "trainer")


class Stopped(KeyboardInterrupt):
    """Ctrl-C or SIGTERM, which end all alike: children, locks, temporary files."""

    received: ClassVar[int] = 0  # the signal


def _stop(number: int, _: object) -> None:
    Stopped.received = number
    raise Stopped


def main(argv: Sequence[str] | None = None) -> int:
    """Run one verb; `argv` is without the program's name. Returns the exit code."""
    arguments = list(sys.argv[1:] if argv is None else argv)
    if not arguments or arguments[0] in ("-h", "--help"):
        print(_help())
        return 0
    if arguments[0] in ("-V", "--version"):
        print(f"assay {importlib.metadata.version('assay')}")
        return 0
    verb, *rest = arguments
    if verb not in VERBS:
        near = difflib.get_close_matches(verb, VERBS, n=1, cutoff=0.5)
        hint = f"did you mean `{near[0]}`?" if near else f"verbs: {', '.join(VERBS)}"
        print(f"assay: unknown verb {verb!r}; {hint}", file=sys.stderr)
        return 2
    Stopped.received = 0
    signal.signal(signal.SIGTERM, _stop)
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:  # not where it is ignored
        signal.signal(signal.SIGINT, _stop)
    try:
        return _call(verb, rest)
    except KeyboardInterrupt:
        return _tell_of_signal()
    except BrokenPipeError:  # `assay sql ... | head`: the reader has seen enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except Exception as error:
        if Stopped.received or str(error) == DUCKDB_INTERRUPTED:
            return _tell_of_signal()  # what follows a signal follows from it, whoever wrapped it
        return _tell(verb, error)


def _tell(verb: str, error: Exception) -> int:
    """One line where the user can mend it or a log holds the traceback; else it is raised again."""
    if isinstance(error, ValueError | OSError):
        if not _meant_for_user(error):
            raise error
        of_disk = disk.told(error) if isinstance(error, OSError) else None
        message = of_disk or str(error)
        print(f"assay {verb}: {message}{_notes(error)}", file=sys.stderr)
        return 2
    if not hasattr(error, "log"):  # as failures.StepError has: where its traceback is
        raise error
    print(f"assay {verb}: {error}{_notes(error)}", file=sys.stderr)
    return 1


def _tell_of_signal() -> int:
    number = Stopped.received or signal.SIGINT
    what = "stopped by SIGTERM" if number == signal.SIGTERM else "interrupted"
    print(f"\nassay: {what}; the same command goes on where it stopped", file=sys.stderr)
    return 128 + number


def _notes(error: Exception) -> str:
    return "".join(f"\n{note}" for note in getattr(error, "__notes__", ()))


def _call(verb: str, arguments: list[str]) -> int:
    module, function = VERBS[verb][0].split(":")
    result = getattr(importlib.import_module(module), function)(arguments)
    assert isinstance(result, int), f"{VERBS[verb][0]} returned {result!r}, not an exit code"
    return result


def _meant_for_user(error: ValueError | OSError) -> bool:
    """Whether our own code raised it: a ValueError out of a library is a fault, not a message.

    An OSError that names a file (not found, no permission, disk full) is the user's to mend.
    """
    if isinstance(error, OSError):
        return error.filename is not None or error.errno in disk.REFUSED
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return str(frames[-1].f_globals.get("__name__", "")).split(".")[0] in PACKAGES


def _help() -> str:
    width = max(len(verb) for verb in VERBS)
    lines = [f"  {verb:<{width}}  {text}" for verb, (_, text) in VERBS.items()]
    return "\n".join(
        [
            "assay: find out which text is worth training on",
            "",
            "usage: assay VERB ...    (`assay VERB --help` shows its options and an example)",
            "",
            *lines,
        ]
    )


if __name__ == "__main__":
    sys.exit(main())
