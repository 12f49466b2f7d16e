"""The plan of a run's data: everything that decides which window comes when, known beforehand.

A plan is plain data. Its fingerprint is over contents (selected documents, packing, quotas, seed),
never over paths, so a corpus may move; and not over the number of tokens, so a longer run goes on
where a shorter one stopped (continuing.py: also one with other weights from there on).
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import xxhash

from mixtures import weighing
from mixtures.edited import NO_CHANGES, Changes
from mixtures.epochs import check_epochs, ends_at, epoch_windows
from mixtures.order import epoch_seed, parts_until
from mixtures.packed import NO_LOSS, Loss, continued, folder_of, packing_of, require_parts
from mixtures.packing import measure, pack
from mixtures.parts_read import parts_per_group
from mixtures.phases import num_windows
from mixtures.planned_phases import PlannedPhase, of_the_run, planned_phases, schedule_of
from mixtures.schedule import Schedule
from mixtures.select import Selection, select
from mixtures.spec import Mixture, load_mixture
from mixtures.tokens import TokenShards
from pipeline.config import ConfigError
from pipeline.finished import home


@dataclass(frozen=True)
class PlannedSource:
    """One source: its packed windows and its share."""

    name: str
    corpus: str
    folder: str  # packed/<selection>
    selection: str  # hash
    windows: tuple[int, ...]  # of each packed part
    parts_per_group: int  # parts whose windows are shuffled together, by `shuffle`
    claimed: int  # documents that `where` selects; held-out text is not among them
    copies: int  # of these, removed as copies of one content or address
    near: int  # removed as near duplicates
    documents: int  # these stay
    num_tokens: int
    num_bytes: int
    requested: float  # share of windows that the schedule is made of; with phases: of this run
    realised: float  # share of windows, by whole ones of a period; with phases: of this run
    max_epochs: float
    epochs: float  # that this run needs
    changes: Changes = NO_CHANGES  # by edits
    contained: int = 0  # removed because a longer document that stays holds them
    semantic: int = 0  # removed for what they mean
    indexed: int = 0  # removed as copies of documents in an index of `not_in`
    packed_tokens: int = 0  # of num_tokens; the others fill no window
    loss: Loss = NO_LOSS  # by packing
    capped: int = 0  # removed by `cap`
    unique_tokens: int = 0  # of `num_tokens`, each document once; 0 in old plans: all
    asked: float = 0.0  # share that weights ask for, of what `weigh_by` counts; in old plans 0
    by_budget: bool = False  # `epochs`, or `short: unimax`: the length of the run decides its share
    requested_tokens: float = 0.0  # share of tokens; not that of windows where windows are padded
    realised_tokens: float = 0.0
    realised_documents: float = 0.0  # share of documents, as often as they are seen
    realised_bytes: float = 0.0
    ends_at: int | None = None  # tokens of a longer run at which it has had its `max_epochs`
    order: str = ""  # hash that the order of its windows follows from; in old plans: selection

    @property
    def num_windows(self) -> int:
        return sum(self.windows)

    @property
    def epoch_windows(self) -> float:
        """Windows that hold as many tokens as it has unique ones: see epochs.py."""
        return self.num_windows * ((self.unique_tokens or self.num_tokens) / self.num_tokens)


@dataclass(frozen=True)
class Plan:
    """Which windows a run sees, in which order."""

    tokens: int  # of the run; a window is sequence_length of them
    sequence_length: int
    seed: int
    tokenizer: str  # hash
    tokenizer_file: str  # tokenizer.json
    vocab_size: int
    bos_id: int | None
    eos_id: int | None
    heldout: int  # documents that some `where` selects and that are held out
    sources: tuple[PlannedSource, ...]
    # None: shares of each source all along; one: just these windows of each, of a long run
    phases: tuple[PlannedPhase, ...] = ()
    weigh_by: str = "tokens"  # what weights are shares of

    @property
    def num_windows(self) -> int:
        return num_windows(self.tokens, self.sequence_length)

    # kept by hand: before Python 3.12 the lock of a cached_property is one for the plans of all
    # threads, and a process that is forked while it is held waits for ever
    @property
    def schedule(self) -> Schedule:
        if "_schedule" not in vars(self):
            vars(self)["_schedule"] = self._scheduled()
        found: Schedule = vars(self)["_schedule"]
        return found

    def _scheduled(self) -> Schedule:
        only = PlannedPhase(self.num_windows, tuple(source.requested for source in self.sources))
        return schedule_of([source.name for source in self.sources], self.phases or (only,))

    @property
    def fingerprint(self) -> str:
        """32 hex digits; equal for plans that give equal windows at every position of both."""
        if "_fingerprint" not in vars(self):
            vars(self)["_fingerprint"] = self._hash()
        return str(vars(self)["_fingerprint"])

    def _hash(self) -> str:
        parts: list[Any] = [self.sequence_length, self.seed, self.tokenizer]
        quotas = np.stack([period.quotas for period in self.schedule.periods]).T.tolist()
        for source, by_phase in zip(self.sources, quotas, strict=True):
            parts += [source.selection, source.windows, source.parts_per_group, *by_phase]
            parts += [source.order] if source.order else []
        if self.phases:
            parts.append(self.schedule.begins.tolist())
        return str(xxhash.xxh3_128_hexdigest(json.dumps(parts).encode()))

    def to_dict(self) -> dict[str, Any]:
        return asdict(self) | {"num_windows": self.num_windows, "fingerprint": self.fingerprint}


def plan_from_dict(found: dict[str, Any]) -> Plan:
    """The inverse of `Plan.to_dict`, also after a turn through JSON."""
    fields = {k: v for k, v in found.items() if k not in ("num_windows", "fingerprint")}
    sources = tuple(
        PlannedSource(
            **source
            | {
                "windows": tuple(source["windows"]),
                "changes": Changes(**source.get("changes", {})),
                "loss": Loss(**source.get("loss", {})),
            }
        )
        for source in fields["sources"]
    )
    phases = tuple(
        PlannedPhase(phase["end"], tuple(phase["requested"]), tuple(phase.get("windows", ())))
        for phase in fields.get("phases", ())
    )
    return Plan(**fields | {"sources": sources, "phases": phases})


def make_plan(mixture_path: str | Path, tokens: int, pack: bool = True) -> Plan:
    """Select, pack and schedule; with `pack` False nothing is written, and the plan is the same.

    Raises:
        ConfigError: the mixture cannot be used, or a source would repeat more than `max_epochs`.
    """
    mixture = load_mixture(mixture_path)
    return plan_selection(mixture, select(mixture), tokens, pack)


def plan_selection(mixture: Mixture, selection: Selection, tokens: int, write: bool) -> Plan:
    """The plan of an already selected mixture."""
    if tokens < mixture.sequence_length:
        raise ConfigError(
            f"{tokens} tokens are less than one window of {mixture.sequence_length}; "
            "ask for more, or lower `sequence_length`"
        )
    length = mixture.sequence_length
    roots = {name: Path(mixture.corpora[s.corpus]) for name, s in mixture.sources.items()}
    packing = {name: packing_of(mixture, root, selection.tokenizer) for name, root in roots.items()}
    own = {name: measure(docs, packing[name]) for name, docs in selection.documents.items()}
    whole = {name: continued(roots[name], packed) for name, packed in own.items()}
    measured = {name: packed.read_at(length) for name, packed in whole.items()}
    counts = {count.name: count for count in selection.counts}
    epoch = {name: epoch_windows(counts[name], packed) for name, packed in measured.items()}
    names = list(mixture.sources)
    filled = {name: packed.filled for name, packed in whole.items()}
    phases, asked, by_budget = planned_phases(mixture, counts, epoch, filled, tokens)
    schedule = schedule_of(names, phases)
    total = phases[-1].end
    needed = dict(zip(names, schedule.windows_until(total).tolist(), strict=True))
    windows = {name: partial(schedule.of, at) for at, name in enumerate(names)}
    most = {name: source.epochs or source.max_epochs for name, source in mixture.sources.items()}
    for name in names:
        if name not in by_budget:
            check_epochs(name, epoch[name], most[name], windows[name], total, length)
    requested = of_the_run(names, phases, [phase.requested for phase in phases])
    realised = schedule.periods[0].realised()
    if len(schedule.periods) > 1:
        realised = {name: number / total for name, number in needed.items()}
    of_tokens = weighing.back(realised, filled)
    of_documents, of_bytes = weighing.realised(of_tokens, counts)
    together = {n: parts_per_group(mixture, packed) for n, packed in measured.items()}
    if write:
        for name, documents in selection.documents.items():
            packed, root = measured[name], roots[name]
            parts = parts_until(
                needed[name],
                packed.windows,
                together[name],
                epoch_seed(mixture.seed, packed.selection, packed.order, 0),
            )
            if packed.selection == own[name].selection:
                state = selection.states[root]
                pack(root, documents, packing[name], state, mixture.edits, parts)
                folder = folder_of(root, packed.selection)
                selection.walked[name].keep_answer(folder, root, mixture.sources[name].corpus)
            else:
                require_parts(folder_of(root, packed.selection), parts)
    shards = TokenShards(home(next(iter(roots.values()))), selection.tokenizer)
    return Plan(
        tokens=tokens,
        sequence_length=mixture.sequence_length,
        seed=mixture.seed,
        tokenizer=selection.tokenizer,
        tokenizer_file=str(shards.folder / "tokenizer.json"),
        vocab_size=shards.vocab_size,
        bos_id=shards.bos_id,
        eos_id=shards.eos_id,
        heldout=selection.heldout,
        sources=tuple(
            PlannedSource(
                name=name,
                corpus=source.corpus,
                folder=str(folder_of(roots[name], measured[name].selection)),
                selection=measured[name].selection,
                windows=measured[name].windows,
                parts_per_group=together[name],
                claimed=counts[name].claimed,
                copies=counts[name].copies,
                near=counts[name].near,
                documents=counts[name].documents,
                num_tokens=counts[name].num_tokens,
                num_bytes=counts[name].num_bytes,
                requested=requested[name],
                realised=realised[name],
                max_epochs=most[name],
                epochs=needed[name] / epoch[name],
                changes=counts[name].changes,
                contained=counts[name].contained,
                semantic=counts[name].semantic,
                indexed=counts[name].indexed,
                packed_tokens=measured[name].tokens_out,
                loss=measured[name].loss,
                capped=counts[name].capped.documents,
                unique_tokens=counts[name].unique_tokens,
                asked=asked[name],
                by_budget=name in by_budget,
                requested_tokens=weighing.back(requested, filled)[name],
                realised_tokens=of_tokens[name],
                realised_documents=of_documents[name],
                realised_bytes=of_bytes[name],
                ends_at=_ends_at(windows[name], most[name] * epoch[name], mixture),
                order=measured[name].order,
            )
            for name, source in mixture.sources.items()
        ),
        phases=phases if len(phases) > 1 or phases[0].is_exact else (),
        weigh_by=mixture.weigh_by,
    )


def _ends_at(windows: Callable[[int], int], most: float, mixture: Mixture) -> int | None:
    end = ends_at(windows, most)
    return None if end is None else end * mixture.sequence_length
