"""What the text of a source is."""

from __future__ import annotations

from typing import Literal

Kind = Literal["web", "book", "code", "paper", "qa", "forum", "dialogue"]
