"""Conditions without sources, of all five papers' benchmarks: what they show, how they are labelled, and where they count."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from app.commands.system.demo_command import DEMOS
from app.engine.instance_streams import BuildInstances
from app.engine.run_plan import select_instances
from app.report.tables.run_headline import headline
from app.run_spec import BatchSpec
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SpecError
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import candidate_values
from benchmarks.protocols.without_sources import OPTIONS_ONLY, shows_no_source
from benchmarks.registry import get_benchmark
from benchmarks.tables.without_sources_table import benchmark_tables
from benchmarks.vocabulary import WITHOUT_SOURCES, Estimate, Generation, Instance, Media, Record, Table, Text
from judges.base import FunctionJudge
from judges.judge_registry import get_judge
from mlx_backends.policy_engine import PolicyBackend
from tests.support.data import contra4
from tests.support.data.pope import small_pope

NAMES = ("cmc-bench", "clash", "mmkc-bench", "crosscheck-bench", "contra4")
PLAIN = PromptTemplate(name="plain", user="Look: {image}\nRead: {text}\n{question}\n{options}", system="Be brief.")


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Build]:
    folder = tmp_path_factory.mktemp("builds")
    rows = [
        contra4.row(f"{n}-{answer}", contra4.PLAIN[:n], answer, question=f"Which of {n} is louder, or {answer}?")
        for n in (2, 3, 4)
        for answer in "ABCD"[:n]
    ]
    sources = {name: [(demo.source[0], str(demo.source[1]))] for name, demo in DEMOS.items()}
    sources["contra4"] = [("published", str(contra4.write_source(folder / "contra4 source", rows)))]
    return {name: get_benchmark(name).build(sources[name], folder / name, BuildOptions()) for name in NAMES}


def chosen(build: Build, *conditions: str, prompts: Prompts = "", **more: object) -> list[Instance]:
    benchmark = get_benchmark(build.benchmark)
    values = {"benchmark": build.benchmark, "model": ["m"], "conditions": list(conditions), **more}
    (spec,) = BatchSpec.model_validate(values).runs()
    prompts = prompts or next(iter(benchmark.prompt_sets))
    return list(select_instances(spec, benchmark, BuildInstances(benchmark, build, prompts)))


def text_of(instance: Instance) -> str:
    return "".join(part.text for part in instance.parts if isinstance(part, Text))


def media_of(instance: Instance) -> list[Media]:
    return [part for part in instance.parts if isinstance(part, Media)]


@pytest.mark.parametrize("name", NAMES)
def test_one_name_adds_them_all_and_a_run_that_does_not_name_it_is_as_before(
    name: str, builds: Mapping[str, Build]
) -> None:
    build, benchmark = builds[name], get_benchmark(name)
    own, partial = chosen(build), set(benchmark.without_sources)
    assert own == [
        i
        for i in benchmark.instances(build, next(iter(benchmark.prompt_sets)))
        if i.condition in (benchmark.default_conditions or benchmark.conditions)
    ]
    more = chosen(build, WITHOUT_SOURCES)
    assert [i for i in more if i.condition not in partial] == own
    assert {i.condition for i in more} & partial == partial
    assert len({i.id for i in more}) == len(more)
    assert {i.group for i in more if i.condition in partial} == {i.group for i in own}
    assert partial < {*benchmark.conditions}
    assert not partial & benchmark.counted_conditions
    first = chosen(build, own[0].condition, WITHOUT_SOURCES)
    assert {i.condition for i in first} == {own[0].condition, *(i.condition for i in more if i.condition in partial)}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("file", [False, True], ids=["own", "file"])
def test_they_show_what_their_names_say(name: str, file: bool, builds: Mapping[str, Build]) -> None:
    benchmark = get_benchmark(name)
    prompts: Prompts = PLAIN if file else ""
    full = {
        (i.group, i.condition): i
        for i in BuildInstances(benchmark, builds[name], prompts or next(iter(benchmark.prompt_sets)))
    }
    seen: dict[str, int] = dict.fromkeys(benchmark.without_sources, 0)
    for (group, condition), instance in full.items():
        if condition not in benchmark.without_sources:
            continue
        seen[condition] += 1
        text, media = text_of(instance), media_of(instance)
        if shows_no_source(condition) or (condition.endswith(("text-only", "options-only")) and name != "contra4"):
            assert not media
        if condition.endswith("image-only"):
            assert media
            assert {part.modality for part in media} == {"image"}
        if condition.endswith(OPTIONS_ONLY):
            assert instance.question not in text
        for other in benchmark.without_sources[condition]:
            if (shown := full.get((group, other))) is None:
                continue
            assert instance.parts != shown.parts
            assert {**instance.strata} == {key: shown.strata[key] for key in instance.strata}
            assert len(benchmark.options(instance)) == len(benchmark.options(shown))
            assert benchmark.choices(instance) == benchmark.choices(shown)
    assert all(seen.values())
    for row in builds[name].rows():
        hidden = {
            "clash": (row.get("conflicting_caption"), row.get("original_caption")),
            "mmkc-bench": (*row.get("wrong", ()), row.get("right")),
            "crosscheck-bench": (row.get("text"),),
            "cmc-bench": (row.get("passage"),),
            "contra4": [scene["caption"] for scene in row.get("scenes", ())],
        }[name]
        for (_, condition), instance in full.items():
            if shows_no_source(condition) or (condition.endswith(OPTIONS_ONLY) and name != "contra4"):
                assert not [words for words in hidden if words and words in text_of(instance)]


@pytest.mark.parametrize("name", NAMES)
def test_policies_and_scored_candidates_know_nothing_of_what_is_hidden(name: str, builds: Mapping[str, Build]) -> None:
    benchmark, judge = get_benchmark(name), get_judge(get_benchmark(name).judges[0])
    assert isinstance(judge, FunctionJudge)
    for instance in chosen(builds[name], *{c for c in benchmark.without_sources if shows_no_source(c)}):
        assert candidate_values(instance) == ("", "")
        for policy in ("policy:always-image", "policy:always-text"):
            backend = PolicyBackend(policy)
            request = benchmark.protocol(benchmark.decoding).next(instance, ())
            assert request is not None
            backend.submit(request)
            label = judge.judge(Record(instance, tuple(backend.step()))).label
            assert not benchmark.correct(instance.condition, str(label))


def record(instance: Instance, answer: str, benchmark: Benchmark, basis: Generation | None = None) -> Record:
    judge = get_judge(benchmark.judges[0])
    assert isinstance(judge, FunctionJudge)
    made = Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),), basis=basis)
    return replace(made, verdicts={judge.id: judge.judge(made)})


def right_answer(instance: Instance, benchmark: Benchmark) -> str:
    """An answer that is right under the conditions that this one is compared with, the last of them."""
    references = instance.references
    conflict = benchmark.name == "clash" and "conflicting" in instance.condition
    keys = ("conflict letter", "conflict") if conflict else ("answer", "image letter", "image", "right", "text")
    value = next(references[key][0] for key in keys if references.get(key))
    return f"({value})" if value in "ABCD" and benchmark.name != "crosscheck-bench" else value


def run_of(build: Build, wrong: str = "Zzyzx") -> list[Record]:
    """A run that is right with all its sources, and without them on every other example."""
    benchmark, records, places = get_benchmark(build.benchmark), list[Record](), dict[str, int]()
    bases: dict[tuple[str, str], Generation] = {}
    for instance in chosen(build, WITHOUT_SOURCES):
        place = places.setdefault(instance.group, len(places))
        knows = instance.condition not in benchmark.without_sources or not place % 2
        basis = bases.get((instance.group, benchmark.basis(instance.condition) or ""))
        records.append(record(instance, right_answer(instance, benchmark) if knows else wrong, benchmark, basis))
        bases[instance.group, instance.condition] = records[-1].generations[0]
    return records


def tables_of(benchmark: Benchmark, **runs: list[Record]) -> dict[str, Table]:
    answers = {run: Answers.of(records, benchmark) for run, records in runs.items()}
    judge = get_judge(benchmark.judges[0]).id
    return {table.name: table for table in benchmark_tables(benchmark, answers, judge, resamples=50, seed=0)}


@pytest.mark.parametrize("name", NAMES)
def test_no_table_and_no_sentence_but_their_own_counts_them(name: str, builds: Mapping[str, Build]) -> None:
    benchmark, records = get_benchmark(name), run_of(builds[name])
    full = [r for r in records if r.instance.condition not in benchmark.without_sources]
    tables, before = tables_of(benchmark, m=records), tables_of(benchmark, m=full)
    assert tables.keys() - before.keys() == {WITHOUT_SOURCES}
    for table in before.keys() - {"failures"}:
        assert tables[table] == before[table]
    lost = dict(tables["failures"].rows)
    assert dict(before["failures"].rows).items() <= lost.items()
    assert sum(int(str(cells[0])) for cells in lost.values()) == len(records)
    judge = get_judge(benchmark.judges[0]).id
    sentences, old = (headline("m", Answers.of(r, benchmark), judge, benchmark) for r in (records, full))
    more = [line for line in sentences if line not in old]
    own = ("Without any source", f"of {len(records)}", "Under the other conditions")
    assert not [line for line in more if not any(words in line for words in own)]


@pytest.mark.parametrize("name", NAMES)
def test_each_is_compared_with_the_same_examples(name: str, builds: Mapping[str, Build]) -> None:
    """Every figure is computed again by hand from the labels of the records."""
    benchmark, records = get_benchmark(name), run_of(builds[name])
    judge = get_judge(benchmark.judges[0]).id
    rows = dict(tables_of(benchmark, m=records)[WITHOUT_SOURCES].rows)
    assert {row.split(" / ")[1] for row in rows} == {
        r.instance.condition for r in records if r.instance.condition in benchmark.without_sources
    }
    by_condition: dict[str, dict[str, Record]] = defaultdict(dict)
    for item in records:
        wrong_source = item.instance.strata.get("correct") == "none"
        if (item.verdicts[judge].label or benchmark.unparsed_label) and not wrong_source:
            by_condition[item.instance.condition][item.instance.group] = item
    for row, (n, *cells) in rows.items():
        condition, full = (*row.split(" / ")[1:], *benchmark.without_sources[row.split(" / ")[1]])[:2]
        alone, beside = by_condition[condition], by_condition[full]

        def is_right(item: Record, full: str = full) -> bool:
            label = str(item.verdicts[judge].label or benchmark.unparsed_label)
            if name == "mmkc-bench" and item.instance.condition == full and full.startswith("original"):
                return True  # each of them gives what is true of the image
            own = name in ("cmc-bench", "mmkc-bench")
            return benchmark.correct(item.instance.condition if own else full, label)

        right = {group: is_right(item) for group, item in alone.items()}
        shared = [group for group in alone if group in beside]
        without, chance, sources, difference = cells
        assert n == len(alone)
        assert isinstance(without, Estimate)
        assert isinstance(chance, Estimate)
        assert isinstance(sources, Estimate)
        assert isinstance(difference, Estimate)
        assert without.value == (pytest.approx(sum(right.values()) / len(right)) if right else None)
        expected = [
            choices and 1 / choices for item in alone.values() for choices in [benchmark.choices(item.instance)]
        ]
        assert chance.value == (pytest.approx(sum(expected) / len(expected)) if any(expected) else None)
        leads = [is_right(beside[group]) - right[group] for group in shared]
        if not leads:
            assert sources.value is difference.value is None
            continue
        assert sources.value == pytest.approx(sum(is_right(beside[g]) for g in shared) / len(shared))
        assert difference.value == pytest.approx(sum(leads) / len(leads))
        assert difference.low is None or difference.low <= difference.value <= difference.high  # type: ignore[operator]


def test_an_answer_without_a_label_is_in_the_failures_and_in_no_share(builds: Mapping[str, Build]) -> None:
    benchmark = get_benchmark("mmkc-bench")
    records = run_of(builds["mmkc-bench"], wrong="")
    tables = tables_of(benchmark, m=records)
    (n, right, *_) = dict(tables[WITHOUT_SOURCES].rows)["m / original-mc-closed-book"]
    answered, labelled, unparsed, *_ = dict(tables["failures"].rows)["m / original-mc-closed-book"]
    assert isinstance(right, Estimate)
    assert right.value == 1
    assert n == labelled
    assert int(str(unparsed)) == int(str(answered)) - int(str(labelled)) > 0
    assert any("without an answer" in note for note in tables[WITHOUT_SOURCES].notes)


def test_an_unreadable_answer_counts_as_wrong_where_the_benchmark_says_so(builds: Mapping[str, Build]) -> None:
    benchmark = get_benchmark("crosscheck-bench")
    records = run_of(builds["crosscheck-bench"], wrong="")
    first = next(r for r in records if r.instance.condition == "vanilla")
    table = tables_of(benchmark, m=[r for r in records if r is not first])[WITHOUT_SOURCES]
    asked = [r for r in records if r.instance.condition == "closed-book"]
    (n, right, _, sources, _) = dict(table.rows)["m / closed-book"]
    assert isinstance(right, Estimate)
    assert isinstance(sources, Estimate)
    assert n == right.n == len(asked)
    assert right.value == pytest.approx((len(asked) + 1) // 2 / len(asked))
    assert any(f"m / closed-book: {len(asked) - 1}" in note for note in table.notes)
    others = tables_of(get_benchmark("mmkc-bench"), m=run_of(builds["mmkc-bench"]))[WITHOUT_SOURCES]
    assert len([note for note in table.notes if "count as wrong" in note]) == 1
    assert not [note for note in others.notes if "count as wrong" in note]


def test_what_is_true_is_not_what_a_model_first_said(builds: Mapping[str, Build]) -> None:
    """The original setting's own answer may be wrong; a right one without the image then costs nothing."""
    benchmark = get_benchmark("mmkc-bench")
    records = []
    for instance in chosen(builds["mmkc-bench"], "original-mc", "original-mc-closed-book", limit=6):
        letter = instance.references["image letter"][0]
        is_full = instance.condition == "original-mc"
        records.append(record(instance, next(x for x in "ABCD" if x != letter) if is_full else letter, benchmark))
    (cells,) = dict(tables_of(benchmark, m=records)[WITHOUT_SOURCES].rows).values()
    values = [cell.value for cell in cells if isinstance(cell, Estimate)]
    assert values == [1, pytest.approx(0.25), 0, -1]


@pytest.mark.parametrize("name", NAMES)
def test_a_limit_takes_whole_examples_and_filters_take_theirs(name: str, builds: Mapping[str, Build]) -> None:
    benchmark, build = get_benchmark(name), builds[name]
    every = chosen(build, WITHOUT_SOURCES)
    few = chosen(build, WITHOUT_SOURCES, limit=3)
    groups = {i.group for i in few}
    assert len(groups) == 3
    assert few == [i for i in every if i.group in groups]
    assert [i for i in few if i.condition not in benchmark.without_sources] == chosen(build, limit=3)
    value = few[0].strata[benchmark.stratum]
    one = chosen(build, WITHOUT_SOURCES, strata={benchmark.stratum: [value]})
    assert one == [i for i in every if i.strata[benchmark.stratum] == value]


def test_a_benchmark_or_a_build_without_them_refuses_the_name(builds: Mapping[str, Build], tmp_path: Path) -> None:
    class Plain(type(get_benchmark("clash"))):  # type: ignore[misc]
        without_sources: Mapping[str, tuple[str, ...]] = {}

    benchmark, build = get_benchmark("clash"), builds["clash"]
    (spec,) = BatchSpec(benchmark="clash", model=("m",), conditions=(WITHOUT_SOURCES,)).runs()
    with pytest.raises(SpecError):
        select_instances(spec, Plain(), list(benchmark.instances(build, "official")))
    with pytest.raises(SpecError):
        BatchSpec(benchmark="clash", model=("m",), conditions=("without-source",)).runs()


def test_pope_asks_each_question_without_its_image(tmp_path: Path) -> None:
    build = get_benchmark("pope").build(
        [("pope", str(small_pope(tmp_path / "pope")))], tmp_path / "out", BuildOptions()
    )
    for prompts in ("plain", "short", PromptTemplate(name="plain", user="Look: {image}\n{question}")):
        every = list(BuildInstances(get_benchmark("pope"), build, prompts))
        for shown, closed in zip(every[::2], every[1::2], strict=True):
            assert closed.condition == f"{shown.condition}-closed-book"
            assert (closed.group, closed.question, closed.references) == (shown.group, shown.question, shown.references)
            assert media_of(shown)
            assert not media_of(closed)
            assert "Look" not in text_of(closed)
            assert closed.question in text_of(closed)
    records = [record(i, "Yes", get_benchmark("pope")) for i in chosen(build, WITHOUT_SOURCES)]
    for _, (n, *cells) in tables_of(get_benchmark("pope"), m=records)[WITHOUT_SOURCES].rows:
        assert n == len(records) / 6
        assert [cell.value for cell in cells if isinstance(cell, Estimate)] == [0.5, 0.5, 0.5, 0]
