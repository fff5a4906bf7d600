"""Tables of varied runs: the effects, curves and points of equality of a reader whose behaviour is known."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Callable, Mapping

import pytest

from app.figures.table_figures import draw_table
from benchmarks.answers import Answers
from benchmarks.factors.factor_tables import factor_tables, is_varied, reference_cells, reference_note
from benchmarks.registry import get_benchmark
from benchmarks.varied_names import in_cell
from benchmarks.vocabulary import Estimate, Generation, Instance, Record, Table, Text, Verdict

BLURS = ("0", "1", "2", "4", "8")
SOURCES = ("none", "forum post")


def follows_image(blur: float, source: str) -> float:
    """The chance that the scripted reader follows the image: one half at a blur of 3, or at 5 against a forum post."""
    return 1 / (1 + math.exp(0.9 * (blur - (5 if source == "forum post" else 3))))


def chance(*words: object) -> float:
    """Return a number from 0 to 1 that is decided by words."""
    return int(hashlib.sha256(repr(words).encode()).hexdigest()[:12], 16) / 16**12


def run(
    examples: int,
    seed: int,
    follows: Callable[[float, str], float] = follows_image,
    cells: Callable[[int], bool] = lambda number: True,
) -> Answers:
    """Return the answers of a scripted reader under conflict and with the image alone, which it reads up to a blur of 2."""
    records = []
    for example in range(examples):
        for number, (blur, source) in enumerate((blur, source) for blur in BLURS for source in SOURCES):
            if not cells(number):
                continue
            label = "IMAGE" if chance(seed, example, blur, source) < follows(float(blur), source) else "TEXT"
            strata = {"blur": blur, "text-source": source, "correct": "image"}
            records.append(record(f"e{example}", number, "image-correct", strata, label))
            read = "IMAGE" if float(blur) <= 2 else "NEITHER"
            records.append(record(f"e{example}", number, "image-only", strata, read))
    return Answers.of(records, get_benchmark("cmc-bench"))


def record(example: str, cell: int, condition: str, strata: Mapping[str, str], label: str) -> Record:
    instance = Instance(
        in_cell(f"{example}/{condition}", cell), in_cell(example, cell), condition, "?", (Text("?"),), strata=strata
    )
    return Record(
        instance, (Generation(f"{instance.id}#0", "x", "stop"),), {"match@4": Verdict("match@4", "labelled", label)}
    )


def tables(answers: Answers, resamples: int = 300) -> dict[str, Table]:
    varied = factor_tables(get_benchmark("cmc-bench"), {"m": answers}, "match@4", resamples=resamples, seed=0)
    return {table.name: table for table in varied}


def cell(table: Table, row: str, column: str) -> Estimate:
    value = dict(table.rows)[row][table.columns.index(column)]
    assert isinstance(value, Estimate)
    return value


def test_known_effects_and_curves_are_within_their_intervals() -> None:
    by_name = tables(run(400, seed=1))
    mean = {(b, s): follows_image(float(b), s) for b in BLURS for s in SOURCES}
    effect = sum(mean[b, "forum post"] - mean[b, "none"] for b in BLURS) / 5
    crossed = (mean["8", "forum post"] - mean["8", "none"]) - (mean["0", "forum post"] - mean["0", "none"])
    effects = by_name["factors"]
    for row, truth in {
        "m / text-source: none → forum post": effect,
        "m / blur: 0 → 8": sum(mean["8", s] - mean["0", s] for s in SOURCES) / 2,
        "m / blur × text-source": crossed,
    }.items():
        estimate = cell(effects, row, "follows image")
        assert estimate.low is not None
        assert estimate.high is not None
        assert estimate.low <= truth <= estimate.high
    assert cell(effects, "m / blur: 0 → 4", "right, image alone").value == -1
    for source, truth in (("none", 3), ("forum post", 5)):
        equal = cell(by_name["pse"], f"m / blur, text-source={source}", "PSE")
        slope = cell(by_name["pse"], f"m / blur, text-source={source}", "slope")
        assert equal.low is not None
        assert equal.high is not None
        assert slope.low is not None
        assert slope.high is not None
        assert equal.low <= truth <= equal.high
        assert slope.low <= -0.9 <= slope.high
    shares = [cell(by_name["curves"], f"m / blur / {blur}", "fitted").value or 0 for blur in BLURS]
    assert shares == sorted(shares, reverse=True)


def test_an_interaction_beyond_one_has_an_interval_on_both_sides() -> None:
    """The blur turns the effect of the source round, from -0.8 to 0.8: their interaction is 1.6, of at most 2."""

    def follows(blur: float, source: str) -> float:
        return 0.9 if (blur < 3) == (source == "none") else 0.1

    estimate = cell(tables(run(60, 2, follows))["factors"], "m / blur × text-source", "follows image")
    assert estimate.value is not None
    assert estimate.value == pytest.approx(1.6, abs=0.2)
    assert estimate.low is not None
    assert estimate.high is not None
    assert 1.3 < estimate.low < estimate.value - 0.05
    assert estimate.value + 0.05 < estimate.high < 1.9


def test_an_answer_with_nothing_to_label_counts_as_in_the_benchmarks_other_tables() -> None:
    clash, records = get_benchmark("clash"), []
    for number, blur in enumerate(("0", "4")):
        for example, label in enumerate(("CONFLICT", "CONFLICT", "TEXT", None)):
            name = in_cell(f"{example}/open-conflicting", number)
            strata = {"blur": blur, "change": "object"}
            instance = Instance(name, in_cell(f"e{example}", number), "open-conflicting", "?", (), strata=strata)
            verdict = Verdict("strict@1", "unparsed" if label is None else "labelled", label)
            answer = Generation(f"{name}#0", "" if label is None else "x", "stop")
            records.append(Record(instance, (answer,), {"strict@1": verdict}))
    answers = {"m": Answers.of(records, clash)}
    table = next(t for t in factor_tables(clash, answers, "strict@1", resamples=50, seed=0) if t.name == "curves")
    assert (cell(table, "m / blur / 0", "right, conflict").value, cell(table, "m / blur / 0", "right, conflict").n) == (
        0.5,
        4,
    )


@pytest.mark.slow
def test_known_points_of_equality_are_covered_in_repeated_runs() -> None:
    covered = 0
    for seed in range(100):
        equal = cell(tables(run(60, seed))["pse"], "m / blur, text-source=none", "PSE")
        covered += equal.low is not None and equal.high is not None and equal.low <= 3 <= equal.high
    assert covered >= 88


def test_a_reader_that_never_changes_has_no_point_of_equality() -> None:
    by_name = tables(run(20, 0, lambda blur, source: 1.0))
    estimate = cell(by_name["pse"], "m / blur", "PSE")
    assert estimate.value is None
    assert estimate.reason
    assert cell(by_name["pse"], "m / blur", "slope").value is None
    assert cell(by_name["factors"], "m / blur: 0 → 8", "follows image").value == 0


def test_a_complete_change_is_between_two_doses() -> None:
    by_name = tables(run(20, 0, lambda blur, source: float(blur < 3)))
    equal = cell(by_name["pse"], "m / blur", "PSE")
    assert (equal.value, equal.low, equal.high) == (3, 2, 4)
    assert cell(by_name["pse"], "m / blur", "slope").value is None


def test_a_fraction_says_what_it_cannot_tell() -> None:
    # Blur and source change together, so that neither's effect can be told.
    by_name = tables(run(20, 0, cells=lambda number: number in (0, 3, 5, 7, 9)))
    assert cell(by_name["factors"], "m / text-source: none → forum post", "follows image").value is None
    assert cell(by_name["factors"], "m / blur × text-source", "follows image").value is None
    assert any("5 of the 10 cells" in note for note in by_name["factors"].notes)


def test_runs_of_other_builds_have_none_of_these_tables() -> None:
    instance = Instance("a", "a", "image-correct", "?", (Text("?"),))
    plain = Answers.of([Record(instance)], get_benchmark("cmc-bench"))
    assert not is_varied(plain)
    assert tables(plain) == {}
    assert reference_note({"m": plain}) == ""
    assert reference_cells({"m": plain})["m"] is plain


def test_other_tables_have_one_cell() -> None:
    answers = run(20, 0)
    (main, *_), note = (
        get_benchmark("cmc-bench").tables(reference_cells({"m": answers}), "match@4", resamples=50, seed=0),
        reference_note({"m": answers}),
    )
    assert cell(main, "m", "Img-Cor").n == 20
    assert "blur=0, text-source=none" in note


@pytest.mark.parametrize("follows", [follows_image, lambda blur, source: 1.0])
def test_curves_are_drawn(follows: Callable[[float, str], float]) -> None:
    figure = draw_table(tables(run(12, 0, follows), resamples=50)["curves"], width="column")
    assert figure is not None
    (axes,) = figure.axes
    legend = axes.get_legend()
    assert legend is not None
    names = [line.get_text() for line in legend.get_texts()]
    assert "m: right, image alone" in names
    assert any(name.startswith("m, PSE") for name in names) == (follows is follows_image)
