"""Folders of this machine: none of their paths is in anything that is passed on."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyarrow import parquet

from app.exports.export_formats import FORMATS
from app.store.workspace import Workspace
from mlx_backends.portable_model_names import without_folders
from tests.support.blank_figures import blank_figures
from tests.support.bundles import read_members
from tests.support.command import Rashomon
from tests.support.runs import instances, make_run, says

USER = "anna-home"
MODEL = f"/{USER}/models/shop-4bit"


@pytest.mark.parametrize(("name", "shared"), [
    (MODEL, "shop-4bit"),
    (f"{MODEL}/", "shop-4bit"),
    ("~/models/shop-4bit", "shop-4bit"),
    ("../shop-4bit", "shop-4bit"),
    (f"cuda:{MODEL}@fp32@cpu", "cuda:shop-4bit@fp32@cpu"),
    (f"{MODEL}+/{USER}/clash/best", "shop-4bit+clash.best"),
    (f"org/shop-4bit+/{USER}/clash/adapter", "org/shop-4bit+clash"),
    (f"/{USER}/.cache/huggingface/hub/models--org--shop-4bit/snapshots/0123abc", "org/shop-4bit"),
    (f"baseline:oracle:{MODEL}", "baseline:oracle:shop-4bit"),
    (f"my-engine:{MODEL}", "my-engine:shop-4bit"),
    *((name, name) for name in ("org/shop-4bit", "policy:always-text", "openai:gpt-5", "cuda:org/shop", "match", "person:anna",
                                "endpoint:org/shop@http://127.0.0.1:9/v1", "imported:gpt-4o", "majority(a, b)")),
])  # fmt: skip
def test_folders_become_their_names(name: str, shared: str) -> None:
    assert without_folders(name) == shared


@pytest.fixture(scope="module")
def home(tmp_path_factory: pytest.TempPathFactory) -> Rashomon:
    """A workspace below the user's folder, with two runs of models in folders there."""
    rashomon = Rashomon(tmp_path_factory.mktemp(USER))
    for name in ("shop-4bit", "shop-8bit"):
        model = f"/{USER}/models/{name}"
        make_run(
            Workspace(rashomon.workspace), name, instances(8), says("12"), model=model, data=rashomon.home / "build"
        )
    return rashomon


def bundle(home: Rashomon, out: Path) -> Iterator[tuple[str, bytes]]:
    home.run("bundle", "shop-4bit", "shop-8bit", "--out", out / "b.zip")
    yield from read_members(out / "b.zip").items()
    yield "listed", home.run("open", out / "b.zip", "--json").stdout.encode()


def pushed(home: Rashomon, out: Path) -> Iterator[tuple[str, bytes]]:
    home.run("push", "shop-4bit", "shop-8bit", "hub:me/results", "--out", out / "pushed")
    yield from read_files(out / "pushed")


def exported(home: Rashomon, out: Path) -> Iterator[tuple[str, bytes]]:
    home.run("export", "shop-4bit", "shop-8bit", "--format", ",".join(FORMATS), "--out", out / "exported")
    yield from read_files(out / "exported")


def compared(home: Rashomon, out: Path) -> Iterator[tuple[str, bytes]]:
    home.run("compare", "shop-4bit", "shop-8bit", "--format", "csv,md,html,latex", "--out", out / "compared")
    yield from read_files(out / "compared")
    yield "json", home.run("compare", "shop-4bit", "shop-8bit", "--json").stdout.encode()


def cited(home: Rashomon, out: Path) -> Iterator[tuple[str, bytes]]:
    yield "text", home.run("cite", "shop-4bit").stdout.encode()
    yield "json", home.run("cite", "shop-4bit", "--json").stdout.encode()


def read_files(folder: Path) -> Iterator[tuple[str, bytes]]:
    """Yield the files below a folder by path; of compressed tables, their text."""
    for path in folder.rglob("*"):
        if path.is_file():
            data = path.read_bytes()
            if path.suffix == ".parquet":
                table = parquet.read_table(io.BytesIO(data))
                data = repr((table.schema.metadata, table.to_pylist())).encode()
            yield str(path.relative_to(folder)), data


@pytest.mark.parametrize("share", [bundle, pushed, exported, compared, cited])
def test_nothing_that_is_shared_names_a_folder_of_this_machine(
    home: Rashomon, tmp_path: Path, share: Callable[[Rashomon, Path], Iterator[tuple[str, bytes]]]
) -> None:
    with blank_figures(("png", "pdf")):  # whose text cannot be searched
        contents = dict(share(home, tmp_path))
    assert any(b"shop-4bit" in data for data in contents.values())
    assert [name for name, data in contents.items() if USER.encode() in data or USER in name] == []
