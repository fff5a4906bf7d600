"""Conditions without sources: what they show, how it is labelled, and that it is counted apart from reading."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from app.engine.instance_streams import BuildInstances
from app.engine.run_plan import select_instances
from app.report.tables.run_headline import headline
from app.run_spec import BatchSpec, RunSpec
from benchmarks.answers import Answers
from benchmarks.base import Benchmark
from benchmarks.build import Build, BuildOptions
from benchmarks.errors import SpecError
from benchmarks.factors.factor_build import Variation, VaryOptions
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_levels import parse_factors
from benchmarks.k_passages.k_passages_build import Examples, build_design
from benchmarks.k_passages.k_passages_design import PassageDesign
from benchmarks.prompt_template import Prompts, PromptTemplate, shipped_templates
from benchmarks.registry import get_benchmark
from benchmarks.tables.without_sources_table import benchmark_tables
from benchmarks.vocabulary import CLOSED_BOOK, WITHOUT_SOURCES, Estimate, Generation, Instance, Record, Table, Text
from judges.base import FunctionJudge
from judges.human_labels_and_samples import blind_answer
from judges.judge_registry import get_judge
from mlx_backends.policy_engine import PolicyBackend, policy_names
from tests.support.data.small import own_rows, write_lines, write_picture
from tests.support.retrieval_logs import write_log

NAMES = ("cmc-bench", "retrieval", "k-passages")
PLAIN = PromptTemplate(name="plain", user="Look: {image}\nRead: {text}\n{question}", system="Be brief.")
ABSTENTION = "I cannot tell."


def _cmc(folder: Path) -> Build:
    own_rows(folder, ["43", "68", "57", "81", "29"])
    rows = [json.loads(line) for line in (folder / "rows.jsonl").read_text("utf-8").splitlines()]
    rows[0] |= {"question": "Is the value of kale 43 or 12?", "conflict": "12"}
    rows[1] |= {"passage": "Of all that was counted, kale came to 68 in the end."}
    rows.append({"question": "What has no image?", "answer": "70"})
    write_lines(folder / "rows.jsonl", rows)
    return get_benchmark("cmc-bench").build([("rows", str(folder))], folder / "cmc", BuildOptions())


LOG: list[dict[str, Any]] = [
    {"answer": "43", "image_answer": "43", "text_answer": "12", "question": "Is the value of kale 43 or 12?"},
    {"answer": "68", "image_answer": "68", "text_answer": "68"},
    {"answer": "57", "image_answer": "12", "text_answer": "13"},
    {"image_answer": "81", "text_answer": "81"},
    {"image_answer": "29", "text_answer": "12"},
    {"answer": "70", "image_answer": "70", "text_answer": "12", "images": []},
    {"answer": "70", "image_answer": "70", "text_answer": "12", "passages": []},
]
"""Sources that conflict, agree, are both wrong, agree without a known answer and conflict without one; and two unusable lines."""


def _retrieval(folder: Path) -> Build:
    for n in range(len(LOG)):
        write_picture(folder / f"{n}.png", n)
    lines = [
        {"question": f"What is value {n}?", "passages": [f"It is {n}."], "images": [f"{n}.png"], **line}
        for n, line in enumerate(LOG)
    ]
    log = write_log(folder / "log.jsonl", lines)
    return get_benchmark("retrieval").build([("log", str(log))], folder / "retrieval", BuildOptions())


def _k_passages(folder: Path) -> Build:
    base = _cmc(folder)
    design = PassageDesign((1, 2), (0, 1), ("first", "last"), (0, 1), (0,))
    return build_design(base, Examples(base), design, folder / "k")


BUILDERS: Mapping[str, Callable[[Path], Build]] = dict(zip(NAMES, (_cmc, _retrieval, _k_passages), strict=True))


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    return {name: builder(tmp_path_factory.mktemp(name)) for name, builder in BUILDERS.items()}


def chosen(build: Build, *conditions: str, prompts: Prompts = "paper", **more: Any) -> list[Instance]:
    """Return the instances of a run."""
    spec = RunSpec(benchmark=build.benchmark, model="m", prompt_set="paper", conditions=conditions, **more)
    benchmark = get_benchmark(build.benchmark)
    return list(select_instances(spec, benchmark, BuildInstances(benchmark, build, prompts)))


def prompt(instance: Instance) -> str:
    """Return the text of a prompt that shows no media."""
    assert all(isinstance(part, Text) for part in instance.parts)
    return "".join(part.text for part in instance.parts if isinstance(part, Text))


@pytest.mark.parametrize("name", NAMES)
def test_a_run_has_it_only_if_it_names_it(name: str, builds: dict[str, Build]) -> None:
    build, benchmark = builds[name], get_benchmark(name)
    own = list(benchmark.instances(build, "paper"))
    assert chosen(build) == own
    assert CLOSED_BOOK not in {instance.condition for instance in own}
    assert benchmark.conditions[-1] == CLOSED_BOOK
    both = chosen(build, *benchmark.conditions[:1], CLOSED_BOOK, limit=2)
    assert {instance.group for instance in both if instance.condition == CLOSED_BOOK} == {i.group for i in both}
    assert len({instance.group for instance in both}) == 2
    (spec,) = BatchSpec(benchmark=name, model=("m",)).runs()
    assert spec.conditions == (), "the spec, and with it the name, of a run that names no conditions is as before"


@pytest.mark.parametrize("name", NAMES)
def test_every_example_with_a_known_right_value_has_one_at_its_end(name: str, builds: dict[str, Build]) -> None:
    benchmark, build = get_benchmark(name), builds[name]
    every = list(BuildInstances(benchmark, build, "paper"))
    ends = [
        i for i, following in zip(every, [*every[1:], None], strict=True) if not following or following.group != i.group
    ]
    closed = [instance for instance in every if instance.condition == CLOSED_BOOK]
    assert [i for i in ends if i.condition == CLOSED_BOOK] == closed
    assert len({i.id for i in every}) == len(every)
    unknown = [i for i in ends if i.condition != CLOSED_BOOK]
    assert [i.group for i in unknown] == [i.group for i in every if i.condition == "undecided"]
    right = {"cmc-bench": "29 43 57 68 81", "retrieval": "43 57 68 81", "k-passages": "29 43 57 68 81"}[name]
    assert sorted(i.references["right"][0] for i in closed) == right.split()
    assert all(not i.references.keys() & {"image", "text", "shown text"} for i in closed)
    assert all(i.strata["type"] == "factual" and "correct" not in i.strata for i in closed)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("prompts", ["paper", "conflict-aware", PLAIN, *shipped_templates().values()], ids=str)
def test_the_prompt_has_the_question_and_no_word_of_sources(
    name: str, prompts: Prompts, builds: dict[str, Build]
) -> None:
    for instance in chosen(builds[name], CLOSED_BOOK, prompts=prompts):
        text = prompt(instance)
        assert text.count(instance.question) == 1
        rest = text.replace(instance.question, "").lower()
        words = ("image", "text", "evidence", "source", "passage", "look", "read", "retriev", "provided", "{")
        assert not [word for word in words if word in rest]
        assert ("cannot answer" in rest) == (prompts == "conflict-aware")


def label(instance: Instance, answer: str) -> str | None:
    judge = get_judge(get_benchmark_of(instance).judges[0])
    assert isinstance(judge, FunctionJudge)
    return judge.judge(Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),))).label


def get_benchmark_of(instance: Instance) -> Benchmark:
    return get_benchmark("k-passages" if "wrong" in instance.references else "cmc-bench")


@pytest.mark.parametrize("name", NAMES)
def test_only_the_right_value_is_right(name: str, builds: dict[str, Build]) -> None:
    benchmark = get_benchmark(name)
    for instance in chosen(builds[name], CLOSED_BOOK):
        (right,) = instance.references["right"]
        labels = {answer: label(instance, answer) for answer in (right, f"It is {right}.", "12", "1,001", ABSTENTION)}
        is_right = {answer: benchmark.correct(CLOSED_BOOK, str(each)) for answer, each in labels.items()}
        assert is_right == {right: True, f"It is {right}.": True, "12": False, "1,001": False, ABSTENTION: False}
        assert labels[ABSTENTION] == "ABSTAIN"
        assert labels["1,001"] == "NEITHER"


@pytest.mark.parametrize("name", NAMES)
def test_judges_that_are_models_or_people_see_the_right_value(name: str, builds: dict[str, Build]) -> None:
    benchmark = get_benchmark(name)
    for instance in chosen(builds[name], CLOSED_BOOK):
        record = Record(instance, (Generation(f"{instance.id}#0", "It is 5.", "stop"),))
        (right,) = instance.references["right"]
        seen = dict(blind_answer(record, benchmark.labels, 0).references)
        if benchmark.rubric is None:
            assert seen == {"right": (right,), "wrong": instance.references["wrong"]}
        else:
            assert seen == {"image": (right,), "text": (right,)}
            text = benchmark.rubric.prompt(record)
            assert f"image says: {right}\n" in text
            assert f"text says: {right}\n" in text


def test_people_see_the_right_value_among_k_passages(builds: dict[str, Build]) -> None:
    """Without it, RIGHT could not be told from NEITHER where no image is shown."""
    benchmark = get_benchmark("k-passages")
    for instance in benchmark.instances(builds["k-passages"], "paper"):
        record = Record(instance, (Generation(f"{instance.id}#0", "5", "stop"),))
        assert dict(blind_answer(record, benchmark.labels, 0).references)["right"] == instance.references["right"]
    conflict = next(
        i for i in get_benchmark("cmc-bench").instances(builds["cmc-bench"], "paper") if "right" in i.references
    )
    assert "right" not in dict(blind_answer(Record(conflict), get_benchmark("cmc-bench").labels, 0).references)


@pytest.mark.parametrize("name", NAMES)
def test_policies_have_nothing_to_repeat(name: str, builds: dict[str, Build]) -> None:
    benchmark = get_benchmark(name)
    for policy in policy_names():
        for instance in chosen(builds[name], CLOSED_BOOK):
            (answer,) = answers_of(PolicyBackend(policy), instance)
            assert not benchmark.correct(CLOSED_BOOK, str(label(instance, answer)))


def answers_of(backend: PolicyBackend, instance: Instance, **spec: Any) -> list[str]:
    """Return the answers of a policy, step by step."""
    values = {"benchmark": get_benchmark_of(instance).name, "model": "m", "prompt_set": "paper", **spec}
    protocol, generations = RunSpec.model_validate(values).to_protocol(), list[Generation]()
    while (request := protocol.next(instance, generations)) is not None:
        backend.submit(request)
        generations += backend.step()
    return [generation.text for generation in generations]


@pytest.mark.parametrize("name", NAMES)
def test_no_protocol_asks_to_read_what_is_not_shown(name: str, builds: dict[str, Build]) -> None:
    calls = {"direct": 1, "read-then-compare": 1, "verify": 1, "self-consistency": 4}
    instance = chosen(builds[name], CLOSED_BOOK)[0]
    shown = chosen(builds[name])[0]
    for protocol, count in calls.items():
        more = {"samples": 3} if protocol == "self-consistency" else {}
        assert len(answers_of(PolicyBackend("policy:random"), instance, protocol=protocol, **more)) == count
        assert len(answers_of(PolicyBackend("policy:random"), shown, protocol=protocol, **more)) >= count
    assert len(answers_of(PolicyBackend("policy:random"), instance, score="likelihood")) == 1


def records_of(build: Build, closed: Callable[[int], str]) -> list[Record]:
    """Return a run whose model gives the right value wherever it sees a source, and ``closed`` without."""
    benchmark, number, records = get_benchmark(build.benchmark), -1, []
    judge = get_judge(benchmark.judges[0])
    assert isinstance(judge, FunctionJudge)
    for instance in BuildInstances(benchmark, build, "paper"):
        number += instance.condition == CLOSED_BOOK
        values = next(iter(instance.references.values()))
        answer = values[0] if instance.condition != CLOSED_BOOK else closed(number) or values[0]
        record = Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),))
        records.append(replace(record, verdicts={judge.id: judge.judge(record)}))
    return records


def tables_of(benchmark: Benchmark, **runs: list[Record]) -> dict[str, Table]:
    answers = {run: Answers.of(records, benchmark) for run, records in runs.items()}
    judge = get_judge(benchmark.judges[0]).id
    return {table.name: table for table in benchmark_tables(benchmark, answers, judge, resamples=200, seed=0)}


def without(records: list[Record]) -> list[Record]:
    return [record for record in records if record.instance.condition != CLOSED_BOOK]


@pytest.mark.parametrize("name", NAMES)
def test_its_table_stands_beside_the_others_and_changes_none(name: str, builds: dict[str, Build]) -> None:
    benchmark = get_benchmark(name)
    records = records_of(builds[name], lambda number: "" if number == 0 else "1,001")
    tables, before = tables_of(benchmark, m=records), tables_of(benchmark, m=without(records))
    assert tables.keys() - before.keys() == {WITHOUT_SOURCES}
    assert next(iter(tables)) == "main"
    for table in before.keys() - {"failures"}:
        assert tables[table] == before[table]
    assert {row: cells for row, cells in tables["failures"].rows if CLOSED_BOOK not in row} == dict(
        before["failures"].rows
    )
    rows = tables[WITHOUT_SOURCES].rows
    count = sum(record.instance.condition == CLOSED_BOOK for record in records)
    compared = benchmark.without_sources[CLOSED_BOOK]
    assert [row.split(" / ")[:2] for row, _ in rows] == [["m", CLOSED_BOOK]] * len(compared)
    none = rows[0][1][1]
    assert {(cells[0], cells[1]) for _, cells in rows} == {(count, none)}
    assert isinstance(none, Estimate)
    assert none.value == pytest.approx(1 / count)
    assert none.n == count
    assert none.low is not None
    assert none.high is not None
    assert none.low <= 1 / count <= none.high < 1
    for _, (_, _, chance, beside, difference) in rows:
        assert isinstance(chance, Estimate)
        assert isinstance(beside, Estimate)
        assert isinstance(difference, Estimate)
        assert (chance.value, beside.value) == (None, 1)
        assert difference.value == pytest.approx(1 - 1 / count, abs=0.4)
        assert difference.low is not None
        assert difference.value is not None
        assert difference.low < difference.value <= 1
    judge = get_judge(benchmark.judges[0]).id
    sentence = f"Without any source it is right on 1 of {count}: that much needs no reading."
    assert sentence in headline("m", Answers.of(records, benchmark), judge, benchmark)
    old = headline("m", Answers.of(without(records), benchmark), judge, benchmark)
    assert [line for line in headline("m", Answers.of(records, benchmark), judge, benchmark) if line != sentence] == old


@pytest.mark.parametrize("name", NAMES)
def test_a_run_without_it_beside_one_with_it_and_a_run_of_nothing_else(name: str, builds: dict[str, Build]) -> None:
    benchmark = get_benchmark(name)
    records = records_of(builds[name], lambda number: ABSTENTION)
    rows = tables_of(benchmark, old=without(records), new=records)[WITHOUT_SOURCES].rows
    assert {row.partition(" / ")[0] for row, _ in rows} == {"new"}
    assert [cells[1].value for _, cells in rows if isinstance(cells[1], Estimate)] == [0] * len(rows)
    alone = [record for record in records if record.instance.condition == CLOSED_BOOK]
    ((_, (n, right, _, *compared)),) = tables_of(benchmark, m=alone)[WITHOUT_SOURCES].rows
    assert n == len(alone)
    assert isinstance(right, Estimate)
    assert right.value == 0
    assert [cell.value for cell in compared if isinstance(cell, Estimate)] == [None, None]
    pending = [Record(record.instance) for record in alone]
    ((_, (n, *_)),) = tables_of(benchmark, m=pending)[WITHOUT_SOURCES].rows
    assert n == 0


def test_a_varied_build_leaves_it_out(builds: dict[str, Build], tmp_path: Path) -> None:
    benchmark = get_benchmark("cmc-bench")
    factors = parse_factors(["text-source=none,forum post"])
    varied = Variation(benchmark, builds["cmc-bench"], Design.of(factors), VaryOptions()).build(tmp_path / "varied")
    assert CLOSED_BOOK not in {i.condition for i in BuildInstances(benchmark, varied, "paper")}
    with pytest.raises(SpecError):
        Variation(benchmark, builds["cmc-bench"], Design.of(factors, conditions=(CLOSED_BOOK,)), VaryOptions())
