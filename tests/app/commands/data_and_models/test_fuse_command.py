"""`rashomon models fuse`: the check of a fused model on held-out rows, its record, and what interrupts it."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from app.commands.data_and_models import fuse_command as command
from app.engine.fusing.held_out_rows import HeldOutRows, rows_of, validation_rows
from app.engine.training.training_folder import create_training
from app.engine.training.training_spec_and_recipes import training_spec
from app.store.file_locks import FileLock
from app.store.workspace import Workspace
from benchmarks.training.training_set import TrainingSet
from mlx_backends.mlx.adapters.fuse_adapter import fuse as write_fused
from mlx_backends.models.adapter_folder import read_adapter
from mlx_backends.models.weight_files import weights_digest
from tests.support.adapters import make_adapter
from tests.support.command import Rashomon, kill_all
from tests.support.demo import BF16, FOUR_BIT
from tests.support.trainings import write_training_set

ROWS = 12


@pytest.fixture(scope="module")
def training_set(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_training_set(tmp_path_factory.mktemp("sets") / "squares", rows=4, validation=ROWS)


@pytest.fixture(scope="module")
def adapter(tmp_path_factory: pytest.TempPathFactory, training_set: Path) -> Path:
    data = TrainingSet.open(training_set).digest
    base = {"base model": "model-4bit", "base weights": weights_digest(FOUR_BIT), "data digest": data, "training": "t"}
    return make_adapter(FOUR_BIT, tmp_path_factory.mktemp("adapters") / "t", strength=3, base=base)


@pytest.fixture
def home(tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path)


def arguments(adapter: Path, target: Path, *options: str | Path) -> list[str | Path]:
    return ["models", "fuse", FOUR_BIT, "--adapter", adapter, "--to", target, *options]


def record(target: Path) -> dict[str, Any]:
    value: dict[str, Any] = json.loads((target / "fused.json").read_text())
    return value


def scripted(monkeypatch: pytest.MonkeyPatch, kept: Mapping[str, int], changed: int = 10) -> list[str]:
    """Have models answer by script: the adapter changes ``changed`` answers, of which each fused folder keeps some."""
    asked: list[str] = []

    def answers(model: str, rows: HeldOutRows, *_: object) -> dict[str, str]:
        name = Path(model).name
        asked.append(name)
        keeps = changed if name == "t" else next((count for end, count in kept.items() if name.endswith(end)), 0)
        return {request.id: "new" if place < keeps else "old" for place, request in enumerate(rows.requests)}

    monkeypatch.setattr(command, "answers", answers)
    return asked


def test_a_fused_model_that_keeps_the_effect_ends_with_0(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted(monkeypatch, {"fused": 9})
    done = home.run(*arguments(adapter, home.home / "fused", "--check", training_set))
    assert f"check on {ROWS} held-out rows of squares: the adapter changes 10 answers" in done.stdout
    assert "keeps 9 of 10 (90%)" in done.stdout
    assert "of its codes changed" in done.stdout
    assert "differs from the adapter on 1 of the 12 rows" in done.stdout
    assert {key: record(home.home / "fused")["check"][key] for key in ("rows", "changed", "kept", "reverted", "disturbed")} == {
        "rows": ROWS, "changed": 10, "kept": 9, "reverted": 1, "disturbed": 0
    }  # fmt: skip
    count, total = record(home.home / "fused")["codes changed"]
    assert 0 < count < total
    asked.clear()
    again = home.run(*arguments(adapter, home.home / "fused", "--check", training_set))
    assert (again.stdout, asked) == (done.stdout, []), "the same result, and no answer more"


def test_a_lost_effect_is_a_warning_with_what_keeps_it(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked = scripted(monkeypatch, {"fused": 1, "--bits 8": 10, "--dequantise": 8})
    lost = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=5)
    assert (
        "of the 10 answers that the adapter changed, the fused model keeps 1 and 9 are the base's again" in lost.stderr
    )
    assert "fuse with --bits 8, which keeps it" in lost.stderr
    lines = [" ".join(line.split()) for line in lost.stdout.splitlines()]
    assert "as written keeps 1 of 10 (10%)" in lines
    assert "--bits 8 keeps 10 of 10 (100%)" in lines
    assert "--dequantise keeps 8 of 10 (80%)" in lines
    assert any(line.startswith("unfused all") for line in lines)
    assert [path.name for path in home.home.iterdir() if "fused" in path.name] == ["fused"]
    asked.clear()
    again = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=5)
    assert (again.stdout, again.stderr, asked) == (lost.stdout, lost.stderr, [])
    run = ("--batch", "--benchmark", "cmc-bench", "--model", home.home / "fused", "--limit", "1", "--dry-run")
    home.run(
        "build", "cmc-bench", "--source", f"rows={FOUR_BIT.parent / 'held_out' / 'cmc-bench'}", "--per-stratum", "2"
    )
    warned = home.run(*run)
    assert (
        "lost its adapter's effect in fusing: on 12 held-out rows it keeps 1 of 10 (10%)"
        in warned.stderr + warned.stdout
    )


def test_nothing_is_known_where_the_adapter_changes_nothing(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, {"fused": 0}, changed=0)
    shown = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=6)
    assert "the adapter changes no answer" in shown.stderr


def test_answers_that_are_broken_without_need_count_too(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, {"fused": 12, "--bits 8": 6, "--dequantise": 12}, changed=6)
    lost = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=5)
    assert "keeps 6 and it changes 6 others" in lost.stderr
    assert "fuse with --bits 8, which keeps it" in lost.stderr


@pytest.mark.slow
def test_the_models_themselves_answer(home: Rashomon, adapter: Path, training_set: Path) -> None:
    """Without fewer bits nothing is lost; an interrupted check has every answer, and asks for none again."""
    target = home.home / "fused"
    options = ("--check", training_set, "--check-rows", "4", "--dequantise")
    done = home.run(*arguments(adapter, target, *options))
    check = record(target)["check"]
    assert check["rows"] == check["kept"] + check["rows"] - check["changed"] == 4
    assert check["changed"] > 0
    (target / "fused.json").write_text(json.dumps({k: v for k, v in record(target).items() if k != "check"}))
    assert home.run(*arguments(adapter, target, *options)).stdout == done.stdout
    assert record(target)["check"] == check


def staged(workspace: Path, data: Path, adapter: Path) -> Path:
    """A training of ``data`` in a workspace, whose adapter lies elsewhere."""
    spec = training_spec({"model": str(FOUR_BIT), "data": str(data), "name": "t", "validation_rows": 5})
    identity = spec.identity() | {"data digest": json.loads((adapter / "training.json").read_text())["data digest"]}
    return create_training(Workspace(workspace), "t", spec, identity, 10).path


def test_the_validation_rows_of_the_training_are_the_default(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, {"fused": 10})
    staged(home.workspace, training_set, adapter)
    assert "check on 5 held-out rows of squares" in home.run(*arguments(adapter, home.home / "fused")).stdout
    rows = validation_rows(Workspace(home.workspace), read_adapter(adapter), 3)
    assert len(rows.requests) == 3
    assert all(request.instance_id.startswith("validation.jsonl") for request in rows.requests)


@pytest.mark.parametrize("case", ["no training", "gone", "changed"])
def test_rows_that_are_not_at_hand_are_a_warning(case: str, home: Rashomon, adapter: Path) -> None:
    data = write_training_set(home.home / "squares", rows=4, validation=ROWS)
    if case != "no training":
        staged(home.workspace, data, adapter)
    if case == "gone":
        data.rename(home.home / "elsewhere")
    if case == "changed":
        (data / "train.jsonl").write_text((data / "validation.jsonl").read_text())
    done = home.run(*arguments(adapter, home.home / "fused"))
    reasons = {"no training": "not in this workspace", "gone": "is gone", "changed": "was changed since the training"}
    assert reasons[case] in done.stderr
    assert "--check" in done.stderr
    assert "check" not in record(home.home / "fused")


def test_the_rows_of_a_check_are_of_every_kind(training_set: Path) -> None:
    rows = rows_of(TrainingSet.open(training_set), ("image",), 4)
    numbers = [int(request.instance_id.rpartition(":")[2].partition("#")[0]) for request in rows.requests]
    assert len({number % 2 for number in numbers}) == 2
    assert sorted(number % 2 for number in numbers) == [0, 0, 1, 1]
    assert rows_of(TrainingSet.open(training_set), ("image",), 4).digest == rows.digest


def test_what_is_refused(home: Rashomon, adapter: Path, training_set: Path, tmp_path: Path) -> None:
    target = home.home / "fused"
    for options in (("--check", tmp_path / "none"), ("--no-check", "--check", training_set), ("--check-rows", "0")):
        home.run(*arguments(adapter, target, *options), code=2)
        assert not target.exists()
    home.run(*arguments(adapter, target, "--no-check"))
    other = home.run(*arguments(adapter, target, "--no-check", "--bits", "8"), code=2)
    assert "is not this fused model" in other.stderr
    same = home.run(*arguments(adapter, target, "--no-check"))
    assert same.stdout.startswith("fused t into model-4bit")
    (target / "fused.json").write_text("[")
    assert "is not this fused model" in home.run(*arguments(adapter, target, "--no-check"), code=2).stderr


def test_the_device_is_waited_for_aloud(home: Rashomon, adapter: Path) -> None:
    lock = FileLock(home.home / "cache" / "rashomon" / "device.lock")
    lock.path.parent.mkdir(parents=True)
    assert lock.acquire("run elsewhere (process 7)")
    try:
        busy = home.process(*arguments(adapter, home.home / "fused", "--no-check", "--wait", "no"), code=4)
        assert "run elsewhere (process 7) has the device" in busy.stderr
        with home.start(*arguments(adapter, home.home / "fused", "--no-check")) as waiting:
            assert waiting.stderr is not None
            line = next(line for line in waiting.stderr if "waiting" in line)
            assert line == "waiting for run elsewhere (process 7)\n"
            lock.release()
            while not (holder := lock.holder()):
                time.sleep(0.01)
            assert holder == f"fuse fused (process {waiting.pid})"
            assert waiting.wait() == 0
    finally:
        lock.release()
    assert (home.home / "fused" / "config.json").is_file()


def test_a_disk_that_fills_at_the_check_leaves_a_model(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, {"fused": 10})

    def full(*_: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(command, "replace_file", full)
        stopped = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=3)
    assert "the fused model is complete; free some space and run the same command again" in stopped.stderr
    assert "check" not in record(home.home / "fused")
    home.run(*arguments(adapter, home.home / "fused", "--check", training_set))
    assert record(home.home / "fused")["check"]["kept"] == 10


def test_an_option_that_does_not_fit_on_the_disk_is_not_measured(
    home: Rashomon, adapter: Path, training_set: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    scripted(monkeypatch, {"fused": 1, "--bits 8": 10})

    def full(info: Any, adapter: Any, folder: Path, options: Any) -> Any:
        if options.dequantise:
            raise OSError(errno.ENOSPC, "No space left on device")
        return write_fused(info, adapter, folder, options)

    with monkeypatch.context() as patch:
        patch.setattr(command, "fuse", full)
        lost = home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=5)
    assert "not measured: cannot write" in lost.stdout
    assert "fuse with --bits 8, which keeps it" in lost.stderr
    assert "--dequantise keeps 0" in " ".join(
        home.run(*arguments(adapter, home.home / "fused", "--check", training_set), code=5).stdout.split()
    ), "it is measured when there is space"


def test_an_adapter_of_other_weights_is_pointed_out(home: Rashomon, tmp_path: Path) -> None:
    base = {"base model": "model-bf16", "base weights": weights_digest(BF16)}
    adapter = make_adapter(BF16, tmp_path / "sibling", base=base)
    done = home.run(*arguments(adapter, home.home / "fused", "--no-check"))
    assert "sibling was trained on model-bf16, whose weights are not those of model-4bit" in done.stderr
    assert "if you have model-bf16, fuse into it" in done.stderr


@pytest.mark.parametrize(
    ("options", "advice", "quantisation"),
    [((), "add --dequantise", "4-bit g64"), (("--dequantise",), "stores the sum unquantised", "bf16")],
)
def test_a_base_that_the_adapter_quantises_is_pointed_out(
    options: tuple[str, ...], advice: str, quantisation: str, home: Rashomon, tmp_path: Path
) -> None:
    base = {"base model": "model-4bit", "base weights": weights_digest(FOUR_BIT)}
    adapter = make_adapter(FOUR_BIT, tmp_path / "t", base=base)
    config = json.loads((adapter / "adapter_config.json").read_text())
    quantisation_of_base = json.loads((FOUR_BIT / "config.json").read_text())["quantization"]
    layers = {name.rpartition(".")[0] for name in read_adapter(adapter).shapes}
    settings = {
        "group_size": quantisation_of_base["group_size"],
        "bits": quantisation_of_base["bits"],
        "mode": "affine",
    }
    config["base_quantization"] = dict.fromkeys(sorted(layers), settings)
    (adapter / "adapter_config.json").write_text(json.dumps(config))
    done = home.run("models", "fuse", BF16, "--adapter", adapter, "--to", home.home / "fused", "--no-check", *options)
    assert "those of model-bf16 are rounded to 4-bit g64" in done.stderr
    assert advice in done.stderr
    assert f": {quantisation}, " in done.stdout
    assert "warning" not in home.run(*arguments(adapter, home.home / "same", "--no-check")).stderr


def test_what_the_files_show_is_refused_before_the_device_is_free(
    home: Rashomon, adapter: Path, tmp_path: Path
) -> None:
    fused = home.home / "fused"
    home.run(*arguments(adapter, fused, "--no-check"))
    other = make_adapter(FOUR_BIT, tmp_path / "other", base={"base model": "llava", "base weights": "a" * 64})
    bits = make_adapter(FOUR_BIT, tmp_path / "bits")
    config = json.loads((bits / "adapter_config.json").read_text())
    layers = {"a": {"bits": 8, "group_size": 64, "mode": "affine"}}
    (bits / "adapter_config.json").write_text(json.dumps(config | {"base_quantization": layers}))
    lock = FileLock(home.home / "cache" / "rashomon" / "device.lock")
    assert lock.acquire("run elsewhere (process 7)")
    try:
        for model, given, reason in (
            (fused, adapter, "has the adapter t in its weights already"),
            (FOUR_BIT, other, "it was trained on llava"),
            (FOUR_BIT, bits, "was trained on 8-bit g64 weights, and model-4bit has 4-bit g64"),
        ):
            words = (
                "models",
                "fuse",
                model,
                "--adapter",
                given,
                "--to",
                home.home / "new",
                "--no-check",
                "--wait",
                "no",
            )
            refused = home.run(*words, code=2)
            assert reason in refused.stderr
            assert "warning" not in refused.stderr
    finally:
        lock.release()


def test_an_adapter_that_changes_nothing_is_pointed_out(home: Rashomon, adapter: Path, tmp_path: Path) -> None:
    import mlx.core as mx

    zero = tmp_path / "zero"
    shutil.copytree(adapter, zero)
    weights: Any = mx.load(str(zero / "adapters.safetensors"))
    cleared = {name: mx.zeros_like(value) if name.endswith("lora_b") else value for name, value in weights.items()}
    mx.save_safetensors(str(zero / "adapters.safetensors"), cleared)
    assert "zero changes nothing" in home.run(*arguments(zero, home.home / "fused", "--no-check")).stderr
    first = next(name for name in cleared if name.endswith("lora_b"))
    mx.save_safetensors(str(zero / "adapters.safetensors"), cleared | {first: weights[first]})
    assert "changes nothing" not in home.run(*arguments(zero, home.home / "other", "--no-check")).stderr


def test_libraries_print_nothing(home: Rashomon, adapter: Path) -> None:
    assert home.process(*arguments(adapter, home.home / "fused", "--no-check")).stderr == ""


@pytest.fixture(scope="module")
def undisturbed(
    tmp_path_factory: pytest.TempPathFactory, adapter: Path, training_set: Path
) -> tuple[str, dict[str, Any]]:
    """The output, without the folder's name, and the record of a command that nothing disturbs."""
    home = Rashomon(tmp_path_factory.mktemp("undisturbed"))
    done = home.process(*arguments(adapter, home.home / "fused", "--check", training_set), code=5)
    return done.stdout.replace(str(home.home), ""), record(home.home / "fused")


def phase_of(target: Path) -> str:
    """The phase that a command is in, by what it has written so far."""
    if not target.exists():
        return "writing" if any(target.parent.glob(".rashomon-*")) else "start"
    check = record(target).get("check")
    return "check" if check is None else "end" if "options" in check else "options"


def kill(process: subprocess.Popen[str]) -> int:
    kill_all(process)
    return -signal.SIGKILL


def interrupt(process: subprocess.Popen[str]) -> int:
    """Press Ctrl-C, which every process on a terminal gets."""
    os.killpg(process.pid, signal.SIGINT)
    process.communicate()
    return 130


@pytest.mark.slow
@pytest.mark.parametrize("end", [kill, interrupt])
@pytest.mark.parametrize("phase", ["writing", "check", "options"])
def test_a_command_that_was_ended_continues(
    phase: str,
    end: Callable[[subprocess.Popen[str]], int],
    home: Rashomon,
    adapter: Path,
    training_set: Path,
    undisturbed: tuple[str, dict[str, Any]],
) -> None:
    """Each phase takes seconds, as models are loaded in it, and is seen within milliseconds of its beginning."""
    target = home.home / "fused"
    words = arguments(adapter, target, "--check", training_set)
    process = home.start(*words)
    while phase_of(target) != phase:
        assert process.poll() is None, f"it ended before {phase}"
        time.sleep(0.002)
    code = end(process)
    assert (process.returncode, phase_of(target)) == (
        code,
        "start" if (phase, end) == ("writing", interrupt) else phase,
    )
    if end is interrupt:
        assert not list(home.home.glob(".rashomon-*")), "an interrupted command tidies up"
    done = home.process(*words, code=5)
    assert (done.stdout.replace(str(home.home), ""), record(target)) == undisturbed
    assert not list(home.home.glob(".rashomon-*")), "nothing unfinished is left"
