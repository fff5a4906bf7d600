"""CMC-Bench's sources on the Hub: the requests that are sent, and the messages without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.cmc_bench.cmc_released import read_released
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.cmc_source_row import SourceRow, requested_hub_id
from benchmarks.errors import SourceError
from benchmarks.fetch.remote_file import FetchError
from tests.support.data.small import original_chartqa, picture
from tests.support.fake_hub import FakeHub, Repo
from tests.support.recording_proxy import RecordingProxy

SUBJECTS = ("Physics", "History", "Psychology", "Computer_Science", "Art", "Economics")


def chartqa_parquet(folder: Path, prefix: str = "") -> None:
    """ChartQA as the Hub has it: training data, two rows of validation, one of test."""
    for split, numbers in (("train", (1,)), ("val", (2, 3)), ("test", (4,))):
        rows = [
            {
                "image": {"bytes": picture(n), "path": None},
                "query": f"{split} {n}?",
                "label": [str(n)],
                "human_or_machine": 0,
            }
            for n in numbers
        ]
        (folder / prefix).mkdir(parents=True, exist_ok=True)
        pq.write_table(pa.Table.from_pylist(rows), folder / prefix / f"{split}-00000-of-00001.parquet")


def mmmu_parquet(folder: Path, split: str, number: int, answer: str = "B") -> None:
    """One row of MMMU as the Hub has it, in the folder of its subject."""
    folder.mkdir(parents=True, exist_ok=True)
    row = {
        "id": f"{split}_{folder.name}_{number}",
        "question": f"What is <image 1>, {number}?",
        "options": f"['first {number}', 'second {number}']",
        "answer": answer,
        "image_1": {"bytes": picture(number), "path": "x.png"},
        "subfield": "Optics",
    }
    pq.write_table(pa.Table.from_pylist([row]), folder / f"{split}-00000-of-00001.parquet")


@pytest.fixture
def hub(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[FakeHub]:
    """A Hub with ChartQA and MMMU, whose other files are not read, and an empty cache."""
    with FakeHub().running() as running:
        for name, value in running.constants.items():
            monkeypatch.setattr(f"huggingface_hub.constants.{name}", value)
        for variable in ("HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE", "HF_HUB_CACHE"):
            monkeypatch.delenv(variable, raising=False)
        monkeypatch.setenv("HF_HOME", str(tmp_path / "home"))
        chartqa_parquet(tmp_path / "chartqa", "data")
        (tmp_path / "chartqa" / "data" / "train-00000-of-00001.parquet").write_bytes(b"not read at all")
        for number, subject in enumerate(SUBJECTS):
            mmmu_parquet(tmp_path / "mmmu" / subject, "validation", number)
            (tmp_path / "mmmu" / subject / "test-00000-of-00001.parquet").write_bytes(b"not read at all")
        for name, folder in (
            ("HuggingFaceM4/ChartQA", "chartqa"),
            ("MMMU/MMMU", "mmmu"),
            ("someone/MMMU-copy", "mmmu"),
        ):
            running.repos[name] = Repo("dataset", contents(tmp_path / folder))
        yield running


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def fetched(hub: FakeHub) -> set[str]:
    """The files that were requested, without their repository."""
    return {request.path.partition("/resolve/")[2].partition("/")[2] for request in hub.asked} - {""}


def test_chartqa_requests_validation_and_test_from_the_hub(hub: FakeHub) -> None:
    rows = [row for row in read_source("chartqa", "HuggingFaceM4/ChartQA") if isinstance(row, SourceRow)]
    assert fetched(hub) == {f"data/{split}-00000-of-00001.parquet" for split in ("val", "test")}
    assert [(row.row, row.question, row.answer, row.family) for row in rows] == [
        ("val:0", "val 2?", "2", "chartqa"),
        ("val:1", "val 3?", "3", "chartqa"),
        ("test:0", "test 4?", "4", "chartqa"),
    ]
    assert [row.image() for row in rows] == [picture(2), picture(3), picture(4)]


@pytest.mark.parametrize("place", ["MMMU/MMMU", "hub:MMMU/MMMU", "hub:someone/MMMU-copy"])
def test_mmmu_requests_six_validation_subjects_from_the_hub(place: str, hub: FakeHub) -> None:
    rows = [row for row in read_source("mmmu", place) if isinstance(row, SourceRow)]
    assert fetched(hub) == {f"{subject}/validation-00000-of-00001.parquet" for subject in SUBJECTS}
    assert [(row.row, row.subject, row.answer) for row in rows] == [
        (f"{subject}/validation:0", subject, f"second {number}") for number, subject in enumerate(SUBJECTS)
    ]
    assert rows[1].image() == picture(1)


def test_rows_are_fetched_once_and_read_offline(hub: FakeHub, monkeypatch: pytest.MonkeyPatch) -> None:
    first = list(read_source("chartqa", "HuggingFaceM4/ChartQA"))
    downloads = len(hub.gets(".parquet"))
    list(read_source("chartqa", "HuggingFaceM4/ChartQA"))
    assert len(hub.gets(".parquet")) == downloads
    asked = len(hub.asked)
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    again = list(read_source("chartqa", "HuggingFaceM4/ChartQA"))
    assert [row.row for row in again] == [row.row for row in first]
    assert len(hub.asked) == asked
    with pytest.raises(FetchError, match="MMMU/MMMU is not in the cache"):
        list(read_source("mmmu", "MMMU/MMMU"))


def test_a_data_set_without_the_needed_files_is_no_source(hub: FakeHub) -> None:
    with pytest.raises(SourceError, match=r"MMMU/MMMU on the Hub has no file data/val-\*"):
        list(read_source("chartqa", "hub:MMMU/MMMU"))


@pytest.mark.parametrize("name", ["chartqa", "mmmu", "rows", "released"])
@pytest.mark.parametrize("place", ["data/chartqa", "MMMU/mmmu", "HuggingfaceM4/ChartQA", "gone"])
def test_mistyped_folder_does_not_use_the_network(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, hub: FakeHub
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    with pytest.raises(SourceError, match=f"{place}.*; {name} is read from a folder") as error:
        list(read_released(place) if name == "released" else read_source(name, place))
    assert hub.asked == []
    assert ("hub:org/name" in str(error.value)) == (name in ("chartqa", "mmmu"))


def test_hub_name_must_be_valid(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for place in ("hub:", "hub:MMMU", "hub:a/b/c", "hub:../MMMU", "hub:/MMMU/MMMU", "hub:a b/c", "hub:a/b\n"):
        with pytest.raises(SourceError, match="write hub:org/name"):
            list(read_source("mmmu", place))
    (tmp_path / "org" / "name").mkdir(parents=True)
    with pytest.raises(SourceError, match="org/name is also a folder here"):
        list(read_source("chartqa", "hub:org/name"))


@pytest.mark.slow
def test_missing_network_is_one_sentence(tmp_path: Path) -> None:
    code = (
        "from benchmarks.cmc_bench.sources import read_source\n"
        "from benchmarks.fetch.remote_file import FetchError\n"
        "try: list(read_source('mmmu', 'MMMU/MMMU'))\n"
        "except FetchError as error: print(error)\n"
    )
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    with RecordingProxy() as proxy:
        environment = {**os.environ, **closed, "http_proxy": proxy.url, "no_proxy": "elsewhere.invalid"}
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
        )
    assert proxy.carried == []
    assert process.stderr == ""
    (sentence,) = process.stdout.splitlines()
    assert sentence.startswith("the Hub cannot be reached (about MMMU/MMMU); ")


@pytest.mark.slow
def test_offline_error_names_a_usable_layout(tmp_path: Path) -> None:
    code = (
        "from benchmarks.cmc_bench.sources import read_source\n"
        "from benchmarks.fetch.remote_file import FetchError\n"
        "try: list(read_source('chartqa', 'HuggingFaceM4/ChartQA'))\n"
        "except FetchError as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path)}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "HF_HUB_OFFLINE is set, and HuggingFaceM4/ChartQA is not in the cache" in process.stdout
    assert "png/ and *_human.json" in process.stdout


def test_existing_path_is_never_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert requested_hub_id("chartqa", "HuggingFaceM4/ChartQA") == "HuggingFaceM4/ChartQA"
    assert requested_hub_id("mmmu", "HuggingFaceM4/ChartQA") is None
    original_chartqa(tmp_path / "HuggingFaceM4" / "ChartQA")
    assert requested_hub_id("chartqa", "HuggingFaceM4/ChartQA") is None
    assert len(list(read_source("chartqa", "HuggingFaceM4/ChartQA"))) == 24
