"""`rashomon doctor --full`: every step has a line with its reason, none stops another, and the report names nobody."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from app.commands.system import doctor_full_command
from app.commands.system.doctor_full_command import FullCheck
from app.doctor.measure_machine import PASSAGE, QUESTION, Pictures, answer_all, make_request
from app.doctor.model_to_measure import PilotModel, choose_pilot_model
from app.doctor.plain_loop_agreement import Agreement, Answers, compare_with_loop, near_ties
from app.doctor.report_digests import check_report
from app.exit_codes import EndedError
from app.store.workspace import Workspace
from benchmarks.errors import ModelError, SpecError
from mlx_backends.engine_registry import load_backend
from tests.support.command import ROOT, Rashomon
from tests.support.full_disk import disk
from tests.support.tiny_qwen3 import build_tiny_lm

STEPS = ("checks", "measurements", "metal", "demo", "pilot", "tokens", "memory", "speed", "report")
PRIVATE = "quillon/secret-study"
DEMO = ROOT / "assets" / "demo" / "model-4bit"


def cache(hub: Path, name: str, without: tuple[str, ...] = ()) -> None:
    """Put the demo's model into a Hugging Face cache as ``name``, without some of its files."""
    repository = hub / f"models--{name.replace('/', '--')}"
    snapshot = repository / "snapshots" / "abc"
    snapshot.mkdir(parents=True)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text("abc")
    for file in DEMO.iterdir():
        if file.name not in without:
            (snapshot / file.name).symlink_to(file)
    if without:
        (repository / "blobs").mkdir()
        (repository / "blobs" / "0123.incomplete").write_bytes(b"half")


def states(output: str) -> dict[str, str]:
    """Return the state of each step that has printed a line."""
    return {
        name: state for state, name in re.findall(r"^(ok|failed|skipped) +(\S+) +\S.* \(\S+\)$", output, re.MULTILINE)
    }


def test_the_model_is_a_listed_one_then_the_smallest_then_the_demos(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    assert choose_pilot_model().is_demo
    assert "no vision-language model in the Hugging Face cache" in choose_pilot_model().why
    cache(tmp_path, "org/half", without=("model.safetensors",))
    cache(tmp_path, "org/no-processor", without=("preprocessor_config.json", "processor_config.json"))
    assert choose_pilot_model().is_demo
    assert "2 cannot run (the check `models` says why)" in choose_pilot_model().why
    cache(tmp_path, PRIVATE)
    assert choose_pilot_model() == PilotModel(PRIVATE)
    assert "secret" not in choose_pilot_model().public_name
    listed = "mlx-community/Qwen3-VL-4B-Instruct-4bit"
    cache(tmp_path, listed)
    assert (choose_pilot_model().name, choose_pilot_model().public_name) == (listed, listed)
    assert choose_pilot_model(PRIVATE).name == PRIVATE


def test_a_named_model_that_cannot_be_measured_is_refused_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path))
    cache(tmp_path, "org/half", without=("model.safetensors",))
    for name, reason in (("org/half", "holds no weights"), ("org/missing", "nor in the Hugging Face cache")):
        with pytest.raises(ModelError, match=reason):
            choose_pilot_model(name)
    with pytest.raises(SpecError, match="MLX"):
        choose_pilot_model("policy:random")


@pytest.mark.parametrize(
    "arguments",
    [("--model", "org/name"), ("--full", "--json"), ("--full", "a-run"), ("--read", "r.txt", "--full")],
)
def test_options_that_contradict_each_other(arguments: tuple[str, ...], tmp_path: Path) -> None:
    Rashomon(tmp_path).run("doctor", *arguments, code=2)


def test_another_file_is_not_overwritten_and_nothing_is_run_for_it(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("a thesis")
    done = Rashomon(tmp_path).run("doctor", "--full", "--report", tmp_path / "thesis.txt", code=2)
    assert (done.stdout, (tmp_path / "thesis.txt").read_text()) == ("", "a thesis")


@pytest.mark.parametrize("place", ["missing/r.txt", "file/r.txt", "locked/r.txt"])
@pytest.mark.parametrize("option", [(), ("--full",)], ids=["report", "full"])
def test_a_file_that_cannot_be_written_is_refused_before_anything_runs(
    option: tuple[str, ...], place: str, tmp_path: Path
) -> None:
    if place.startswith("locked") and os.geteuid() == 0:
        pytest.skip("root may write everywhere")
    (tmp_path / "file").write_text("")
    (tmp_path / "locked").mkdir(mode=0o500)
    before = {path.name for path in tmp_path.iterdir()}
    code = 3 if place.startswith("locked") else 2
    done = Rashomon(tmp_path).run("doctor", *option, "--report", tmp_path / place, code=code)
    assert (done.stdout, {path.name for path in tmp_path.iterdir()} - before) == ("", set())
    assert f"cannot write {tmp_path / place}" in done.stderr or "is no report" in done.stderr


def test_after_an_interruption_the_last_sentence_says_if_there_is_a_report(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(check: FullCheck) -> None:
        shutil.rmtree(tmp_path / "reports")
        raise KeyboardInterrupt

    (tmp_path / "reports").mkdir()
    monkeypatch.setattr(FullCheck, "run", interrupt)
    monkeypatch.setenv("HF_HUB_CACHE", str(tmp_path / "hub"))
    with pytest.raises(EndedError, match="interrupted; no report was written") as end:
        doctor_full_command.doctor_full(Workspace(tmp_path), model=None, file=tmp_path / "reports" / "r.txt")
    assert end.value.exit_code == 130


def test_whatever_fails_does_not_stop_the_others_and_names_no_private_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def failing(error: Exception) -> Callable[..., None]:
        def fail(*_: object, **__: object) -> None:
            raise error

        return fail

    monkeypatch.setattr(doctor_full_command, "examine", failing(KeyError("x")))
    monkeypatch.setattr(doctor_full_command, "measurements", lambda: f"none: {PRIVATE} went wrong")
    monkeypatch.setattr(doctor_full_command, "demo", failing(OSError(28, "No space left on device")))
    monkeypatch.setattr(doctor_full_command, "compare_with_loop", lambda model: f"{model} went wrong")
    (tmp_path / "file").write_text("no folder")
    check = FullCheck(Workspace(tmp_path / "file"), PilotModel(PRIVATE))
    check.run()
    output = capsys.readouterr().out
    assert states(output) == dict.fromkeys(STEPS[:6], "failed") | dict.fromkeys(("memory", "speed"), "skipped")
    assert "No space left on device" in output
    assert PRIVATE in output
    lines = check.lines()
    assert len(lines) == len(STEPS) - 1
    assert PRIVATE not in "\n".join(lines)


@pytest.mark.parametrize(
    ("exact", "batched", "near_ties", "state", "reason"),
    [
        ([1, 2], [1, 2], 0, "ok", "of 2 answers, 2 one at a time and 2 as in a run (in batches)"),
        ([1, 2], [1, 3], 1, "ok", "1 differ after near ties that rounding decides"),
        ([1, 2], [1, 3], 0, "failed", "as in a run, the first that differs is at prompt 2, token 2"),
        ([1], [1], 1, "failed", "one at a time, the first that differs is at prompt 2, token 2"),
    ],
)
def test_answers_that_are_not_the_loops_fail_unless_a_near_tie_explains_them(
    exact: list[int], batched: list[int], near_ties: int, state: str, reason: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    loop, alone, together = (Answers([[7], last], 2.0, 10**9) for last in ([1, 2], exact, batched))
    agreement = Agreement("mlx-vlm 1", loop, alone, together, "in batches", 0.5, near_ties, 10**9, 10**9, 10**10)
    monkeypatch.setattr(doctor_full_command, "compare_with_loop", lambda model: agreement)
    check = FullCheck(Workspace(Path("none")), PilotModel(str(DEMO), "it is the demo's"))
    check.run(["tokens", "memory", "speed"])
    assert check.outcomes["tokens"].state == state
    assert reason in check.outcomes["tokens"].message
    assert [check.outcomes[name].state for name in ("memory", "speed")] == ["ok", "ok"]


@pytest.mark.slow
def test_a_tie_is_near_if_the_model_was_that_undecided(tmp_path: Path) -> None:
    pictures = Pictures(tmp_path, 1)
    backend = load_backend(str(DEMO), pictures.path)
    requests = [make_request("a", pictures.charts, QUESTION)]
    answers = answer_all(backend, requests)
    probe = backend.probe(requests[0], answers[0].tokens)
    (likeliest, first), (second, logprob), *_ = probe.top[2]
    tokens = list(answers[0].tokens)
    assert tokens[2] == likeliest
    alone = Answers([tokens], 1.0, 1)
    other = Answers([[*tokens[:2], second]], 1.0, 1)
    lead = first - logprob
    assert [near_ties(backend, requests, alone, other, margin) for margin in (1.01 * lead, 0.99 * lead)] == [1, 0]
    assert near_ties(backend, requests, alone, alone, 0.99 * lead) == 0
    backend.close()


@pytest.mark.slow
@pytest.mark.parametrize("template", ["as it is", "thinks unless told not to", "none"])
def test_a_text_only_model_answers_as_the_loop_around_mlx_lm(template: str, tmp_path: Path) -> None:
    model = build_tiny_lm(tmp_path / "model", [QUESTION, PASSAGE, "Which bar is the highest?"], quantise=False)
    file = model / "tokenizer_config.json"
    settings = json.loads(file.read_text())
    if template == "none":
        del settings["chat_template"]
    elif template != "as it is":
        settings["chat_template"] += "{% if enable_thinking is defined and not enable_thinking %}no thoughts{% endif %}"
    file.write_text(json.dumps(settings))
    agreement = compare_with_loop(str(model))
    assert isinstance(agreement, Agreement), agreement
    assert agreement.engine.startswith("mlx-lm ")
    assert agreement.differences(agreement.exact) == agreement.differences(agreement.batched) == []
    assert len({tuple(tokens) for tokens in agreement.loop.tokens}) > 10


@pytest.mark.slow
def test_a_full_disk_fails_the_steps_that_write_and_no_other(tmp_path: Path) -> None:
    with disk(tmp_path / "full", "4k") as full, disk(tmp_path / "filled", "4k") as filled:
        (filled / "file").write_bytes(bytes(4096))
        (full / "tmp").mkdir()
        variables = {"TMPDIR": str(full / "tmp"), "RASHOMON_WORKSPACE": str(full / "workspace")}
        rashomon = Rashomon(tmp_path, variables=variables)
        done = rashomon.process("doctor", "--full", "--model", DEMO, "--report", filled / "r.txt", code=1)
        assert not (filled / "r.txt").exists()
    failed = {name for name, state in states(done.stdout).items() if state == "failed"}
    assert failed >= {"measurements", "demo", "pilot", "tokens", "report"}
    assert states(done.stdout).keys() == set(STEPS)
    assert done.stdout.count("\n") == len(STEPS)
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.slow
def test_a_cached_model_is_measured_and_the_report_names_nobody(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path, variables={"USER": "quillon"})
    cache(tmp_path / "cache/huggingface/hub", PRIVATE)
    cache(tmp_path / "cache/huggingface/hub", "org/half", without=("model.safetensors",))
    done = rashomon.process("doctor", "--full")
    assert states(done.stdout) == dict.fromkeys(STEPS, "ok") | {"metal": "skipped"}
    assert "of 20 answers, 20 one at a time and 20 as in a run" in done.stdout
    file = tmp_path / "rashomon-report.txt"
    text = file.read_text()
    for secret in ("quillon", "secret-study", str(tmp_path), tmp_path.name):
        assert secret not in text, secret
    assert "a model that is not on Rashomon's list: 160 answers, 0 errors" in text
    assert [result.ok for result in check_report(file)] == [True]


@pytest.mark.slow
def test_an_interrupted_pilot_is_reported_and_resumed(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    cache(tmp_path / "cache/huggingface/hub", PRIVATE)
    process = rashomon.start("doctor", "--full")
    runs = rashomon.workspace / "rashomon-doctor" / "runs"
    while not any(runs.glob("pilot-*")):
        assert process.poll() is None, process.communicate()
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=120)
    assert process.returncode == 130, errors
    assert states(output) == {**dict.fromkeys(STEPS[:4], "ok"), "metal": "skipped", "report": "ok"}
    assert "The same command resumes the pilot" in errors
    assert "Traceback" not in errors
    text = (tmp_path / "rashomon-report.txt").read_text()
    assert "pilot: skipped, interrupted before its end" in text
    assert [result.ok for result in check_report(tmp_path / "rashomon-report.txt")] == [True]
    (run,) = runs.iterdir()
    again = Rashomon(tmp_path, variables={"RASHOMON_WORKSPACE": str(runs.parent)}).run("resume", run.name)
    assert "160/160" in again.stdout
