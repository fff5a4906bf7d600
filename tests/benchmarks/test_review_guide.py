"""Review guides: what of a row is displayed, what can be corrected, and what follows from a correction."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from benchmarks.build import Build, BuildOptions
from benchmarks.contra4.contra4_sample import Contra4Sample
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.errors import SpecError
from benchmarks.mmkc_bench.mmkc_example import Example
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.review_guide import check_corrections, correct_example, media_of
from tests.support.data.crosscheck_bench import row as crosscheck_row
from tests.support.data.crosscheck_bench import write_rows
from tests.support.review_builds import clash_build, cmc_build, contra4_build, mmkc_build


def crosscheck(folder: Path) -> Build:
    rows = [crosscheck_row(task, number) for task in ("LD", "BI*") for number in (0, 1)]
    source = write_rows(folder / "rows", rows)
    return get_benchmark("crosscheck-bench").build([("rows", str(source))], folder / "build", BuildOptions())


BUILDERS: Mapping[str, Callable[[Path], Build]] = {
    "clash": clash_build,
    "mmkc-bench": mmkc_build,
    "cmc-bench": cmc_build,
    "contra4": contra4_build,
    "crosscheck-bench": crosscheck,
}


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Build]:
    folder = tmp_path_factory.mktemp("reviewed")
    builds = {}
    for name, make in BUILDERS.items():
        (folder / name).mkdir()
        builds[name] = make(folder / name)
    return builds


def corrected(build: Build, row: Mapping[str, Any], **corrections: str) -> dict[str, Any]:
    guide = get_benchmark(build.benchmark).review_guide
    places = {place.replace("__", "."): text for place, text in corrections.items()}
    check_corrections(guide, row, places)
    (result,) = correct_example(guide, [row], {row["id"]: places})
    return result


@pytest.mark.slow
def test_every_row_has_its_texts_and_media_and_a_corrected_question_makes_another_sample(
    builds: Mapping[str, Build],
) -> None:
    for name, build in builds.items():
        guide = get_benchmark(name).review_guide
        for row in build.rows():
            fields = {field.place: field for field in guide.fields(row)}
            assert len(fields) == len(guide.fields(row))
            question = next(place for place in ("question", "open_query") if place in fields)
            assert fields[question].editable
            named = [medium.media.sha256 for medium in guide.media(row) if medium.media]
            assert set(named) == {media.sha256 for media in media_of(row)}
            after = corrected(build, row, **{question: f"{row[question]} Now?"})
            assert after[question] == f"{row[question]} Now?"
            assert after["id"] != row["id"]
            assert [media.name for media in media_of(after)] == [media.name for media in media_of(row)]
        instances = get_benchmark(name).instances(build, next(iter(get_benchmark(name).prompt_sets)))
        assert next(iter(instances)).id


def test_what_is_emphasised_is_what_the_construction_changed(builds: Mapping[str, Build]) -> None:
    guide = get_benchmark("clash").review_guide
    for row in builds["clash"].rows():
        field = next(field for field in guide.fields(row) if field.place == "conflicting_caption")
        assert field.emphasis == row["changed_conflicting"]
        assert field.emphasis.lower() in field.text.lower()


@pytest.mark.parametrize(
    ("name", "corrections"),
    [
        ("clash", {"original_caption": "Another."}),  # the caption of the source
        ("clash", {"question": "  "}),
        ("clash", {"question": "a\0b"}),
        ("clash", {"question": "\ud800"}),
        ("clash", {"id": "clash-0"}),
        ("cmc-bench", {"condition": "aligned"}),
        ("contra4", {"gold": "Z"}),
        ("contra4", {"scenes__0__caption": "Another."}),
        ("crosscheck-bench", {"task": "PC"}),
    ],
)
def test_what_cannot_be_corrected_is_refused(
    builds: Mapping[str, Build], name: str, corrections: dict[str, str]
) -> None:
    row = next(builds[name].rows())
    with pytest.raises(SpecError):
        corrected(builds[name], row, **corrections)


def test_what_follows_from_a_correction_is_computed_again(builds: Mapping[str, Build]) -> None:
    row = next(builds["contra4"].rows())
    other = "B" if row["gold"] == "A" else "A"
    sample = Contra4Sample.from_row(corrected(builds["contra4"], row, gold=other))
    assert (sample.gold, sample.letters[sample.answer]) == (other, other)
    rows = [*builds["crosscheck-bench"].rows()]
    closed = next(row for row in rows if row["options"])
    with pytest.raises(SpecError):
        corrected(builds["crosscheck-bench"], closed, answer="J")
    assert (
        CrossCheckSample.from_row(corrected(builds["crosscheck-bench"], closed, options__0="Other")).options[0]
        == "Other"
    )


def test_the_altered_sentence_follows_from_the_corrected_text(tmp_path: Path) -> None:
    text = "Ann began in 1901. Ann is of Land."
    edit = "Ann began in 1950. Ann is of Land."
    row = {
        **next(mmkc_build(tmp_path, 3).rows()),
        "right": text,
        "wrong": [edit, "Ann began in 1960. Ann is of Land."],
        "sentences": ["Ann began in 1950", "Ann began in 1901"],
    }
    guide = get_benchmark("mmkc-bench").review_guide
    (after,) = correct_example(guide, [row], {row["id"]: {"wrong.0": "Ann began in 1955. Ann is of Land."}})
    assert after["sentences"] == ["Ann began in 1955", "Ann began in 1901"]
    assert Example.from_row(after).id == after["id"]


def test_two_corrections_of_one_text_that_differ_are_refused(builds: Mapping[str, Build]) -> None:
    guide = get_benchmark("cmc-bench").review_guide
    first, second = [*builds["cmc-bench"].rows()][:2]
    assert first["group"] == second["group"]
    with pytest.raises(SpecError, match="differ"):
        correct_example(guide, [first, second], {first["id"]: {"question": "a"}, second["id"]: {"question": "b"}})
    rows = correct_example(guide, [first, second], {first["id"]: {"question": "a"}})
    assert {row["question"] for row in rows} == {"a"}


def test_every_benchmark_has_checks_and_reasons() -> None:
    for name in benchmark_names():
        guide = get_benchmark(name).review_guide
        assert guide.checks
        assert guide.checks_from
        assert len(set(guide.reasons)) == len(guide.reasons)
