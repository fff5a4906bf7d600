"""Results beside rules that look at no source, as a user reads them: rows, gains, sentences, and scores that are cached."""

from __future__ import annotations

import json
import random
import shutil
import sqlite3
from collections import defaultdict
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from app.compare.recommend.recommendation import recommend
from app.report.tables.run_tables import tables_from, tables_of
from app.report.tables.table_inputs import read_inputs
from app.store import cached_blind_scores
from app.store.run_store import RunStore
from benchmarks.audit import Audit, audit
from benchmarks.build import Build
from benchmarks.registry import get_benchmark
from benchmarks.tables.blind_rule_tables import BLIND, CHANCE, NAME
from benchmarks.vocabulary import Decoding, Estimate, Generation, Instance, Record, Table
from judges.base import FunctionJudge
from judges.judge_registry import find_judge
from mlx_backends.policy_engine import PolicyBackend
from tests.support.command import ROOT, Rashomon
from tests.support.demo import HeldOutSet

NOT_SHOWN = "is not shown to use its sources"
BENCHMARK = get_benchmark("crosscheck-bench")


def letter(instance: Instance) -> str:
    """Return the right answer in the form of the prompt."""
    answer, texts = instance.references["answer"][0], instance.references.get("options", ())
    return "ABCD"[texts.index(answer)] if answer in texts else answer


def vanilla(folder: Path) -> list[Instance]:
    instances = BENCHMARK.instances(Build.open(folder), "paper")
    return [instance for instance in instances if instance.condition == "vanilla"]


@pytest.fixture(scope="module")
def products(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """The shipped products' questions, with a model that is right on nine tenths, one that guesses, and a policy."""
    rashomon = Rashomon(tmp_path_factory.mktemp("products"))
    rashomon.run("build", "crosscheck-bench", "--source", f"products={ROOT}/assets/products")
    instances = vanilla(rashomon.workspace / "benchmarks" / "crosscheck-bench")
    draws = random.Random(0)
    for name, share in (("sees", 0.9), ("guesses", 0.0)):
        answers = []
        for instance in instances:
            guesses = BENCHMARK.options(instance) or ("Yes", "No")
            answer = letter(instance) if draws.random() < share else draws.choice(guesses)
            answers.append(json.dumps({"id": instance.id, "answer": answer}))
        file = rashomon.home / f"{name}.jsonl"
        file.write_text("\n".join(answers))
        rashomon.run("import", file, "--benchmark", "crosscheck-bench", "--model", name, "--name", name)
    rashomon.run("--batch", "--benchmark", "crosscheck-bench", "--model", "policy:chance", "--name", "chance")
    return rashomon


def folders(rashomon: Rashomon, *runs: str) -> list[Path]:
    return [rashomon.workspace / "runs" / run for run in runs]


def named(tables: list[Table], name: str) -> Table:
    return next(table for table in tables if table.name == name)


def row(table: Table, label: str) -> dict[str, Any]:
    return dict(zip(table.columns, dict(table.rows)[label], strict=True))


def values(table: Table, label: str) -> dict[str, Any]:
    return {name: cell.value for name, cell in row(table, label).items() if isinstance(cell, Estimate)}


def test_chance_is_the_exact_expectation_of_each_task_with_its_open_questions(products: Rashomon) -> None:
    expected = defaultdict(list)
    for instance in vanilla(products.workspace / "benchmarks" / "crosscheck-bench"):
        options = len(instance.references.get("options", ()))
        yes_no = instance.references["answer"][0] in ("Yes", "No")
        expected[instance.strata["task"]].append(1 / options if options else 0.5 * yes_no)
    main = tables_of(folders(products, "sees"), only="main")[0]
    chance = values(main, CHANCE)
    for task, shares in expected.items():
        assert chance[task] == pytest.approx(np.mean(shares), abs=1e-9), task
    assert chance["Avg."] == pytest.approx(np.mean([np.mean(shares) for shares in expected.values()]), abs=1e-9)
    assert all(cell.low is None for cell in row(main, CHANCE).values()), "an expectation is known exactly"
    mixed = {task for task, shares in expected.items() if len(set(shares)) > 1}
    assert mixed, "no task mixes forms, so a constant would pass"


def test_the_papers_rows_stay_last_and_as_they_are(products: Rashomon) -> None:
    labels = [label for label, _ in tables_of(folders(products, "sees", "guesses"), only="main")[0].rows]
    ours = ["sees (imported)", "guesses (imported)", BLIND, CHANCE]
    assert labels[:4] == ours
    assert all(label.endswith("(paper)") for label in labels[4:])


def test_gains_are_paired_by_question(products: Rashomon) -> None:
    (folder,) = folders(products, "sees")
    inputs = read_inputs([folder])
    table = named(tables_from(inputs), NAME)
    answers = inputs.runs["sees (imported)"]
    assert answers.blind is not None
    right = np.array([BENCHMARK.counted_score(kind, inputs.judge) for kind in answers.kinds])[answers.kind]
    closed = ~np.isnan(answers.blind.blind)
    cells = row(table, "sees (imported)")
    assert cells["answers"] == closed.sum() < len(answers), "open questions are no part of a gain"
    assert cells["right"].value == pytest.approx(right[closed].mean())
    assert cells["without looking"].value == pytest.approx(answers.blind.blind[closed].mean())
    blind, chance = answers.blind.blind[closed], answers.blind.chance[closed]
    lead = right[closed] - (blind if blind.sum() > chance.sum() else chance)
    assert cells["gain over blind"].value == pytest.approx(lead.mean())
    by_task = [row(table, label)["answers"] for label, _ in table.rows if " / " in label]
    assert sum(by_task) == closed.sum()


def test_only_the_model_that_beats_no_blind_rule_is_said_not_to_use_its_sources(products: Rashomon) -> None:
    shown = products.run("show", "sees", "guesses", "chance").stdout
    (line,) = [line for line in shown.splitlines() if NOT_SHOWN in line]
    assert line.startswith("guesses (imported)"), "a policy is no model, and a sentence is printed once"
    compared = products.run("compare", "sees", "guesses").stdout
    assert compared.count(NOT_SHOWN) == 1
    main, beside = (named(tables_of(folders(products, "guesses")), name) for name in ("main", NAME))
    assert NOT_SHOWN in main.notes[0], "the interface shows the first note of a table"
    assert NOT_SHOWN in beside.notes[0]


def test_a_policy_is_no_model_by_whatever_name_a_table_has_it(products: Rashomon) -> None:
    products.run("--batch", "--benchmark", "crosscheck-bench", "--model", "policy:chance", "--name", "again")
    shown = products.run("show", "chance", "again", "guesses").stdout
    assert [line for line in shown.splitlines() if NOT_SHOWN in line and not line.startswith("guesses")] == []


def test_a_recommendation_begins_with_it(products: Rashomon) -> None:
    advice = products.run("recommend", "guesses", "chance").stdout.splitlines()
    assert advice[0].startswith("guesses (imported)")
    assert NOT_SHOWN in advice[0]
    better = recommend(folders(products, "guesses", "sees"))
    assert NOT_SHOWN not in " ".join(better.advice), "the model that is recommended uses its sources"
    assert not any("no policy" in line for line in better.caveats), "the blind rule is the floor"


@pytest.mark.slow
def test_a_report_says_so_to_a_decision_maker(products: Rashomon) -> None:
    for run, is_said in (("guesses", True), ("sees", False)):
        products.run("report", run, "--out", products.home / run)
        page = (products.home / run / "report.html").read_text().partition("Setup")[0]
        assert (NOT_SHOWN in page) == is_said
        assert "without looking" in page


@pytest.mark.slow
def test_chance_is_what_the_policy_scores_over_1000_seeds(products: Rashomon) -> None:
    judge = find_judge("extracted", BENCHMARK)
    assert isinstance(judge, FunctionJudge)
    instances = vanilla(products.workspace / "benchmarks" / "crosscheck-bench")
    chance = values(tables_of(folders(products, "sees"), only="main")[0], CHANCE)
    right: dict[str, list[float]] = defaultdict(list)
    protocol, policy, labels = BENCHMARK.protocol(Decoding()), PolicyBackend("policy:chance"), dict[Any, bool]()
    for instance in instances:
        request = protocol.next(instance, ())
        assert request is not None
        guesses = policy._answers(request)
        for guess in guesses:
            verdict = judge.judge(Record(instance, (Generation("x", guess, "stop"),)))
            labels[instance.id, guess] = verdict.label == "CORRECT"
        draws = (BENCHMARK.protocol(Decoding(seed=seed)).next(instance, ()) for seed in range(1000) if len(guesses) > 1)
        hits = [labels[instance.id, guesses[policy._draw(draw, len(guesses))]] for draw in draws if draw is not None]
        right[instance.strata["task"]].append(float(np.mean(hits)) if hits else float(labels[instance.id, guesses[0]]))
    for task, shares in right.items():
        error = 0.5 / np.sqrt(1000 * len(shares))
        assert abs(np.mean(shares) - chance[task]) < 4.5 * error, task


def test_scores_are_computed_once_and_a_damaged_cache_is_no_matter(
    products: Rashomon, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(cached_blind_scores, "cache_folder", lambda: tmp_path / "cache")
    results = list[Audit]()

    def counted(questions: Any, **options: Any) -> Audit:
        results.append(results[0] if results else audit(questions, **options))
        return results[0]

    monkeypatch.setattr(cached_blind_scores, "audit", counted)
    (folder,) = folders(products, "sees")
    first = tables_of([folder], only=NAME)
    assert tables_of([folder], only=NAME) == first
    assert len(results) == 1
    (file,) = (tmp_path / "cache" / cached_blind_scores.FOLDER).iterdir()
    for content in (b"", b"PK\x03\x04", file.read_bytes()[:-200]):
        file.write_bytes(content)
        assert tables_of([folder], only=NAME) == first
    assert len(results) == 4


def test_a_run_with_other_instances_under_the_same_ids_has_scores_of_its_own(
    products: Rashomon, tmp_path: Path
) -> None:
    (folder,) = folders(products, "sees")
    with RunStore.read(folder) as store:
        digest = store.instances_digest()
    copy = shutil.copytree(folder, tmp_path / "runs" / "copy")
    with sqlite3.connect(copy / "run.sqlite") as database:
        database.create_function("row_digest", -1, lambda *values: b"")
        database.execute("UPDATE instance SET body = replace(body, 'product', 'thing') WHERE ordinal = 0")
    with RunStore.read(copy) as store:
        assert store.instances_digest() != digest


def test_questions_without_options_have_no_blind_rows(rashomon: Rashomon) -> None:
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-text", "--limit", "8", "--name", "x")
    tables = tables_of(folders(rashomon, "x"))
    assert NAME not in [table.name for table in tables]
    assert not {BLIND, CHANCE} & {label for table in tables for label, _ in table.rows}
    assert NOT_SHOWN not in rashomon.run("show", "x").stdout


def test_a_cell_that_depends_on_the_wrong_answer_is_not_made_up(scenes: HeldOutSet, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run(
        "--batch", "--benchmark", "clash", "--data", scenes.build.path, "--model", "policy:random", "--name", "x"
    )
    main = tables_of(folders(rashomon, "x"), only="main")[0]
    chance = values(main, CHANCE)
    assert chance["Conflict"] == pytest.approx(0.25)
    assert BLIND not in dict(main.rows), "a rule that always names the conflict is right on all of one condition"
    beside = named(tables_of(folders(rashomon, "x")), NAME)
    assert beside.rows
    assert all(value is None for name, value in chance.items() if name in ("Image", "Text"))
