"""`rashomon audit`, and the audit at the end of every build, by the command line."""

from __future__ import annotations

import shutil
from dataclasses import replace
from pathlib import Path

import pytest

from app.store.workspace import Workspace
from benchmarks.build import Build
from benchmarks.build_audit import FILE, blind_questions
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Record
from judges.base import FunctionJudge
from judges.judge_registry import find_judge
from tests.support.command import ROOT, Rashomon
from tests.support.data.contra4 import PLAIN, write_source
from tests.support.data.contra4 import row as contra4_row
from tests.support.data.crosscheck_bench import write_rows
from tests.support.runs import make_run, says

PRODUCTS = f"products-figure-8={ROOT / 'assets/products'}"


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with a build of CrossCheck-Bench, and a run of guesses."""
    home = Rashomon(tmp_path_factory.mktemp("home"))
    output = home.run("build", "crosscheck-bench", "--source", PRODUCTS).stdout
    assert "answered without looking: " in output
    assert "PMO ." in output
    home.run(
        *("batch", "--benchmark", "crosscheck-bench", "--model", "policy:chance", "--conditions", "vanilla"),
        *("--display", "none"),
    )
    return home


def audit(rashomon: Rashomon, *words: str) -> dict[str, dict[str, object]]:
    """Return the audited tasks by name."""
    tasks = rashomon.json("audit", *words)["tasks"]
    return {task["task"]: task for task in tasks}


def build_of(rashomon: Rashomon) -> Path:
    return rashomon.workspace / "benchmarks" / "crosscheck-bench"


@pytest.mark.slow
def test_a_build_has_its_audit_beside_it(rashomon: Rashomon) -> None:
    stored = (build_of(rashomon) / FILE).read_bytes()
    tasks = audit(rashomon, "crosscheck-bench")
    assert tasks == audit(rashomon, str(build_of(rashomon)))
    assert (build_of(rashomon) / FILE).read_bytes() == stored
    assert tasks["SPU"]["chance"] == pytest.approx(0.416, abs=1e-3)  # a task of two forms
    assert tasks["PMO"]["blind"]["value"] > 0.9  # type: ignore[index]
    closest = next(rule for rule in tasks["PMO"]["rules"] if rule["rule"] == "closest")  # type: ignore[attr-defined]
    assert closest["flagged"]
    rashomon.run("build", "crosscheck-bench", "--source", PRODUCTS)  # the same build, which it may replace


@pytest.mark.parametrize(
    "content", [b"", b"{}", b"[" * 100_000, b'{"version": 1, "build": "other", "audit": {"tasks": []}}']
)
def test_a_damaged_or_foreign_audit_is_made_again(rashomon: Rashomon, content: bytes) -> None:
    file = build_of(rashomon) / FILE
    stored = file.read_bytes()
    file.write_bytes(content)
    assert "PMO" in audit(rashomon, "crosscheck-bench")
    assert file.read_bytes() == stored


def test_a_run_is_compared_with_the_best_blind_rule(rashomon: Rashomon) -> None:
    run = rashomon.json("runs")[0]["name"]
    result = rashomon.json("audit", run)
    task = next(task for task in result["tasks"] if task["task"] == "PMO")
    share, gain = next((of["right"], of["gain"]) for of in result["gains"] if of["task"] == "PMO")
    assert gain["value"] == pytest.approx(share["value"] - task["blind"]["value"])
    assert gain["high"] < 0.6
    rows = [row for row in result["questions"] if row["task"] == "PMO"]
    leads = [row["right"] - row["blind"] for row in rows]
    assert sum(leads) / len(leads) == pytest.approx(gain["value"]), "an outsider can compute a gain from the questions"
    assert len(rows) == gain["n"]
    printed = rashomon.run("audit", run).stdout
    assert "not shown to use its sources" in printed
    assert all(result[key] in printed for key in ("sentence", "not_shown"))
    assert "PMO" in printed


def test_tables_fit_into_80_columns(rashomon: Rashomon) -> None:
    narrow = Rashomon(rashomon.home, variables={"COLUMNS": "80"})
    summary, rules = (narrow.run("audit", "crosscheck-bench", *more).stdout for more in ((), ("--all",)))
    assert "likeness" in rules
    assert "likeness" not in summary
    tables = [line for line in rules.splitlines() if "without looking:" not in line]
    assert max(map(len, tables)) <= 80


@pytest.mark.parametrize("name", ["no-such", "contra4", "/"])
def test_what_is_no_build_and_no_run_is_refused_in_one_line(rashomon: Rashomon, name: str) -> None:
    errors = rashomon.run("audit", name, code=2).stderr
    assert len(errors.splitlines()) == 1


def test_hostile_texts_are_printed_as_text(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rows = [
        {
            "task": "PMO",
            "question": "Which text is on it?",
            "options": ["\x1b[31m[bold]right\u202e", f"wrong {number}"],
            "answer": "A",
            "id": str(number),
            "frames": ["a.png"],
        }
        for number in range(40)
    ]
    place = write_rows(tmp_path / "rows", rows)
    output = rashomon.run("build", "crosscheck-bench", "--source", f"rows={place}").stdout
    output += rashomon.run("audit", "crosscheck-bench", "--all").stdout
    assert "\x1b" not in output
    assert "\u202e" not in output


def test_an_instance_without_its_options_is_open_and_costs_no_other_its_audit(tmp_path: Path) -> None:
    rashomon, benchmark = Rashomon(tmp_path), get_benchmark("contra4")
    rows = [contra4_row(f"{n}", PLAIN[:2], question=f"Which is louder, {n}?") for n in range(4)]
    rashomon.run("build", "contra4", "--source", write_source(tmp_path / "rows", rows))
    build = Build.open(rashomon.workspace / "benchmarks" / "contra4")
    good = [i for i in benchmark.instances(build, "official") if i.condition == "media"]
    bad = replace(good[0], id="bad/media", group="bad", references={})
    make_run(Workspace(rashomon.workspace), "odd", [*good, bad], says("A"), benchmark=benchmark, model="some-model")
    result = rashomon.json("audit", "odd")
    assert result["open_questions"] == 1
    assert len(result["questions"]) == len(good)


def test_modalities_are_audited_where_scenes_are_captions(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "contra4", "--source", write_source(tmp_path / "rows", [contra4_row("one", PLAIN[:2])]))
    build = Build.open(rashomon.workspace / "benchmarks" / "contra4")
    benchmark = get_benchmark("contra4")
    questions, sizes = blind_questions(benchmark, benchmark.instances(build, "official"), build)
    assert {question.id.rpartition("/")[2] for question in questions} >= {"media", "gold-captions"}
    for question in questions:
        assert all(option.modality for option in question.options)
        assert all(option.text for option in question.options) == question.id.endswith("captions")
        assert all(sizes[option.media] > 0 for option in question.options if option.media)


@pytest.mark.parametrize("name", ["crosscheck-bench", "clash", "contra4"])
def test_the_right_option_is_the_one_that_the_judge_takes_as_right(tmp_path: Path, name: str) -> None:
    source = {"crosscheck-bench": PRODUCTS, "clash": f"rows={ROOT / 'assets/demo/held_out/clash'}"}.get(name)
    rashomon = Rashomon(tmp_path)
    source = source or str(write_source(tmp_path / "rows", [contra4_row("one", PLAIN[:2])]))
    rashomon.run("build", name, "--source", source)
    build, benchmark = Build.open(rashomon.workspace / "benchmarks" / name), get_benchmark(name)
    judge = find_judge(benchmark.judges[0], benchmark)
    assert isinstance(judge, FunctionJudge)
    tried = 0
    for instance in benchmark.instances(build, next(iter(benchmark.prompt_sets))):
        question, answers = benchmark.blind_question(instance), benchmark.options(instance)
        for place, answer in enumerate(answers if question is not None else ()):
            verdict = judge.judge(Record(instance, (Generation(f"{instance.id}#0", answer, "stop"),)))
            is_right = verdict.label is not None and benchmark.correct(instance.condition, verdict.label)
            assert question is not None
            assert is_right == (place in question.right)
            tried += 1
    assert tried >= 2


def test_a_question_that_is_audited_with_both_sources_is_not_open_with_one(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks")
    done = Rashomon(tmp_path)
    result = done.json("audit", "cmc-bench")
    assert result["tasks"]
    assert result["open_questions"] == 0
    assert "open questions" not in done.run("audit", "cmc-bench").stdout
