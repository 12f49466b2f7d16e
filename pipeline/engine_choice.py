"""Which engine is right for a tokenizer on a corpus; where it is the slow one, why, and what helps.

Apart from tokenizer.py, which decides the ids: a change here leaves tokens as they are.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pipeline.encoder import Encoder
from pipeline.sentencepiece_engine import SENTENCEPIECE
from pipeline.tokenizer import choose_engine
from pipeline.tokenizer_engines import Engine, loaded


def engine_of(encoder: Encoder, why: str) -> Engine:
    if encoder.engine == SENTENCEPIECE:
        return SENTENCEPIECE
    return "tokenizers" if why else "fastokens"


def why_slow(tokenizer_json: Path, sample: Sequence[str]) -> str:
    """Why the fast engine is not right for a tokenizer on texts like the sample; "": it is."""
    if choose_engine(tokenizer_json, sample) != "tokenizers":
        return ""
    try:
        loaded("fastokens", tokenizer_json.read_bytes())
    except (RuntimeError, ValueError) as error:
        reason = " ".join(str(error).split())
        return (
            f"fastokens does not read this tokenizer ({reason[:300]}); a tokenizer with a rule of "
            "`assay tokenizer train --rule` is fast"
        )
    return (
        f"fastokens gives other ids than `tokenizers` on a sample of {len(sample):,} texts, "
        "so those of `tokenizers` are taken; `assay tokenizer compare` shows both speeds"
    )


def tell(file: str, chosen: Mapping[str, Any]) -> None:
    """One line where engine.json says that the engine is the slow one (`why`: none in those of
    older versions)."""
    if why := chosen.get("why"):
        print(
            f"tokenizer {file}: encoded by `tokenizers`, 15 to 80 times slower than fastokens; "
            f"{why}",
            file=sys.stderr,
        )
