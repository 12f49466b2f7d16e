"""The tables of a corpus on disk: their columns and types. One place; everything else imports it.

`docs/formats.md` explains them. All files are Parquet but tokens and packed windows (Arrow IPC).
Hashes are 128-bit xxh3, stored as 16 big-endian bytes, shown in SQL as 32 hex digits.
"""

from __future__ import annotations

from collections.abc import Iterable

import pyarrow as pa
import xxhash

FORMAT_VERSION = 2  # 2: columns of PDF in DOCUMENTS, no signatures, keys under joins/

HASH = pa.binary(16)

DOCUMENTS = pa.schema(
    [
        ("id", HASH),  # hash of (source, file, offset): see `document_id`
        ("content_hash", HASH),  # hash of the normalized text; equal for exact duplicates
        ("source", pa.string()),  # name in corpus.yaml
        ("source_id", pa.string()),  # the user's own id; may repeat or be missing
        ("kind", pa.string()),  # web, book, code, paper, qa, forum, dialogue
        ("file", pa.string()),  # path relative to the fixed part of `files`
        ("offset", pa.int64()),  # byte in the uncompressed stream; else see docs/inputs.md
        ("url", pa.string()),
        ("domain", pa.string()),
        ("title", pa.string()),
        ("text", pa.string()),  # normalized: see filters/normalize.py
        ("num_bytes", pa.int64()),  # UTF-8 bytes of `text`
        ("num_chars", pa.int64()),  # code points of `text`
        ("crawl_date", pa.timestamp("s")),  # UTC
        ("published_date", pa.date32()),
        ("http_status", pa.int16()),
        ("truncated", pa.string()),  # WARC-Truncated
        ("charset", pa.string()),  # the encoding that the bytes were decoded with
        ("canonical_url", pa.string()),
        ("licence", pa.string()),
        ("licence_evidence", pa.string()),  # the link or tag that says so
        ("robots_meta", pa.string()),
        ("x_robots_tag", pa.string()),
        ("num_pages", pa.int32()),  # of a PDF, as the three below: see readers/pdf.py
        ("num_empty_pages", pa.int32()),
        ("num_running_lines", pa.int32()),
        ("wrapped_line_share", pa.float32()),
        ("meta", pa.map_(pa.string(), pa.string())),  # kept fields; not-strings as JSON
    ]
)

REJECTS = pa.schema(
    [
        ("id", HASH),
        ("source", pa.string()),
        ("file", pa.string()),
        ("offset", pa.int64()),
        ("num_bytes", pa.int64()),  # bytes of the raw record, 0 where unknown
        ("stage", pa.string()),
        ("reason", pa.string()),  # a short word: bad_json, missing_text, empty, truncated_gzip ...
        ("detail", pa.string()),  # what was wrong, for a person
        ("excerpt", pa.string()),  # the first 200 characters, undecodable bytes as U+FFFD
    ]
)

# Changes of text that a mixture may apply; `documents` is never touched. In the order of documents;
# offsets count bytes of the UTF-8 text, on character borders, ascending within a document, and no
# two overlap: filters/edits.py.
EDITS = pa.schema(
    [
        ("id", HASH),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("kind", pa.string()),
        ("replacement", pa.string()),
    ]
)

# By what copies are told beside content_hash, row-aligned with documents: all words of the folded
# view (dedup/folding.py), null where there are none; the canonical address
# (filters/canonical_urls.py), null where there is none.
COPIES = pa.schema([("folded_hash", HASH), ("url_hash", HASH)])

# One packed record per content of a part and LSH band; `row` is that of its first document.
BAND_KEYS = pa.schema([("key", pa.uint64()), ("row", pa.uint32())])

# A bit of each value of a signature, 64 a number; of each document as many numbers as it takes.
SKETCHES = pa.schema([("bits", pa.uint64())])

# Edges between documents `part << 32 | row`.
EDGES = pa.schema([("a", pa.uint64()), ("b", pa.uint64())])

# Documents of an index (pipeline/copy_index.py), row-aligned with its band keys.
INDEXED = pa.schema(
    [
        # By what copies are told, as in DOCUMENTS and COPIES; null: no copy of it is left out.
        ("content_hash", HASH),
        ("folded_hash", HASH),
        ("url_hash", HASH),
        ("sketch", pa.binary()),  # little-endian numbers of SKETCHES; null where there are no keys
        ("verified", pa.bool_()),  # near copies of it are left out: its shingles stand here, sorted
        ("shingles", pa.large_list(pa.uint64())),
    ]
)

# Documents that may be near duplicates, ascending, with the name of their component.
COMPONENTS = pa.schema([("doc", pa.uint64()), ("component", pa.uint64())])

# Members of candidate clusters, on their way to verification.
CANDIDATES = pa.schema(
    [("component", pa.uint64()), ("content_hash", HASH), ("shingles", pa.large_list(pa.uint64()))]
)

# Verified near-duplicate pairs of distinct contents, a < b.
PAIRS = pa.schema([("a", HASH), ("b", HASH), ("jaccard", pa.float32())])

# Connected components of the verified pairs (`large`: of the unverified candidates, see
# dedup/clusters.py); `cluster` is the smallest content_hash of its members.
CLUSTERS = pa.schema(
    [("content_hash", HASH), ("cluster", HASH), ("size", pa.int32()), ("large", pa.bool_())]
)

# Sorted shingle hashes of the members of clusters too large to store all pairs.
LARGE_CLUSTER_SHINGLES = pa.schema([("content_hash", HASH), ("shingles", pa.list_(pa.uint64()))])

# Lines and paragraphs of a part that may stand in other documents, by key: transforms/pieces.py.
PIECES = pa.schema(
    [
        ("high", pa.uint64()),  # the key, in halves; its lowest two bits say what the piece is
        ("low", pa.uint64()),
        ("row", pa.uint32()),  # of the document
        ("start", pa.uint32()),  # bytes of its text
        ("end", pa.uint32()),
        ("before", pa.uint16()),  # bytes of blank lines around
        ("after", pa.uint16()),
    ]
)

# Of each document the upper half of its content_hash, and the row whose pieces are its own.
PIECE_DOCUMENTS = pa.schema([("content", pa.uint64()), ("first", pa.uint32())])

# Pieces that stand in enough documents: part << 32 | number of the piece in its part.
PIECES_FOUND = pa.schema([("piece", pa.uint64()), ("documents", pa.uint32()), ("kept", pa.uint8())])

# Stretches of text on their way to a join, by name; `row` is that of a document of the part.
STRETCHES = pa.schema(
    [
        ("upper", pa.uint64()),  # 128 bits over the bytes
        ("lower", pa.uint64()),
        ("row", pa.uint32()),
        ("start", pa.uint32()),  # UTF-8 byte of the text
    ]
)

# The content of each document of a part, as two numbers.
CONTENTS = pa.schema([("upper", pa.uint64()), ("lower", pa.uint64())])

# Those stretches that stand in several places, by document and start: see dedup/repeats.py.
REPEATED = pa.schema(
    [
        ("doc", pa.uint64()),
        *(STRETCHES.field(name) for name in ("start", "upper", "lower")),
        ("copies", pa.uint32()),
        ("first", pa.uint8()),
        ("members", pa.uint64()),
        ("places", pa.uint64()),
    ]
)

# Runs of text that stand in several places, all of them, in the order of documents; byte offsets as
# of EDITS, but runs may overlap. Of the places of one `key` that a mixture selects, the first by
# (content_hash, start) stays.
SUBSTRINGS = pa.schema(
    [
        ("id", HASH),
        ("start", pa.int64()),
        ("end", pa.int64()),
        ("key", HASH),
        ("copies", pa.int32()),  # places in the whole corpus; texts of equal content count once
        ("first", pa.bool_()),  # stays when the whole corpus is selected
    ]
)

SUBSTRING = "substring"  # kind of the edits that they become

# Lines or paragraphs that stand in enough documents, all places of them, likewise.
PLACES = pa.schema(
    [
        *SUBSTRINGS,
        ("before", pa.uint16()),  # bytes of blank lines around, which may go with it
        ("after", pa.uint16()),
    ]
)

# Verified: of the shingles of a content this share stands in another one, which has no fewer.
CONTAINED = pa.schema(
    [
        ("content_hash", HASH),
        ("holder", HASH),
        ("containment", pa.float32()),
        ("num_shingles", pa.int32()),
        ("holder_shingles", pa.int32()),
    ]
)

# On the way there (dedup/containment.py): of each document its shingles, 0 where another one of the
# part has the same content, and the first 64 bits of its content hash; the filter of all keys;
# documents that may stand one in another; the shingles of those that are compared.
SIZES = pa.schema([("num_shingles", pa.uint32()), ("lot", pa.uint64())])
KEY_FILTER = pa.schema([("word", pa.uint64())])
PROPOSALS = pa.schema(
    [("inner", pa.uint64()), ("outer", pa.uint64()), ("cold", pa.uint16()), ("hot", pa.uint16())]
)
COMPARED = pa.schema([("content_hash", HASH), ("shingles", pa.large_list(pa.uint64()))])

# Frozen held-out documents, with their text: an evaluation needs nothing else.
HELDOUT = pa.schema(
    [
        ("set", pa.string()),
        ("content_hash", HASH),
        ("language", pa.string()),
        ("source", pa.string()),
        ("text", pa.string()),
    ]
)

# Pages that name each other as translations (transforms/hreflang.py), in the order of parts.
TRANSLATIONS = pa.schema([("document", HASH), ("part", pa.int32()), ("name", pa.string())])

# Which contents no arm may train on, and because of which held-out content.
HELDOUT_MATCHES = pa.schema(
    [
        ("content_hash", HASH),
        ("heldout", HASH),
        ("jaccard", pa.float32()),
        ("containment", pa.float32()),  # |A & B| / min(|A|, |B|) over shingles
    ]
)

# Evaluation items that are looked for; those with the same words are one entry of the index.
EVALUATION_ITEMS = pa.schema(
    [
        ("set", pa.string()),
        ("item", pa.string()),  # file:line
        ("entry", pa.int32()),
        ("num_words", pa.int32()),  # of the folded view: dedup/folding.py
        # Why it cannot be found: empty, short (no n-gram), shared (its n-grams stand in more than
        # ten items); or ""
        ("unmatched", pa.string()),
        ("excerpt", pa.string()),
    ]
)

# What a corpus was told to forget: see forgotten.py.
FORGOTTEN = pa.schema(
    [
        ("id", HASH),
        ("content_hash", HASH),  # null for a reject
        ("why", pa.string()),  # named, copy or near (of one that is named), reject
        ("shingles", pa.large_list(pa.uint64())),  # of those named, once a content; else null
    ]
)

# Token counts of a shard, row-aligned with its documents; the ids stand in an Arrow file beside.
TOKEN_COUNTS = pa.schema(
    [
        ("num_tokens", pa.int64()),  # with bos and eos
        ("num_special_literals", pa.int32()),  # special tokens spelled out in the text
    ]
)


def tokens(dtype: pa.DataType) -> pa.Schema:
    """Token ids of a shard, row-aligned with its documents; `dtype` is uint16 or uint32."""
    return pa.schema([("ids", pa.large_list(dtype))])


def edited_tokens(dtype: pa.DataType) -> pa.Schema:
    """Token ids of documents as edits left them; no ids where no text is left."""
    return pa.schema([("key", HASH), ("ids", pa.large_list(dtype))])  # key: of content and edits


def windows(dtype: pa.DataType, sequence_length: int, grouped: bool = False) -> pa.Schema:
    """Packed windows: `sequence_length + 1` ids, document starts inside, ids of the documents."""
    fields = [
        ("ids", pa.list_(dtype, sequence_length + 1)),
        ("starts", pa.list_(pa.int32())),  # ascending; first is 0
        ("documents", pa.list_(HASH)),  # document ids, one for each start; zeros: padding
    ]
    # one for each start: it belongs to the group of the one before, and sees it
    return pa.schema(fields + [("follows", pa.list_(pa.bool_()))] * grouped)


def selected(grouped: bool = False) -> pa.Schema:
    """The documents of a packed selection, by id."""
    fields = [("id", HASH), ("content_hash", HASH), ("edits", HASH)]
    # `group`: zeros: alone; `rank`: order of members
    return pa.schema(fields + [("group", HASH), ("rank", pa.int64())] * grouped)


# Beside it: of its documents that hold repeated text, which places went (mixtures/answers.py).
GOING = pa.schema(
    [
        ("edits", pa.string()),  # their name
        ("part", pa.int32()),
        ("id", HASH),
        ("content_hash", HASH),
        ("places", pa.uint64()),  # a sum over keys and starts
        ("goes", pa.list_(pa.bool_())),  # of each of its places, in the order of the table
    ]
)


def text_hashes(texts: Iterable[bytes | memoryview]) -> list[bytes]:
    """content_hash of each normalized UTF-8 text: 16 bytes."""
    return list(map(xxhash.xxh3_128_digest, texts))


def text_hash(text: bytes) -> bytes:
    return text_hashes([text])[0]


def document_ids(source: str, file: str, offsets: Iterable[int]) -> list[bytes]:
    """Identities of records, 16 bytes each; independent of sharding, order and other files."""
    prefix = f"{source}\0{file}\0".encode()
    digest = xxhash.xxh3_128_digest
    return [digest(b"%b%d" % (prefix, offset)) for offset in offsets]


def document_id(source: str, file: str, offset: int) -> bytes:
    return document_ids(source, file, [offset])[0]
