from __future__ import annotations

from pathlib import Path

import numba

from kernels import compile as compiling


def test_cache_folder_is_set_and_named_by_the_sources() -> None:
    assert Path(numba.config.CACHE_DIR).name == f"kernels-{compiling.source_hash()}"


def test_source_hash_follows_every_kernel_file_and_what_it_imports(tmp_path: Path) -> None:
    for folder in compiling.KERNEL_FOLDERS:
        (tmp_path / folder).mkdir()
    source = "from kernels.compile import kernel\nX = 1\n"
    empty = compiling.source_hash(tmp_path)
    (tmp_path / "dedup" / "a.py").write_text(source)
    first = compiling.source_hash(tmp_path)
    (tmp_path / "dedup" / "a.py").write_text(source.replace("1", "2"))
    second = compiling.source_hash(tmp_path)
    (tmp_path / "dedup" / "plain.py").write_text("X = 1\n")
    assert len({empty, first, second}) == 3
    assert compiling.source_hash(tmp_path) == second, "no kernel knows it"
    imports = source + "from dedup.plain import X as Y\n"
    (tmp_path / "dedup" / "a.py").write_text(imports)
    third = compiling.source_hash(tmp_path)
    (tmp_path / "dedup" / "plain.py").write_text("X = 2\n")
    assert compiling.source_hash(tmp_path) != third


def test_source_hash_follows_the_lists_that_kernels_freeze(tmp_path: Path) -> None:
    (tmp_path / "filters" / "words").mkdir(parents=True)
    hashes = {compiling.source_hash(tmp_path)}
    for name in ("filters/words/a.tsv", "filters/words/b.toml", "filters/c.tsv"):
        for text in ("old", "new"):
            (tmp_path / name).write_text(text)
            hashes.add(compiling.source_hash(tmp_path))
    assert len(hashes) == 7


def test_kernel_compiles_and_is_cached() -> None:
    @compiling.kernel
    def total(n: int) -> int:
        result = 0
        for i in range(n):
            result += i
        return result

    assert total(5) == 10


def test_constants_make_no_kernels_of_their_own() -> None:
    @compiling.kernel
    def add(a: int, b: int) -> int:
        return a + b

    @compiling.kernel
    def total(n: int) -> int:
        result = 0
        for i in range(n):
            result = add(result, i) + add(1, b=-1)
        return result

    assert total(5) == 10
    assert add.signatures == [(numba.int64, numba.int64)]
