"""A step that fails, as one line: what, where, the remedy, and which file holds its traceback.

An exception crosses processes as text: Beam's frames, 140 lines of them, then what was raised.
"""

from __future__ import annotations

import builtins
import re
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from pipeline.corpus import CorpusError
from pipeline.disk import KEPT
from pipeline.progress import LOG

# The end of what Beam makes of an exception; a KeyError quotes what it holds.
_STEP = re.compile(
    r"\A.*^(?:RuntimeError: )?([\w.]+): ([\"']?)(.*) \[while running '([^']*)'\]\2\s*\Z",
    re.DOTALL | re.MULTILINE,
)
_OWN = re.compile(r"pipeline(\.\w+)+Error")  # says what to do
LESS_MEMORY = "fewer --workers, or smaller shard_bytes"


class StepError(RuntimeError):
    """A step failed, and no setting or file of the user is known to be the reason."""

    def __init__(self, message: str, log: Path) -> None:
        super().__init__(message)
        self.log = log  # where its traceback is


@contextmanager
def explained(root: Path, lost: Sequence[str] = ()) -> Iterator[None]:
    """Around a pipeline of a corpus: what it raises is the cause of an exception of one line.

    Args:
        lost: what is to be said of workers that died meanwhile; Beam may say anything then.

    Raises:
        CorpusError: a step failed for a reason that the user can mend, or a worker died.
        StepError: for another reason.
    """
    try:
        yield
    except Exception as error:
        line = _line(root, error, lost)
        if line is None:
            raise
        raise line from error


def _line(root: Path, error: Exception, lost: Sequence[str]) -> CorpusError | StepError | None:
    """None: no step raised it."""
    log = root / LOG
    if lost:
        return CorpusError(f"{root}: {lost[0]}; details: {log}")
    found = _STEP.search("".join(traceback.format_exception_only(error)))
    if found is None:
        return None
    kind, _, message, step = found.groups()
    failed = f"{root}: step {step!r} failed: "
    if _OWN.fullmatch(kind):
        return CorpusError(f"{failed}{message}; details: {log}")
    if _is_of_the_system(kind):
        return CorpusError(f"{failed}{message}; mend it and {KEPT}; details: {log}")
    if kind.endswith("MemoryError") or message == "MemoryError":  # without a text of its own
        return CorpusError(f"{failed}{kind}: {message}; {LESS_MEMORY}, and {KEPT}; details: {log}")
    why = "a fault of assay or of a library, please report it; what was finished is kept"
    return StepError(f"{failed}{kind}: {message}; {why}; traceback: {log}", log)


def _is_of_the_system(kind: str) -> bool:
    found = getattr(builtins, kind, None)
    return isinstance(found, type) and issubclass(found, OSError)
