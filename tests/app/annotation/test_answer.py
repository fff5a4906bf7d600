"""People's answers: timed, resumable, a run like any other; their mean and their agreement."""

from __future__ import annotations

import csv
import shutil
import statistics
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from app.annotation.answer_session import AnswerSession, answer_lock
from app.commands.people.answer_command import AnswerArguments, answer
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from benchmarks.errors import RashomonError, SpecError, StoreError
from benchmarks.text.answer_text import visible_answer
from tests.support.charts import draw_sources
from tests.support.command import Rashomon

CONDITIONS = ("aligned", "image-correct", "text-correct")
EXAMPLES = 4
TOTAL = len(CONDITIONS) * EXAMPLES


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    home = tmp_path_factory.mktemp("answers")
    draw_sources(home / "sources")
    Rashomon(home).run("build", "cmc-bench", "--source", home / "sources")
    return home / "workspace"


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path / "workspace")
    return Rashomon(tmp_path)


def answered(rashomon: Rashomon, person: str | None, ask: Callable[[str], str], **options: Any) -> int:
    options = dict[str, Any]() | {"conditions": CONDITIONS, "limit": EXAMPLES, "name": person} | options
    return answer(Workspace(rashomon.workspace), "cmc-bench", AnswerArguments(person, **options), ask=ask)


def types(*words: str) -> Callable[[str], str]:
    """Types these words, one a prompt, then ends the input."""
    typed = iter(words)

    def ask(prompt: str) -> str:
        try:
            return next(typed)
        except StopIteration:
            raise EOFError from None

    return ask


def reads(rashomon: Rashomon, person: str, source: str, wrong: int = 0) -> None:
    """Answers as the given source says, but the first ``wrong`` answers with another value."""
    folder = rashomon.workspace / "runs" / person
    answered(rashomon, person, types())
    lock = answer_lock(folder)
    with RunStore.open(folder) as store:
        session = AnswerSession(folder, store)
        number = 0
        while session.current is not None:
            references = session.current.request.references
            session.answer(store, "no idea" if number < wrong else references[source][0])
            number += 1
        session.close(store)
    lock.release()


def test_a_build_is_named_by_its_folder_or_its_benchmark(
    rashomon: Rashomon, capsys: pytest.CaptureFixture[str]
) -> None:
    home, folder = Workspace(rashomon.workspace), rashomon.workspace / "benchmarks" / "cmc-bench"
    other = shutil.copytree(folder, rashomon.home / "copy")
    for build in (str(folder), "cmc-bench", str(other)):
        answer(home, build, AnswerArguments("ann", limit=EXAMPLES), ask=types("12", "/q"))
    assert "ann: 2 of" in capsys.readouterr().out
    assert len(list(home.runs_folder.iterdir())) == 1, "builds with the same content share a run"
    for command in (("review",), ("figures",), ("answer",)):
        for wrong in ("cmc-bnch", "clash"):
            errors = rashomon.run(*command, wrong, code=2).stderr
            assert len(errors.splitlines()) == 1
            assert errors == rashomon.run("review", wrong, code=2).stderr
    with pytest.raises(SpecError):
        answer(home, "no-such", AnswerArguments("ann"), ask=types())


def test_answers_are_saved_at_once_timed_and_continued(rashomon: Rashomon, capsys: pytest.CaptureFixture[str]) -> None:
    answered(rashomon, "ann", types("12", "/s", "", "the year 2010", "/q"))
    out = capsys.readouterr().out
    assert "ann: 2 of 12 answered" in out
    for secret in (*CONDITIONS, "IMAGE", "NEITHER"):
        assert secret not in out
    folder = rashomon.workspace / "runs" / "ann"
    with RunStore.read(folder) as store:
        texts = {r.answer.text: r.answer for r in store.records() if r.answer}
        assert set(texts) == {"12", "the year 2010"}
        assert all(generation.decode_s is not None and generation.decode_s >= 0 for generation in texts.values())
        assert sum(p.done for p in store.progress()) == 2
        assert all(r.verdicts for r in store.records() if r.answer), "judged at once"
    answered(rashomon, "ann", types(*["a"] * 20))
    with RunStore.read(folder) as store:
        assert sum(p.done for p in store.progress()) == TOTAL
    runs = rashomon.json("runs")
    assert [(run["name"], run["state"], run["done"]) for run in runs] == [("ann", "done", TOTAL)]


def test_a_reason_is_stored_before_the_answer_and_no_judge_reads_it(
    rashomon: Rashomon, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ("12", "the bar  is labelled so", "13", "", "14", "the </think> B </think> tag", "14", "a </think>", "/q")
    answered(rashomon, "ann", types(*words), justify=True)
    assert "the reason has a mark of reasoning" in capsys.readouterr().out
    with RunStore.read(rashomon.workspace / "runs" / "ann") as store:
        texts = sorted(record.answer.text for record in store.records() if record.answer is not None)
    assert texts == ["13", "<think>a </think></think>\n14", "<think>the bar is labelled so</think>\n12"]
    assert sorted(map(visible_answer, texts)) == ["12", "13", "14"]
    people = rashomon.json("answer", "cmc-bench")["tables"][0]
    assert [row["cells"]["justified"] for row in people["rows"]] == [2, None]


def test_the_questions_are_the_same_for_everybody_in_an_order_of_their_own(rashomon: Rashomon) -> None:
    orders: dict[str, list[str]] = {}
    for person in ("ann", "bob"):
        answered(rashomon, person, types())
        folder = rashomon.workspace / "runs" / person
        lock = answer_lock(folder)
        with RunStore.open(folder) as store:
            session, orders[person] = AnswerSession(folder, store), []
            while session.current is not None:
                orders[person].append(session.current.request.instance_id)
                session.answer(store, "x")
            session.close(store)
        lock.release()
    assert sorted(orders["ann"]) == sorted(orders["bob"])
    assert orders["ann"] != orders["bob"]


def test_a_persons_answers_are_a_run_like_any_other(rashomon: Rashomon, tmp_path: Path) -> None:
    reads(rashomon, "ann", "image")
    options = ("--conditions", ",".join(CONDITIONS), "--limit", str(EXAMPLES), "--name", "policy", "--display", "none")
    rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", *options)
    assert "person:ann" in rashomon.run("show", "ann").stdout
    assert "person:ann" in rashomon.run("compare", "ann", "policy").stdout
    rashomon.run("export", "ann", "--format", "csv", "--out", tmp_path / "export")
    files = {path.name for path in (tmp_path / "export").rglob("*.csv")}
    assert files
    samples = next(path for path in (tmp_path / "export").rglob("*.csv") if "sample" in path.name)
    assert len([*csv.DictReader(samples.open())]) == TOTAL
    rashomon.run("label", "ann", "--as", "eve", "--n", "3", "--export", tmp_path / "labels.csv")
    assert "rashomon answer" in rashomon.run("resume", "ann", code=2).stderr
    wrong = rashomon.run("--batch", "--benchmark", "cmc-bench", "--model", "person:eve", "--limit", "1", code=2).stderr
    assert "rashomon answer" in wrong
    rashomon.run("show", "ann", "--speed")
    rashomon.run("show", "ann", "--spec")


def test_mean_of_people_and_their_agreement_equal_a_hand_computation(rashomon: Rashomon) -> None:
    people = {"ann": 0, "bob": 3, "cat": 6}
    for person, wrong in people.items():
        reads(rashomon, person, "image", wrong)
    printed = rashomon.run("answer", "cmc-bench").stdout
    for text in ("Human baseline", "ann", "mean", "AC1"):
        assert text in printed
    tables = {table["name"]: table["rows"] for table in rashomon.json("answer", "cmc-bench")["tables"]}
    rows = {row["label"]: row["cells"] for row in tables["people"]}
    shares, labels = [], {}
    for person in people:
        with RunStore.read(rashomon.workspace / "runs" / person) as store:
            right = set(map(tuple, ((c, label) for c, names in store.meta("correct").items() for label in names)))
            verdicts = {r.instance.id: (r.instance.condition, r.verdicts["match@4"].label) for r in store.records()}
        shares.append(statistics.fmean(verdict in right for verdict in verdicts.values()))
        labels[person] = {item: label for item, (_, label) in verdicts.items()}
        assert rows[person]["all"]["value"] == pytest.approx(shares[-1])
    assert shares[0] > shares[1] > shares[2]
    assert rows["mean"]["all"]["value"] == pytest.approx(statistics.fmean(shares))
    assert rows["mean"]["all"]["sd"] == pytest.approx(statistics.stdev(shares))
    agreement = {row["label"]: row["cells"] for row in tables["agreement"]}
    same = sum(labels["ann"][item] == labels["bob"][item] for item in labels["ann"]) / TOTAL
    assert agreement["ann, bob"]["agreement"]["value"] == pytest.approx(same)
    pairs = [agreement[f"{a}, {b}"]["agreement"]["value"] for a, b in (("ann", "bob"), ("ann", "cat"), ("bob", "cat"))]
    assert agreement["all"]["agreement"]["value"] == pytest.approx(statistics.fmean(pairs))


def test_two_people_with_one_name_are_refused(rashomon: Rashomon) -> None:
    answered(rashomon, "ann", types("a"))
    with pytest.raises(SpecError, match="only in case"):
        answered(rashomon, "Ann", types("a"), name="other")
    folder = rashomon.workspace / "runs" / "ann"
    lock = answer_lock(folder)
    with pytest.raises(StoreError, match="another session"):
        answered(rashomon, "ann", types("b"))
    lock.release()
    with RunStore.open(folder) as store:
        store.set_meta("answered by", "eve@elsewhere")
    with pytest.raises(SpecError, match="another account"):
        answered(rashomon, "ann", types("b"))
    answered(rashomon, "ann", types("b"), same_person=True)
    with pytest.raises(SpecError):
        answered(rashomon, "../ann", types("b"))


def test_nobody_has_answered_and_another_build_are_reported(rashomon: Rashomon, tmp_path: Path) -> None:
    assert "nobody has answered" in rashomon.run("answer", "cmc-bench").stdout
    with pytest.raises(RashomonError):
        answered(rashomon, "ann", types("a"), data=tmp_path / "nothing")


@pytest.mark.slow
def test_a_killed_session_loses_nothing(rashomon: Rashomon) -> None:
    process = rashomon.start("answer", "cmc-bench", "--as", "ann", "--name", "ann", "--limit", "2", stdin=-1)
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("one\ntwo\nthree\n")
    process.stdin.flush()
    printed = ""
    while "4 of " not in printed:
        printed += process.stdout.read(1)
    process.kill()
    process.communicate()
    with RunStore.read(rashomon.workspace / "runs" / "ann") as store:
        assert sorted(r.answer.text for r in store.records() if r.answer) == ["one", "three", "two"]
    assert rashomon.json("runs")[0]["state"] == "interrupted"
    answered(rashomon, "ann", types("four", "/q"), conditions=(), limit=2)
    with RunStore.read(rashomon.workspace / "runs" / "ann") as store:
        assert sum(p.done for p in store.progress()) == 4
