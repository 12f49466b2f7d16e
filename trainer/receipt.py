"""The receipt of `assay forget`: which runs, steps and checkpoints saw what was forgotten.

Windows keep the names of their documents when they are masked, and which windows a step saw is a
function of its number. So a receipt can be worked out before, after and again. A window that
`on_damage: skip` made blank was seen by no step.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from mixtures.loader import Loader
from mixtures.masking import Masked
from mixtures.packed import folder_of
from mixtures.pieces import positions_of
from mixtures.plan import Plan, plan_from_dict
from pipeline import copy_index, forgotten
from pipeline.amounts import counted
from pipeline.config import check
from pipeline.files import read_json, replacing, write_sealed
from pipeline.tables import names_of
from trainer import published_copies, saved, skipped
from trainer.batches import step_of, steps
from trainer.inventory import Inventory
from trainer.published_copies import Copy
from trainer.settings import RunSettings

WHY = {
    "named": "named",
    "copy": "exact copies of these",
    "near": "verified near copies of these",
    "reject": "rejected records, of which the excerpt goes",
}
SHOWN_STEPS = 20  # ranges, in the text; JSON has all
RESUME = (
    "A run goes on as it was: `assay train` of the same run.yaml finds the masked windows under "
    "the old hash, in the same order, and checkpoints load. A run that trains now has the old "
    "windows open: stop it and start it again."
)
COPIES = (
    "What stands where `assay mix --publish` put it is not taken out with the corpus. Which steps "
    "of a run saw a document, `assay windows RUN --document ID` says, also where its windows are "
    "not packed here."
)
KNOWN = (
    "Indexes of `assay dedup index` know these texts by hashes, so that copies of them stay out of "
    "later mixtures. To take the hashes out too, delete an index and make it again."
)


@dataclass(frozen=True)
class Seen:
    """What a run saw of what was forgotten."""

    run: str
    status: str
    plan: str  # fingerprint, which does not change
    documents: list[str]  # hex ids
    planned_steps: list[tuple[int, int]]  # first and last of each range, also those to come
    steps: list[tuple[int, int]]  # of these, that were made and trained on them
    blank: int  # windows that held them and were skipped, for they were damaged
    checkpoints: list[str]  # of those that stand, made of such steps


def seen_by(root: Path, found: Inventory, masked: Sequence[Masked]) -> list[Seen]:
    """What each run saw of the documents that were masked in packed selections of a corpus."""
    by_selection = {one.selection: one for one in masked}
    return [
        seen
        for run in found.runs
        if (run / "plan.json").exists() and (seen := _seen(root, run, by_selection)) is not None
    ]


def _seen(root: Path, run: Path, masked: dict[str, Masked]) -> Seen | None:
    plan = _here(root, plan_from_dict(read_json(run / "plan.json")), masked)
    wanted = {name for s in plan.sources if s.selection in masked
              for name in masked[s.selection].documents}  # fmt: skip
    if not wanted:
        return None
    record = read_json(run / "run.json")
    settings = check(record["settings"], RunSettings, str(run / "run.json"))
    planned = steps(settings.batch_tokens, plan)
    with closing(Loader(plan)) as loader:
        places = positions_of(loader, *sorted(wanted), selections=set(masked))
        documents = {
            name
            for place in places
            for _, names in loader.documents_at(place, 1)
            for name in names
            if name in wanted
        }
    seeing = sorted({step_of(planned, position).number for position in places})
    done, blank = _steps_done(run), {one.position for one in skipped.read(run)}
    seen = {step_of(planned, position).number for position in places if position not in blank}
    made = [step for step in seeing if step <= done and step in seen]
    checkpoints = [
        path.name
        for path in reversed(saved.newest_first(run / "checkpoints"))
        if made and saved.manifest(path)["step"] >= made[0]
    ]
    return Seen(
        run=str(run),
        status=record["status"],
        plan=plan.fingerprint,
        documents=sorted(documents),
        planned_steps=_ranges(seeing),
        steps=_ranges(made),
        blank=len(blank.intersection(places)),
        checkpoints=checkpoints,
    )


def _here(root: Path, plan: Plan, masked: dict[str, Masked]) -> Plan:
    """A plan whose masked selections are looked for in this corpus, which may have moved, or of
    which it reads a published copy; the others are not read, nor fetched."""
    sources = tuple(
        replace(s, folder=str(folder_of(root, s.selection)) if s.selection in masked else "")
        for s in plan.sources
    )
    return replace(plan, sources=sources)


def _steps_done(run: Path) -> int:
    path = run / "metrics.jsonl"
    lines = path.read_text("utf-8").split("\n")[:-1] if path.exists() else []
    return max((int(json.loads(line)["step"]) for line in lines), default=0)


def _ranges(steps: Iterable[int]) -> list[tuple[int, int]]:
    found: list[tuple[int, int]] = []
    for step in steps:
        if found and found[-1][1] == step - 1:
            found[-1] = found[-1][0], step
        else:
            found.append((step, step))
    return found


def known_to(found: Inventory, call: forgotten.Listed) -> list[dict[str, Any]]:
    """The indexes (pipeline/copy_index.py) that know texts of a call, and how many; None: cannot be
    told, for it is damaged or of another version."""
    contents = names_of(forgotten.contents([call]))
    known = []
    for path in found.indexes:
        try:
            texts = int(copy_index.have([copy_index.read(path)], "exact", contents).sum())
        except ValueError:
            texts = None
        if texts != 0:
            known.append({"index": str(path), "texts": texts})
    return known


# --- on disk --------------------------------------------------------------------------------------


def write(
    root: Path,
    call: forgotten.Listed,
    parts: list[int],
    masked: list[Masked],
    seen: list[Seen],
    indexes: list[dict[str, Any]],
    published: list[Copy],
    places: Sequence[str],
) -> Path:
    """Write the receipt of a call, for machines and for people; returns that for people.

    Args:
        places: where runs were looked for.
    """
    rows = forgotten.documents([call])
    receipt = {
        "number": call.number,
        "reason": call.reason,
        "asked": call.time,
        "done": round(time.time()),
        "documents": [
            {"id": row["id"].hex(), "why": row["why"],
             "content_hash": row["content_hash"].hex() if row["content_hash"] else None}
            for row in rows.select(["id", "why", "content_hash"]).to_pylist()
        ],
        "parts": parts,
        "windows": [asdict(one) for one in masked],
        "runs": [asdict(one) for one in seen],
        "indexes": indexes,
        "published": [asdict(one) for one in published],
        "looked_for_runs_in": [str(Path(place).resolve()) for place in places],
    }  # fmt: skip
    path = forgotten.receipt_path(root / forgotten.FOLDER, call.number)
    with replacing(path.with_suffix(".md")) as temporary:
        temporary.write_text(text(root, receipt), "utf-8")
    write_sealed(path, receipt)  # last: from now on the call is done
    return path.with_suffix(".md")


def text(root: Path, receipt: dict[str, Any]) -> str:
    """A receipt for people, as Markdown."""
    documents = receipt["documents"]
    whys = {why: sum(row["why"] == why for row in documents) for why in WHY}
    lines = [
        f"# {root.name}: {counted(len(documents), 'document')} forgotten (no. {receipt['number']})",
        "",
        f"Reason: {receipt['reason']}",
        f"Listed {_day(receipt['asked'])}, text gone {_day(receipt['done'])}.",
        "",
        *(f"- {num:,} {WHY[why]}" for why, num in whys.items() if num),
        f"- {counted(len(receipt['parts']), 'part')} of the corpus written again",
        "",
        "## Packed windows",
        "",
    ]
    for one in receipt["windows"]:
        first, last = one["fingerprints"][0], one["fingerprints"][-1]
        lines += [
            f"- `packed/{one['selection']}`: {counted(len(one['documents']), 'document')} masked; "
            f"bytes {first} became {last}; stands for what is left of its selection: "
            f"{', '.join(one['stands_for']) or 'nothing (packed by an earlier version)'}"
        ]
    lines += [] if receipt["windows"] else ["None held these documents."]
    lines += ["", "## Runs", ""]
    for run in receipt["runs"]:
        steps = ", ".join(_range(*step) for step in run["steps"][:SHOWN_STEPS])
        more = " ..." if len(run["steps"]) > SHOWN_STEPS else ""
        lines += [
            f"- {run['run']} ({run['status']}, plan {run['plan']}): "
            f"{counted(len(run['documents']), 'document')} in its plan; "
            f"steps that saw them: {steps or 'none yet'}{more}; {_blank(run['blank'])}"
            f"checkpoints made of these: {', '.join(run['checkpoints']) or 'none'}"
        ]
    places = ", ".join(receipt["looked_for_runs_in"])
    lines += [] if receipt["runs"] else ["None saw them."]
    lines += ["", f"Runs were looked for in {places}; others are not seen.", "", RESUME]
    if receipt["indexes"]:
        lines += ["", "## Indexes", "", KNOWN, ""]
    for one in receipt["indexes"]:
        texts = "cannot be read" if one["texts"] is None else counted(one["texts"], "text")
        lines += [f"- {one['index']}: {texts}"]
    if receipt["published"]:
        lines += ["", "## Published windows", "", COPIES, ""]
    lines += [f"- {published_copies.told(Copy(**one))}" for one in receipt["published"]]
    lines += ["", "## Documents", ""]
    lines += [f"- {row['id']} ({row['why']})" for row in documents]
    return "\n".join(lines) + "\n"


def _blank(windows: int) -> str:
    if not windows:
        return ""
    return f"{counted(windows, 'window')} with them, damaged and skipped, not among these; "


def _range(first: int, last: int) -> str:
    return str(first) if first == last else f"{first} to {last}"


def _day(seconds: int) -> str:
    return time.strftime("%Y-%m-%d %H:%M UTC", time.gmtime(seconds))
