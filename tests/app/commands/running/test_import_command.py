"""Answers that were produced elsewhere become a run, judged and tabulated like any other."""

from __future__ import annotations

import csv
import json
import re
import shutil
import signal
import zipfile
from pathlib import Path
from typing import Any

import pytest

from app.report.tables.run_tables import tables_of
from app.store.run_store import RunStore
from benchmarks.vocabulary import Estimate, Table
from tests.app.commands.running.test_batch_command import wait_until
from tests.support.charts import draw_sources
from tests.support.command import Rashomon, kill_all
from tests.support.json_output import json_result, named

OFFICIAL = Path(__file__).resolve().parents[5] / "shared" / "data" / "clash" / "official"
MULTIPLE_CHOICE = OFFICIAL / "multiple_choice__gemini-2.5-flash-lite_predictions.json"
OPEN_ENDED = OFFICIAL / "open_ended__llm_as_judge__internvl_chatv1.5_predictions.json"
official = pytest.mark.skipif(not OFFICIAL.is_dir(), reason="the published predictions are not beside the project")


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("imports")
    draw_sources(home / "sources")
    rashomon = Rashomon(home)
    rashomon.run("build", "cmc-bench", "--source", home / "sources")
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:uniform", "--name", "here", "--limit", "6")
    return home / "workspace"


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path / "workspace")
    return Rashomon(tmp_path)


def samples(rashomon: Rashomon, run: str) -> list[dict[str, Any]]:
    rashomon.run("export", run, "--format", "json")
    return [json.loads(line) for line in (rashomon.home / "export" / run / "samples.jsonl").read_text().splitlines()]


def by_name(tables: list[Table]) -> dict[str, Table]:
    return {table.name: table for table in tables}


def values(table: Table, row: str) -> dict[str, Estimate]:
    cells = dict(table.rows)[row]
    return {column: cell for column, cell in zip(table.columns, cells, strict=True) if isinstance(cell, Estimate)}


@pytest.mark.slow
@pytest.mark.parametrize(("id_field", "answer_field"), [("id", "answer"), ("question_id", "prediction")])
def test_answers_as_json_lines_become_a_run_with_the_same_tables(
    rashomon: Rashomon, id_field: str, answer_field: str
) -> None:
    here = samples(rashomon, "here")
    file = rashomon.home / "answers.jsonl"
    file.write_text("".join(json.dumps({id_field: s["id"], answer_field: s["answer"], "x": 1}) + "\n" for s in here))
    rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "a GPU elsewhere", "--name", "there")
    there = samples(rashomon, "there")
    assert [(s["id"], s["answer"], s["verdicts"]) for s in there] == [
        (s["id"], s["answer"], s["verdicts"]) for s in here
    ]
    parsed = rashomon.json("show", "here", "there", "--table", "main")["tables"]
    rows = {row["label"]: row["cells"] for row in parsed[0]["rows"]}
    assert rows["policy:uniform"] == rows["a GPU elsewhere (imported)"]
    assert {run["name"]: run["state"] for run in rashomon.json("runs")}["there"] == "done"
    rashomon.run("resume", "there")
    assert (
        "exists already"
        in rashomon.run(
            "import", file, "--benchmark", "cmc-bench", "--model", "again", "--name", "there", code=2
        ).stderr
    )


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", "has no answer to"),
        (b"[1, 2]\n", "is not a JSON object"),
        (b'{"id": "a"}\n', "has no text under answer, prediction"),
        (b'{"id": "nobody", "answer": "x"}\n', "the build has no instance 'nobody'"),
        (b'{"id": "\\u001b[31m", "answer": "x"}\n', "the build has no instance"),
        (b"\xff\xfe\x00", "line 1 is not a JSON object"),
        (b'{"id": "a", "answer": ' + b"[" * 100_000 + b"\n", "is not a JSON object"),
    ],
)
def test_a_file_that_is_not_answers_makes_no_run(rashomon: Rashomon, content: bytes, message: str) -> None:
    file = rashomon.home / "answers.jsonl"
    file.write_bytes(content)
    stderr = rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "m", "--name", "bad", code=2).stderr
    assert message in stderr
    assert "\x1b" not in stderr
    assert not (rashomon.workspace / "runs" / "bad").exists()


def test_an_answer_given_twice_is_refused(rashomon: Rashomon) -> None:
    first = samples(rashomon, "here")[0]
    file = rashomon.home / "answers.jsonl"
    file.write_text((json.dumps({"id": first["id"], "answer": "2008"}) + "\n") * 2)
    stderr = rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "m", "--name", "bad", code=2).stderr
    assert "line 2: instance" in stderr
    assert "has a second answer" in stderr


def test_a_format_or_file_that_is_not_there_is_one_sentence(rashomon: Rashomon) -> None:
    arguments = ("--benchmark", "clash", "--model", "m")
    assert "did you mean 'published'" in rashomon.run("import", "x", *arguments, "--format", "publishd", code=2).stderr
    assert (
        "cannot be read" in rashomon.run("import", "nowhere.json", *arguments, "--format", "published", code=2).stderr
    )
    file = rashomon.home / "x.json"
    file.write_text("{}")
    rashomon.run("import", file, *arguments, "--format", "published", code=2)
    assert "--model" in rashomon.run("import", file, "--benchmark", "clash", "--model", "../\x1b", code=2).stderr


@pytest.mark.slow
@official
def test_published_multiple_choice_predictions_reproduce_the_papers_row(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    arguments = ("--benchmark", "clash", "--format", "published")
    rashomon.run("import", MULTIPLE_CHOICE, *arguments, "--model", "Gemini 2.5 Flash Lite", "--name", "mc")
    folder = rashomon.workspace / "runs" / "mc"
    with RunStore.read(folder) as store:
        records = list(store.records())
    assert len(records) == 1281
    for record in records:
        mine, theirs = record.verdicts["strict@1"], record.verdicts["published@1"]
        assert (set(mine.flags), mine.label) == (set(theirs.flags) - {"INCORRECT"}, theirs.label), record.answer
    result = values(by_name(tables_of([folder]))["main"], "Gemini 2.5 Flash Lite (imported)")
    paper = {"Conflict": (7.51, 0.75), "Image": (74.98, 1.22), "Text": (15.57, 0.98), "Distractor": (2.02, 0.40)}
    for column, (percent, sd) in paper.items():
        assert result[column].value == pytest.approx(percent / 100, abs=3 * sd / 100)
    assert result["Incorrect"].value == 0


@pytest.mark.slow
@official
def test_published_open_answers_reproduce_string_matching_and_all_four_judge_rows(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    arguments = ("--benchmark", "clash", "--format", "published")
    rashomon.run("import", OPEN_ENDED, *arguments, "--model", "InternVL 1.5", "--name", "open")
    folder = rashomon.workspace / "runs" / "open"
    with RunStore.read(folder) as store:
        records = list(store.records())
    assert len(records) == 1281
    for record in records:
        mine, theirs = record.verdicts["relaxed@1"], record.verdicts["published@1"]
        assert (set(mine.flags), mine.label) == (set(theirs.flags) - {"INCORRECT"}, theirs.label), record.answer
    tables = by_name(tables_of([folder]))
    row = values(tables["open-ended-all"], "InternVL 1.5 (imported)")
    for column, percent, sd in (
        ("Conflict", 18.72, 1.11), ("Image", 22.67, 1.19), ("Text", 55.51, 1.42), ("Incorrect", 6.31, 0.70)
    ):  # fmt: skip
        assert row[column].value == pytest.approx(percent / 100, abs=3 * sd / 100)
    # Table 11: Gemini 2.5 Pro, GPT-5, at least one, both; Conflict, Image, Text, Incorrect with their deviations.
    paper = {
        "gemini-2.5-pro@published": ((20.51, 1.08), (23.83, 1.15), (52.24, 1.37), (3.43, 0.49)),
        "gpt-5@published": ((20.54, 1.14), (23.20, 1.21), (52.04, 1.38), (4.23, 0.56)),
        "at least one": ((21.33, 1.09), (24.29, 1.18), (52.30, 1.39), (4.43, 0.58)),
        "both": ((19.75, 1.14), (22.81, 1.20), (51.94, 1.42), (3.19, 0.49)),
    }
    for who, cells in paper.items():
        row = values(tables["judges"], f"InternVL 1.5 (imported) / {who}")
        for column, (percent, sd) in zip(("Conflict", "Image", "Text", "Incorrect"), cells, strict=True):
            assert row[column].value == pytest.approx(percent / 100, abs=3 * sd / 100), (who, column)
    assert "corrected" not in tables
    assert {"agreement", "confusion", "fleiss"} <= set(tables)
    # Three methods: both models, and the string matching of strict, relaxed and the published flags. Five judges would be .936.
    together = values(tables["fleiss"], "InternVL 1.5 (imported) / all")
    assert together["kappa"].value == pytest.approx(0.921, abs=5e-4)
    assert together["kappa"].n == 1281
    notes = tables["main"].notes
    assert any(note.startswith("strict@1 agrees with ") and "@published on " in note for note in notes)


def test_imported_answers_cannot_be_asked_again_nor_put_outside_the_workspace(rashomon: Rashomon) -> None:
    here = samples(rashomon, "here")
    file = rashomon.home / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": s["id"], "answer": s["answer"]}) + "\n" for s in here))
    arguments = ("import", file, "--benchmark", "cmc-bench", "--model", "m")
    for name in ("../../out", ".hidden", "a/b", ""):
        assert "beginning with a letter or digit" in rashomon.run(*arguments, "--name", name, code=2).stderr
    rashomon.run(*arguments, "--name", "imp")
    for how in ("--repeat", "--retry-errors"):
        assert "cannot be generated again" in rashomon.run("resume", "imp", how, code=2).stderr
    assert len(samples(rashomon, "imp")) == len(here)
    assert all(sample["answer"] for sample in samples(rashomon, "imp"))


def answers_file(rashomon: Rashomon) -> Path:
    """Return a file with the answers of the run ``here``."""
    file = rashomon.home / "answers.jsonl"
    file.write_text(
        "".join(json.dumps({"id": s["id"], "answer": s["answer"]}) + "\n" for s in samples(rashomon, "here"))
    )
    return file


def listed(rashomon: Rashomon) -> dict[str, dict[str, Any]]:
    return {run["name"]: run for run in rashomon.json("runs")}


PHASES = {
    "reading": ("app.commands.running.import_command:_read_jsonl", None),
    "writing": ("app.commands.running.import_command:_fill", None),
    "written": ("app.commands.running.import_command:judge_run", "planned"),
    "judging": (None, "interrupted"),
}
"""For each phase of an import the function that it begins with, and the state of a run that was interrupted there."""


@pytest.mark.parametrize(
    ("phase", "number"),
    [
        pytest.param(phase, number, marks=() if (phase, number) == ("judging", signal.SIGINT) else pytest.mark.slow)
        for phase in PHASES
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGKILL)
    ],
)
def test_an_import_resumes_in_every_phase(rashomon: Rashomon, phase: str, number: signal.Signals) -> None:
    command = ("import", answers_file(rashomon), "--benchmark", "cmc-bench", "--model", "m", "--name", "imp")
    function, state = PHASES[phase]
    reached = rashomon.home / "reached"
    if function is not None:
        slow = rashomon.ordered(holds={"function": function, "file": str(reached)})
    else:
        slow = rashomon.ordered(judge_seconds=0.02)
    process = slow.start(*command)
    wait_until(reached.exists if function is not None else lambda: judged(rashomon, "imp") > 0)
    if number == signal.SIGKILL:
        kill_all(process)
    else:
        process.send_signal(number)
        assert "run the same command" in process.communicate(timeout=60)[1]
        assert process.returncode == 130
    run = listed(rashomon).get("imp")
    if state is None:
        assert run is None
    else:
        assert run is not None
        assert (run["state"], run["done"]) == (state, run["total"])
        assert judged(rashomon, "imp") < run["total"]
    rashomon.run(*command)
    assert listed(rashomon)["imp"]["state"] == "done"
    expected, result = ([(s["id"], s["answer"], s["verdicts"]) for s in samples(rashomon, n)] for n in ("here", "imp"))
    assert result == expected
    assert not list((rashomon.workspace / "runs").glob(".rashomon-*"))


def judged(rashomon: Rashomon, name: str) -> int:
    """Return the number of verdicts in a run, 0 if there is no such run yet."""
    folder = rashomon.workspace / "runs" / name
    if not folder.exists():
        return 0
    with RunStore.read(folder) as store:
        return sum(counts.labelled + counts.unparsed for p in store.progress() for counts in p.judged.values())


def test_only_the_same_import_is_accepted_under_a_name(rashomon: Rashomon) -> None:
    file = answers_file(rashomon)
    command = ("import", file, "--benchmark", "cmc-bench", "--name", "imp")
    rashomon.run(*command, "--model", "m")
    rashomon.run(*command, "--model", "m")
    rashomon.run(*command, "--model", "another", code=2)
    lines = file.read_text().splitlines(keepends=True)
    file.write_text("".join(lines[:-1]))
    rashomon.run(*command, "--model", "m", code=2)
    assert len(samples(rashomon, "imp")) == len(lines)


def test_how_imported_answers_were_decoded_is_exported_as_unknown(rashomon: Rashomon) -> None:
    here = samples(rashomon, "here")
    file = rashomon.home / "answers.jsonl"
    file.write_text("".join(json.dumps({"id": s["id"], "answer": s["answer"]}) + "\n" for s in here))
    rashomon.run("import", file, "--benchmark", "cmc-bench", "--model", "m", "--name", "imp")
    out = rashomon.home / "all"
    rashomon.run("export", "imp", "--format", "csv,md,latex,json,parquet,html,lm-eval,inspect", "--out", out)
    unknown = {"max_tokens": None, "temperature": None, "top_p": None, "max_pixels": None}
    (run,) = json_result((out / "results.json").read_text())["runs"]
    assert {named(run["spec"])[key] for key in (*(f"decoding.{name}" for name in unknown), "seed")} == {None}
    decoded = ("max tokens", "temperature", "top p", "seed", "max pixels")
    assert {named(run["identity"])[key.replace(" ", "_")] for key in decoded} == {None}
    with (out / "runs.csv").open(newline="") as lines:
        facts = {row["row"]: row["value"] for row in csv.DictReader(lines)}
    assert {facts[key] for key in decoded} == {"unknown"}
    for name in ("tables.md", "tables.tex", "report.html"):
        text = (out / name).read_text()
        assert all(re.search(rf"{key}\b.{{0,60}}unknown", text, re.DOTALL) for key in decoded), name
    (path,) = out.glob("lm-eval/*/results_*.json")
    results = json.loads(path.read_text())
    assert (results["config"]["gen_kwargs"], results["config"]["random_seed"]) == (unknown, None)
    assert all(task["generation_kwargs"] == {"until": [], **unknown} for task in results["configs"].values())
    with zipfile.ZipFile(out / "imp.eval") as log:
        header = json.loads(log.read("header.json"))
    assert header["eval"]["model_generate_config"] == header["plan"]["config"]
    assert set(header["plan"]["config"].values()) == {None}
    stdout = rashomon.run("show", "imp", "--spec").stdout
    assert "max tokens, temperature, top p, seed, max pixels: unknown" in stdout
    assert not re.search("max_tokens|temperature = |seed = ", stdout)
    (shown,) = rashomon.json("show", "imp", "--spec")["specs"]
    assert not {key for key in named(shown["spec"]) if key.startswith("decoding.")}
    assert {named(shown["identity"])[key.replace(" ", "_")] for key in decoded} == {None}
    warnings = rashomon.run("compare", "here", "imp").stdout
    assert "differ in more than" not in warnings or not any(f": {key} (" in warnings for key in decoded)
    rashomon.run("resume", "imp")
