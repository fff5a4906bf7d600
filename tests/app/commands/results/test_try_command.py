"""A model tried on a question set: the verdict, its exit code, what is remembered, and what a user gets wrong."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from app.commands.results.try_command import TryArguments, _Subject
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED
from app.store.question_set_runs import SetRun, subject_of
from app.store.question_sets import QuestionSet
from app.store.run_store import RunStore
from app.store.tried_models import TriedModels, read_tried, update_tried
from app.store.workspace import Workspace
from app.text.plural import count_of
from benchmarks.errors import ModelError, StoreError
from tests.support.command import Rashomon, kill_all
from tests.support.demo import BF16, FOUR_BIT, write_table
from tests.support.json_output import json_result

TEXT, IMAGE, RANDOM = "policy:always-text", "policy:always-image", "policy:uniform"
ROWS = 24
FIELDS = ("incumbent", "trust", "subjects", "decisions")


def build(rashomon: Rashomon, rows: int = ROWS, *, name: str = "charts", edit: dict[str, str] | None = None) -> None:
    rashomon.run("build", "cmc-bench", "--from", write_table(rashomon.home, rows, name, edit))


def tried(rashomon: Rashomon, model: str | Path, *options: str | Path, code: int = DONE) -> dict[str, Any]:
    printed: dict[str, Any] = rashomon.json("try", model, *options, code=code)
    return printed


def same_verdict(verdict: dict[str, Any]) -> dict[str, Any]:
    """Return a verdict without what was measured, and without what was remembered for it."""
    sentences = [line for line in verdict["sentences"] if not line.startswith(("It takes", "Remembered"))]
    return {**verdict, "seconds_per_answer": None, "sentences": sentences}


def memory(rashomon: Rashomon, name: str = "charts") -> TriedModels:
    return read_tried(rashomon.workspace / "sets" / name)


def test_asked_anew_a_model_gets_a_new_run_each_time_and_keeps_the_old_ones(rashomon: Rashomon) -> None:
    runs = [tried(rashomon, TEXT, "--fresh", code=6)["run"] for _ in range(3)]
    assert runs[1:] == [f"{runs[0]}-2", f"{runs[0]}-3"]
    assert {run["name"] for run in rashomon.json("runs")} == {*runs}
    assert len(memory(rashomon).subjects) <= 1  # the same model


def instances(rashomon: Rashomon, run: str) -> set[str]:
    with RunStore.read(rashomon.workspace / "runs" / run) as store:
        return {record.instance.group for record in store.records()}


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A home with a set of rows and no runs."""
    home = tmp_path_factory.mktemp("built")
    build(Rashomon(home))
    return home


@pytest.fixture
def rashomon(built: Path, tmp_path: Path) -> Rashomon:
    shutil.copytree(built, tmp_path, dirs_exist_ok=True, symlinks=True)
    return Rashomon(tmp_path)


def test_the_exit_code_tells_the_verdict_by_the_users_rule(rashomon: Rashomon) -> None:
    better = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    assert (better["verdict"], better["against"], better["named"]) == ("better", IMAGE, True)
    assert 0 < better["lead"]["low"] < better["lead"]["value"] == better["share"] - better["against_share"]
    worse = tried(rashomon, TEXT, "--trust", "image", code=REGRESSED)  # the incumbent is remembered
    assert worse["lead"]["high"] < 0
    neither = tried(rashomon, TEXT, "--trust", "flag", code=INCONCLUSIVE)
    assert (neither["verdict"], neither["lead"]["value"]) == ("not shown", 0)
    needed = [re.search(r"difference of 3 points takes about ([\d,]+) rows", remark) for remark in neither["remarks"]]
    (rows,) = (int(match[1].replace(",", "")) for match in needed if match)
    assert rows > 10 * neither["rows"]
    assert not any("points takes" in remark for verdict in (better, worse) for remark in verdict["remarks"])


def test_five_lines_fit_a_terminal_and_name_the_pictures(rashomon: Rashomon) -> None:
    printed = rashomon.run("try", TEXT, "--against", IMAGE, "--trust", "text", "--display", "plain").stdout
    header, *lines = printed.rstrip("\n").rpartition("\n\n")[2].splitlines()
    assert "charts@1" in header
    assert len(lines) == 5
    assert all(len(line) <= 100 for line in (header, *lines))
    assert lines[0].startswith("Better than")
    assert all(line.startswith("gained: 0") and ".png: " in line for line in lines[2:])
    assert len({line.split(": ")[1] for line in lines[2:]}) == 3  # of different pictures


def lines(rashomon: Rashomon, *arguments: str | Path, code: int = DONE) -> list[str]:
    """Return what a trial prints last: its header and the lines of the verdict."""
    printed = rashomon.run("try", *arguments, "--display", "plain", code=code).stdout
    return printed.rstrip("\n").rpartition("\n\n")[2].splitlines()


def test_a_remembered_rule_and_incumbent_are_named_and_can_be_undone(rashomon: Rashomon) -> None:
    typed = lines(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    remembered = lines(rashomon, TEXT)
    assert "text wins" in typed[1]
    assert [typed[0], *typed[1:]] == [remembered[0], *remembered[2:]]
    assert all(word in remembered[1] for word in (IMAGE, "--against best", "text wins", "--trust none"))
    assert "by right answers" in tried(rashomon, TEXT, "--trust", "none", code=INCONCLUSIVE)["remarks"][-1].casefold()
    assert memory(rashomon) == replace(memory(rashomon), trust="", incumbent=IMAGE)
    rashomon.run("try", TEXT, "--trust", "neither", code=2)


def test_the_rule_of_a_history_can_be_left_out(rashomon: Rashomon) -> None:
    tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    rules = [rashomon.json("history", *options)["table"]["notes"][0] for options in ([], ["--trust", "none"])]
    assert "obedience" in rules[0]
    assert "obedience" not in rules[1]


def test_a_policy_that_no_model_beats_is_named(rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(SetRun, "is_model", property(lambda run: run.model != TEXT))
    tried(rashomon, TEXT, "--trust", "text", code=INCONCLUSIVE)
    sentence = f"{TEXT} has 100%: no model beats it."
    assert sentence in tried(rashomon, IMAGE, code=INCONCLUSIVE)["remarks"]
    assert sentence in " ".join(rashomon.run("history").stdout.split())
    assert sentence not in " ".join(rashomon.run("history", "--trust", "image").stdout.split())


def test_counts_of_one_are_singular() -> None:
    assert [count_of(number, "row") for number in (0, 1, 1200)] == ["0 rows", "1 row", "1,200 rows"]


def test_the_held_out_rows_are_asked_only_for_a_final_decision(rashomon: Rashomon) -> None:
    first = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    final = tried(rashomon, TEXT, "--final")
    assert (first["part"], final["part"]) == ("open", "final")
    opened, held_out = instances(rashomon, first["run"]), instances(rashomon, final["run"])
    assert opened.isdisjoint(held_out)
    assert len(opened | held_out) == ROWS
    assert len(held_out) == ROWS // 3
    assert not any("fresh look" in remark for remark in final["remarks"])
    assert len(memory(rashomon).decisions) == final["tried"] == 1
    assert tried(rashomon, TEXT, "--final") == final  # the same decision
    assert tried(rashomon, RANDOM, "--final", code=INCONCLUSIVE)["tried"] == 2
    history = " ".join(rashomon.run("history").stdout.split())
    assert f"held-out rows: {TEXT} beside {IMAGE}: better" in history
    assert f"; {RANDOM} beside {IMAGE}: not shown" in history
    shutil.rmtree(rashomon.workspace / "runs" / final["run"])
    assert f"answers are gone; {RANDOM} beside" in " ".join(rashomon.run("history").stdout.split())


def test_a_decision_on_rows_that_were_replaced_stays_in_the_history(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rashomon = Rashomon(tmp_path)
    build(rashomon)
    monkeypatch.setattr(SetRun, "is_model", True)
    tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text", "--final")
    table = write_table(rashomon.home, 48)
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *lines[25:]]))
    rashomon.run("build", "cmc-bench", "--from", table)
    tried(rashomon, RANDOM, "--against", TEXT, code=REGRESSED)
    tried(rashomon, RANDOM, "--final", code=REGRESSED)
    history = " ".join(rashomon.run("history").stdout.split())
    assert f"held-out rows: {TEXT} beside {IMAGE}: no row in common" in history
    assert f"; {RANDOM} beside {TEXT}: worse" in history


def test_a_final_decision_needs_another_model(rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch) -> None:
    """A policy is no rival, nor is the model itself with other settings."""
    monkeypatch.setattr(SetRun, "is_model", property(lambda run: run.model != TEXT))
    tried(rashomon, TEXT, code=INCONCLUSIVE)
    tried(rashomon, IMAGE, code=INCONCLUSIVE)
    assert "without --final" in rashomon.run("try", IMAGE, "--final", code=2).stderr
    tried(rashomon, IMAGE, "--prompt-set", "expect-conflict", code=INCONCLUSIVE)
    assert "without --final" in rashomon.run("try", IMAGE, "--final", code=2).stderr
    assert not memory(rashomon).decisions


def test_rows_that_a_batch_has_asked_are_no_fresh_look(rashomon: Rashomon) -> None:
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", TEXT, "--data", "charts", "--name", "every-row")
    final = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text", "--final")
    assert any("every-row" in remark for remark in final["remarks"])


def test_an_edited_set_is_compared_on_its_newest_version(rashomon: Rashomon) -> None:
    first = tried(rashomon, IMAGE, code=INCONCLUSIVE)
    assert first["lead"] is None
    build(rashomon, edit={"passage": "In the end, kale came to 68."})
    second = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    assert second["version"] == 2
    assert second["against_run"] != first["run"]  # the incumbent is asked the newest version, too
    history = rashomon.json("history")
    assert [model["versions"] for model in history["models"]] == ["1, 2"]  # policies are listed as incumbents alone


def test_an_incumbent_that_is_gone_is_compared_on_the_rows_that_stayed(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tried(rashomon, IMAGE, code=INCONCLUSIVE)
    build(rashomon, edit={"passage": "In the end, kale came to 68."})
    gone = _Subject.of

    def of(workspace: Workspace, question_set: QuestionSet, model: str, arguments: TryArguments) -> _Subject:
        if model == IMAGE:
            raise ModelError("it was deleted.")
        return gone(workspace, question_set, model, arguments)

    monkeypatch.setattr(_Subject, "of", of)
    second = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    assert second["against_run"] == first["run"]
    assert 0 < second["answers"] <= first["answers"]


def test_other_prompt_settings_are_another_model_on_the_same_rows(
    rashomon: Rashomon, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = tried(rashomon, TEXT, "--trust", "text", code=INCONCLUSIVE)
    other = tried(rashomon, IMAGE, "--prompt-set", "expect-conflict", "--against", TEXT, code=REGRESSED)
    assert (other["answers"], other["tried"]) == (first["answers"], 2)
    again = tried(rashomon, IMAGE, code=REGRESSED)
    assert again["answers"] == first["answers"]
    monkeypatch.setattr(SetRun, "is_model", True)
    assert len(rashomon.json("history")["models"]) == 3


def test_what_is_wrong_is_said_before_anything_is_asked(rashomon: Rashomon) -> None:
    def refused(*arguments: str | Path, expected: str) -> None:
        assert expected in rashomon.run("try", *arguments, code=2).stderr
        assert not list((rashomon.workspace / "runs").glob("*"))

    refused(TEXT, "--set", "chart", expected="charts")
    refused(TEXT, "--trust", "text", "--against", TEXT, expected="--against")
    refused("no/such-model", expected="no/such-model")
    refused(TEXT, "--against", "no/such-model", expected="no/such-model")
    refused(TEXT, "--final", expected="no model has answered")
    picture = next((rashomon.workspace / "sets" / "charts" / "1" / "media").iterdir())
    picture.write_bytes(b"another picture")
    refused(TEXT, expected="rashomon build")
    assert memory(rashomon) == TriedModels()


def test_without_a_set_and_with_several_ones_the_user_is_told(rashomon: Rashomon, tmp_path: Path) -> None:
    empty = Rashomon(tmp_path / "empty")
    empty.home.mkdir()
    for command in (["try", TEXT], ["history"]):
        assert "rashomon build" in empty.run(*command, code=2).stderr
    build(rashomon, 6, name="others")
    assert "charts, others" in rashomon.run("try", TEXT, code=2).stderr
    assert tried(rashomon, TEXT, "--set", "others", code=INCONCLUSIVE)["set"] == "others"


def test_a_set_of_three_rows_shows_nothing(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    build(rashomon, 3)
    assert tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text", code=INCONCLUSIVE)["rows"] <= 2


def test_a_damaged_memory_is_named(rashomon: Rashomon) -> None:
    (rashomon.workspace / "sets" / "charts" / "tried.json").write_text("[]")
    assert "tried.json" in rashomon.run("try", TEXT, code=2).stderr


def test_an_incumbent_whose_run_was_deleted_is_asked_again(rashomon: Rashomon) -> None:
    first = tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    shutil.rmtree(rashomon.workspace / "runs" / first["against_run"])
    assert same_verdict(tried(rashomon, TEXT)) == same_verdict(first)


def test_the_incumbent_itself_is_compared_with_the_best_of_the_others(rashomon: Rashomon) -> None:
    tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    itself = tried(rashomon, IMAGE, code=INCONCLUSIVE)  # policies are no rivals
    assert (itself["against"], itself["named"]) == (None, False)
    assert memory(rashomon).incumbent == IMAGE


def test_an_incumbent_without_a_row_in_common_is_asked_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    rashomon = Rashomon(tmp_path)
    build(rashomon)
    tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")
    table = write_table(rashomon.home, 48)
    lines = table.read_text().splitlines()
    table.write_text("\n".join([lines[0], *lines[25:]]))
    rashomon.run("build", "cmc-bench", "--from", table)
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", TEXT, "--data", "charts")
    with monkeypatch.context() as patch:
        patch.setattr(SetRun, "is_model", True)
        printed = rashomon.run("history").stdout
        assert f"Left out: {IMAGE}" in " ".join(printed.split())
    verdict = tried(rashomon, TEXT)
    assert (verdict["verdict"], verdict["against"]) == ("better", IMAGE)


def test_a_look_at_a_few_answers_is_of_the_same_subject() -> None:
    identity: dict[str, Any] = {"weights digest": "1", "conditions": [], "limit": None, "strata": {}, "max tokens": 24}
    look = {**identity, "conditions": ["image-only"], "limit": 5, "strata": {"type": ["factual"]}}
    assert subject_of(look) == subject_of(identity)
    assert subject_of({**look, "max tokens": 64}) != subject_of(identity)


def test_answers_that_are_interrupted_or_partial_do_not_count(rashomon: Rashomon) -> None:
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", IMAGE, "--data", "charts", "--limit", "2")
    assert tried(rashomon, TEXT, "--against", IMAGE, "--trust", "text")["against_run"].startswith("charts-1-")


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(FIELDS) | st.text(), inner, max_size=4),
    max_leaves=8,
)


@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=JSON)
def test_any_memory_is_read_or_refused(tmp_path: Path, content: Any) -> None:
    (tmp_path / "tried.json").write_text(json.dumps(content), "utf-8")
    try:
        read = read_tried(tmp_path)
    except StoreError:
        return
    assert update_tried(tmp_path, lambda before: before) == read


def test_a_memory_is_written_and_read(tmp_path: Path) -> None:
    whole = TriedModels("a\ud800 model", "text", ("b", "a"), (("a", "b"),))
    assert update_tried(tmp_path, lambda before: whole) == whole == read_tried(tmp_path)


def demo_copy(folder: Path, *, damaged: bool) -> Path:
    """The demo's model, or one with noise in its layers, in a folder of the same name."""
    import mlx.core as mx

    shutil.rmtree(folder, ignore_errors=True)
    shutil.copytree(BF16, folder)
    if damaged:
        weights = mx.load(str(folder / "model.safetensors"))
        assert isinstance(weights, dict)
        mx.random.seed(0)
        for name, values in weights.items():
            if "layers" in name and values.ndim == 2:
                weights[name] = values + (0.15 * mx.random.normal(values.shape)).astype(values.dtype)
        mx.save_safetensors(str(folder / "model.safetensors"), weights, metadata={"format": "mlx"})
    return folder


@pytest.mark.slow
def test_real_models_get_the_right_verdicts(rashomon: Rashomon) -> None:
    """Two quantisations are not told apart; damaged weights are worse, and are another model under the same name."""
    look = ("--conditions", "image-only,text-only", "--limit", "2", "--name", "look")
    rashomon.run("batch", "--benchmark", "cmc-bench", "--model", FOUR_BIT, "--data", "charts", *look)
    first = tried(rashomon, FOUR_BIT, "--trust", "text", code=INCONCLUSIVE)
    assert (first["against"], first["tried"]) == (None, 1)
    model = demo_copy(rashomon.home / "a-model", damaged=False)
    equal = tried(rashomon, model, code=INCONCLUSIVE)
    assert (equal["against"], equal["tried"], equal["named"]) == (FOUR_BIT.name, 2, False)
    demo_copy(model, damaged=True)
    damaged = tried(rashomon, model, code=REGRESSED)
    assert damaged["tried"] == 3
    assert damaged["run"] != equal["run"]
    assert any("no first look" in remark for remark in damaged["remarks"])
    assert tried(rashomon, FOUR_BIT, code=INCONCLUSIVE)["tried"] == 3
    history = rashomon.json("history")
    assert [entry["verdict"] for entry in history["models"]] == ["not shown", "not shown", "worse"]
    assert [entry["look"] for entry in history["models"]] == ["first", "first", "again"]
    # A deleted run and a clock that goes back change neither the order nor the number of models tried.
    shutil.rmtree(rashomon.workspace / "runs" / equal["run"])
    with RunStore._connect(rashomon.workspace / "runs" / damaged["run"]) as store:
        store.set_meta("created", 1.0)
    later = rashomon.json("history")
    assert [entry["run"] for entry in later["models"]] == [first["run"], damaged["run"]]
    assert tried(rashomon, FOUR_BIT)["tried"] == 3  # better than the damaged one
    out = rashomon.home / "figures"
    rashomon.run("history", "--format", "png,csv", "--out", out)
    assert (out / "history.png").stat().st_size > 1000


@pytest.mark.slow
def test_killed_at_random_moments_it_comes_to_the_same_verdict(rashomon: Rashomon, tmp_path: Path) -> None:
    import random
    import time

    command = ("try", TEXT, "--against", IMAGE, "--trust", "text", "--json")
    began = time.monotonic()
    expected = same_verdict(json_result(rashomon.process(*command).stdout))
    whole = time.monotonic() - began
    chance = random.Random(4)
    for _ in range(13):
        shutil.rmtree(rashomon.workspace / "runs")
        (rashomon.workspace / "sets" / "charts" / "tried.json").unlink(missing_ok=True)
        for _ in range(4):
            process = rashomon.start(*command)
            time.sleep(chance.uniform(0.1, whole))
            kill_all(process)
        assert same_verdict(json_result(rashomon.run(*command).stdout)) == expected
