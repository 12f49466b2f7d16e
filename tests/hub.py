"""A data set of huggingface.co on this machine, for tests: a folder, as the server of web_server.py
answers for it. `HF_ENDPOINT` is read when huggingface_hub is loaded, so who reads it is a new
process with `web.url` there."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any
from urllib.parse import quote

from web_server import Web

API = "/api/datasets/{}"
TREE = "/tree/main{}?recursive=false&expand=false"


def serve(web: Web, dataset: str, folder: Path) -> str:
    """Serve a folder as `dataset` (owner/name); its URL."""
    api = API.format(dataset)
    about = {"id": dataset, "sha": "c" * 40, "siblings": [], "tags": [], "private": False}
    web.files[api] = json.dumps(about).encode()
    for place in (folder, *(path for path in folder.rglob("*") if path.is_dir())):
        inside = [_entry(path, folder) for path in sorted(place.iterdir())]
        below = "" if place == folder else "/" + quote(str(place.relative_to(folder)), safe="")
        web.files[api + TREE.format(below)] = json.dumps(inside).encode()
    for path in folder.rglob("*"):
        if path.is_file():
            name = path.relative_to(folder)
            web.files[f"/datasets/{dataset}/resolve/main/{name}"] = path.read_bytes()
    return f"hf://datasets/{dataset}"


def _entry(path: Path, folder: Path) -> dict[str, Any]:
    kind, size = ("file", path.stat().st_size) if path.is_file() else ("directory", 0)
    return {"type": kind, "path": str(path.relative_to(folder)), "size": size, "oid": "0" * 40}
