"""Why a mixture takes a document or leaves it out: `assay inspect CORPUS ID --mixture FILE`.

The mixture is walked as it is for a run; then it is asked what became of this one document.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.ipc

from mixtures.candidates import asked_of, forgotten_hashes, heldout_hashes
from mixtures.caps import grouped
from mixtures.indexed import indexes_of
from mixtures.packed import Packed, continued, folder_of, packing_of, parts_of
from mixtures.packing import measure
from mixtures.select import used_corpora
from mixtures.semantic import vectors_of
from mixtures.sources import Cap
from mixtures.spec import Mixture, load_mixture, sources_of
from mixtures.staying import Staying, stay
from mixtures.tokens import tokenizer_of
from mixtures.walk import Walk, contained_of, pairs_of, walks
from pipeline.amounts import counted
from pipeline.config import ConfigError
from pipeline.files import part_name
from pipeline.predicates import conjuncts, predicate, predicate_columns
from pipeline.schema import HASH
from pipeline.seeing.asking import rows
from pipeline.seeing.document import bounds, number
from pipeline.syntax import SqlError, quoted, text_literal
from pipeline.unique import holders, partners

Row = dict[str, Any]


def explain(file: str, root: Path, found: Row) -> list[str]:
    """Lines: what a mixture does with the document that `inspect` found in the corpus at `root`.

    Raises:
        ConfigError: the mixture cannot be used, or does not read this corpus.
    """
    mixture = load_mixture(file)
    reading = sources_of(mixture, root)
    names = sorted({source.corpus for source in reading.values()})
    told = [line for name in reading for line in _where(mixture, name, root, found)]
    try:
        fate = list(_fate(mixture, names, found["document"]))
    except (ConfigError, SqlError) as error:
        fate = [f"the mixture cannot be planned: {str(error).removeprefix(f'{file}: ')}"]
    return [f"{file}: {fate[0]}", *(f"  {line}" for line in [*fate[1:], *told])]


# --- the predicates -------------------------------------------------------------------------------


def _where(mixture: Mixture, name: str, root: Path, found: Row) -> Iterator[str]:
    """What the `where` of a source says of a document, and which parts of it are not true."""
    source, row = mixture.sources[name], found["document"]
    parts = conjuncts(source.where)
    columns = {part: predicate_columns(part) for part in parts}
    wanted = list(dict.fromkeys(column for named in columns.values() for column in named))
    asked = [f"{predicate(source.where)}::boolean as whole"]
    asked += [f"({part})::boolean as p{at}" for at, part in enumerate(parts)]
    asked += [f"{column} as {quoted(f'c{at}')}" for at, column in enumerate(wanted)]
    question = f"select {', '.join(asked)} from {asked_of(source.corpus)}"
    try:
        (answer,) = rows(root, f"{question} where id = {text_literal(row['id'])}")
    except SqlError as error:
        yield f"source {name}: `where` cannot be asked: {str(error).splitlines()[0]}"
        return
    yield f"source {name}: `where` is {_truth(answer['whole'])}{_missing(source.missing, answer)}"
    values = {column: answer[f"c{at}"] for at, column in enumerate(wanted)}
    for at, part in enumerate(parts):
        if answer[f"p{at}"] is not True:
            shown = "; ".join(_value(column, values[column], found) for column in columns[part])
            yield f"  {_truth(answer[f'p{at}'])}: {part}   ({shown})"


def _truth(value: bool | None) -> str:
    return "NULL" if value is None else str(value).lower()


def _missing(missing: str | None, answer: Row) -> str:
    if answer["whole"] is not None:
        return ""
    return f", and `missing: {missing}`" if missing else ", and it has no `missing: keep` or `drop`"


def _value(column: str, value: Any, found: Row) -> str:
    """A column and its value; of a preset the rules that fail."""
    preset = column.removesuffix(".pass")
    failed = [rule for rule in found["presets"].get(preset, ()) if rule["passes"] is False]
    if column != preset and failed:
        return "; ".join(
            f"{rule['signal']} = {number(rule['value'])}, wanted {bounds(rule)}" for rule in failed
        )
    return f"{column} = {'NULL' if value is None else number(value)}"


# --- what became of it ----------------------------------------------------------------------------


def _fate(mixture: Mixture, names: list[str], row: Row) -> Iterator[str]:
    """In or out, and why, first; then what is known beyond it."""
    roots = used_corpora(mixture)
    corpora = [Path(folder) for folder in mixture.corpora.values()]
    found = [(w, at) for w in walks(mixture, roots) for at in _places(w, names, row)]
    for walked, at in found:
        yield from _fate_in(mixture, walked, roots, at)
    if not found:
        content = row["content_hash"]
        if content in heldout_hashes(corpora).to_pylist():
            yield "out: held out, no mixture trains on it"
        elif content in forgotten_hashes(corpora).to_pylist():
            yield "out: one of its corpora was told to forget this text"
        else:
            yield "out: no source selects it"


def _places(walked: Walk, names: list[str], row: Row) -> list[int]:
    """Where a document stands among those that the sources of a walk select."""
    mine = pa.array(np.isin(walked.owner, walked.sources))
    here = pc.and_(pc.is_in(walked.rows["corpus"], value_set=pa.array(names)), mine)
    (places,) = np.nonzero(np.asarray(pc.and_(pc.equal(walked.rows["id"], row["id"]), here)))
    return [int(at) for at in places[:1]]


def _fate_in(mixture: Mixture, walked: Walk, roots: dict[str, Path], at: int) -> Iterator[str]:
    name = list(mixture.sources)[walked.owner[at]]
    if walked.indexed[at]:
        yield "out: a copy of a document in an index of `not_in`"
        return
    if not walked.first[at]:
        same = np.asarray(pc.equal(walked.rows["copy"], walked.rows["copy"][at]))
        (stays,) = np.nonzero(same & walked.first)
        what = {"url": "the address", "folded": "the folded text"}.get(mixture.unique, "the text")
        yield f"out: a copy, by {what}, of {_before(mixture, walked, int(stays[0]), at)}"
        return
    if mixture.unique == "contained" and walked.distinct[at] and not walked.kept[at]:
        yield from _contained(walked, roots, at)
        return
    if mixture.unique == "semantic" and walked.distinct[at] and not walked.kept[at]:
        yield _meant(mixture, walked, roots, at)
        return
    if not walked.kept[at]:
        yield from _near(mixture, walked, roots, at)
        return
    yield from _taken(mixture, name, walked, roots, at)


def _before(mixture: Mixture, walked: Walk, stays: int, at: int) -> str:
    """The document that stays in the place of another, and what put it first."""
    row = walked.rows.slice(stays, 1).to_pylist()[0]
    told = f"{row['id']} (corpus {row['corpus']}, source {row['source']}), which comes first"
    if walked.owner[stays] not in walked.sources:
        return f"{told}: an earlier phase reads it"
    for key, expression in enumerate(mixture.prefer):
        ours, theirs = (walked.rows[f"prefer_{key}"][n].as_py() for n in (at, stays))
        if ours != theirs:
            return f"{told} by `prefer: {expression}`: {number(theirs)} there, {number(ours)} here"
    return f"{told} in the order of content hashes and ids"


def _near(mixture: Mixture, walked: Walk, roots: dict[str, Path], at: int) -> Iterator[str]:
    """Of which documents that stay, and come before it, this is a near duplicate."""
    rank = np.empty(len(walked.order), np.int64)
    rank[walked.order] = np.arange(len(rank))
    (stay,) = np.nonzero(walked.distinct & (rank < rank[at]))
    hashes = walked.rows["content_hash"]
    by_content = {bytes.fromhex(hashes[n].as_py()): n for n in stay.tolist()}
    pairs = pairs_of(roots, indexes_of(mixture))
    found = partners(pairs, bytes.fromhex(hashes[at].as_py()), list(by_content))
    for count, (content, jaccard) in enumerate(sorted(found.items(), key=lambda f: (-f[1], f[0]))):
        told = f"a near duplicate (Jaccard {jaccard:.3f}) of "
        told += _before(mixture, walked, by_content[content], at)
        yield f"out: {told}" if count == 0 else f"also {told}"
    if not found:
        yield f"out: `unique: {mixture.unique}` keeps another document in its place"


def _meant(mixture: Mixture, walked: Walk, roots: dict[str, Path], at: int) -> str:
    """Of the documents that stay and come before it, the one that means it most."""
    ahead = walked.order[: int(np.flatnonzero(walked.order == at)[0])]
    stay = ahead[walked.kept[ahead]]
    vectors = vectors_of(mixture, roots, walked.rows.take(np.append(stay, at)))
    cosines = vectors[:-1] @ vectors[-1]
    nearest = int(cosines.argmax())
    told = _before(mixture, walked, int(stay[nearest]), at)
    return f"out: it means the same (cosine {cosines[nearest]:.3f}) as {told}"


def _contained(walked: Walk, roots: dict[str, Path], at: int) -> Iterator[str]:
    """Which documents that stay hold this one."""
    hashes = walked.rows["content_hash"]
    found = holders(contained_of(roots), bytes.fromhex(hashes[at].as_py()))
    for stays in np.flatnonzero(walked.kept).tolist():
        share = found.get(bytes.fromhex(hashes[stays].as_py()))
        if share is not None:
            row = walked.rows.slice(stays, 1).to_pylist()[0]
            yield (
                f"out: {share:.1%} of it stands in {row['id']} (corpus {row['corpus']}, source "
                f"{row['source']}), which is longer and stays"
            )


def _taken(
    mixture: Mixture, name: str, walked: Walk, roots: dict[str, Path], at: int
) -> Iterator[str]:
    """A document that stays: what edits, repeats and packing do with it."""
    source = mixture.sources[name]
    root, tokenizer = roots[source.corpus], tokenizer_of(list(roots.values()), mixture.tokenizer)
    staying = stay(mixture, name, walked, root, tokenizer)
    documents = staying.documents
    identity = bytes.fromhex(walked.rows["id"][at].as_py())
    (mine,) = np.nonzero(documents.id.view("S16") == np.frombuffer(identity, "S16")[0])
    edits = ", ".join(mixture.edits)
    if identity in staying.cut_ids:
        assert source.cap is not None
        values = walked.rows[f"cap_{list(mixture.sources).index(name)}"].slice(at, 1)
        yield _cut(name, source.cap, grouped(source.cap, values)[0][0], staying)
        return
    if not len(mine):
        yield f"out: its edits ({edits}) leave nothing of it, in source {name}"
        return
    one = documents.take(mine)
    yield f"in, by source {name}: {counted(int(one.num_tokens[0]), 'token')}"
    before = walked.rows["num_bytes"][at].as_py()
    if one.is_edited[0]:
        yield f"edited ({edits}): {before:,} bytes are {int(one.num_bytes[0]):,}"
    elif mixture.edits:
        yield f"not edited: it has no edits of {edits}"
    if source.repeats is not None or source.repeats_by is not None:
        yield f"repeated: it stands {counted(int(staying.times[mine[0]]), 'time')}"
        return  # its windows are those of the repeated selection
    packing = packing_of(mixture, root, tokenizer)
    yield _packed(root, continued(root, measure(documents, packing)), identity)


def _cut(name: str, cap: Cap, value: str, staying: Staying) -> str:
    """What of its value of the column stays instead."""
    (cut,) = (cut for cut in staying.cuts if cut.value == value)
    limit = staying.capped.limit
    room = "" if limit is None else f", room for {limit:,}"
    return (
        f"out: the cap of source {name} by `{cap.by}`: {value} keeps {cut.left_documents:,} of "
        f"{counted(cut.documents, 'document')} ({cut.left_tokens:,} of {cut.num_tokens:,} tokens"
        f"{room}), the first by `prefer` that fit"
    )


def _packed(root: Path, packed: Packed, identity: bytes) -> str:
    """In which windows a document stands."""
    folder = folder_of(root, packed.selection)
    if not (folder / "manifest.json").exists():
        return "not packed yet: `assay mix` packs this selection"
    parts = parts_of(folder)
    for part in sorted(parts):
        with pa.memory_map(str(folder / part_name(part, "arrow"))) as file:
            held = pa.ipc.open_file(file).read_all()["documents"]
        named = held.combine_chunks()
        (at,) = np.nonzero(np.asarray(pc.equal(named.flatten(), pa.scalar(identity, HASH))))
        windows = np.searchsorted(np.asarray(named.offsets), at, side="right") - 1
        if len(windows):
            which = f"{windows[0]:,} to {windows[-1]:,}" if len(windows) > 1 else f"{windows[0]:,}"
            return f"packed: window {which} of {packed.windows[part]:,} of {folder}, part {part}"
    if len(parts) < len(packed.windows):
        return (
            f"not packed yet: {len(parts)} of {len(packed.windows)} parts of {folder} are, and not "
            "its own; `assay mix` with more `--tokens` packs more"
        )
    return f"packed, and in no window of {folder}: it stands behind the last whole one of its part"
