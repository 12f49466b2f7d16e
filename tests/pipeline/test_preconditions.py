from __future__ import annotations

from pathlib import Path

import pytest

from filters.language import codes
from pipeline.config import ConfigError
from pipeline.preconditions import MEANT, _require_own_folder, check_languages


@pytest.mark.parametrize(
    ("code", "hint"),
    [
        ("zhh", "did you mean 'zh'?"),
        ("cn", "did you mean 'zh'?"),
        ("zh-Hans", "did you mean 'zh'?"),
        ("yue", "did you mean 'zh'?"),
        ("EN", "did you mean 'en'?"),
        ("en_US", "did you mean 'en'?"),
        ("eng", "did you mean 'en'?"),
        ("jp", "did you mean 'ja'?"),
        ("xx", f"known: {', '.join(codes())}"),
    ],
)
def test_a_code_that_no_document_has(code: str, hint: str) -> None:
    with pytest.raises(ConfigError) as caught:
        check_languages(["en", code])
    assert str(caught.value) == f"key `languages`: no document is ever of language {code!r}; {hint}"


def test_no_corpus_lies_in_another(tmp_path: Path) -> None:
    outer = tmp_path / "runs" / "web"
    outer.mkdir(parents=True)
    (outer / "corpus.json").write_text("{}")
    with pytest.raises(ConfigError, match="key `output`: .*inner lies inside the corpus .*/web; "):
        _require_own_folder(outer / "more" / "inner")
    _require_own_folder(tmp_path / "runs" / "inner")
    _require_own_folder(outer)


def test_codes_that_documents_have() -> None:
    check_languages(codes())
    assert set(MEANT.values()) <= set(codes())
    assert not set(MEANT) & set(codes())
