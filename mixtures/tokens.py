"""The tokens of a corpus: memory-mapped shards, lengths of documents, and the gather of a part."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from pipeline import added_tokenizers
from pipeline.commits import record_path
from pipeline.config import ConfigError
from pipeline.corpus import CorpusError, fetched, manifest
from pipeline.files import part_name, read_sealed
from pipeline.whole import require_whole, vouched


class TokenShards:
    """`tokens/<hash>` of a corpus. Holds maps of the shards that it looked at, no copies.

    Lengths are taken as they stand, if they add up; a shard whose ids are asked for is hashed first
    (0.1 s for 1 GB of it): a flipped bit in one is another id, which nothing would find later.
    """

    def __init__(self, root: Path, tokenizer: str) -> None:
        self.root, self.folder = root, root / "tokens" / tokenizer
        policy = read_sealed(self.folder / "policy.json")
        if policy is None:
            raise CorpusError(
                f"{self.folder}/policy.json is damaged; `assay prepare --verify` writes it again"
            )
        self.dtype = np.dtype(policy["dtype"])
        self.vocab_size: int = policy["vocab_size"]
        self.bos_id: int | None = policy["bos_id"]
        self.eos_id: int | None = policy["eos_id"]
        self._maps: dict[int, list[tuple[np.ndarray, np.ndarray]]] = {}
        self._whole: set[int] = set()

    def lengths(self, part: int) -> np.ndarray:
        """Tokens of each document of a shard, int64, in the order of rows."""
        batches = self.batches(part)
        found = np.concatenate([np.zeros(0, np.int64), *(np.diff(ends) for ends, _ in batches)])
        if (found < 0).any() or found.sum() != sum(len(ids) for _, ids in batches):
            self._require_whole(part)
        return found

    def batches(self, part: int) -> list[tuple[np.ndarray, np.ndarray]]:
        """(offsets, ids) of each record batch of a shard: document i is ids[offsets[i:i+2]]."""
        if part not in self._maps:
            path = fetched(self.root, self._name(part))
            try:
                self._maps[part] = _mapped(path)
            except (pa.ArrowException, OSError, LookupError):
                self._require_whole(part)
                raise
        return self._maps[part]

    def _name(self, part: int) -> str:
        return f"tokens/{self.folder.name}/{part_name(part, 'arrow')}"

    def _require_whole(self, part: int) -> None:
        if part not in self._whole:
            fetched(self.root, self._name(part))
            record = record_path(self.root, f"tokens/{self.folder.name}", part)
            require_whole(self.root, self._name(part), vouched([record]))
            self._whole.add(part)

    def gather(
        self,
        part: np.ndarray,
        row: np.ndarray,
        num_tokens: np.ndarray,
        at: np.ndarray,
        out: np.ndarray,
    ) -> None:
        """Put the ids of the documents (part, row), each at its place `at`, into one row of ids.

        Reads shard by shard in the order of rows, so that a cold map is read forwards.

        Raises:
            CorpusError: a shard is damaged.
            ValueError: an id beyond the vocabulary (a device-side assert, far from its cause, if it
                came to training: lit-llama#306, torchtitan#1495); names shard, row, document and
                source.
        """
        for number in np.unique(part).tolist():
            self._require_whole(number)
        order = np.lexsort((row, part))
        borders = np.flatnonzero(np.diff(part[order])) + 1
        for group in np.split(order, borders) if len(order) else []:
            self._copy(int(part[group[0]]), row[group], at[group], out)
        if len(out) and int(out.max()) >= self.vocab_size:
            bad = int(np.flatnonzero(out >= self.vocab_size)[0])
            which = int(np.flatnonzero(at <= bad)[at[at <= bad].argmax()])
            raise ValueError(
                f"{self.folder / part_name(int(part[which]), 'arrow')}: "
                f"{self._document(int(part[which]), int(row[which]))} holds token id {out[bad]}, "
                f"but the tokenizer has {self.vocab_size} tokens; tokenize again: delete this "
                "file and call `assay prepare`"
            )

    def _document(self, part: int, row: int) -> str:
        """What to call a document in an error; documents are read for this alone."""
        try:
            path = fetched(self.root, f"documents/{part_name(part)}")
            found = pq.read_table(path, columns=["id", "source"]).slice(row, 1).to_pylist()[0]
        except (pa.ArrowException, OSError, LookupError):
            return f"row {row}"
        return f"row {row}, document {found['id'].hex()} of source {found['source']!r},"

    def _copy(self, part: int, rows: np.ndarray, at: np.ndarray, out: np.ndarray) -> None:
        from kernels.ranges import copy_ranges  # loads numba: 0.5 s, to pack alone

        first = done = 0  # row of the batch, and how many of `rows` (ascending) lie before it
        for offsets, values in self.batches(part):
            last = first + len(offsets) - 1
            stop = int(np.searchsorted(rows, last))
            local = rows[done:stop] - first
            copy_ranges(values, offsets[local], offsets[local + 1], out, at[done:stop])
            first, done = last, stop


def _mapped(path: Path) -> list[tuple[np.ndarray, np.ndarray]]:
    reader = pa.ipc.open_file(pa.memory_map(str(path)))
    batches = []
    for number in range(reader.num_record_batches):
        batch = reader.get_batch(number)
        batch.validate()  # or a damaged length reads beyond the map: a crash (pyarrow 25)
        item = batch.column("ids")
        batches.append((item.offsets.to_numpy(), item.values.to_numpy(zero_copy_only=True)))
    return batches


def tokenizer_of(roots: list[Path], named: str | None = None) -> str:
    """The hash of the tokenizer whose tokens a mixture of these corpora reads.

    Args:
        named: `tokenizer` of the mixture, a name or a hash; None: the first of each corpus.

    Raises:
        ConfigError: a corpus has no tokens of it, or the first ones were made by different
            tokenizers.
    """
    known = {root: list(added_tokenizers.hashes(manifest(root))) for root in roots}
    if named is None:
        found = {root: hashes[0][1] for root, hashes in known.items()}
        remedy = "give them the same `tokenizer` in corpus.yaml, or add it by `assay tokenize`"
    else:
        found = {root: _named(root, hashes, named) for root, hashes in known.items()}
        remedy = "name the tokenizer by its hash, and add it where it is missing"
    if len(set(found.values())) > 1:
        listed = ", ".join(f"{root}: {name}" for root, name in found.items())
        raise ConfigError(f"the corpora of a mixture need one tokenizer, found {listed}; {remedy}")
    return next(iter(found.values()))


def _named(root: Path, hashes: list[tuple[str, str]], named: str) -> str:
    for name, found in hashes:
        if named in (name, found):
            return found
    raise ConfigError(
        f"key `tokenizer`: {root} has no tokens of {named!r}, but of "
        f"{', '.join(f'{name} ({found})' for name, found in hashes)}; add them by `assay tokenize "
        f"{root} --tokenizer <file> --name {named}`"
    )


def stage_of(root: Path, tokenizer: str) -> str:
    """The stage that made the tokens of a tokenizer, as corpus.json names it."""
    first: str = manifest(root)["tokenizer"]["hash"]
    return "tokens" if tokenizer == first else f"tokens/{tokenizer}"


def tokens_fingerprint(root: Path, tokenizer: str) -> str:
    """What made the token ids of a corpus: tokenizer, code and versions, whatever its shards."""
    return str(manifest(root)["stages"][stage_of(root, tokenizer)]["fingerprint"])
