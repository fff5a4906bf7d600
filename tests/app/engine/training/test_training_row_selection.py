"""Rows of a training: those that cannot be used are named before anything is learnt, and those to validate with are few."""

from __future__ import annotations

import json
import struct
import zlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.engine.training import training_plan
from app.engine.training.training_row_selection import split_rows
from app.engine.training.training_spec_and_recipes import training_spec
from app.exit_codes import VERDICTS
from benchmarks.training.training_set import TrainingSet
from mlx_backends.mlx.training.training_inputs import TrainingInputs
from mlx_backends.models.training_memory import RowTokens
from tests.support.command import Rashomon
from tests.support.trainings import trained_here, write_training_set


@pytest.fixture(autouse=True)
def _here() -> Iterator[None]:
    with trained_here():
        yield


def command(model: Path, data: Path, *more: str) -> tuple[str, ...]:
    options = ("--rank", "2", "--batch-size", "1", "--steps", "2", "--name", "t")
    return ("train", "--model", str(model), "--data", str(data), *options, *more)


def change_row(data: Path, number: int, **values: Any) -> None:
    file = data / "train.jsonl"
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    lines[number - 1] |= values
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))


def truncated(path: Path) -> None:
    Image.effect_noise((96, 96), 50).convert("RGB").save(path)
    path.write_bytes(path.read_bytes()[:-3000])


def huge_png(path: Path) -> None:
    """A header of 100,000 x 100,000 pixels."""
    header = struct.pack(">IIBBBBB", 100_000, 100_000, 8, 2, 0, 0, 0)
    chunk = struct.pack(">I", 13) + b"IHDR" + header + struct.pack(">I", zlib.crc32(b"IHDR" + header))
    path.write_bytes(b"\x89PNG\r\n\x1a\n" + chunk)


def thin(path: Path) -> None:
    """An image that Qwen's processor does not take."""
    Image.new("RGB", (4000, 4)).save(path)


@pytest.fixture
def spoilt(tmp_path: Path) -> Path:
    """Eight rows, of which the second is long and four others have images that cannot be used."""
    data = write_training_set(tmp_path / "rows", rows=8)
    question = [{"type": "image"}, {"type": "text", "text": "What is the value of kale? " * 200}]
    answer = {"role": "assistant", "content": "kale: 11"}
    change_row(data, 2, messages=[{"role": "user", "content": question}, answer])
    truncated(data / "images" / "3.png")
    (data / "images" / "4.png").write_bytes(b"no image at all")
    huge_png(data / "images" / "5.png")
    thin(data / "images" / "7.png")
    return data


def test_rows_that_cannot_be_used_are_named_before_anything_is_learnt(tiny: Path, spoilt: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    failed = rashomon.run(*command(tiny, spoilt), code=2)
    assert "5 of 9 rows" in failed.stderr
    for number in (2, 4, 5, 6, 8):
        assert f"train.jsonl:{number}: " in failed.stderr
    assert "aspect ratio" in failed.stderr
    assert failed.stderr.count("train.jsonl:4: ") == 1
    folder = rashomon.workspace / "trainings" / "t"
    assert not (folder / "log.jsonl").exists()
    log = (folder / "worker.log").read_text()
    assert all(f"train.jsonl:{number} " in log for number in (2, 4, 5, 6, 8))


def test_rows_can_be_left_out(tiny: Path, spoilt: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run(*command(tiny, spoilt, "--skip-unusable"), code=VERDICTS)
    (row,) = rashomon.json("trainings")
    assert row["state"] == "done"
    assert "5 of 9" in row["note"]


@pytest.mark.slow
def test_a_length_that_was_too_small_can_be_raised(tiny: Path, tmp_path: Path) -> None:
    data, rashomon = write_training_set(tmp_path / "rows"), Rashomon(tmp_path)
    rashomon.run(*command(tiny, data, "--max-length", "20"), code=2)
    rashomon.run("train", "--resume", "t", "--max-length", "512", code=VERDICTS)


def test_rows_can_be_corrected_under_the_same_name(tiny: Path, spoilt: Path, tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    rashomon.run(*command(tiny, spoilt), code=2)
    lines = (spoilt / "train.jsonl").read_text().splitlines(keepends=True)
    (spoilt / "train.jsonl").write_text("".join(lines[number] for number in (0, 2, 6)))
    rashomon.run(*command(tiny, spoilt), code=VERDICTS)
    rashomon.run(*command(tiny, spoilt, "--rank", "3"), code=2)  # once something was learnt


@pytest.mark.slow
def test_rows_are_read_once(tiny: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data, rashomon = write_training_set(tmp_path / "rows"), Rashomon(tmp_path)
    count, counted = TrainingInputs.count_tokens, 0

    def counting(*arguments: Any, **options: Any) -> int:
        nonlocal counted
        counted += 1
        return count(*arguments, **options)

    monkeypatch.setattr(TrainingInputs, "count_tokens", counting)
    monkeypatch.setattr(
        training_plan, "longest_row", lambda *_, **__: RowTokens(100, 50, 10)
    )  # measures some rows itself
    rashomon.run(*command(tiny, data), code=VERDICTS)
    assert counted == 5
    folder = rashomon.workspace / "trainings" / "t"
    (folder / "state.json").unlink()
    rashomon.run("train", "--resume", "t", code=VERDICTS)
    assert counted == 5
    for damage in ("{", '{"key": 1}', (folder / "rows.json").read_text().replace('"train.jsonl:1"', '"train.jsonl:9"')):
        (folder / "rows.json").write_text(damage)
        (folder / "state.json").unlink()
        before = counted
        rashomon.run("train", "--resume", "t", code=VERDICTS)
        assert counted == before + 5


def test_a_validation_has_few_rows_and_the_rest_is_learnt(tmp_path: Path) -> None:
    data = TrainingSet.open(write_training_set(tmp_path / "rows", rows=60, validation=0))

    def parts(**options: Any) -> dict[str, list[str]]:
        spec = training_spec({"model": "m", "data": ".", "validation_share": 0.5, **options})
        return {part: [row.where for row in rows] for part, rows in split_rows(data, spec).items()}

    assert {part: len(rows) for part, rows in parts().items()} == {"train": 30, "validation": 30}
    few = parts(validation_rows=7)
    assert {part: len(rows) for part, rows in few.items()} == {"train": 53, "validation": 7}
    assert set(few["validation"]) < set(parts()["validation"])
    assert not set(few["validation"]) & set(few["train"])
    assert few == parts(validation_rows=7) != parts(validation_rows=7, seed=1)


def test_the_set_s_own_validation_is_drawn_from(tmp_path: Path) -> None:
    data = TrainingSet.open(write_training_set(tmp_path / "rows", rows=2, validation=9))
    spec = training_spec({"model": "m", "data": "."})
    assert len(split_rows(data, spec)["validation"]) == 9
    drawn = split_rows(data, spec.model_copy(update={"validation_rows": 4}))
    assert len(drawn["train"]) == 2
    wheres = [row.where for row in drawn["validation"]]
    assert len(wheres) == 4
    assert wheres == sorted(wheres)
