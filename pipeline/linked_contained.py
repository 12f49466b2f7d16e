"""Which documents of several corpora hold which: found as near duplicates across them are
(linked.py), by the keys that `prepare` keeps of each and its text, in a folder of their own."""

from __future__ import annotations

import functools
import shutil
from collections.abc import Sequence
from pathlib import Path

from pipeline import linked, signed
from pipeline.config import ConfigError
from pipeline.corpus import manifest
from pipeline.dedup_settings import Near
from pipeline.fingerprint import fingerprint
from pipeline.finished import home
from pipeline.transforms import contained, contained_join, near_join

KEYS = "contained_keys"


def linked_contained(roots: Sequence[Path]) -> Path:
    """The folder that holds the table `contained` of all these corpora; made unless it stands.

    Raises:
        ConfigError: they were not prepared alike.
        CorpusError: a file of a corpus is damaged, or is changing.
    """
    folder = folder_of(roots)
    if linked.stands(folder):
        return folder
    shutil.rmtree(folder, ignore_errors=True)
    settings = Near(**manifest(roots[0])["settings"]["near"])
    parts = [(root, part) for root in roots for part in signed.parts_of(root)]
    num = near_join.partitions(
        sum(manifest(root)["stages"]["ingest"]["totals"]["bytes"] for root in roots)
    )
    with linked.attempt(folder) as at:
        numbers, partitions = list(range(len(parts))), list(range(num))
        link = functools.partial(linked.link, at, signed.contained_files)
        linked.each(link, list(enumerate(parts)), "linked")
        contained_join.make_filter(at, numbers)
        linked.each(functools.partial(contained.find_hits, at, settings), numbers, "looked up")
        propose = functools.partial(contained_join.propose, at, numbers, num=num)
        linked.each(propose, partitions, "joined")
        contained_join.join(at, settings, numbers, num)
        linked.each(functools.partial(contained.shingle, at, settings), numbers, "shingled")
        verify = functools.partial(contained_join.verify, at, settings, numbers, num=num)
        linked.each(verify, partitions, "verified")
        linked.seal(at, settings)
    return folder


def folder_of(roots: Sequence[Path]) -> Path:
    """Where it stands, or will.

    Raises:
        ConfigError: these corpora were not prepared alike.
    """
    manifests = [manifest(root) for root in roots]
    for key in ("containment", "ngram"):
        ours, *others = (found["settings"]["near"].get(key) for found in manifests)
        for root, theirs in zip(roots[1:], others, strict=True):
            if ours != theirs:
                raise ConfigError(
                    f"`unique: contained` over {roots[0]} and {root}: `near: {{{key}}}` is {ours} "
                    f"in one and {theirs} in the other; prepare one of them again, or use "
                    "`unique: exact`"
                )
    for root, found in zip(roots, manifests, strict=True):
        if KEYS not in found["stages"]:
            raise ConfigError(
                f"`unique: contained`: {root} was not prepared for it; name it a "
                "`near: {containment: 0.8}` in its corpus.yaml and call `assay prepare`"
            )
    prints = [found["stages"][KEYS]["fingerprint"] for found in manifests]
    if len(set(prints)) > 1:
        raise ConfigError(
            f"`unique: contained` over {' and '.join(map(str, roots))}: made by different versions "
            "of assay; call `assay prepare` for all of them again: it makes this anew and no more"
        )
    made_of = [signed.outputs_of(root, KEYS) for root in roots]
    joins = manifests[0]["stages"]["contained"]["fingerprint"]
    return home(roots[0]) / linked.FOLDER / fingerprint(joins, made_of)
