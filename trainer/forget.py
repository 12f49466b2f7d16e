"""`assay forget`: take documents out of a corpus, and of all that was made from it, for good."""

from __future__ import annotations

import argparse
from collections import Counter
from pathlib import Path

from mixtures import masking
from pipeline import finished, forgotten, publish, store, takeout
from pipeline.amounts import counted
from pipeline.corpus import CorpusError, locked
from pipeline.to_forget import CONDITIONS, Meant, meant, near_settings, read_values
from trainer import published_copies, receipt
from trainer.inventory import look

SHOWN = 10  # documents, of each kind
EXAMPLE = """examples:
  assay forget runs/web --urls takedown.txt --reason "request 2026-114"            what would go
  assay forget runs/web --urls takedown.txt --reason "request 2026-114" --delete   it goes
  assay forget runs/web --domains domains.txt --reason "robots.txt" --runs runs studies --delete
  assay forget s3://bucket/web --where "source = 'forum' and meta.author = 'x'" --reason "asked" \\
      --delete
  assay forget runs/web --delete                    goes on where a call was stopped

Files hold one value a line. An id is that of a document, of a text (content_hash) or of a reject; a
domain stands for those below it too. With a document go its exact and its verified near copies.
What is listed in forgotten/ binds every later `prepare`. Runs outside of the folders that you name
with --runs are not seen: name all of them."""


def forget(argv: list[str]) -> int:
    parser = argparse.ArgumentParser(
        prog="assay forget",
        description="Show which documents would go; with --delete, take them out of a corpus: out "
        "of sight at once, then out of its tables, tokens and packed windows, with a receipt.",
        epilog=EXAMPLE,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("corpus", help="folder or URL of a corpus")
    named = parser.add_mutually_exclusive_group()
    for how in CONDITIONS:
        named.add_argument(f"--{how}", metavar="FILE", type=Path, help=f"{how}, one a line")
    named.add_argument("--where", metavar="SQL", help="an expression over columns of documents")
    parser.add_argument("--reason", help="why, for the list and the receipt")
    parser.add_argument("--delete", action="store_true", help="do it (default: show it)")
    parser.add_argument(
        "--runs", nargs="+", default=["."], metavar="FOLDER", help="where runs lie (default: here)"
    )
    options = parser.parse_args(argv)
    given = {how: getattr(options, how) for how in (*CONDITIONS, "where")}
    given = {how: value for how, value in given.items() if value is not None}
    if not (given.get("where", "all") or "").strip():
        parser.error("--where is empty; name documents by an expression, or leave it out")
    if given and not (options.reason or "").strip():
        parser.error("give a --reason: it stands in the list and in the receipt")
    found = None
    for how, value in given.items():
        values = [value] if how == "where" else read_values(value, how)
        with finished.reading(options.corpus) as root:
            found = meant(root, how, values, *near_settings(root))
        show(found)
    if not given and not options.delete:
        return _show_pending(options.corpus)
    if not options.delete:
        print("nothing was changed; --delete does it" if found and len(found.rows) else "")
        return 0
    if found is not None and not len(found.rows):
        return 0 if found.before else 1  # as grep: a script sees that nothing was meant
    root = store.folder(options.corpus)
    if found is not None:
        with locked(root):
            ngram = near_settings(finished.standing(root))[0]
            forgotten.add(root, found.rows, options.reason.strip(), ngram)
            if (root / "corpus.json").exists():
                publish.finish(root)  # of a corpus on a store: out of sight from now on
    with locked(root):
        carry_out(root, options.runs)
    return 0


def carry_out(root: Path, places: list[str]) -> None:
    """Do what is listed and has no receipt yet; call it while holding the corpus."""
    listed = forgotten.listed(root)
    calls = [call for call in listed if not call.done]
    if not calls:  # but windows that this machine packed of a corpus on a store
        masked = masking.mask(root, forgotten.documents(listed)["id"].combine_chunks())
        here = counted(len(masked), "packed selection")
        print(f"nothing is left to be taken out; {here} here held what was, and is masked")
        return
    found = look(places)
    parts = takeout.take_out(root, calls)
    receipts = []
    for call in calls:
        masked = masking.mask(root, forgotten.documents([call])["id"].combine_chunks())
        seen = receipt.seen_by(root, found, masked)
        known = receipt.known_to(found, call)
        ids = forgotten.documents([call])["id"].combine_chunks()
        copies = published_copies.copies(found, ids)
        receipts.append(receipt.write(root, call, parts, masked, seen, known, copies, places))
    takeout.publish_without(root)
    for path in receipts:
        print(f"wrote {path}")


def show(found: Meant) -> None:
    """What is meant, without its text."""
    for why, told in receipt.WHY.items():
        rows = [row for row in found.shown if row["why"] == why]
        if not rows:
            continue
        size = sum(row["num_bytes"] for row in rows)
        print(f"{told}: {len(rows):,}, {size / 1e6:,.3f} MB of text")
        for row in rows[:SHOWN]:
            print(f"  {row['id']}  {row['source']}  {row['url'] or ''}".rstrip())
        if len(rows) > SHOWN:
            sources = Counter(row["source"] for row in rows[SHOWN:])
            listed = ", ".join(f"{num:,} of {source}" for source, num in sources.most_common())
            print(f"  and {listed}")
    if found.before:
        print(f"forgotten before: {counted(found.before, 'value')}")
    if found.unknown:
        shown = ", ".join(found.unknown[:SHOWN]) + (" ..." if len(found.unknown) > SHOWN else "")
        print(f"in no document: {counted(len(found.unknown), 'value')}: {shown}")
    if found.nulls:
        print(f"the expression is NULL for {counted(found.nulls, 'document')}: these stay")
    if not len(found.rows):
        print("no document is meant")


def _show_pending(corpus: str) -> int:
    root = store.folder(corpus)
    if not (root / "inputs.json").exists() and not (root / "corpus.json").exists():
        raise CorpusError(f"{corpus}: not a corpus; run `assay prepare` for it first")
    for call in forgotten.listed(root):
        state = "done" if call.done else "listed; --delete takes the text out"
        print(f"{call.number}: {counted(sum(call.documents.values()), 'document')}, "
              f"{call.reason}: {state}")  # fmt: skip
    return 0
