"""K passages: what each setting shows, what is refused, and the curves of readers whose rule is known."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from app.figures.table_figures import draw_table
from benchmarks.answers import Answers
from benchmarks.build import Build, BuildOptions
from benchmarks.cmc_bench.construction.cmc_passages import states
from benchmarks.errors import NothingUsableError, SourceError, SpecError
from benchmarks.factors.factor_build import Variation, VaryOptions
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_instances import instances_of
from benchmarks.factors.factor_levels import parse_factors
from benchmarks.k_passages.k_passages_build import Examples, build_design
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.protocols.protocols import DirectProtocol
from benchmarks.registry import get_benchmark
from benchmarks.values import compare
from benchmarks.varied_names import example_of
from benchmarks.vocabulary import Decoding, Estimate, Generation, Instance, Media, Record, Table, Text, Verdict
from judges.judge_registry import get_judge
from mlx_backends.policy_engine import PolicyBackend
from tests.support.command import ROOT, Rashomon
from tests.support.data.small import own_rows

BENCHMARK = get_benchmark("k-passages")
FULL = PassageDesign((1, 2, 5, 10), (0, 1, 3), ("first", "middle", "last"), (0, 1, 3), (0, 60))


@pytest.fixture(scope="module")
def base(tmp_path_factory: pytest.TempPathFactory) -> Build:
    """CMC-Bench of rows of which some have passages of their own."""
    out = tmp_path_factory.mktemp("base") / "build"
    rows = ROOT / "assets" / "demo" / "rows.csv"
    return get_benchmark("cmc-bench").build([("rows", str(rows))], out, BuildOptions())


@pytest.fixture(scope="module")
def built(base: Build, tmp_path_factory: pytest.TempPathFactory) -> Build:
    return build_design(base, Examples(base), FULL, tmp_path_factory.mktemp("k") / "build", limit=20)


@pytest.fixture(scope="module")
def instances(built: Build) -> list[Instance]:
    return list(BENCHMARK.instances(built, "paper"))


def shown(instance: Instance) -> list[str]:
    """Return the passages of a prompt."""
    text = "".join(part.text for part in instance.parts if isinstance(part, Text))
    return text.partition("Retrieved text evidence: ")[2].rpartition(". Answer the query")[0].split("\n\n")


def test_every_example_is_in_every_setting(built: Build, instances: list[Instance]) -> None:
    settings = {instance.id.partition("/")[2] for instance in instances}
    assert len(settings) == built.manifest["cells"]
    assert set(Counter(instance.group for instance in instances).values()) == {len(settings)}
    assert len({instance.id for instance in instances}) == len(instances) == built.manifest["calls"]


@pytest.mark.slow
def test_each_setting_shows_what_it_says(instances: list[Instance]) -> None:
    for instance in instances:
        passages = shown(instance)
        right = [i for i, passage in enumerate(passages) if states(passage, instance.references["right"][0])]
        wrong = [p for p in passages if "wrong" in instance.references and states(p, instance.references["wrong"][0])]
        strata = instance.strata
        assert len(passages) == int(strata["passages"]) == len(set(passages))
        assert len(wrong) == int(strata["wrong"])
        assert len(instance.references.get("distractor", ())) == len(passages) - 1 - len(wrong)
        middle = (len(passages) - 1) // 2
        assert right == [{"only": 0, "first": 0, "middle": middle, "last": len(passages) - 1}[strata["place"]]]
        assert sum(isinstance(part, Media) for part in instance.parts) == int(strata["images"])
        assert min(len(passage.split()) for passage in passages) >= int(strata["words"])
        assert instance.condition == ["no-conflict", "tie", "majority-wrong"][min(len(wrong), 2)]


def test_own_passages_are_shown_as_they_are(base: Build, instances: list[Instance]) -> None:
    own = {row["group"]: row["passage"] for row in base.rows() if row["condition"] == "aligned"}
    used = {i.group: own[i.group] for i in instances if not own[i.group].startswith("According to the source")}
    assert used
    for instance in instances:
        if instance.group in used and instance.strata["words"] == "0":
            assert used[instance.group] in shown(instance)


def test_factors_change_each_passage(base: Build, tmp_path: Path) -> None:
    design = PassageDesign((1, 3), (0, 1), ("first", "last"), (1,), (0, 40))
    plain = build_design(base, Examples(base), design, tmp_path / "plain", limit=3)
    factors = parse_factors(["text-source=none,forum post", "order=image-first,text-first"])
    variation = Variation(BENCHMARK, plain, Design.of(factors), VaryOptions())
    size, varied = variation.size(), variation.build(tmp_path / "varied")
    assert size.instances == 4 * plain.manifest["calls"]
    before = {instance.id: instance for instance in BENCHMARK.instances(plain, "paper")}
    for instance in instances_of(BENCHMARK, varied, "paper"):
        unchanged = before[example_of(instance.id)]
        stated = [
            f"[source: forum post] {p}" if instance.strata["text-source"] != "none" else p for p in shown(unchanged)
        ]
        text = "".join(part.text for part in instance.parts if isinstance(part, Text))
        assert "\n\n".join(stated) in text
        first = next(place for place, part in enumerate(instance.parts) if isinstance(part, Media))
        is_before = "Retrieved text evidence" in "".join(p.text for p in instance.parts[:first] if isinstance(p, Text))
        assert is_before == (instance.strata["order"] == "text-first")
    distance = Design.of(parse_factors(["distance=built,0.5"]))
    with pytest.raises(NothingUsableError):
        Variation(BENCHMARK, plain, distance, VaryOptions()).build(tmp_path / "none")


def test_the_same_seed_makes_the_same_build(base: Build, built: Build, tmp_path: Path) -> None:
    assert build_design(base, Examples(base), FULL, tmp_path / "again", limit=20).digest == built.digest
    assert build_design(base, Examples(base), FULL, tmp_path / "other", limit=20, seed=1).digest != built.digest


def test_a_distractor_is_neither_value_in_another_notation(tmp_path: Path) -> None:
    answers = ["12 500", "12,500", "43", "43%", "43 km", "$43", "7", "90 minutes", "1 h 30 min", "USA", "United States"]
    rows = own_rows(tmp_path / "rows", answers, question="question {}?")
    plain = get_benchmark("cmc-bench").build([("rows", str(rows))], tmp_path / "base", BuildOptions())
    design = PassageDesign((1, 4), (0, 1), ("first",), (0,))
    for row in build_design(plain, Examples(plain), design, tmp_path / "k").rows():
        for answer in row["distractor_answers"]:
            assert compare(answer, row["right"]).verdict == compare(answer, row["wrong"]).verdict == "different"


@pytest.mark.parametrize(
    "levels",
    [
        {"passages": "11"},
        {"passages": "0"},
        {"passages": "1,x"},
        {"passages": ""},
        {"passages": "3", "wrong": "3"},
        {"wrong": "-1"},
        {"places": "top"},
        {"images": "11"},
        {"words": "1000000"},
    ],
)
def test_levels_that_do_not_fit_are_refused(levels: dict[str, str]) -> None:
    with pytest.raises(SpecError):
        PassageDesign.parse(levels)


def test_more_passages_than_there_are_is_refused(tmp_path: Path) -> None:
    lines = (ROOT / "assets" / "demo" / "rows.csv").read_text("utf-8").splitlines()[:5]
    (tmp_path / "held_out").symlink_to(ROOT / "assets" / "demo" / "held_out")
    (tmp_path / "rows.csv").write_text("\n".join(lines), "utf-8")
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "cmc-bench", "--from", tmp_path / "rows.csv")
    result = rashomon.run("passages", "cmc-bench", "--passages", "10", code=2)
    assert "needs 9" in result.stderr or "need 9" in result.stderr
    assert not (rashomon.workspace / "benchmarks" / "k-passages").exists()


def test_the_number_of_calls_comes_first_and_a_huge_design_is_refused(base: Build, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    size = rashomon.json("passages", base.path, "--passages", "1,2", "--wrong", "0,1", "--dry-run")
    assert [size[key] for key in ("examples", "cells", "calls", "instances")] == [48, 5, 240, None]
    levels = ",".join(map(str, range(1, 11)))
    huge = ("--passages", levels, "--wrong", "0,1,2,3,4,5", "--images", levels, "--words", "0,10,20,30")
    assert "100,000" in rashomon.run("passages", base.path, *huge, code=2).stderr
    assert not (rashomon.workspace / "benchmarks" / "k-passages").exists()
    rashomon.run("passages", base.path, *huge, "--force", "--dry-run")


def test_a_manifest_without_a_design_is_refused(built: Build) -> None:
    for design in (None, [1], {"passages": 3}, {"passages": ["x"]}, {"levels": [1]}):
        broken = replace(built, manifest={**built.manifest, "design": design})
        with pytest.raises(SourceError):
            list(BENCHMARK.instances(broken, "paper"))


def test_a_build_of_another_benchmark_is_refused(built: Build) -> None:
    with pytest.raises(SpecError):
        Examples(built)


@pytest.mark.parametrize(
    ("answer", "label"),
    [
        ("43", "RIGHT"),
        ("It is 12.", "WRONG"),
        ("The passages disagree, so it cannot be determined.", "ABSTAIN"),
        ("77", "DISTRACTOR"),
        ("1,001", "NEITHER"),
        ("43 and 12", "BOTH"),
        ("One source says 43, another says 12.", None),
    ],
)
def test_whose_value_an_answer_gives(answer: str, label: str | None) -> None:
    references = {"right": ("43",), "wrong": ("12",), "distractor": ("77", "78"), "text": ("12",)}
    instance = Instance("e/1", "e", "tie", "What is the value of kale?", (Text("x"),), references)
    record = Record(instance, (Generation("e/1#0", answer, "stop"),))
    verdict = get_judge("which-passage").judge(record)
    assert (verdict.label, verdict.status) == (label, "labelled" if label else "undecided")


def majority(instance: Instance) -> str:
    """Return what the policy that counts passages answers."""
    return answer_of("always-text", instance)


def answer_of(policy: str, instance: Instance) -> str:
    """Return the answer of a policy."""
    request = DirectProtocol(Decoding()).next(instance, ())
    assert request is not None
    backend = PolicyBackend(f"policy:{policy}")
    backend.submit(request)
    (generation,) = backend.step()
    return generation.text


def recency(instance: Instance) -> str:
    """Return what a reader of the last passage answers."""
    last = shown(instance)[-1]
    values = (value for name in ("right", "wrong", "distractor") for value in instance.references.get(name, ()))
    return next(value for value in values if states(last, value))


@pytest.fixture(scope="module")
def tables(built: Build, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Table]:
    """The tables of two readers whose rules are known."""
    judge = get_judge("which-passage")
    runs = {}
    for reader in (majority, recency):
        records = []
        for instance in BENCHMARK.instances(built, "paper"):
            record = Record(instance, (Generation(f"{instance.id}#0", reader(instance), "stop"),))
            records.append(Record(instance, record.generations, {judge.id: judge.judge(record)}))
        runs[reader.__name__] = Answers.of(records, BENCHMARK)
    return {table.name: table for table in BENCHMARK.tables(runs, judge.id, resamples=200, seed=0)}


def value(table: Table, row: str, column: str) -> float | None:
    cell = dict(table.rows)[row][table.columns.index(column)]
    assert isinstance(cell, Estimate)
    return cell.value


@pytest.mark.slow
def test_the_majority_decides_for_a_reader_who_counts(tables: dict[str, Table]) -> None:
    main = tables["main"]
    assert [value(main, "majority", column) for column in ("No conflict", "Tie", "Majority wrong")] == [1, 0.5, 0]
    assert value(main, "majority", "Follows majority") == 1
    curve = tables["by-wrong"]
    assert [value(curve, "majority / k=5", m) for m in ("0", "1", "3")] == [1, pytest.approx(0.5, abs=0.1), 0]
    assert value(curve, "majority / k=2", "3") is None


def right_share(policy: str, instances: list[Instance]) -> float:
    """Return the share of right answers of a policy."""
    judge = get_judge("which-passage")
    answers = [Record(i, (Generation(f"{i.id}#0", answer_of(policy, i), "stop"),)) for i in instances]
    return sum(judge.judge(record).label == "RIGHT" for record in answers) / len(answers)


@pytest.mark.parametrize("images", [0, 1])
def test_a_rule_without_reading_is_right_in_half_of_the_ties(base: Build, tmp_path: Path, images: int) -> None:
    design = PassageDesign(places=("first", "middle", "last"), images=(images,))
    instances = list(BENCHMARK.instances(build_design(base, Examples(base), design, tmp_path / "k"), "paper"))
    ties = [instance for instance in instances if instance.condition == "tie"]
    assert right_share("always-text", ties) == 0.5  # of each example, half of an even number of ties
    for place in ("first", "middle", "last"):
        of_place = [instance for instance in ties if instance.strata["place"] == place]
        assert right_share("always-text", of_place) == pytest.approx(0.5, abs=0.2)
    assert right_share("random", ties) == pytest.approx(0.75 if images else 0.5, abs=0.1)
    others = {c: [i for i in instances if i.condition == c] for c in ("no-conflict", "majority-wrong")}
    assert [right_share("always-text", others[c]) for c in others] == [1, 0]


def test_one_tie_of_each_example_is_decided_by_a_coin_that_the_seed_fixes(base: Build, tmp_path: Path) -> None:
    def answers(folder: str, seed: int = 0) -> list[str]:
        design = PassageDesign((2,), (1,), ("last",))
        built = build_design(base, Examples(base), design, tmp_path / folder, seed=seed)
        return [majority(instance) for instance in BENCHMARK.instances(built, "paper")]

    built = build_design(base, Examples(base), PassageDesign((2,), (1,), ("last",)), tmp_path / "k")
    assert right_share("always-text", list(BENCHMARK.instances(built, "paper"))) == pytest.approx(0.5, abs=0.2)
    assert answers("again") == answers("once more") != answers("other", seed=1)


def test_the_texts_of_a_tie_support_both_values(base: Build, tmp_path: Path) -> None:
    built = build_design(base, Examples(base), PassageDesign((2,), (1,), ("last",)), tmp_path / "k")
    for instance in BENCHMARK.instances(built, "paper"):
        references = instance.references
        assert references["text"] == (*references["right"], *references["wrong"])


def test_the_place_decides_for_a_reader_of_the_last_passage(tables: dict[str, Table]) -> None:
    curve = tables["by-place"]
    assert [value(curve, "recency / k=10", place) for place in ("first", "middle", "last")] == [0, 0, 1]
    assert value(tables["main"], "recency", "Distracted") == pytest.approx(0.4, abs=0.2)
    assert value(tables["by-passages"], "recency / 0 wrong", "1") == 1


def test_curves_are_drawn_and_those_of_one_level_left_out(
    built: Build, base: Build, tables: dict[str, Table], tmp_path: Path
) -> None:
    curves = ["by-passages", "by-wrong", "by-place", "by-images", "by-words"]
    assert [name for name, table in tables.items() if table.chart == "lines"] == curves
    figure = draw_table(tables["by-passages"], width="column")
    assert figure is not None
    lines = [line for line in figure.axes[0].get_lines() if str(line.get_label()).startswith("recency / 0")]
    assert [round(float(x)) for line in lines for x in np.asarray(line.get_xdata())] == [1, 2, 5, 10]
    small = build_design(base, Examples(base), PassageDesign((1, 2), (0, 1), ("last",)), tmp_path / "small", limit=2)
    records = [Record(instance) for instance in BENCHMARK.instances(small, "paper")]
    names = [
        table.name
        for table in BENCHMARK.tables({"r": Answers.of(records, BENCHMARK)}, "which-passage@1", resamples=9, seed=0)
    ]
    assert names == ["main", "by-passages", "by-wrong", "settings", "failures"]


@pytest.mark.slow
def test_known_curves_are_within_their_intervals(base: Build, tmp_path: Path) -> None:
    """The 95% intervals of every curve hold the true share in about 95% of simulated experiments.

    The scripted reader is right with a chance that falls with each passage, each wrong one and an early place, from one example
    to another by a different amount, so that the answers to an example are correlated.
    """
    built = build_design(base, Examples(base), PassageDesign(), tmp_path / "build")
    instances = list(BENCHMARK.instances(built, "paper"))
    right, wrong = (_answers(instances, label) for label in ("RIGHT", "NEITHER"))
    both = [*right.kinds, *wrong.kinds]
    strata = [instance.strata for instance in instances]
    logits = np.array(
        [2 - 0.2 * int(s["passages"]) - 0.7 * int(s["wrong"]) - 0.5 * (s["place"] == "first") for s in strata]
    )
    # The truth of a cell is the mean of its settings', each over all examples that there could be.
    own = np.linspace(-1.5, 1.5, 1001)
    chances = {}
    for setting, logit in zip(strata, logits, strict=True):
        key = (setting["passages"], setting["wrong"], setting["place"])
        chances[key] = float(np.mean(1 / (1 + np.exp(-logit - own))))
    random, experiments = np.random.default_rng(0), 1000
    covered: dict[tuple[str, str, str], int] = {}
    for experiment in range(experiments):
        shift = random.uniform(-1.5, 1.5, size=int(right.group.max()) + 1)[right.group]
        is_right = random.uniform(size=len(logits)) < 1 / (1 + np.exp(-logits - shift))
        answers = replace(right, kinds=both, kind=np.where(is_right, right.kind, wrong.kind + len(right.kinds)))
        for table in BENCHMARK.tables({"r": answers}, "which-passage@1", resamples=200, seed=experiment):
            if table.name not in ("by-passages", "by-wrong", "by-place"):
                continue
            for row, cells in table.rows:
                for column, cell in zip(table.columns, cells, strict=True):
                    assert isinstance(cell, Estimate)
                    if cell.low is not None and cell.high is not None:
                        truth = _true_share(chances, table.name, row.partition(" / ")[2], column)
                        name = (table.name, row, column)
                        covered[name] = covered.get(name, 0) + (cell.low <= truth <= cell.high)
    shares = np.array(list(covered.values())) / experiments
    assert len(shares) > 15
    assert 0.92 <= shares.mean() <= 0.97
    assert shares.min() >= 0.9


def _answers(instances: list[Instance], label: str) -> Answers:
    """Return answers that all have this label."""
    verdict = Verdict("which-passage@1", "labelled", label)
    records = [
        Record(instance, (Generation(f"{instance.id}#0", "x", "stop"),), {"which-passage@1": verdict})
        for instance in instances
    ]
    return Answers.of(records, BENCHMARK)


def _true_share(chances: dict[tuple[str, str, str], float], table: str, row: str, column: str) -> float:
    """Return the mean chance of the settings that a cell pools."""
    series = row.removeprefix("k=").removesuffix(" wrong")
    place, other = {"by-passages": (0, 1), "by-wrong": (1, 0), "by-place": (2, 0)}[table]
    return float(np.mean([c for setting, c in chances.items() if (setting[place], setting[other]) == (column, series)]))


def test_a_run_begins_with_what_it_does_with_its_passages(base: Build, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "k-passages", "--source", f"cmc-bench={base.path}")
    asked = ("--benchmark", "k-passages", "--model", "policy:always-text", "--name", "reads", "--display", "none")
    rashomon.run("--batch", *asked)
    result = rashomon.run("show", "reads").stdout
    assert (
        "Where most of the passages that answer are wrong, policy:always-text gives the wrong passages' value in 100%"
        in result
    )
    assert "What it does with its sources, in %" in result
    assert "--trust" not in result
    refused = rashomon.run("show", "reads", "--trust", "text", code=2).stderr
    assert "name no source; leave --trust out" in refused
