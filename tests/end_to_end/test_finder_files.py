"""Folders that a Mac's Finder looked at, or that lay on a disk without extended attributes: nothing changes."""

from __future__ import annotations

import json
import os
import shutil
import sys
from pathlib import Path

import pytest

from app.fetch.fetched_files_record import fetch_state
from app.system.project_paths import ASSETS
from benchmarks.rows.files import list_files, list_folders
from mlx_backends.models.model_discovery import inspect
from mlx_backends.models.weight_files import weight_files, weights_digest
from tests.support.charts import draw_sources
from tests.support.command import Rashomon

MODEL = ASSETS / "demo" / "model-4bit"
APPLE_DOUBLE = b"\0\x05\x16\x07\0\x02\0\0Mac OS X        "


def scatter(folder: Path) -> None:
    """Add what macOS adds to this folder and all below it."""
    for place in (folder, *(p for p in folder.rglob("*") if p.is_dir())):
        for file in [p for p in place.iterdir() if not p.name.startswith("._")]:
            (place / f"._{file.name}").write_bytes(APPLE_DOUBLE)
        (place / ".DS_Store").write_bytes(b"\0\0\0\1Bud1")
        (place / ".localized").touch()
    (folder / "__MACOSX").mkdir()
    (folder / "__MACOSX" / "._rows.jsonl").write_bytes(APPLE_DOUBLE)


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return Path(shutil.copytree(MODEL, tmp_path / "model"))


def test_a_model_is_whole_and_has_its_old_digest(model: Path) -> None:
    info, files = inspect(model), [file.name for file in weight_files(model)]
    digest = weights_digest(model)
    scatter(model)
    assert inspect(model) == info
    assert [file.name for file in weight_files(model)] == files
    assert weights_digest(model) == digest == weights_digest(MODEL)


def test_the_files_of_macos_alone_are_no_model(model: Path) -> None:
    for file in model.glob("*.safetensors"):
        file.rename(model / f"._{file.name}")
    with pytest.raises(Exception, match="holds no weights"):
        inspect(model)


@pytest.mark.skipif(sys.platform != "linux", reason="Python sets extended attributes on Linux only")
def test_quarantine_does_no_harm(model: Path) -> None:
    for file in model.iterdir():
        try:
            os.setxattr(file, "user.com.apple.quarantine", b"0083;65a1b2c3;Safari;")
        except OSError:
            pytest.skip("this disk has no extended attributes")
    assert inspect(model).weights_bytes == inspect(MODEL).weights_bytes
    assert weights_digest(model) == weights_digest(MODEL)


def test_a_folder_that_was_only_looked_at_is_not_begun(tmp_path: Path) -> None:
    scatter(tmp_path)
    assert fetch_state(tmp_path) == "none"
    (tmp_path / "data.partial").touch()
    assert fetch_state(tmp_path) == "begun"


def test_rows_and_result_files_are_the_users_own(tmp_path: Path) -> None:
    rows = tmp_path / "rows"
    (rows / "images").mkdir(parents=True)
    (rows / "rows.jsonl").write_text("{}\n")
    scatter(rows)
    assert [file.name for file in list_files(rows, ".jsonl")] == ["rows.jsonl"]
    assert [folder.name for folder in list_folders(rows)] == ["images"]


@pytest.mark.slow
def test_a_source_a_build_and_a_run_are_what_they_were(tmp_path: Path) -> None:
    rashomon, source = Rashomon(tmp_path), tmp_path / "sources"
    draw_sources(source)
    build = ("build", "cmc-bench", "--source", str(source), "--json")
    clean = json.loads(rashomon.run(*build).stdout)
    rashomon.run(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--limit", "2", "--name", "one"
    )
    tables = rashomon.run("show", "one", "--json").stdout
    scatter(tmp_path)
    assert json.loads(rashomon.run(*build).stdout) == clean
    assert [run["name"] for run in rashomon.json("runs")] == ["one"]
    assert rashomon.run("show", "one", "--json").stdout == tables
    rashomon.run(
        "--batch", "--benchmark", "cmc-bench", "--model", "policy:always-image", "--limit", "2", "--name", "one"
    )
