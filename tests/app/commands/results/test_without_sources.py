"""Runs with conditions without sources by the command line: chosen, resumed, tabulated, compared, exported, refused."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.command import ROOT, Rashomon

ALL = ("--conditions", "without-sources")
SENTENCE = "Without any source it is right on"


def run_of(rashomon: Rashomon, name: str, *arguments: str, model: str = "policy:always-image", code: int = 0) -> str:
    shared = ("--batch", "--benchmark", "cmc-bench", "--model", model, "--limit", "4", "--name", name)
    done = rashomon.run(*shared, *arguments, code=code)
    return done.stdout + done.stderr


def tables(rashomon: Rashomon, run: str) -> dict[str, Any]:
    return {table["name"]: table for table in rashomon.json("show", run, "--all")["tables"]}


def progress(rashomon: Rashomon) -> dict[str, tuple[str, int, int]]:
    runs = rashomon.json("runs")
    return {run["name"]: (run["state"], run["done"], run["total"]) for run in runs}


def test_failed_answers_are_repeated_and_counted_in_its_table(rashomon: Rashomon) -> None:
    failing = rashomon.ordered(says={"/closed-book": ["", "error"]})
    assert "4 failed" in run_of(failing, "x", *ALL, code=1)
    assert "4 instances will be answered again" in rashomon.run("resume", "x", "--retry-errors").stdout
    assert progress(rashomon)["x"] == ("done", 36, 36)
    rows = tables(rashomon, "x")["without-sources"]["rows"]
    assert {row["cells"]["answers"] for row in rows} == {4}
    shares = [[row["cells"][name]["value"] for name in ("without", "with_sources", "difference")] for row in rows]
    assert shares == [[0, 1, 1], [0, 1, 1], [0, 0, 0]]
    for name in ("closed-book", "without-sources"):
        again = rashomon.run("resume", "x", "--repeat", "--conditions", name).stdout
        assert "4 instances will be answered again" in again
    rashomon.run("resume", "x", "--conditions", "without-sources,nothing", code=2)


def test_a_run_that_does_not_name_it_is_as_before(rashomon: Rashomon) -> None:
    run_of(rashomon, "plain")
    run_of(rashomon, "with", *ALL)
    assert progress(rashomon) == {"plain": ("done", 32, 32), "with": ("done", 36, 36)}
    plain, more = tables(rashomon, "plain"), tables(rashomon, "with")
    assert more.keys() - plain.keys() == {"without-sources"}
    assert "closed-book" not in json.dumps(plain)
    for name in ("main", "by-type", "labels", "gap", "arbitration", "abstention"):
        assert more[name]["rows"] == plain[name]["rows"]
    compared = rashomon.run("compare", "plain", "with", "--all").stdout
    assert "closed-book" not in compared, "only one of the runs has it"
    assert SENTENCE not in rashomon.run("show", "plain").stdout


@pytest.mark.slow
@pytest.mark.parametrize(
    "more", [("--score", "likelihood"), ("--protocol", "read-then-compare"), ("--protocol", "verify"), ("--exact",)]
)
def test_other_ways_to_answer_take_it(rashomon: Rashomon, more: tuple[str, ...]) -> None:
    run_of(rashomon, "x", *ALL, *more, model="policy:uniform")
    assert progress(rashomon)["x"] == ("done", 36, 36)
    assert tables(rashomon, "x")["without-sources"]["rows"]
    assert "24 answers" not in rashomon.run("baselines", "x").stdout
    assert "closed-book" not in json.dumps(progress(rashomon))


def test_answers_from_elsewhere_are_imported(rashomon: Rashomon) -> None:
    run_of(rashomon, "here", *ALL)
    rashomon.run("export", "here", "--format", "json")
    lines = (rashomon.home / "export" / "here" / "samples.jsonl").read_text("utf-8").splitlines()
    answers = [{"id": sample["id"], "answer": sample["answer"]} for sample in map(json.loads, lines)]
    file = rashomon.home / "answers.jsonl"
    file.write_text("\n".join(map(json.dumps, answers)), "utf-8")
    rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "elsewhere", "--name", "there")
    here, there = (tables(rashomon, run)["without-sources"]["rows"] for run in ("here", "there"))
    assert [row["cells"] for row in here] == [row["cells"] for row in there]


def test_where_it_means_nothing_it_is_refused(rashomon: Rashomon) -> None:
    vary = rashomon.run("vary", "cmc-bench", "--factor", "blur=0,2", "--conditions", "closed-book", code=2)
    assert "leaves out" in vary.stderr
    assert "answers nothing" in run_of(rashomon, "x", "--conditions", "closed-book", code=2)
    assert progress(rashomon) == {}


def test_a_spec_a_preview_and_exports_have_them(rashomon: Rashomon) -> None:
    spec = rashomon.home / "spec.toml"
    spec.write_text(
        'benchmark = "cmc-bench"\nmodel = "policy:always-text"\nconditions = "without-sources"\nlimit = 4\n'
    )
    assert "36 instances" in rashomon.run("--batch", spec, "--dry-run").stdout
    rashomon.run("--batch", spec, "--name", "x")
    assert progress(rashomon)["x"] == ("done", 36, 36)
    for form in ("csv", "latex", "html"):
        rashomon.run("export", "x", "--format", form)
    files = [p for p in (rashomon.home / "export" / "x").rglob("*") if p.suffix in (".csv", ".tex", ".html")]
    assert sum("closed-book / text-only" in file.read_text("utf-8") for file in files) >= 3


def test_a_comparison_is_over_the_conditions_with_sources(rashomon: Rashomon) -> None:
    for name, more in (("with", ALL), ("plain", ())):
        for policy in ("image", "text"):
            run_of(rashomon, f"{name}-{policy}", *more, model=f"policy:always-{policy}")

    def compared(name: str) -> dict[str, Any]:
        result = rashomon.json("compare", f"{name}-image", f"{name}-text", "--all")
        return {table["name"]: json.loads(json.dumps(table["rows"]).replace(name, "run")) for table in result["tables"]}

    plain, extended = compared("plain"), compared("with")
    assert {"flips", "cost", "changes"} <= plain.keys()
    assert plain == extended


def test_the_agreement_of_judges_is_over_the_conditions_with_sources(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run("build", "clash", "--source", f"rows={ROOT}/assets/demo/held_out/clash")
    shared = ("--batch", "--benchmark", "clash", "--model", "policy:random", "--limit", "20")
    for name, more in (("plain", ()), ("with", ALL)):
        rashomon.run(*shared, "--name", name, *more)
        rashomon.run("judge", name, "--judge", "relaxed")
    plain, extended = (tables(rashomon, name) for name in ("plain", "with"))
    for name in ("agreement", "confusion"):
        assert [row["cells"] for row in plain[name]["rows"]] == [row["cells"] for row in extended[name]["rows"]]


@pytest.mark.parametrize("damage", ["no seed", "no question", "a number for an image"])
def test_a_build_that_its_benchmark_cannot_read_ends_in_one_line(tmp_path: Path, damage: str) -> None:
    rashomon = Rashomon(tmp_path)
    folder = tmp_path / "received"
    rashomon.run("build", "clash", "--source", f"rows={ROOT}/assets/demo/held_out/clash", "--out", folder)
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    rows = [json.loads(line) for line in (folder / "instances.jsonl").read_text("utf-8").splitlines()]
    if damage == "no seed":
        del manifest["seed"]
    elif damage == "no question":
        del rows[1]["question"]
    else:
        rows[1]["image"] = 5
    text = "".join(f"{json.dumps(row)}\n" for row in rows)
    manifest["instances_sha256"] = hashlib.sha256(text.encode()).hexdigest()
    (folder / "instances.jsonl").write_text(text, "utf-8")
    (folder / "manifest.json").write_text(json.dumps(manifest), "utf-8")
    for command in (("--batch", "--benchmark", "clash", "--model", "policy:random", "--data"), ("audit",)):
        assert len(rashomon.run(*command, folder, code=2).stderr.splitlines()) == 1


def test_the_list_of_benchmarks_has_one_word_for_them(rashomon: Rashomon) -> None:
    lines = rashomon.run("benchmarks").stdout
    assert "text-only, without-sources" in lines
    assert "closed-book" not in lines
    assert "closed-book" in rashomon.run("benchmarks", "cmc-bench").stdout
