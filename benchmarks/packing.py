"""What each packing policy costs on real text, and how fast it packs.

    ASSAY_CORPUS=... python benchmarks/run.py packing

The corpus is that of benchmark `road`. Rates are MB of ids per CPU second, policies in turn, twice;
the first is of a policy alone (documents to a layout), the second of all: gather, layout, write.
"""

from __future__ import annotations

import shutil
import time
from pathlib import Path

import numpy as np
import yaml

from mixtures.dealing import deal
from mixtures.layout import POLICIES
from mixtures.packed import Packed, Packing, folder_of, packing_of
from mixtures.packing import in_a_row, layout_of, measure, pack
from mixtures.select import select
from mixtures.spec import load_mixture

LENGTHS = (512, 2_048, 8_192)
TURNS = 2


def packing(num_bytes: int, folder: Path) -> None:
    """Print losses of each language, length and policy, and rates."""
    root = folder / "all"
    for lang in ("en", "zh"):
        print(f"\npacking, {lang}: tokens of a window, policy, what it costs")
        for length in LENGTHS:
            for policy in POLICIES:
                path = _mixture(folder, lang, length, policy)
                mixture = load_mixture(path)
                selection = select(mixture)
                documents = selection.documents["all"]
                how = packing_of(mixture, root, selection.tokenizer)
                print(f"  {length:>6,} {policy:<9}{_costs(measure(documents, how))}", flush=True)
    mixture = load_mixture(_mixture(folder, "en", 2_048, "concat"))
    selection = select(mixture)
    documents = selection.documents["all"]
    print("\npacking, en, 2,048: policy, MB of ids per CPU second of the layout, of all")
    for policy in list(POLICIES) * TURNS:
        how = Packing(
            mixture.seed, 2_048, selection.tokenizer, f"benchmark {policy}", policy=policy
        )
        rows = [in_a_row(part, how) for part in deal(documents, how)]
        layout_of(rows[0].take(np.arange(1)), how)  # loads numba
        begin = time.process_time()
        for row in rows:
            layout_of(row, how)
        laid = time.process_time() - begin
        begin = time.process_time()
        packed = pack(root, documents, how)
        whole = time.process_time() - begin
        shutil.rmtree(folder_of(root, packed.selection))
        size = 2 * packed.tokens_in / 1e6
        print(f"  {policy:<9} {size / laid:8.0f} {size / whole:8.0f}", flush=True)


def _mixture(folder: Path, lang: str, length: int, policy: str) -> Path:
    path = folder / "packing.yaml"
    source = {"from": "all", "where": f"lang = '{lang}'"}
    settings = {
        "corpora": {"all": str(folder / "all")},
        "sequence_length": length,
        "packing": policy,
        "unique": "exact",
        "sources": {"all": source},
    }
    path.write_text(yaml.safe_dump(settings))
    return path


def _costs(packed: Packed) -> str:
    loss, places = packed.loss, packed.tokens_out + packed.loss.padding
    cut, short = (100 * num / packed.num_documents for num in (loss.cut, loss.cut_short))
    return (
        f"left over {packed.remainder:>6,} of {packed.tokens_in:,}, padding "
        f"{100 * loss.padding / places:5.2f} %, cut {cut:5.1f} % of {packed.num_documents:,} "
        f"documents ({short:4.1f} % though short enough), without beginning "
        f"{100 * loss.headless / packed.tokens_out:5.1f} % of tokens"
    )
