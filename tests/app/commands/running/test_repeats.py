"""``--repeats``: every instance is asked several times, and its answers count as what they are, dependent."""

from __future__ import annotations

import json
import re
import shutil
import statistics
import time
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import Any

import pytest

from app.engine.stop_at_interval_width import windows
from app.new_run.preflight import PreflightChecker
from app.new_run.spec_form import command_line, read_form
from app.run_spec import RunSpec, load_spec, parse
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from assets.demo.recipe import evaluate_demo_model
from benchmarks.errors import SpecError
from benchmarks.protocols.repeats import RepeatedInstances, split_repeat
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Request, Text
from mlx_backends.policy_engine import PolicyBackend
from tests.app.store.test_run_store import META
from tests.support.command import Rashomon, kill_all
from tests.support.covered_runs import answer, build
from tests.support.demo import FOUR_BIT
from tests.support.toy import toy_instances

REPEATS, LIMIT = 3, 12
SAMPLED = ("--temperature", "1")
EXAMPLES = ("--batch", "--benchmark", "cmc-bench", "--limit", str(LIMIT), "--display", "none")

Cell = Mapping[str, Any]
Cells = Mapping[tuple[str, str, str], Cell]


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A home with runs of two policies, once and with repeats: one draws its answers, the other always gives the same."""
    rashomon = Rashomon(tmp_path_factory.mktemp("home"))
    evaluate_demo_model.build("cmc-bench", rashomon.workspace / "benchmarks" / "cmc-bench")
    for name, policy in (("draws", "uniform"), ("same", "always-image")):
        asked = (*EXAMPLES, "--model", f"policy:{policy}", *SAMPLED)
        rashomon.run(*asked, "--name", f"{name}-once")
        rashomon.run(*asked, "--repeats", str(REPEATS), "--name", name)
    return rashomon


def samples(rashomon: Rashomon, run: str) -> dict[str, dict[str, Any]]:
    """The exported samples of a run, by id."""
    out = rashomon.home / f"samples-{run}"
    shutil.rmtree(out, ignore_errors=True)
    rashomon.run("export", run, "--format", "json", "--canonical", "--out", out)
    lines = (out / "samples.jsonl").read_text("utf-8").splitlines()
    return {sample["id"]: sample for sample in map(json.loads, lines)}


def label(sample: Mapping[str, Any]) -> str | None:
    """The label of a sample by its only judge, ``match``."""
    (verdict,) = sample["verdicts"].values()
    return verdict["label"] if verdict["status"] == "labelled" else None


def tables(rashomon: Rashomon, *command: str) -> dict[str, Any]:
    return {table["name"]: table for table in rashomon.json(*command)["tables"]}


def cells(of: Mapping[str, Any]) -> Cells:
    """The estimates of tables, by table, row and column."""
    return {
        (name, row["label"], column): cell
        for name, table in of.items()
        for row in table["rows"]
        for column, cell in row["cells"].items()
        if isinstance(cell, dict)
    }


def interval(cell: Cell) -> tuple[float, float, float] | None:
    return None if cell["low"] is None else (cell["value"], cell["low"], cell["high"])


def assert_same_intervals(once: Cells, repeated: Cells, least: int) -> None:
    """Every interval is as wide with answers that are repeated, and rests on ``REPEATS`` times the answers.

    A rule that looks at no source answers an instance once.
    """
    both = [key for key in once if key in repeated and interval(once[key]) is not None]
    assert len(both) >= least
    for key in both:
        # Of differences, which also rest on pages that are shown elsewhere, the bootstrap's rounding differs.
        assert interval(repeated[key]) == pytest.approx(interval(once[key]), abs=1e-3), key
        times = 1 if "(ours)" in key[1] else REPEATS
        assert repeated[key]["n"] == times * once[key]["n"], key


# --- the spec ------------------------------------------------------------------------------------


def spec(**more: Any) -> RunSpec:
    values = {"benchmark": "cmc-bench", "model": "policy:uniform", "temperature": 1.0, **more}
    (run,) = load_spec(None, values).runs()
    return run


def test_one_repeat_leaves_a_spec_as_it_was() -> None:
    plain, once = spec(), spec(repeats=1)
    assert once == plain
    assert "repeats" not in plain.model_dump(mode="json")
    assert "repeats" not in plain.identity()
    assert type(once.to_protocol()) is type(plain.to_protocol())
    several = spec(repeats=REPEATS)
    assert several.identity() == {**plain.identity(), "repeats": REPEATS}
    assert several.run_name("d") != plain.run_name("d")
    assert parse(RunSpec, several.model_dump(mode="json"), "x") == several


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ((), "greedy answers are the same in each repeat; add a --temperature above 0, or leave --repeats out."),
        (("--temperature", "0"), "greedy answers are the same"),
        ((*SAMPLED, "--score", "likelihood"), "likelihoods are the same in each repeat"),
    ],
)
def test_repeats_that_would_all_be_equal_are_refused(home: Rashomon, options: Sequence[str], words: str) -> None:
    message = home.run(*EXAMPLES, "--model", "policy:uniform", "--repeats", "3", *options, code=2).stderr
    assert words in message
    assert len(message.strip().splitlines()) == 1


@pytest.mark.parametrize("number", ["0", "101", "-1", "2.5", "three"])
def test_a_number_of_repeats_that_there_cannot_be_is_refused(home: Rashomon, number: str) -> None:
    message = home.run(*EXAMPLES, "--model", "policy:uniform", *SAMPLED, f"--repeats={number}", code=2).stderr
    assert "--repeats" in message


def test_a_vote_and_a_benchmark_that_samples_by_itself_need_no_temperature() -> None:
    vote = load_spec(None, {"benchmark": "cmc-bench", "model": "m", "protocol": "self-consistency", "repeats": 2})
    assert vote.runs()[0].repeats == 2
    (crosscheck,) = load_spec(None, {"benchmark": "crosscheck-bench", "model": "m", "repeats": 2}).runs()
    assert crosscheck.decoding.temperature > 0
    with pytest.raises(SpecError, match="greedy"):
        load_spec(None, {"benchmark": "crosscheck-bench", "model": "m", "repeats": 2, "temperature": 0}).runs()


def test_a_file_and_the_form_name_repeats(home: Rashomon, tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_text('benchmark = "cmc-bench"\nmodel = "policy:uniform"\nrepeats = 4\n[decoding]\ntemperature = 1.0\n')
    assert load_spec(path, {}).repeats == 4
    assert load_spec(path, {"repeats": 2}).repeats == 2
    typed = {"benchmark": "cmc-bench", "model": ["policy:uniform"], "limit": "2", "repeats": "4"}
    assert read_form(typed)[1] == {
        "repeats": "greedy answers are the same in each repeat; add a --temperature above 0, or leave --repeats out."
    }
    form, errors = read_form({**typed, "temperature": "1"})
    assert form is not None, errors
    workspace = Workspace(home.workspace)
    assert "--repeats 4" in command_line(workspace, form)
    (run,) = PreflightChecker(workspace).check(form).runs
    assert (run.estimate.examples, run.estimate.answers, run.estimate.left) == (2, 64, 64)


# --- requests and answers -------------------------------------------------------------------------


def test_the_first_repeat_is_the_run_without_and_each_has_another_seed(home: Rashomon) -> None:
    once, several = samples(home, "draws-once"), samples(home, "draws")
    assert len(several) == REPEATS * len(once) == REPEATS * LIMIT * 8
    for name, sample in once.items():
        assert several[name]["answer"] == sample["answer"]
        assert [several[name]["strata"].pop("repeat"), several[name]["strata"]] == ["1", sample["strata"]]
    assert {split_repeat(name) for name in several} == {(name, n) for name in once for n in (1, 2, 3)}
    with RunStore.read(home.workspace / "runs" / "draws") as store:
        records = list(store.records())
        protocol = parse(RunSpec, store.meta("spec"), "x").to_protocol()
    digests: dict[int, set[str]] = {}
    for record in records:
        request = protocol.next(record.instance, ())
        assert request is not None
        digests.setdefault(request.decoding.seed, set()).add(request.digest)
    assert len(digests) == REPEATS
    assert 0 in digests
    assert not any(first & second for first, second in combinations(digests.values(), 2))
    assert any(
        len({several[name if n == 1 else f"{name}~repeat-{n}"]["answer"] for n in (1, 2, 3)}) > 1 for name in once
    )


def test_every_step_of_a_vote_has_another_seed_in_each_repeat() -> None:
    vote = spec(protocol="self-consistency", samples=3, repeats=2).to_protocol()
    instance = Instance("i", "g", "aligned", "q?", (Text("q?"),))
    seeds: list[int] = []
    for asked in RepeatedInstances([instance], 2):
        generations: list[Generation] = []
        for _ in range(3):
            request = vote.next(asked, generations)
            assert request is not None
            seeds.append(request.decoding.seed)
            generations.append(Generation(request.id, "4", "stop"))
    assert len(set(seeds)) == 6


def test_a_run_counts_every_answer(home: Rashomon) -> None:
    (run,) = [run for run in home.json("runs") if run["name"] == "draws"]
    assert sum(condition["total"] for condition in run["conditions"]) == REPEATS * LIMIT * 8
    assert home.run("show", "draws").stdout.startswith(f"draws: done, {REPEATS * LIMIT * 8} of {REPEATS * LIMIT * 8}")
    dry = home.run(*EXAMPLES[:-2], "--model", "policy:random", *SAMPLED, "--repeats", "5", "--dry-run")
    assert f"{5 * LIMIT * 8} instances" in dry.stdout + dry.stderr


def test_another_number_of_repeats_is_another_run(home: Rashomon) -> None:
    again = (*EXAMPLES, "--model", "policy:uniform", *SAMPLED, "--name", "draws")
    assert "repeats" in home.run(*again, "--repeats", "4", code=2).stderr
    assert "repeats" in home.run(*again, code=2).stderr


def test_a_killed_run_resumes_with_the_requests_it_would_have_made(home: Rashomon, tmp_path: Path) -> None:
    held = Rashomon(tmp_path).held()
    shutil.copytree(home.workspace / "benchmarks", held.workspace / "benchmarks")
    asked = (*EXAMPLES, "--model", "policy:uniform", *SAMPLED, "--repeats", str(REPEATS), "--name", "draws")
    process, database = held.start(*asked), held.workspace / "runs" / "draws" / "run.sqlite"
    until = time.monotonic() + 60
    while not (database.is_file() and _answered(database.parent)) and time.monotonic() < until:
        time.sleep(0.05)
    kill_all(process)
    done = _answered(database.parent)
    assert 0 < done < REPEATS * LIMIT * 8
    Rashomon(tmp_path).run("resume", "draws", "--display", "none")
    assert samples(Rashomon(tmp_path), "draws") == samples(home, "draws")


def _answered(folder: Path) -> int:
    with RunStore.read(folder) as store:
        return sum(progress.done for progress in store.progress())


@pytest.mark.slow
def test_a_model_samples_other_answers_in_each_repeat(home: Rashomon) -> None:
    asked = ("--batch", "--benchmark", "cmc-bench", "--limit", "2", "--display", "none", "--model", FOUR_BIT)
    home.run(*asked, "--temperature", "2", "--repeats", "3", "--name", "demo")
    home.run(*asked, "--temperature", "2", "--name", "demo-once")
    several = samples(home, "demo")
    answers = [{name: s["answer"] for name, s in several.items() if split_repeat(name)[1] == n} for n in (1, 2, 3)]
    assert answers[0] == {name: sample["answer"] for name, sample in samples(home, "demo-once").items()}
    texts = [list(by_name.values()) for by_name in answers]
    assert len(texts[0]) == 16
    assert all(first != second for first, second in combinations(texts, 2))


# --- tables -----------------------------------------------------------------------------------------


def test_the_table_of_repeats_is_that_of_a_count_by_hand(home: Rashomon) -> None:
    (table,) = tables(home, "show", "draws", "--table", "repeats").values()
    found = {row["label"].removeprefix("policy:uniform / "): row["cells"] for row in table["rows"]}
    assert list(found) == ["repeat 1", "repeat 2", "repeat 3", "mean", "SD between repeats"]
    answers = samples(home, "draws")
    by_repeat: list[dict[str, str | None]] = [{} for _ in range(REPEATS)]
    for name, sample in answers.items():
        base, number = split_repeat(name)
        by_repeat[number - 1][base] = label(sample)
    right = []
    for number, labels in enumerate(by_repeat, 1):
        aligned = [of for name, of in labels.items() if answers[name]["condition"] == "aligned" and of is not None]
        right.append(aligned.count("BOTH") / len(aligned))
        cell = found[f"repeat {number}"]["aligned"]
        assert (cell["value"], cell["n"]) == (pytest.approx(right[-1]), len(aligned))
    assert found["SD between repeats"]["aligned"]["value"] == pytest.approx(statistics.stdev(right))
    assert found["mean"]["aligned"]["value"] == pytest.approx(statistics.mean(right))
    pairs = [
        (of[first], of[second])
        for of in ([labels[name] for labels in by_repeat] for name in by_repeat[0])
        for first, second in combinations(range(REPEATS), 2)
        if of[first] is not None and of[second] is not None
    ]
    agreeing = found["mean"]["pairs_that_agree"]
    assert agreeing["n"] == len(pairs)
    assert agreeing["value"] == pytest.approx(sum(first == second for first, second in pairs) / len(pairs))
    assert agreeing["low"] < agreeing["value"] < agreeing["high"]
    complete = [of for name in by_repeat[0] if None not in (of := [labels[name] for labels in by_repeat])]
    alike = found["mean"]["instances_that_agree"]
    assert (alike["n"], alike["value"]) == (
        len(complete),
        pytest.approx(sum(len(set(of)) == 1 for of in complete) / len(complete)),
    )


def test_the_table_is_printed_with_the_main_one_and_only_for_repeats(home: Rashomon) -> None:
    title = "Each repeat, and the agreement of a model with itself"
    assert title in home.run("show", "draws").stdout
    assert title in home.run("show", "draws-once", "draws").stdout
    assert title not in home.run("show", "draws-once").stdout
    message = home.run("show", "draws-once", "--table", "repeats", code=2).stderr
    assert "there is no table 'repeats'" in message


def test_equal_answers_narrow_no_interval(home: Rashomon) -> None:
    once = cells(tables(home, "show", "same-once", "--all"))
    several = cells(tables(home, "show", "same", "--all"))
    assert_same_intervals(once, several, least=60)
    repeats = {key[1:]: interval(cell) for key, cell in several.items() if key[0] == "repeats"}
    for column in ("aligned", "mfr", "hr"):
        assert repeats["policy:always-image / mean", column] == repeats["policy:always-image / repeat 1", column]
        assert several["repeats", "policy:always-image / SD between repeats", column]["value"] == 0


@pytest.mark.parametrize(
    "benchmark",
    [
        "crosscheck-bench",
        "mmkc-bench",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("cmc-bench", "clash", "contra4", "pope")),
    ],
)
def test_equal_answers_narrow_no_interval_of_any_benchmark(
    benchmark: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def draw(self: PolicyBackend, request: Request, choices: int) -> int:
        same = replace(request.unscored, decoding=replace(request.decoding, seed=0))
        return int(same.digest, 16) % choices

    monkeypatch.setattr(PolicyBackend, "_draw", draw)
    rashomon = Rashomon(tmp_path)
    build(benchmark, rashomon)
    answer(benchmark, rashomon, "once", *SAMPLED)
    answer(benchmark, rashomon, "several", *SAMPLED, "--repeats", str(REPEATS))
    once, several = (cells(tables(rashomon, "show", name, "--all")) for name in ("once", "several"))
    assert_same_intervals(once, several, least=30)


def test_answers_that_differ_narrow_an_interval_less_than_other_examples_would(home: Rashomon) -> None:
    once = cells(tables(home, "show", "draws-once", "--table", "main"))
    several = cells(tables(home, "show", "draws", "--table", "main"))
    widths = {
        name: [cell["high"] - cell["low"] for key, cell in of.items() if key[1] == "policy:uniform" and cell["low"]]
        for name, of in (("once", once), ("several", several))
    }
    ratio = statistics.mean(widths["several"]) / statistics.mean(widths["once"])
    assert REPEATS**-0.5 < ratio < 1


def test_a_plan_counts_examples(home: Rashomon) -> None:
    plan = home.json("recommend", "draws", "--plan", "--width", "0.2")
    assert {row["cells"]["examples_now"] for row in plan["table"]["rows"]} == {LIMIT}
    row = plan["table"]["rows"][0]["cells"]
    assert row["instances"] == row["examples"] * 8 * REPEATS


def test_examples_are_stopped_at_with_all_their_repeats(tmp_path: Path) -> None:
    with RunStore.create(tmp_path, META, RepeatedInstances(toy_instances(400), REPEATS)) as store:
        names, all_windows = store.ids(), list(windows(store, seed=0))
    assert len(all_windows) > 1
    for window in all_windows:
        asked = {split_repeat(names[ordinal]) for ordinal in window.ordinals}
        assert asked == {(name, number) for name, _ in asked for number in (1, 2, 3)}


# --- comparisons --------------------------------------------------------------------------------------


def difference(home: Rashomon, first: str, second: str, metric: str = "Aligned") -> dict[str, Any]:
    (table,) = tables(home, "compare", first, second, "--metric", metric, "--table", "differences").values()
    (row,) = table["rows"]
    return dict(row["cells"])


def test_repeats_are_paired_by_their_number(home: Rashomon) -> None:
    draws, same = samples(home, "draws"), samples(home, "same")
    flips = home.json("compare", "same", "draws")["flips"][0]
    assert flips["shared"] == len(draws)
    for cell in flips["cells"]:
        names = [
            name
            for name in same
            if (label(same[name]) or "unparsed", label(draws[name]) or "unparsed") == (cell["before"], cell["after"])
        ]
        assert cell["instances"] == names
    assert sum(cell["count"] for cell in flips["cells"]) == sum(label(same[n]) != label(draws[n]) for n in same)


@pytest.mark.parametrize("order", [("same-once", "draws"), ("draws", "same-once")])
def test_a_run_without_repeats_is_paired_with_each_of_them(home: Rashomon, order: tuple[str, str]) -> None:
    cell = difference(home, *order)
    draws = samples(home, "draws")
    right = [label(sample) == "BOTH" for sample in draws.values() if sample["condition"] == "aligned"]
    sign = 1 if order[1] == "draws" else -1
    assert cell["difference"]["value"] == pytest.approx(sign * (statistics.mean(right) - 1))
    assert cell["n"] == REPEATS * LIMIT
    # As many answers of the baseline that are all the same make no difference.
    repeated = [name.replace("same-once", "same") for name in order]
    assert interval(difference(home, *repeated)["difference"]) == pytest.approx(interval(cell["difference"]))
    report = home.run("compare", *order).stdout
    assert "policy:uniform has repeats, and policy:always-image has none: each repeat is paired with the one" in report
    assert "instances) and" not in report, "no instance is left out"
    assert "has repeats" not in home.run("compare", *repeated).stdout


def test_equal_answers_make_no_difference_more_certain(home: Rashomon) -> None:
    home.run(*EXAMPLES, "--model", "policy:always-text", *SAMPLED, "--name", "text-once")
    home.run(*EXAMPLES, "--model", "policy:always-text", *SAMPLED, "--repeats", str(REPEATS), "--name", "text")
    once = tables(home, "compare", "same-once", "text-once", "--all")
    several = tables(home, "compare", "same", "text", "--all")
    for of in (once, several):
        del of["changes"]  # kappa and agreement of labels
    assert_same_intervals(cells(once), cells(several), least=15)
    p = [{row["label"]: row["cells"]["p"]["value"] for row in of["differences"]["rows"]} for of in (once, several)]
    # Whole sums of clusters have an exact p, which is not the smaller one.
    assert all(p[1][name] >= p[0][name] * (1 - 1e-9) for name in p[0])
    assert min(p[0].values()) < 0.01


def test_flips_and_recommendations_read_both_runs(home: Rashomon) -> None:
    for order in (("same-once", "draws"), ("draws", "same-once")):
        (flipped,) = tables(home, "compare", *order, "--flips", "--table", "flipped").values()
        rows = {row["label"]: row["cells"] for row in flipped["rows"]}
        assert any("~repeat-3" in name for name in rows)
        assert len(rows) == len(flipped["rows"])
        name = next(name for name in rows if "~repeat-2" in name)
        answers = [samples(home, run) for run in order]
        texts = [of.get(name, of.get(split_repeat(name)[0]))["answer"] for of in answers]  # type: ignore[index]
        assert all(text in json.dumps(rows[name], ensure_ascii=False) for text in texts)
    advice = home.run("recommend", "draws", "same-once").stdout
    assert f"The metrics rest on {REPEATS * LIMIT * 4} answers to {LIMIT} examples" in re.sub(r"\s+", " ", advice)


# --- elsewhere ----------------------------------------------------------------------------------------


def test_a_bundle_holds_and_returns_the_repeats(home: Rashomon, tmp_path: Path) -> None:
    bundle = tmp_path / "bundle.zip"
    home.run("bundle", "draws", "--media", "all", "--out", bundle)
    there = home.json("show", f"{bundle}:draws", "--all")["tables"]
    assert there == home.json("show", "draws", "--all")["tables"]
    other = Rashomon(tmp_path)
    other.run("open", bundle, "--import", "--yes")
    assert samples(other, "draws") == samples(home, "draws")


def test_exports_have_the_number_of_the_repeat(home: Rashomon, tmp_path: Path) -> None:
    home.run("export", "draws", "--format", "csv,inspect", "--out", tmp_path)
    header, *rows = (tmp_path / "samples.csv").read_text("utf-8-sig").splitlines()
    assert "stratum repeat" in header
    assert len(rows) >= REPEATS * LIMIT * 8
    (log,) = tmp_path.glob("*.eval")
    with zipfile.ZipFile(log) as archive:
        header_json = json.loads(archive.read("header.json"))
        epochs = [json.loads(archive.read(name)) for name in archive.namelist() if name.startswith("samples/")]
    assert header_json["eval"]["config"]["epochs"] == REPEATS
    assert header_json["eval"]["dataset"]["samples"] == LIMIT * 8
    assert len({(sample["id"], sample["epoch"]) for sample in epochs}) == len(epochs) == REPEATS * LIMIT * 8
    assert {sample["id"] for sample in epochs} == set(header_json["eval"]["dataset"]["sample_ids"])


def test_a_report_counts_prompts_and_not_their_repeats(home: Rashomon, tmp_path: Path) -> None:
    home.run("report", "draws", "same-once", "--out", tmp_path)
    text = re.sub(r"\s+", " ", re.sub("<[^>]+>", " ", (tmp_path / "report.html").read_text("utf-8")))
    assert f"{LIMIT} in {LIMIT * 8} prompts, each asked {REPEATS} times" in text
    assert f"{LIMIT} in {LIMIT * 8} prompts" in text.replace(f"prompts, each asked {REPEATS} times", "")
    assert f"{REPEATS * LIMIT * 8} prompts" not in text


def test_a_baseline_is_made_of_each_repeat(home: Rashomon) -> None:
    for run in ("same-once", "same"):
        home.run("baselines", run, "--rule", "oracle")
    once, several = (samples(home, f"{run}-oracle") for run in ("same-once", "same"))
    assert len(once) >= LIMIT
    assert {split_repeat(name) for name in several} == {(name, number) for name in once for number in (1, 2, 3)}
    assert {name: sample["answer"] for name, sample in once.items()} == {
        name: sample["answer"] for name, sample in several.items() if split_repeat(name)[1] == 1
    }


def test_a_model_that_judges_sees_the_references_of_all_repeats_in_one_order() -> None:
    rubric = get_benchmark("cmc-bench").rubric
    assert rubric is not None
    orders = set()
    for number in range(20):
        instance = Instance(f"i{number}", "g", "aligned", "q?", (Text("q?"),))
        drawn = [tuple(rubric.in_drawn_order(asked, ("a", "b"))) for asked in RepeatedInstances([instance], 3)]
        assert len(set(drawn)) == 1
        orders.add(drawn[0])
    assert len(orders) == 2
