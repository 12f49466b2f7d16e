from __future__ import annotations

from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import yaml

from pipeline.config import ConfigError
from trainer.ablation.results import compare, read_run, read_scores
from trainer.ablation.study import Study, load_study
from trainer.ablation.wording import dominant_set, sentence

Items = list[tuple[str, str, str, int, float]]  # set, language, text, num_bytes, bits per byte


def write_scores(folder: Path, items: Items, step: int = 20) -> None:
    """evaluations.parquet with these items, and a step before it that must not count."""
    folder.mkdir(parents=True, exist_ok=True)
    sets, languages, texts, sizes, bits = zip(*items, strict=True)
    nats = np.array(sizes) * np.array(bits) * np.log(2)
    table = pa.table(
        {
            "step": [step] * len(items),
            "set": sets,
            "language": languages,
            "content_hash": pa.array([t.ljust(16).encode() for t in texts], pa.binary(16)),
            "nats": nats,
            "num_bytes": sizes,
        }
    )
    early = table.set_column(0, "step", pa.array([step // 2] * len(items)))
    early = early.set_column(4, "nats", pa.array(nats * 9))
    pq.write_table(pa.concat_tables([table, early]), folder / "evaluations.parquet")


def study_with(folder: Path, shift: dict[tuple[str, int, str], float], **values: object) -> Study:
    """Every run scored on four items a language; `shift` adds bits by arm, seed, language."""
    content = yaml.safe_load((folder / "study.yaml").read_text())
    (folder / "study.yaml").write_text(yaml.safe_dump({**content, **values}, sort_keys=False))
    study = load_study(folder / "study.yaml")
    for run in study.runs:
        items = [
            (f"web/{language}", language, f"{language}{n}", 100 * (n + 1), 2.0 + 0.1 * n + more)
            for language in ("en", "zh")
            for more in (shift.get((run.arm, run.seed, language), 0.0),)
            for n in range(4)
        ]
        write_scores(run.folder, items)
    return study


def test_only_the_last_step_and_what_could_be_scored_count(tmp_path: Path):
    items = [("s", "zh", "b", 10, 2.0), ("s", "zh", "a", 20, 3.0), ("s", "zh", "c", 0, 0.0)]
    write_scores(tmp_path, items)
    found, nats = read_run(tmp_path / "evaluations.parquet")
    assert [(item[2].decode().strip(), item[3]) for item in found] == [("a", 20), ("b", 10)]
    assert nats.tolist() == [20 * 3.0 * np.log(2), 10 * 2.0 * np.log(2)]


def test_numbers_and_verdict_of_a_clear_study(folder: Path):
    shift = {("deduplicated", s, lang): -0.1 for s in (1, 2, 3) for lang in ("en", "zh")}
    shift |= {("deduplicated", 1, "en"): -0.12, ("deduplicated", 2, "zh"): -0.08}
    study = study_with(folder, shift)
    outcome = compare(study, read_scores(study))
    assert outcome.verdicts == {"deduplicated": "better"}
    d = outcome.primary.differences["deduplicated"]
    assert d.per_seed == pytest.approx((-0.11, -0.09, -0.10))
    assert d.estimate == pytest.approx(-0.1)
    half = 4.30265272991 * 0.01 / np.sqrt(3)  # t with 2 degrees of freedom: all noise is seeds
    assert (d.low, d.high) == pytest.approx((-0.1 - half, -0.1 + half))
    assert outcome.primary.bits["as-it-comes"] == pytest.approx((2.2, 2.2, 2.2))
    assert [row.name for row in outcome.sets] == ["web/en", "web/zh"]
    assert [row.num_items for row in (*outcome.languages, *outcome.sets)] == [4, 4, 4, 4]
    assert outcome.languages[1].differences["deduplicated"].estimate == pytest.approx(-0.32 / 3)
    assert sentence(study, outcome, "deduplicated") == (
        "“deduplicated” is better than “as-it-comes”: it needs 0.1000 bits per byte (4.5%) "
        "less for held-out text (mean of zh and en; 95% interval −0.1248 to −0.0752)."
    )
    parts = outcome.contributions["deduplicated"]
    assert parts == pytest.approx({"web/en": -0.16 / 3, "web/zh": -0.14 / 3})
    assert dominant_set(outcome, "deduplicated") == ""


def test_a_set_that_makes_most_of_the_difference_is_named(folder: Path):
    shift = {("deduplicated", s, "en"): 0.3 + 0.01 * s for s in (1, 2, 3)}
    shift |= {("deduplicated", s, "zh"): 0.02 for s in (1, 2, 3)}
    outcome = compare(study := study_with(folder, shift), read_scores(study))
    parts = outcome.contributions["deduplicated"]
    assert parts == pytest.approx({"web/en": 0.16, "web/zh": 0.01})
    assert outcome.primary.differences["deduplicated"].estimate == pytest.approx(0.17)
    assert dominant_set(outcome, "deduplicated") == (
        "Most of it comes from one held-out set: “web/en” (4 documents) adds +0.1600 of +0.1700. "
        "Look at such text before you generalize."
    )


def test_weights_of_languages_decide(folder: Path):
    shift = {("deduplicated", s, "zh"): -0.1 for s in (1, 2, 3)}
    study = study_with(folder, shift, primary={"languages": {"zh": 3, "en": 1}})
    outcome = compare(study, read_scores(study))
    assert outcome.primary.differences["deduplicated"].estimate == pytest.approx(-0.075)


def test_within_the_noise_is_undecided(folder: Path):
    shift = {("deduplicated", s, "zh"): v for s, v in ((1, -0.1), (2, 0.1), (3, -0.04))}
    study = study_with(folder, shift)
    outcome = compare(study, read_scores(study))
    assert outcome.verdicts == {"deduplicated": "undecided"}
    assert sentence(study, outcome, "deduplicated") == (
        "Undecided: the difference between “deduplicated” and “as-it-comes” is −0.0067 bits per "
        "byte on held-out text, within the noise (mean of zh and en; 95% interval −0.1341 to "
        "+0.1208)."
    )


def test_two_seeds_are_undecided_however_large_the_difference(folder: Path):
    shift = {("deduplicated", s, lang): -1.0 for s in (1, 2) for lang in ("en", "zh")}
    study = study_with(folder, shift, seeds=[1, 2])
    outcome = compare(study, read_scores(study))
    assert outcome.verdicts == {"deduplicated": "undecided"}
    assert sentence(study, outcome, "deduplicated") == (
        "Undecided: 2 seeds and 8 held-out documents say nothing certain about “deduplicated” "
        "against “as-it-comes”; give at least 3 seeds, and 2 documents in each language."
    )


def test_held_out_sets_that_contradict_each_other(folder: Path):
    shift = {("deduplicated", s, "en"): -0.3 - 0.01 * s for s in (1, 2, 3)}
    shift |= {("deduplicated", s, "zh"): 0.1 + 0.01 * s for s in (1, 2, 3)}
    study = study_with(folder, shift)
    outcome = compare(study, read_scores(study))
    assert outcome.primary.differences["deduplicated"].verdict == "better"
    assert outcome.verdicts == {"deduplicated": "undecided: depends on the held-out set"}
    assert sentence(study, outcome, "deduplicated").startswith(
        "Undecided, because it depends on the held-out set: “deduplicated” is better than "
        "“as-it-comes” on web/en and worse on web/zh (−0.1000 bits per byte, "
    )


def test_several_arms_share_the_five_percent(folder: Path):
    arms = {"a": {}, "b": {"mixture": {"unique": "near"}}, "c": {"mixture": {"unique": "exact"}}}
    study = study_with(folder, {("b", 1, "zh"): 0.1}, arms=arms)
    outcome = compare(study, read_scores(study))
    assert outcome.confidence == 0.975
    assert outcome.verdicts == {"b": "undecided", "c": "undecided"}


def test_a_text_in_two_sets_counts_once_in_its_language(folder: Path):
    study = load_study(folder / "study.yaml")
    for run in study.runs:
        items = [("a", "en", "x", 10, 1.0), ("b", "en", "x", 10, 1.0), ("b", "en", "y", 10, 2.0)]
        write_scores(run.folder, [*items, ("b", "zh", "x", 10, 2.0)])
    outcome = compare(study, read_scores(study))
    assert outcome.primary.num_items == 3
    assert outcome.primary.bits["as-it-comes"] == pytest.approx((1.75, 1.75, 1.75))
    assert [(row.name, row.num_items) for row in outcome.sets] == [
        ("a", 1),
        ("b (en)", 2),
        ("b (zh)", 1),
    ]


def test_other_languages_are_shown_and_decide_nothing(folder: Path):
    shift = {("deduplicated", s, "en"): -0.3 - 0.01 * s for s in (1, 2, 3)}
    shift |= {("deduplicated", s, "zh"): 0.1 + 0.01 * s for s in (1, 2, 3)}
    study = study_with(folder, shift, primary={"languages": {"zh": 1}})
    outcome = compare(study, read_scores(study))
    assert outcome.verdicts == {"deduplicated": "worse"}
    assert outcome.primary.num_items == 4
    assert [row.name for row in outcome.sets] == ["web/zh"]
    assert [row.name for row in outcome.others] == ["web/en"]


def test_arms_scored_on_other_items_are_refused(folder: Path):
    study = study_with(folder, {})
    write_scores(study.runs[4].folder, [("web/en", "en", "en0", 100, 2.0)])
    with pytest.raises(ConfigError, match=r"arm `deduplicated`, seed 2 was scored on 1 held-out"):
        read_scores(study)


def test_a_score_that_is_not_finite_is_refused(folder: Path):
    study = study_with(folder, {("deduplicated", 3, "zh"): float("nan")})
    with pytest.raises(ConfigError, match=r"arm `deduplicated`, seed 3: .* not finite"):
        read_scores(study)


def test_an_unknown_set_is_named(folder: Path):
    primary = {"languages": {"zh": 1}, "sets": ["web/zh", "web/fr"]}
    study = study_with(folder, {}, primary=primary)
    with pytest.raises(ConfigError, match=r"text in set 'web/fr'; did you mean 'web/zh'\?"):
        compare(study, read_scores(study))


def test_a_language_without_held_out_text_is_named(folder: Path):
    study = study_with(folder, {}, primary={"languages": {"ja": 1}})
    message = r"study\.yaml: key `primary.languages`: .* in language 'ja'; known: en, zh$"
    with pytest.raises(ConfigError, match=message):
        compare(study, read_scores(study))
