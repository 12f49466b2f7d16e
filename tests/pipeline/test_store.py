"""A corpus on a store: two attempts, killed uploads, damage, stale writers; other machines read."""

from __future__ import annotations

import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from pipeline import commits, corpus, damage, lease, objects, publish, store
from pipeline.files import write_json, write_sealed
from pipeline.lease import LeaseError
from pipeline.ranges import open_file
from pipeline.schema import FORMAT_VERSION

TEXT = "documents/part-00000.parquet"
LENGTH = "signals/length/part-00000.parquet"


@pytest.fixture
def url() -> str:
    return f"memory://{uuid.uuid4().hex}/corpus"


@pytest.fixture
def machine(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """From here on this is the machine of that name: it has a cache of its own."""

    def become(name: str) -> None:
        monkeypatch.setenv("ASSAY_CACHE", str(tmp_path / name))

    become("a")
    return become


def ingest(root: Path, text: str = "text", fingerprint: str = "f1") -> dict[str, Any]:
    def work() -> dict[str, Any]:
        (root / TEXT).parent.mkdir(exist_ok=True)
        (root / TEXT).write_text(text)
        return {"documents": 1}

    return commits.once(root, "ingest", 0, fingerprint, [root / TEXT], work)


def measure(root: Path, read: str = "f1") -> dict[str, Any]:
    def work() -> dict[str, Any]:
        (root / LENGTH).parent.mkdir(parents=True, exist_ok=True)
        (root / LENGTH).write_text(str(len((root / TEXT).read_text())))
        return {"documents": 1}

    stage = "signals/length"
    return commits.once(root, stage, 0, "g", [root / LENGTH], work, [("ingest", 0, read)])


def whole_run(root: Path, text: str = "text", fingerprint: str = "f1") -> None:
    """A whole run: the driver's files, two stages, the manifest."""
    with corpus.locked(root):
        write_sealed(root / "inputs.json", {"shards": text})
        publish.begin(root)
        ingest(root, text, fingerprint)
        measure(root, fingerprint)
        write_sealed(root / "corpus.json", {"format": FORMAT_VERSION, "text": text})
        publish.finish(root)


def test_another_machine_reads_what_was_published(url: str, machine: Callable[[str], None]) -> None:
    whole_run(store.folder(url))
    machine("b")
    root = store.folder(url)
    assert root.name == "corpus"
    assert corpus.manifest(root)["text"] == "text"
    assert not (root / TEXT).exists(), "tables come when they are asked for"
    assert [p.read_text() for p in corpus.part_paths(root, "documents")] == ["text"]
    assert corpus.fetched(root, LENGTH).read_text() == "4"
    assert corpus.part_paths(root, "pairs") == []


def test_a_second_run_makes_nothing_and_a_changed_one_is_seen(
    url: str, machine: Callable[[str], None]
) -> None:
    whole_run(store.folder(url))
    machine("b")
    reader = store.folder(url)
    corpus.part_paths(reader, "documents")
    machine("c")
    root = store.folder(url)
    before = objects.names(url)
    with corpus.locked(root):
        assert ingest(root)["lease"] == 1, "made under the first lease"
    assert [n for n in objects.names(url) if n not in before] == ["lease/00000002.json"]
    whole_run(root, "other", "f2")
    assert [p.read_text() for p in corpus.part_paths(reader, "documents")] == ["text"], "as opened"
    machine("b")
    assert [p.read_text() for p in corpus.part_paths(store.folder(url), "documents")] == ["other"]


def test_a_worker_without_the_drivers_disk_fetches_what_it_reads(
    url: str, machine: Callable[[str], None]
) -> None:
    driver = store.folder(url)
    with corpus.locked(driver):
        write_json(driver / "inputs.json", {})
        publish.begin(driver)
        ingest(driver)
        number = store.of(driver).number  # type: ignore[union-attr]
        machine("worker")
        worker = store.cache(url)
        store.follow(worker, number)
        assert (worker / "inputs.json").exists()
        measure(worker)
        assert (worker / TEXT).read_text() == "text"
        publish.gather(driver)
    assert commits.record(driver, "signals/length", 0, "g") is not None
    assert not (driver / LENGTH).exists()


def test_of_two_attempts_the_first_record_stands(url: str, machine: Callable[[str], None]) -> None:
    """Beam gives the same part to two workers (a slow one is given up, but lives)."""
    root = store.folder(url)
    with corpus.locked(root):
        first_root = root
        number = store.of(root).number  # type: ignore[union-attr]
        publish.begin(root)
        machine("slow")
        slow = store.cache(url)
        store.follow(slow, number)
        found: list[dict[str, Any]] = []

        def work() -> dict[str, Any]:
            found.append(ingest(first_root, "first"))  # the other one is quicker
            (slow / TEXT).parent.mkdir()
            (slow / TEXT).write_text("late")
            return {}

        late = commits.once(slow, "ingest", 0, "f1", [slow / TEXT], work)
    assert late == found[0]
    keys = [name for name in objects.names(url) if name.startswith("documents/")]
    assert keys == [late["outputs"][TEXT]["key"]], "the loser's upload is gone"
    assert not (slow / TEXT).exists(), "other bytes than the record names"
    commits.ready(slow, [("ingest", 0, "f1")])
    assert (slow / TEXT).read_text() == "first"


def test_an_upload_killed_halfway_is_read_by_nobody(
    url: str, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    root = store.folder(url)

    def killed(path: Path, to: str) -> None:
        objects.write(to, path.read_bytes()[:2])
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), corpus.locked(root):
        publish.begin(root)
        monkeypatch.setattr(objects, "upload", killed)
        ingest(root)
    monkeypatch.undo()
    machine("b")
    root = store.folder(url)
    assert commits.record(root, "ingest", 0, "f1") is None
    [half] = [name for name in objects.names(url) if name.startswith("documents/")]
    assert publish.orphans(url) == [], "a run that did not finish may go on"
    whole_run(root)
    assert half in publish.orphans(url)
    assert publish.orphans(url.removesuffix("/corpus")) == [], "that is no corpus"
    assert store.folder(url) == root
    assert [p.read_text() for p in corpus.part_paths(root, "documents")] == ["text"]
    for name in publish.orphans(url):
        objects.delete(f"{url}/{name}")
    machine("c")
    assert [p.read_text() for p in corpus.part_paths(store.folder(url), "documents")] == ["text"]


def test_a_damaged_object_is_refused_and_made_again(
    url: str, machine: Callable[[str], None]
) -> None:
    root = store.folder(url)
    whole_run(root)
    record = commits.record(root, "ingest", 0, "f1")
    assert record is not None
    objects.write(f"{url}/{record['outputs'][TEXT]['key']}", b"tExt")
    machine("b")
    other = store.folder(url)
    with pytest.raises(store.StoreError, match=r"is damaged: .* `assay prepare --verify` makes"):
        corpus.part_paths(other, "documents")
    with corpus.locked(other):
        assert damage.damaged(other) == [TEXT]
        publish.begin(other)
        ingest(other)
        publish.finish(other)
    assert [p.read_text() for p in corpus.part_paths(other, "documents")] == ["text"]


def test_a_stale_writer_changes_nothing(url: str, machine: Callable[[str], None]) -> None:
    """It slept while another took over, and wakes up to commit, and to publish."""
    root = store.folder(url)
    with pytest.raises(LeaseError, match="lease 1 was taken over"), corpus.locked(root):
        publish.begin(root)
        assert objects.create(f"{url}/lease/00000002.json", b'{"owner": "b", "expires": 0}')
        with pytest.raises(LeaseError, match="lease 1 was taken over"):
            ingest(root)
        publish.finish(root)
    assert not [n for n in objects.names(url) if n.startswith(("stats/", "manifest/"))]


def test_a_late_manifest_of_a_stale_writer_is_not_read(
    url: str, machine: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between its check and its put the writer sleeps; the next one has published meanwhile."""
    old = store.folder(url)
    monkeypatch.setattr(lease, "check", lambda url, number: None)
    with corpus.locked(old):
        publish.begin(old)
        machine("b")
        monkeypatch.setattr(lease, "LEASE_SECONDS", -1.0)  # what it holds is over for others
        new = store.folder(url)
        objects.write(f"{url}/lease/00000001.json", b'{"owner": "a", "expires": 0}')
        whole_run(new, "new")
        ingest(old, "old", "f0")
        write_json(old / "corpus.json", {"format": FORMAT_VERSION, "text": "old"})
        publish.finish(old)
    machine("c")
    assert corpus.manifest(store.folder(url))["text"] == "new"


def test_what_is_read_by_ranges_is_not_fetched(url: str, machine: Callable[[str], None]) -> None:
    whole_run(store.folder(url))
    machine("b")
    root = store.cache(url)
    commits.ready(root, [("ingest", 0, "f1")], ("documents/",))
    assert not (root / TEXT).exists()
    with open_file(commits.location(root, "ingest", 0, TEXT)) as file:
        assert file.read() == b"text"
    commits.ready(root, [("ingest", 0, "f1")])
    assert commits.location(root, "ingest", 0, TEXT) == str(root / TEXT)
