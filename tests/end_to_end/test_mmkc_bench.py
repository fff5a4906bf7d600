"""MMKC-Bench from its rows to its tables in real processes: a tiny model, baselines, imported answers, a construction."""

from __future__ import annotations

import hashlib
import json
import re
from collections import Counter
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from app.engine.model_judging import judge_answers
from app.store.run_store import RunStore
from benchmarks.mmkc_bench.mmkc_constants import BASIS, CONDITIONS, CONFLICT_CONDITIONS
from benchmarks.registry import get_benchmark
from judges.rubric_judge import RubricJudge
from tests.app.commands.running.test_batch_command import states, wait_until
from tests.app.engine.test_model_judging import INFO, Speaker
from tests.support.command import Rashomon, kill_all
from tests.support.data.mmkc_bench import MMKC_DATA, er_row, reconstructed_folder, whole_folder
from tests.support.data.small import write_lines, write_picture
from tests.support.json_output import cells_of, json_result
from tests.support.scripted_writer import ScriptedWriter
from tests.support.tiny_qwen3 import build_tiny_vlm

TEXTS = [
    "The following information is provided externally: was born in 1988. is American. is a singer.",
    "Answer with the option's letter from the given choices directly based on the context and the image. A. B. C. D.",
    "Read the following document carefully and answer No if it does not agree with what you remember, and Yes if it does.",
]


@pytest.fixture
def rashomon(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A home with a build of two rows of each file."""
    rashomon = Rashomon(tmp_path_factory.mktemp("mmkc"))
    rashomon.run("build", "mmkc-bench", "--source", f"published={whole_folder(rashomon.home / 'src', 2)}")
    return rashomon


def samples(rashomon: Rashomon, run: str) -> list[dict[str, Any]]:
    rashomon.run("export", run, "--canonical", "--format", "json", "--out", rashomon.home / f"{run}-out")
    return [json.loads(line) for line in (rashomon.home / f"{run}-out" / "samples.jsonl").open(encoding="utf-8")]


def tables(rashomon: Rashomon, *runs: str) -> dict[str, dict[str, dict[str, Any]]]:
    """Each table's own rows: row label to cells."""
    report = rashomon.json("show", *runs)["tables"]
    return {
        table["name"]: {
            row["label"]: cells_of(table, number)
            for number, row in enumerate(table["rows"])
            if "(paper)" not in row["label"]
        }
        for table in report
    }


# --- a model, killed and resumed -------------------------------------------------------------------------------


def killed_and_resumed(rashomon: Rashomon, examples: int, kills: int) -> list[dict[str, Any]]:
    """All settings and formats by a tiny model, once undisturbed and once killed; the rows of both, which are the same."""
    build_tiny_vlm(rashomon.home / "tiny", TEXTS, quantise=True)
    spec = ("--batch", "--benchmark", "mmkc-bench", "--model", str(rashomon.home / "tiny"), "--limit", str(examples))
    options = (*spec, "--max-tokens", "4", "--max-pixels", "20000", "--display", "none")
    rashomon.run(*options, "--name", "quiet")

    def done() -> int:
        return states(rashomon).get("killed", ("", 0, 0))[1]

    def more_than(count: int) -> bool:
        return done() > count

    for _ in range(kills):
        process = rashomon.start(*options, "--name", "killed")
        wait_until(partial(more_than, done() + 2))
        kill_all(process)
    rashomon.run("resume", "killed", "--display", "none")
    quiet = samples(rashomon, "quiet")
    assert samples(rashomon, "killed") == quiet
    texts = [(rashomon.home / f"{run}-out" / "results.json").read_text() for run in ("quiet", "killed")]
    first, second = (json_result(text)["tables"] for text in texts)
    assert json.dumps(first).replace("quiet", "killed") == json.dumps(second)
    return quiet


def check(rows: list[dict[str, Any]]) -> None:
    """Every answer is judged, and what is judged by the original setting's answer is judged by that of its own example."""
    answers = {row["id"]: row["answer"] for row in rows}
    for row in rows:
        assert row["steps"][0]["tokens"]
        assert row["verdicts"]["own-answer@3"]["status"] in ("labelled", "unparsed")
        images = row["prompt"].count("[IMAGE ")
        setting = row["condition"].rpartition("-")[0]
        assert images == {"original": 1, "context-memory": 2, "inter-context": 3}.get(setting, 1)
        basis = BASIS.get(row["condition"])
        assert row.get("own_answer") == (answers[f"{row['group']}/{basis}"] if basis else None)


@pytest.mark.slow
def test_tiny_model_answers_every_setting_and_resumes_after_kill(rashomon: Rashomon) -> None:
    rashomon.run("build", "mmkc-bench", "--source", f"published={whole_folder(rashomon.home / 'src', 1)}")
    rows = killed_and_resumed(rashomon, 2, kills=1)
    assert {row["condition"] for row in rows} >= set(CONDITIONS[:6])
    check(rows)


@pytest.mark.slow
@pytest.mark.skipif(not MMKC_DATA.is_dir(), reason="the reconstructed rows are not beside the project")
def test_killed_run_on_reconstructed_rows_equals_undisturbed_run(rashomon: Rashomon) -> None:
    source = reconstructed_folder(rashomon.home / "src", people=3, logos=5)
    rashomon.run("build", "mmkc-bench", "--source", f"published={source}")
    rows = killed_and_resumed(rashomon, 18, kills=3)
    logos = {hashlib.sha256(path.read_bytes()).hexdigest() for path in (MMKC_DATA / "logos").iterdir()}
    digests = {digest for row in rows for digest in re.findall(r"\[IMAGE ([0-9a-f]{64})\]", row["prompt"])}
    assert len(digests & logos) >= 6, "real logos are among what is shown"
    assert Counter(row["condition"] for row in rows)["original-mc"] == 18
    assert {row["condition"] for row in rows} == set(CONDITIONS)
    assert {row["strata"]["type"] for row in rows} == {"PT", "PL", "PC", "LT", "LC", "LO"}
    check(rows)
    output = rashomon.run("show", "quiet", "--all").stdout
    for title in (
        "Table 2",
        "Table 3",
        "Table 4",
        "Table 5",
        "Table 6",
        "Qwen2.5-VL-7B / Context-Memory / OAR (paper)",
    ):
        assert title in output


# --- baselines -------------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_baseline_rates_are_as_expected(built: Rashomon) -> None:
    policies = ("always-text", "always-image", "always-no")
    models = [word for policy in policies for word in ("--model", f"policy:{policy}")]
    built.run("--batch", "--benchmark", "mmkc-bench", *models, "--display", "none")
    names = [name for policy in policies for name in states(built) if policy in name]
    assert len(names) == 3
    rates = tables(built, *names)
    for policy, own_rate in (("always-text", 0.0), ("always-image", 1.0)):
        for table in ("main", "open"):
            rows = {row: cells for row, cells in rates[table].items() if policy in row}
            assert len(rows) == {"main": 12, "open": 6}[table]
            for row, cells in rows.items():
                expected = {"OAR": own_rate, "CAR": 1 - own_rate, "IAR": 0.0}[row[-3:]]
                assert {column: cell["value"] for column, cell in cells.items()} == dict.fromkeys(cells, expected), row
    detects = {policy: rates["detection"][f"policy:{policy}"] for policy in policies}
    text, no = detects["always-text"], detects["always-no"]
    assert (text["EK Non-Conflict"]["value"], text["EK Conflict"]["value"], text["Coarse Avg."]["value"]) == (1, 0, 0.5)
    assert (no["EK Non-Conflict"]["value"], no["Fine EK Conflict"]["value"]) == (0, 1)
    assert {cell["value"] for cell in detects["always-image"].values()} == {1}


def test_sample_shows_the_own_answer_and_subset_without_it_says_so(built: Rashomon) -> None:
    arguments = ("--batch", "--benchmark", "mmkc-bench", "--model", "policy:always-text", "--display", "none")
    built.run(*arguments, "--name", "part", "--conditions", "context-memory-mc")
    rows = samples(built, "part")
    reasons = {row["verdicts"]["own-answer@3"]["reason"] for row in rows}
    assert reasons == {"the run has no answer of the original setting to this question"}
    assert tables(built, "part")["left-out"]["policy:always-text / context-memory-mc"]["own answer not there"] == 16
    built.run(*arguments, "--name", "whole")
    assert "own answer   (A)" in built.run("show", "whole", "--sample", rows[0]["id"]).stdout


# --- answers from elsewhere ------------------------------------------------------------------------------------


def test_imported_result_files_match_manual_rates(rashomon: Rashomon) -> None:
    rows = [er_row(n) for n in range(1, 8)]
    answers = {
        "original/ER/mcq_m_ee.jsonl": ["A", "(A)", "A", "A", "(B)", "According to it, red", "A"],
        "output/ER/mcq_m_ie.jsonl": ["A", "A.", "B", "C", "A", "A", "The cat"],
        "output/ER/mcq_m_ee.jsonl": ["A", "(B)", "C", "B", "B", "A", "D"],
    }
    for name, predictions in answers.items():
        results = [
            {**row, "question_id": row["ID"], "prediction": text} for row, text in zip(rows, predictions, strict=True)
        ]
        write_lines(rashomon.home / "results" / name, results)
    file = rashomon.home / "results" / "output" / "ER" / "mcq_m_ie.jsonl"
    imported = ("import", file, "--benchmark", "mmkc-bench", "--format", "published", "--model", "m", "--name", "one")
    assert "21 answers imported" in rashomon.run(*imported).stdout
    main = tables(rashomon, "one")["main"]

    def rates(row: str, setting: str) -> list[float]:
        return [round(main[f"{row} / {setting} / {rate}"]["ER"]["value"], 6) for rate in ("OAR", "CAR", "IAR")]

    # As in tests/benchmarks/mmkc_bench/test_mmkc_tables.py, where the seven rows are gone through one by one.
    assert rates("m (imported)", "Context-Memory") == [0.5, 0.25, 0.25]
    assert rates("m (imported)", "Inter-Context") == [0.2, 0.6, 0.2]
    sevenths = [round(n / 7, 6) for n in range(8)]
    assert rates("m (imported) (official)", "Context-Memory") == [sevenths[n] for n in (3, 1, 3)]
    assert rates("m (imported) (official)", "Inter-Context") == [sevenths[n] for n in (3, 3, 1)]
    empty = rashomon.home / "empty"
    empty.mkdir()
    arguments = ("import", empty, "--benchmark", "mmkc-bench", "--model", "m", "--format", "published")
    assert "expected mcq_<model>" in rashomon.run(*arguments, code=2).stderr


# --- a judge that is a model -----------------------------------------------------------------------------------


def test_judging_open_answers_generates_nothing_again(built: Rashomon) -> None:
    built.run(
        "--batch", "--benchmark", "mmkc-bench", "--model", "policy:always-text", "--name", "r", "--display", "none"
    )
    benchmark = get_benchmark("mmkc-bench")
    assert benchmark.rubric is not None
    judge = RubricJudge("openai:gpt", INFO, benchmark.rubric)

    def says(prompt: str, count: int) -> str:
        lines = dict(line.split(": ", 1) for line in prompt.splitlines() if ": " in line)
        assert lines["Original answer"] != lines["Answer after the evidence"] == lines["Answer of the evidence 1"]
        return "COUNTER" if "Answer of the evidence 2" in lines else "IRRELEVANT"

    with RunStore.open(built.workspace / "runs" / "r") as store:
        before = [record.generations for record in store.records()]
        judge_answers(store, judge, speaker := Speaker(says))
        judge_answers(store, judge, Speaker(says))
        assert [record.generations for record in store.records()] == before
    assert len(speaker.asked) == 2 * 16
    report = built.json("show", "r", "--judge", judge.id, "--table", "open")["tables"]
    rows = {row["label"]: row["cells"]["ek"]["value"] for row in report[0]["rows"] if "(paper)" not in row["label"]}
    assert rows["policy:always-text / Context-Memory / IAR"] == rows["policy:always-text / Inter-Context / CAR"] == 1


# --- a construction --------------------------------------------------------------------------------------------


@pytest.mark.slow
def test_killed_construction_repeats_no_request(rashomon: Rashomon) -> None:
    place = rashomon.home / "knowledge"
    paths = [f"image/{n}.png" for n in (1, 2, 3)]
    for n, path in enumerate(paths):
        write_picture(place / path, n)
    rows = [
        {
            "instance": f"Stone Tower{n}",
            "image_path": paths,
            "description": f"This is the Stone Tower{n}. Stone Tower{n} is a landmark.",
            "answer": f"Stone Tower{n}",
            "kind": "ER",
            "open_query": "What is the building in the image?",
        }
        for n in range(300)
    ]
    write_lines(place / "knowledge.jsonl", rows)

    def arguments(server: ScriptedWriter, out: Path) -> list[str | Path]:
        writer = f"endpoint:writer@{server.url}"
        data = ("--source", f"knowledge={place}", "--out", out, "--json")
        return ["build", "mmkc-bench", *data, "--writer", writer, "--allow-address", server.url]

    with ScriptedWriter() as server:
        for least in (20, 120):
            process = rashomon.start(*arguments(server, rashomon.home / "out"))
            wait_until(lambda least=least: len(server.prompts) >= least)
            kill_all(process)
            assert not (rashomon.home / "out").exists()
        rashomon.run(*arguments(server, rashomon.home / "out"))
        count = len(server.prompts)
    with ScriptedWriter() as server:
        undisturbed = Rashomon(rashomon.home / "other")
        undisturbed.home.mkdir()
        undisturbed.run(*arguments(server, rashomon.home / "undisturbed"))
        assert len(server.prompts) <= count <= len(server.prompts) + 2 * 16
    for name in ("instances.jsonl", "skipped.jsonl"):
        resumed, straight = ((rashomon.home / out / name).read_bytes() for out in ("out", "undisturbed"))
        assert resumed == straight
        assert resumed.count(b"\n") > 20
    manifest = json.loads((rashomon.home / "out" / "manifest.json").read_text())
    assert set(manifest["skipped"]) == {"unparsed", "same-answers"}
    assert manifest["examples"] + sum(manifest["skipped"].values()) == 300


# --- what the paper has ----------------------------------------------------------------------------------------


def test_published_tables_are_printed(rashomon: Rashomon) -> None:
    published = rashomon.json("published", "mmkc-bench")["tables"]
    titles = [f"Table {n}" for n in (1, 2, 3, 4, 5, 6)] + [f"Table {n} (AAAI 2026)" for n in (2, 3, 4, 5)]
    assert [table["title"].partition(" of ")[0] for table in published] == titles
    assert "own-answer" in rashomon.run("judges").stdout
    assert len(CONFLICT_CONDITIONS) == 4
