"""What a run reads: the plan of its mixture, or one that was published, and its held-out sets."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from mixtures import heldout, published
from mixtures.heldout import HeldoutSet
from mixtures.plan import Plan, make_plan, plan_from_dict
from mixtures.published import is_published, open_plan
from mixtures.shard_cache import ShardCache
from mixtures.spec import load_mixture
from pipeline.files import read_json
from trainer.settings import RunSettings


def require_usable(run: RunSettings) -> None:
    """Refuse a mixture that cannot be used, before anything of it is selected.

    Raises:
        ConfigError: says what is wrong with it.
    """
    if is_published(run.mixture):
        open_plan(run.mixture, run.tokens)
    else:
        load_mixture(run.mixture)


def planned(run: RunSettings, pack: bool = True) -> Plan:
    """The plan of a run; of a mixture what it reads is packed, or with `pack` False only planned.

    Windows that were packed again since keep the order that the run of this folder began with.
    """
    if is_published(run.mixture):
        plan = open_plan(run.mixture, run.tokens)
    else:
        plan = make_plan(run.mixture, run.tokens, pack)
    before = Path(run.output or "", "plan.json")
    if not before.exists():
        return plan
    orders = {s.selection: s.order for s in plan_from_dict(read_json(before)).sources}
    sources = (replace(s, order=orders.get(s.selection, s.order)) for s in plan.sources)
    return replace(plan, sources=tuple(sources))


def heldout_sets(run: RunSettings) -> list[HeldoutSet]:
    """The held-out sets of all corpora of the mixture, as far as `evaluate` reads them."""
    most = run.evaluate.max_bytes_per_set
    if is_published(run.mixture):
        return published.heldout_sets(run.mixture, most, cache_of(run))
    return heldout.evaluation_sets(load_mixture(run.mixture).corpora.values(), most)


def cache_of(run: RunSettings) -> ShardCache:
    """The cache of what a run reads of a store."""
    return ShardCache(run.cache.folder, run.cache.max_bytes)
