"""The gate as a script uses it: exit codes, files that continuous integration reads, JSON, and what a user gets wrong."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from app.exit_codes import BUSY, DONE, FAILURES, INCONCLUSIVE, REGRESSED, STOPPED, WRONG
from app.exports.junit_and_markdown import ERROR, FAILURE, SKIPPED, VerdictCase, VerdictReport
from app.json_output.json_schemas import schema
from app.store.file_locks import FileLock
from app.store.run_facts import REACHED_KEY
from app.store.run_store import RunStore
from app.store.run_summary import read_summary
from app.store.workspace import Workspace
from benchmarks.registry import get_benchmark
from benchmarks.vocabulary import Generation, Instance, Table
from judges.judge_registry import get_judge
from tests.support.command import Rashomon, kill_all
from tests.support.demo import write_table
from tests.support.full_disk import no_room_above
from tests.support.runs import Answering, instances, make_run

EXAMPLES = 120
HOSTILE = "\0\x1b[31m<a href='x'>&]]>|`rm`\ufffe\uffff\ud800\u202e\n[x](http://e)"
READS = ("reading the image alone", "reading the text alone")
VALUES = {"aligned": "12", "image-correct": "12", "text-correct": "12", "both-wrong": "15"}


def answers(wrong: int = 0, *, errors: int = 0) -> Answering:
    """The right answers, but for every so many examples; the first answers are errors."""

    def answer(instance: Instance) -> Generation:
        number = int(instance.group.rpartition("-")[2])
        name = f"{instance.id}#0"
        if number < errors and instance.condition == "aligned":
            return Generation(name, "", "error", error="the server is gone")
        value = "99" if wrong and number % wrong == 0 else VALUES.get(instance.condition, "12")
        return Generation(name, value, "stop", (1, 2), 30, 2, 0.1, 0.5, 2 * 10**9)

    return answer


@pytest.fixture(scope="module")
def rashomon(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace with a baseline and runs beside it."""
    home = Rashomon(tmp_path_factory.mktemp("checked"))
    workspace, items = Workspace(home.workspace), instances(EXAMPLES)
    make_run(workspace, "baseline", items, answers(20), model="org/old")
    make_run(workspace, "same", items, answers(20), model="org/new")
    make_run(workspace, "worse", items, answers(3), model="org/new")
    make_run(workspace, "few", items[:24], answers(20), model="org/new")
    make_run(workspace, "failed", items, answers(20, errors=2), model="org/new")
    return home


def checked(rashomon: Rashomon, run: str, *options: str | Path, code: int = DONE) -> dict[str, Any]:
    """The result of a gate beside the baseline."""
    printed = rashomon.run("check", run, "--baseline", "baseline", *options, "--json", code=code).stdout
    result: dict[str, Any] = json.loads(printed)["result"]
    return result


VERDICTS = {
    "same": ("passed", DONE),
    "worse": ("regressed", REGRESSED),
    "few": ("inconclusive", INCONCLUSIVE),
    "failed": ("failed", FAILURES),
}


def test_a_run_that_stopped_reading_pictures_has_regressed(rashomon: Rashomon) -> None:
    def blind(instance: Instance) -> Generation:
        answer = answers(20)(instance)
        return replace(answer, text="I cannot tell.") if instance.condition == "image-only" else answer

    make_run(Workspace(rashomon.workspace), "blind", instances(EXAMPLES), blind, model="org/new")
    result = checked(rashomon, "blind", code=REGRESSED)
    verdicts = {test["name"]: test["verdict"] for test in result["tests"]}
    assert verdicts == {"accuracy": "passed", READS[0]: "regressed", READS[1]: "passed"}
    assert READS[0] in result["sentence"]
    assert READS[0] in result["basis"]
    assert len(checked(rashomon, "blind", "--metric", "accuracy")["tests"]) == 1
    decided = [instance for instance in instances(EXAMPLES) if not instance.condition.endswith("-only")]
    make_run(Workspace(rashomon.workspace), "decided", decided, answers(20), model="org/new")
    unread = checked(rashomon, "decided")
    assert len(unread["tests"]) == 1
    assert any("not tested" in remark for remark in unread["remarks"])


@pytest.mark.parametrize("run", VERDICTS)
def test_the_verdict_is_the_first_line_and_the_exit_code(rashomon: Rashomon, run: str) -> None:
    verdict, code = VERDICTS[run]
    ended = rashomon.run("check", run, "--baseline", "baseline", code=code)
    assert ended.stdout.casefold().startswith(f"{verdict}: ")
    lines = ended.stderr.splitlines()
    assert len(lines) == (0 if code == DONE else 1)
    result = checked(rashomon, run, code=code)
    assert (result["verdict"], result["exit_code"]) == (verdict, code)
    assert ended.stdout.startswith(result["sentence"])


def test_json_has_what_the_text_says_and_its_schema(rashomon: Rashomon) -> None:
    text = " ".join(rashomon.run("check", "few", "--baseline", "baseline", code=INCONCLUSIVE).stdout.split())
    result = checked(rashomon, "few", code=INCONCLUSIVE)
    for sentence in (result["sentence"], result["basis"], *result["remarks"], *result["notes"]):
        assert " ".join(sentence.split()) in text
    assert (result["rows"], result["baseline_rows"], result["tests"][0]["rows"]) == (4, EXAMPLES, 4)
    assert "invented answer is wrong" in result["basis"], "which the accuracy of compare may count as right"
    assert str(rashomon.home) not in json.dumps(result)
    described = schema("check")
    (reference,) = (described["properties"]["result"]["$ref"].rpartition("/")[2],)
    assert set(described["$defs"][reference]["properties"]) == set(result)


def test_errors_that_are_allowed_count_against_the_verdict(rashomon: Rashomon) -> None:
    result = checked(rashomon, "failed", "--allow-errors", "2", "--max-loss", "0.05")
    assert (result["verdict"], result["errors"], result["tests"][0]["missing_run"]) == ("passed", 2, 2)
    checked(rashomon, "failed", "--allow-errors", "1", code=FAILURES)


def test_a_rule_a_metric_and_conditions(rashomon: Rashomon) -> None:
    assert "rule" in checked(rashomon, "worse", "--trust", "image", code=REGRESSED)["compared_by"]
    assert checked(rashomon, "worse", "--metric", "aligned", code=REGRESSED)["tests"][0]["name"] == "Aligned"
    tests = checked(rashomon, "worse", "--per-condition", "--max-loss", "0.1", code=REGRESSED)["tests"]
    assert [test["name"] for test in tests if test["about"] == "condition"] == list(VALUES)
    for options in ((), ("--lower-is-better",)):
        assert checked(rashomon, "worse", "--metric", "HR", *options, code=REGRESSED)["tests"][0]["lead"] < 0
    for metric in ("MFR", "accuracy"):
        wrong = ("check", "worse", "--baseline", "baseline", "--metric", metric, "--lower-is-better")
        rashomon.run(*wrong, code=WRONG)


def test_a_papers_value_has_no_pairs(rashomon: Rashomon) -> None:
    arguments = ("check", "same", "--baseline", "published:qwen3 vl 4b", "--metric", "Aligned", "--max-loss", "0.5")
    printed = json.loads(rashomon.run(*arguments, "--json").stdout)["result"]
    assert "without pairs" in printed["basis"]
    assert printed["baseline_rows"] is None
    assert printed["tests"][0]["p_within"] is None
    for wrong in (arguments[:4], (*arguments, "--per-condition"), (*arguments[:5], "HARM")):
        rashomon.run(*wrong, code=WRONG)


# --- what a user gets wrong -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize("margin", ["0", "-0.1", "1", "nan", "inf", "three"])
def test_a_margin_is_a_share(rashomon: Rashomon, margin: str) -> None:
    rashomon.run("check", "same", "--baseline", "baseline", "--max-loss", margin, code=WRONG)


@pytest.mark.parametrize(
    "options",
    [
        (),
        ("--baseline", "same"),
        ("--baseline", "nothing"),
        ("--baseline", "baseline", "--trust", "image", "--metric", "HR"),
        ("--baseline", "baseline", "--metric", "HARM"),
        ("--baseline", "baseline", "--metric", "ΔAcc"),
        ("--baseline", "baseline", "--allow-errors", "-1"),
        ("--baseline", "baseline", "--json", "--markdown", "-"),
        ("--baseline", "published:nobody", "--metric", "HR"),
    ],
)
def test_a_wrong_command_says_what_is_wrong(rashomon: Rashomon, options: tuple[str, ...]) -> None:
    assert len(rashomon.run("check", "same", *options, code=WRONG).stderr.splitlines()) == 1


def test_other_rows_and_another_benchmark_are_refused(rashomon: Rashomon) -> None:
    workspace = Workspace(rashomon.workspace)
    others = [
        Instance(f"other-{i.id}", f"other-{i.group}", i.condition, i.question, i.parts, i.references, i.strata)
        for i in instances(4)
    ]
    make_run(workspace, "other-rows", others, answers())
    assert "no row" in rashomon.run("check", "same", "--baseline", "other-rows", code=WRONG).stderr
    pope = [Instance("1/random", "1", "random", "Is there a dog?", (), {"answer": ("yes",)}, {})]
    make_run(workspace, "pope", pope, answers(), benchmark=get_benchmark("pope"))
    assert "pope" in rashomon.run("check", "same", "--baseline", "pope", code=WRONG).stderr


def test_another_version_of_the_judge_says_what_to_do(rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch) -> None:
    workspace, items = Workspace(rashomon.workspace), instances(EXAMPLES)
    with monkeypatch.context() as earlier:
        earlier.setattr(type(get_judge("match")), "version", "3")
        make_run(workspace, "judged-before", items, answers(20), model="org/old")
    message = rashomon.run("check", "same", "--baseline", "judged-before", code=WRONG).stderr
    command = re.search(r"`rashomon (judge judged-before --judge match)`", message)
    assert command is not None
    rashomon.run(*command[1].split(), "--display", "none")
    rashomon.run("check", "same", "--baseline", "judged-before")


def test_a_run_without_all_its_answers_is_not_judged(rashomon: Rashomon) -> None:
    workspace = Workspace(rashomon.workspace)
    make_run(workspace, "empty", instances(0), answers())
    assert "empty" in rashomon.run("check", "empty", "--baseline", "baseline", code=STOPPED).stderr


def test_a_run_at_work_is_busy(rashomon: Rashomon) -> None:
    for name in ("same", "baseline"):
        with FileLock(rashomon.workspace / "runs" / name / "lock") as lock:
            assert lock.acquire("another night")
            message = rashomon.run("check", "same", "--baseline", "baseline", code=BUSY).stderr
            assert "another night" in message


@pytest.mark.slow
def test_two_nights_at_once_and_one_that_was_killed(built: Path, tmp_path: Path) -> None:
    shutil.copytree(built, tmp_path / "workspace" / "benchmarks")
    there = Rashomon(tmp_path)
    night = ("batch", "--benchmark", "cmc-bench", "--limit", "6", "--display", "none", "--model")
    there.run(*night, "policy:always-text", "--name", "before")
    with there.held().start(*night, "policy:always-image", "--name", "tonight") as process:
        folder = there.workspace / "runs" / "tonight"
        while process.poll() is None and read_summary(folder).done < 8:
            pass
        there.run("check", "tonight", "--baseline", "before", code=BUSY)
        there.run("check", "before", "--baseline", "tonight", code=BUSY)
        kill_all(process)
    message = there.run("check", "tonight", "--baseline", "before", code=STOPPED).stderr
    assert "`rashomon resume tonight`" in message
    with RunStore.open(folder) as store:
        store.set_meta(REACHED_KEY, 0.2)  # it had enough answers
    text = there.run("check", "tonight", "--baseline", "before", code=INCONCLUSIVE).stdout
    assert "pending" in text


def test_a_received_run_can_be_the_baseline(rashomon: Rashomon) -> None:
    rashomon.run("bundle", "baseline", "--media", "none", "--out", "theirs.zip")
    result = json.loads(
        rashomon.run("check", "worse", "--baseline", "theirs.zip:baseline", "--json", code=REGRESSED).stdout
    )["result"]
    assert result == checked(rashomon, "worse", code=REGRESSED)


def test_a_copy_of_the_run_is_named_and_said_to_show_nothing(rashomon: Rashomon, tmp_path: Path) -> None:
    rashomon.run("bundle", "same", "--media", "none", "--out", "ours.zip")
    shutil.copytree(rashomon.workspace / "runs" / "same", tmp_path / "elsewhere" / "same")
    for copy, name in (("ours.zip:same", "ours.zip:same"), (str(tmp_path / "elsewhere" / "same"), "elsewhere/same")):
        result = json.loads(rashomon.run("check", "same", "--baseline", copy, "--json").stdout)["result"]
        assert result["baseline"] == name
        assert name in result["sentence"]
        assert any("copies of one run" in remark for remark in result["remarks"])
    assert not any("copies" in remark for remark in checked(rashomon, "same")["remarks"])


def test_a_run_without_answers_or_that_is_damaged_ends_alike_on_either_side(rashomon: Rashomon, tmp_path: Path) -> None:
    workspace = Workspace(rashomon.workspace)
    make_run(workspace, "nothing", instances(0), answers())
    damaged = tmp_path / "damaged"
    shutil.copytree(rashomon.workspace / "runs" / "same", damaged)
    for file in damaged.glob("*.sqlite*"):
        file.write_bytes(b"no database" * 500)
    for bad in ("nothing", damaged):
        for arguments in ((bad, "--baseline", "same"), ("same", "--baseline", bad)):
            message = rashomon.run("check", *arguments, code=STOPPED).stderr
            assert Path(bad).name in message
            assert "rashomon judge" not in message
            if bad == damaged:
                assert f"`rashomon doctor {damaged}`" in message


def test_a_small_margin_is_stated(rashomon: Rashomon) -> None:
    result = checked(rashomon, "same", "--max-loss", "0.0004", code=INCONCLUSIVE)
    assert "0.04 points" in result["sentence"]


# --- files ----------------------------------------------------------------------------------------------------------------


def test_files_are_written_whatever_the_verdict(rashomon: Rashomon, tmp_path: Path) -> None:
    for run, (verdict, code) in VERDICTS.items():
        junit, summary = tmp_path / f"{run}.xml", tmp_path / f"{run}.md"
        arguments = ("check", run, "--baseline", "baseline", "--junit", junit, "--markdown", summary)
        rashomon.run(*arguments, code=code)
        (suite,) = ElementTree.parse(junit).getroot()
        tests = checked(rashomon, run, code=code)["tests"]
        verdicts = [test["verdict"] for test in tests]
        outcomes = {
            FAILURE: verdicts.count("regressed"),
            SKIPPED: verdicts.count("inconclusive"),
            ERROR: int(verdict == "failed"),
        }
        assert any(outcomes.values()) == (verdict != "passed")
        assert {name: len(suite.findall(f".//{name}")) for name in outcomes} == outcomes
        assert [suite.get(name) for name in ("failures", "skipped", "errors")] == [
            str(count) for count in outcomes.values()
        ]
        assert int(suite.get("tests", "0")) == len(suite.findall("testcase"))
        assert summary.read_text().startswith(f"**{verdict.capitalize()}: ")
    printed = rashomon.run("check", "same", "--baseline", "baseline", "--markdown", "-").stdout
    assert printed == (tmp_path / "same.md").read_text()


def test_each_condition_is_a_test_case(rashomon: Rashomon, tmp_path: Path) -> None:
    junit = tmp_path / "c.xml"
    rashomon.run("check", "worse", "--baseline", "baseline", "--per-condition", "--junit", junit, code=REGRESSED)
    cases = ElementTree.parse(junit).getroot().findall(".//testcase")
    assert [case.get("name") for case in cases] == [*VALUES, *READS]


def test_a_full_disk_leaves_the_verdict_and_no_part_of_a_file(rashomon: Rashomon, tmp_path: Path) -> None:
    junit, summary = tmp_path / "j.xml", tmp_path / "m.md"
    arguments = ("check", "worse", "--baseline", "baseline", "--junit", junit, "--markdown", summary)
    with no_room_above(100):
        ended = rashomon.run(*arguments, code=STOPPED)
    assert ended.stdout.startswith("Regressed: ")
    assert len(ended.stderr.splitlines()) == 1
    assert list(tmp_path.iterdir()) == []


def test_files_keep_their_permissions_and_links_stay_links(rashomon: Rashomon, tmp_path: Path) -> None:
    private, link, late = tmp_path / "private.xml", tmp_path / "link.md", tmp_path / "late.md"
    private.write_text("old")
    private.chmod(0o600)
    link.symlink_to(late)  # which does not exist yet
    for _ in range(2):
        rashomon.run("check", "same", "--baseline", "baseline", "--junit", private, "--markdown", link)
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
        assert len(ElementTree.parse(private).findall(".//testcase")) == 3
        assert link.is_symlink()
        assert late.read_text().startswith("**Passed")
        late.write_text("old")
    assert {file.name for file in tmp_path.iterdir()} == {"private.xml", "link.md", "late.md"}


def test_devices_and_fifos_are_written_to(rashomon: Rashomon, tmp_path: Path) -> None:
    fifo, to_stdout, null = tmp_path / "fifo", tmp_path / "stdout", tmp_path / "null"
    os.mkfifo(fifo)
    to_stdout.symlink_to("/dev/stdout")  # by links, so that a fault here costs no device
    null.symlink_to("/dev/null")
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    arguments = ("check", "same", "--baseline", "baseline", "--junit", fifo, "--markdown", to_stdout)
    printed = rashomon.process(*arguments).stdout
    assert ElementTree.fromstring(os.read(reader, 1 << 16)).tag == "testsuites"
    os.close(reader)
    sentence, _, rest = printed.partition("\n")
    assert f"**{sentence}**" in rest  # what is printed, and then the Markdown
    rashomon.run("check", "same", "--baseline", "baseline", "--junit", null)
    assert stat.S_ISFIFO(fifo.stat().st_mode)
    assert to_stdout.is_symlink()
    assert null.is_symlink()


def test_standard_output_in_a_file_is_not_replaced(rashomon: Rashomon, tmp_path: Path) -> None:
    with open(tmp_path / "log", "wb") as log:
        write = (
            "import sys; from pathlib import Path; from benchmarks.untrusted.safe_files import write_named; print(1)"
        )
        write += "; write_named(Path('/dev/stdout'), b'2\\n'); print(3)"
        subprocess.run([sys.executable, "-c", write], stdout=log, check=True)
    assert (tmp_path / "log").read_text() == "1\n2\n3\n"


@pytest.mark.parametrize("option", ["--junit", "--markdown"])
def test_a_file_that_cannot_be_written_is_named(rashomon: Rashomon, tmp_path: Path, option: str) -> None:
    full = tmp_path / "full"
    full.symlink_to("/dev/full")
    for file in (tmp_path / "missing" / "file", *([full] if os.path.exists(full) else [])):
        ended = rashomon.run("check", "same", "--baseline", "baseline", option, file, code=STOPPED)
        assert str(file) in ended.stderr
    assert not (tmp_path / "missing").exists()


def test_files_that_cannot_be_meant_are_refused_before_anything_is_compared(rashomon: Rashomon, tmp_path: Path) -> None:
    file = str(tmp_path / "file")
    both = ("--junit", file, "--markdown", f"{tmp_path}/./file")
    for options in (both, ("--junit", "-"), ("--junit", ""), ("--markdown", ""), ("--markdown", str(tmp_path))):
        for command in (("check", "same", "--baseline", "baseline"), ("try", "policy:always-text")):
            assert rashomon.run(*command, *options, code=WRONG).stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_the_files_of_a_trial_and_its_remembered_rule(tmp_path: Path) -> None:
    there = Rashomon(tmp_path)
    there.run("build", "cmc-bench", "--from", write_table(tmp_path, 24))
    junit = tmp_path / "try.xml"
    better = ("try", "policy:always-text", "--against", "policy:always-image", "--trust", "text", "--junit", junit)
    tried = there.json(*better)
    assert not ElementTree.parse(junit).getroot().findall(".//failure")
    gate = ("check", tried["against_run"], "--baseline", tried["run"], "--max-loss", "0.1")
    result = json.loads(there.run(*gate, "--json", code=REGRESSED).stdout)["result"]
    assert "rule" in result["compared_by"]
    assert any("text wins" in remark for remark in result["remarks"])
    images = there.run(*gate, "--trust", "image", code=REGRESSED).stdout
    assert "in reading the text alone" in images.splitlines()[0], "it follows the rule, and has stopped reading"
    there.run(*gate, "--metric", "accuracy", code=INCONCLUSIVE)
    assert "in reading the text alone" in there.run(*gate, "--trust", "none", code=REGRESSED).stdout.splitlines()[0]
    worse = ("try", "policy:always-text", "--trust", "image", "--fresh", "--junit", junit, "--markdown", "-")
    printed = there.run(*worse, code=REGRESSED).stdout
    assert re.match(r"\*\*Worse than .*\n\n### ", printed), "the Markdown alone, though the model is asked anew"
    assert "**" not in there.run(*worse, "--display", "json", code=WRONG).stdout
    (failure,) = ElementTree.parse(junit).getroot().findall(".//failure")
    assert (failure.get("message") or "").startswith("Worse than ")


@given(st.text(), st.text(), st.text())
@example(HOSTILE, HOSTILE, HOSTILE)
def test_hostile_names_are_text(run: str, name: str, message: str) -> None:
    table = Table("check", run, ("verdict",), ((name, (message,)),))
    cases = (VerdictCase(name, REGRESSED, message), VerdictCase(name, DONE, "", message))
    report = VerdictReport("rashomon check", run, message, cases, table, (message,))
    suites = ElementTree.fromstring(report.junit())
    assert [element.tag for element in suites.iter()] == [
        *("testsuites", "testsuite", "testcase", "failure", "system-out", "testcase", "system-out"),
    ]
    assert not re.search(r"[^\t\n\r\x20-\ud7ff\ue000-\ufffd\U00010000-\U0010ffff]", report.junit())
    assert not re.search(r"(?<!\\)[<>`\[]", report.markdown().replace("<br>", ""))
