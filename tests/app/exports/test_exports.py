"""Exports as their readers open them: each carries what was run, failures stay failures, hostile text stays text."""

from __future__ import annotations

import csv
import json
import re
import shutil
import zipfile
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyarrow import parquet

from app.commands.results.export_command import ExportArguments, export
from app.exports.expected_files import expected_files
from app.exports.export_formats import FORMATS
from app.figures.figure_style import FIGURE_FORMATS
from app.report.tables.latex_tables import document
from app.report.tables.run_tables import tables_of
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from benchmarks.vocabulary import Generation, Instance, Origin, Table
from tests.support.blank_figures import blank_figures
from tests.support.command import Rashomon
from tests.support.json_output import json_result, named
from tests.support.latex import EVERY, compile_latex
from tests.support.runs import instances, make_run, says
from tests.support.saved_page import read_saved_page

HOSTILE = (
    "</script><script>alert(1)</script> </td> <img src=x onerror=alert(2)> javascript:alert(3) "
    "\"'`&amp; \u2028 \x1b[31m \\input{x}"
)
MODEL = "policy:always-image"


def write(workspace: Workspace, out: Path, *runs: str, form: str, canonical: bool = False) -> Path:
    export(
        workspace,
        runs,
        ExportArguments(formats=form.split(","), out=out, judge=None, canonical=canonical, width="column", metric=None),
    )
    return out


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "workspace")


def mixed(instance: Instance) -> Generation:
    """An error, an empty answer, a hostile one, one that is cut, and otherwise the image's value."""
    number = int(instance.group[-4:])
    if number == 0:
        return Generation(f"{instance.id}#0", "", "error", error=HOSTILE)
    if number == 3:
        return Generation(f"{instance.id}#0", "12 " * 9, "length", (1, 2), 30, 27, 0.1, 0.5, 10**9)
    return says({1: "", 2: HOSTILE}.get(number, "12"))(instance)


@pytest.fixture
def failing(workspace: Workspace) -> str:
    make_run(workspace, "mixed", instances(6), mixed, failing=lambda instance: instance.group.endswith("4"))
    return "mixed"


@pytest.mark.slow
def test_the_files_are_known_before_they_are_written(workspace: Workspace, failing: str, tmp_path: Path) -> None:
    other = make_run(workspace, "another", instances(6), mixed, model="policy:always-text").name
    for runs in ((failing,), (failing, other)):
        folders = [workspace.runs_folder / run for run in runs]
        with blank_figures():
            out = write(workspace, tmp_path / f"{len(runs)}", *runs, form=",".join(FORMATS))
        written = {path.relative_to(out).as_posix() for path in out.rglob("*") if path.is_file()}
        expected = set(expected_files(FORMATS, tables_of(folders), folders))
        assert {name for name in written if not name.startswith(("lm-eval/", "figures/"))} <= expected
        figures = {name for name in expected if name.endswith(tuple(FIGURE_FORMATS))}
        assert expected - figures <= written | {"lm-eval/", "figures/"}
        assert written & figures


def test_each_export_says_what_was_run_and_how_much_of_it_failed(
    workspace: Workspace, failing: str, tmp_path: Path
) -> None:
    out = write(workspace, tmp_path / "out", failing, form="csv,md,latex,json,parquet,html,lm-eval,inspect")
    with (out / "runs.csv").open(newline="") as lines:
        facts = {row["row"]: row["value"] for row in csv.DictReader(lines)}
    assert facts["asked"] == "36"
    assert [facts[key] for key in ("error", "unparsed", "undecided", "judge-failed", "labelled", "pending")] == [
        "6 (16.67%)", "6 (16.67%)", "6 (16.67%)", "6 (16.67%)", "12 (33.33%)", "0 (0.00%)",
    ]  # fmt: skip
    assert facts["judge"].startswith("match@")
    assert (facts["data digest"], facts["weights digest"], facts["quantisation"]) == ("d" * 64, "e" * 64, "4-bit")
    (run,) = json_result((out / "results.json").read_text())["runs"]
    assert run["outcomes"] == {
        "labelled": 12, "unparsed": 6, "undecided": 6, "judge_failed": 6, "error": 6, "pending": 0,
    }  # fmt: skip
    assert named(run["versions"])["mlx_vlm"] == "0.7.10"
    assert named(run["spec"])["model"] == MODEL
    (log,) = [read_zip(path) for path in out.glob("*.eval")]
    assert log["header.json"]["eval"]["metadata"] == run
    (results,) = out.glob("lm-eval/*/results_*.json")
    assert json.loads(results.read_text())["rashomon"] == run
    for name in ("tables.parquet", "samples.parquet"):
        assert json.loads(parquet.read_schema(out / name).metadata[b"rashomon"]) == [run]
    for name in ("tables.md", "tables.tex", "report.html"):
        replace = (out / name).read_text().replace("\\hspace{0pt}", "")
        assert all(fact in replace for fact in ("d" * 64, "e" * 64, "4-bit", "16.67", "match"))


def test_an_undecided_answer_is_counted_apart_and_has_no_score(workspace: Workspace, tmp_path: Path) -> None:
    make_run(workspace, "r", instances(6), mixed, undecided=lambda instance: instance.group.endswith("5"))
    out = write(workspace, tmp_path / "out", "r", form="csv,json,parquet,html,lm-eval,inspect")
    with (out / "runs.csv").open(newline="") as lines:
        facts = {row["row"]: row["value"] for row in csv.DictReader(lines)}
    assert facts["undecided"] == "12 (33.33%)"
    with (out / "failures.csv").open(newline="") as lines:
        assert {row["undecided"] for row in csv.DictReader(lines)} == {"2"}
    with (out / "main.csv").open(newline="") as lines:
        assert next(csv.DictReader(lines))["Aligned n"] == "2"
    assert json_result((out / "results.json").read_text())["runs"][0]["outcomes"]["undecided"] == 12
    rows = [row for row in parquet.read_table(out / "samples.parquet").to_pylist() if row["status"] == "undecided"]
    assert [row["label"] for row in rows] == [None] * 12
    (log,) = [read_zip(path) for path in out.glob("*.eval")]
    (sample,) = (log[name] for name in log if name.startswith("samples/factual-0005/image-correct"))
    assert (sample["scores"], sample["metadata"]["outcome"]) == ({}, "undecided")
    lines_of = (path.read_text().splitlines() for path in out.glob("lm-eval/*/samples_*.jsonl"))
    samples = [json.loads(line) for lines in lines_of for line in lines]
    assert [row["acc"] for row in samples if row["outcome"] == "undecided"] == [None] * 12
    saved = read_saved_page((out / "samples.html").read_text())
    assert [item["answers"][0]["outcome"] for item in saved.instances].count("undecided") == 12


def read_zip(path: Path) -> dict[str, Any]:
    with zipfile.ZipFile(path) as whole:
        return {name: json.loads(whole.read(name)) for name in whole.namelist()}


def test_parquet_holds_every_cell_and_every_answer(workspace: Workspace, failing: str, tmp_path: Path) -> None:
    out = write(workspace, tmp_path / "out", failing, form="parquet,csv")
    cells = parquet.read_table(out / "tables.parquet").to_pylist()
    main = {cell["column"]: cell for cell in cells if cell["table"] == "main" and cell["row"] == MODEL}
    with (out / "main.csv").open(newline="") as lines:
        row = next(csv.DictReader(lines))
    assert main["Aligned"]["value"] == float(row["Aligned"])
    assert main["Aligned"]["n"] == int(row["Aligned n"])
    paper = next(cell for cell in cells if cell["row"] == "Qwen3-VL-4B (paper)" and cell["column"] == "CDR")
    assert (paper["value"], paper["n"]) == (0.317, 2826)
    rows = parquet.read_table(out / "samples.parquet").to_pylist()
    assert len(rows) == 36
    hostile = next(row for row in rows if row["id"] == "factual-0002/aligned")
    assert hostile["answer"] == HOSTILE
    assert hostile["references"] == [{"name": "image", "value": ["12"]}, {"name": "text", "value": ["12"]}]
    assert {row["status"] for row in rows} == {None, "unparsed", "undecided", "labelled", "judge-failed"}
    assert {row["label"] for row in rows if row["status"] != "labelled"} == {None}


def test_lm_eval_has_a_task_for_each_condition_and_counts_only_what_is_labelled(
    workspace: Workspace, failing: str, tmp_path: Path
) -> None:
    out = write(workspace, tmp_path / "out", failing, form="lm-eval")
    (folder,) = (out / "lm-eval").iterdir()
    (path,) = folder.glob("results_*.json")
    results = json.loads(path.read_text())
    stamp = path.name.removeprefix("results_").removesuffix(".json")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{6}", stamp)
    for task, counts in results["n-samples"].items():
        rows = [json.loads(line) for line in (folder / f"samples_{task}_{stamp}.jsonl").read_text().splitlines()]
        assert counts == {"original": 6, "effective": 2}
        assert [row["outcome"] for row in rows].count("labelled") == 2
        items = [row["acc"] for row in rows if row["acc"] is not None]
        assert results["results"][task]["acc,none"] == pytest.approx(sum(items) / 2)
        assert {row["acc"] for row in rows if row["outcome"] != "labelled"} == {None}, "neither wrong nor right"
        assert results["configs"][task]["metric_list"][0]["metric"] == "acc"
        assert len({row["doc_id"] for row in rows}) == 6
    assert results["results"]["cmc-bench"]["Aligned,none"] == results["results"]["cmc-bench_aligned"]["acc,none"]
    assert results["config"]["model_args"]["pretrained"] == MODEL


def test_an_inspect_log_scores_what_is_labelled_and_keeps_errors_apart(
    workspace: Workspace, failing: str, tmp_path: Path
) -> None:
    out = write(workspace, tmp_path / "out", failing, form="inspect")
    log = read_zip(out / "mixed.eval")
    header = log["header.json"]
    assert {"_journal/start.json", "_journal/summaries/1.json", "summaries.json", "header.json"} < set(log)
    assert (header["version"], header["status"], header["eval"]["dataset"]["samples"]) == (2, "success", 36)
    assert (header["results"]["total_samples"], header["results"]["completed_samples"]) == (36, 30)
    (score,) = header["results"]["scores"]
    assert (score["scored_samples"], score["unscored_samples"]) == (12, 24)
    values = {number: log[f"samples/factual-{number:04d}/aligned_epoch_1.json"]["scores"] for number in range(6)}
    assert values[0] == values[2] == values[4] == {}, (
        "an error, an undecided answer and a judge's failure have no score"
    )
    assert [next(iter(values[number].values()))["value"] for number in (1, 5)] == ["N", "C"]
    hostile = log["samples/factual-0002/aligned_epoch_1.json"]
    assert hostile["messages"][-1]["content"] == HOSTILE
    assert log["samples/factual-0000/aligned_epoch_1.json"]["error"]["message"] == HOSTILE
    assert log["samples/factual-0003/aligned_epoch_1.json"]["output"]["choices"][0]["stop_reason"] == "max_tokens"
    assert [part["type"] for part in hostile["input"][0]["content"]] == ["text", "text", "text"], "the picture is gone"


def test_canonical_exports_of_equal_runs_are_equal_bytes(workspace: Workspace, tmp_path: Path) -> None:
    asked = instances(4)

    def reuses(instance: Instance) -> Generation:
        answer = says("12", 7 * 10**9, 3.0)(instance)
        origin = Origin("0" * 32, "other", instance.id)
        if instance.condition == "aligned":
            return replace(answer, calls=0, origin=origin)
        return replace(answer, calls=0, origin=origin, prompt_tokens=0, completion_tokens=0)

    for place, answering in (("a", says("12", 10**9)), ("b", reuses)):
        make_run(Workspace(tmp_path / place), "same", asked, answering)
    forms = ",".join(FORMATS)
    with blank_figures(("png", "pdf")):  # of which the SVG holds every number, too
        first, two = (
            write(Workspace(tmp_path / place), tmp_path / f"out-{place}", "same", form=forms, canonical=True)
            for place in ("a", "b")
        )
    files = {str(path.relative_to(first)): path.read_bytes() for path in first.rglob("*") if path.is_file()}
    assert len(files) > 20
    assert files == {str(path.relative_to(two)): path.read_bytes() for path in two.rglob("*") if path.is_file()}


@pytest.mark.slow
def test_several_runs_share_tables_and_figures_and_keep_their_samples_apart(
    workspace: Workspace, tmp_path: Path
) -> None:
    for name, text, peak in (("big", "12", 9 * 10**9), ("small", "15", 3 * 10**9)):
        make_run(workspace, name, instances(4), says(text, peak))
    out = write(workspace, tmp_path / "out", "big", "small", form="svg,json,lm-eval,inspect,csv")
    names = {path.name for path in out.iterdir()}
    assert {"labels.svg", "memory.svg", "big.samples.jsonl", "small.samples.jsonl", "big.eval", "small.eval"} <= names
    assert {path.name for path in (out / "lm-eval").iterdir()} == {"big", "small"}, "one model, two runs"
    rows = list(csv.reader((out / "runs.csv").open(newline="")))
    assert ["asked", "24"] in rows, "what is true of all stands once"
    assert ["big / run", "big"] in rows


def test_a_column_that_appears_late_is_empty_in_the_samples_before(workspace: Workspace, tmp_path: Path) -> None:
    items = sorted(instances(4), key=lambda instance: instance.condition != "image-only")
    make_run(workspace, "late", items, says('twelve,\n"12"'))
    with (write(workspace, tmp_path / "out", "late", form="csv") / "samples.csv").open(newline="") as file:
        rows = list(csv.DictReader(file, strict=True))
    assert [row["id"] for row in rows] == [item.id for item in items]
    assert [row["answer"] for row in rows] == ['twelve,\n"12"'] * len(items)
    assert list(rows[0])[-1] == "reference text"
    assert [row["reference text"] for row in rows] == ["|".join(item.references.get("text", ())) for item in items]


def test_an_export_that_would_be_empty_or_is_mistyped_is_refused(workspace: Workspace, tmp_path: Path) -> None:
    make_run(workspace, "one", instances(2), says("12"))
    with pytest.raises(SpecError, match="did you mean 'parquet'"):
        write(workspace, tmp_path / "out", "one", form="parket")
    with pytest.raises(SpecError, match="did you mean 'MFR'"):
        export(
            workspace,
            ["one"],
            ExportArguments(formats=["svg"], out=tmp_path, judge=None, canonical=False, width="page", metric="MRF"),
        )
    with pytest.raises(SpecError, match="no width 'wide'"):
        export(
            workspace,
            ["one"],
            ExportArguments(formats=["svg"], out=tmp_path, judge=None, canonical=False, width="wide", metric=None),
        )


def test_captions_are_the_users_where_given(workspace: Workspace, tmp_path: Path) -> None:
    make_run(workspace, "tex", instances(8), says("12"))
    rashomon = Rashomon(tmp_path, variables={"RASHOMON_WORKSPACE": str(workspace.path)})
    rashomon.run(
        "export", "tex", "--format", "latex", "--out", tmp_path / "o", "--caption", "main=On 50% of our charts"
    )
    assert r"\caption{On 50\% of our charts}" in (tmp_path / "o" / "tables.tex").read_text()
    for wrong in ("mian=x", "main", "main="):
        rashomon.run("export", "tex", "--format", "latex", "--out", tmp_path / "p", "--caption", wrong, code=2)
    assert not (tmp_path / "p").exists()


@pytest.mark.slow
@pytest.mark.skipif(not shutil.which("pdflatex"), reason="no LaTeX here")
def test_the_latex_compiles_whatever_the_answers_say(workspace: Workspace, tmp_path: Path) -> None:
    make_run(
        workspace, "tex", instances(60), lambda i: says(HOSTILE + " 12 and 15, " + EVERY[: 5 * int(i.group[-4:])])(i)
    )
    out = write(workspace, tmp_path / "out", "tex", form="latex")
    compile_latex(out / "tables.tex")
    words = [EVERY[i : i + 12] for i in range(0, len(EVERY), 12)]
    rows = tuple((word, (word, word)) for word in words)
    (tmp_path / "every.tex").write_text(document([Table("t", EVERY[:99], ("a", "b"), rows, (EVERY,))], "Title"))
    compile_latex(tmp_path / "every.tex")
