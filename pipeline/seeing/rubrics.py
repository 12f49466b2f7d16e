"""What a reviewer is asked, and which key means what. An own one is a YAML file of these keys.

The name and version of a rubric stand in every label: labels of two versions are never mixed.
"""

from __future__ import annotations

from pathlib import Path

from pydantic import Field, field_validator

from pipeline.config import ConfigError, Settings, load

RESERVED = {" ": "next page", "u": "undo", "s": "skip", "q": "quit"}


class Rubric(Settings):
    """A question with one answer by key."""

    name: str = Field(pattern=r"^[a-z0-9][a-z0-9-]*$")
    version: int = Field(1, ge=1)
    question: str
    keys: dict[str, float] = Field(min_length=2)  # key -> label
    bad_below: float = 0.5  # labels under it mean: not to be trained on

    @field_validator("keys")
    @classmethod
    def _single_keys(cls, keys: dict[str, float]) -> dict[str, float]:
        for key in keys:
            if len(key) != 1 or key in RESERVED:
                taken = ", ".join(f"{k!r} ({what})" for k, what in RESERVED.items())
                raise ValueError(f"{key!r} is no key for an answer: one character, none of {taken}")
        return keys

    @property
    def id(self) -> str:
        return f"{self.name}/{self.version}"


RUBRICS: dict[str, Rubric] = {
    "keep": Rubric(
        name="keep", question="Should a model be trained on this?", keys={"y": 1.0, "n": 0.0}
    ),
    "clean": Rubric(
        name="clean",
        question="Is it free of advertising, page chrome and broken text? (h: half of it)",
        keys={"y": 1.0, "h": 0.5, "n": 0.0},
        bad_below=0.75,
    ),
    # The scale of FineWeb-Edu (Penedo et al. 2024), which its authors cut at 3.
    "education": Rubric(
        name="education",
        question="Of what use is it for learning? 0 none, 3 coherent and useful, 5 outstanding",
        keys={str(score): float(score) for score in range(6)},
        bad_below=3.0,
    ),
}


def rubric(named: str) -> Rubric:
    """One of `RUBRICS`, or a YAML file.

    Raises:
        ConfigError: neither.
    """
    if named in RUBRICS:
        return RUBRICS[named]
    if not Path(named).suffix:
        raise ConfigError(
            f"no rubric {named!r}; known: {', '.join(RUBRICS)}, or give a YAML file with `name`, "
            "`question` and `keys`"
        )
    return load(named, Rubric)
