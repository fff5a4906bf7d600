"""CMC-Bench's sources on the Hub: the requests that are sent, and the messages without a network."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from benchmarks.cmc_bench.released import read_released
from benchmarks.cmc_bench.sources import read_source
from benchmarks.cmc_bench.sources.base import SourceRow, requested_hub_id
from benchmarks.cmc_bench.sources.hub import read_hub_rows
from benchmarks.errors import SourceError
from tests.support.data.small import original_chartqa, picture
from tests.support.recording_proxy import RecordingProxy

if TYPE_CHECKING:
    import datasets


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


def test_hub_is_read_through_datasets_with_original_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    chartqa_parquet(tmp_path / "hub", "data")
    (tmp_path / "hub" / "data" / "train-00000-of-00001.parquet").write_bytes(b"not read at all")
    _card(tmp_path / "hub", {"default": "data/"}, ("train", "val", "test"))
    rows = list(read_hub_rows(str(tmp_path / "hub"), None, "val", "data/val-*", "another layout"))
    assert [raw.fields["query"] for raw in rows] == ["val 2?", "val 3?"]
    assert rows[0].fields["image"]["bytes"] == picture(2)
    assert rows[1].where == "val:1"
    with pytest.raises(SourceError, match="another layout"):
        list(read_hub_rows(str(tmp_path / "hub"), None, "no-such-split", "data/no-such-split-*", "another layout"))


def _card(folder: Path, configs: dict[str, str], splits: tuple[str, ...]) -> None:
    """The data set's card as the Hub has it: where each configuration's splits lie, and how many rows they have."""
    counts = "".join(f"  - name: {split}\n    num_bytes: 1\n    num_examples: 900\n" for split in splits)
    files = {
        config: "".join(f"  - split: {split}\n    path: {place}{split}-*\n" for split in splits)
        for config, place in configs.items()
    }
    (folder / "README.md").write_text(
        "---\ndataset_info:\n"
        + "".join(f"- config_name: {config}\n  splits:\n{counts}" for config in configs)
        + "configs:\n"
        + "".join(f"- config_name: {config}\n  data_files:\n{listed}" for config, listed in files.items())
        + "---\n",
        "utf-8",
    )


def test_mmmu_is_read_through_datasets_by_subject(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import datasets

    monkeypatch.setattr(datasets.config, "HF_DATASETS_CACHE", str(tmp_path / "cache"))
    for subject, number in (("Physics", 1), ("Art", 2)):
        mmmu_parquet(tmp_path / "hub" / subject, "validation", number)
        (tmp_path / "hub" / subject / "test-00000-of-00001.parquet").write_bytes(b"not read at all")
    _card(tmp_path / "hub", {"Physics": "Physics/", "Art": "Art/"}, ("validation", "test"))
    (row,) = read_hub_rows(str(tmp_path / "hub"), "Art", "validation", "Art/validation-*", "")
    assert (row.where, row.fields["answer"], row.fields["image_1"]["bytes"]) == (
        "Art/validation:0",
        "B",
        picture(2),
    )


class _Hub:
    """Stand-in for ``datasets.load_dataset`` that records its arguments and returns one row of ``fields``."""

    def __init__(self, fields: Callable[[str | None, str], dict[str, Any]]) -> None:
        self.asked: list[tuple[str, str | None, dict[str, str], str]] = []
        self._fields = fields

    def __call__(
        self, data_set: str, config: str | None, *, data_files: dict[str, str], split: str
    ) -> datasets.Dataset:
        import datasets

        self.asked.append((data_set, config, data_files, split))
        dataset = datasets.Dataset.from_list([self._fields(config, split)])
        column = "image" if config is None else "image_1"
        return dataset.cast_column(column, datasets.Image())


def test_chartqa_requests_validation_and_test_from_the_hub(monkeypatch: pytest.MonkeyPatch) -> None:
    hub = _Hub(
        lambda _, split: {"image": {"bytes": picture(len(split)), "path": None}, "query": f"{split}?", "label": ["7"]}
    )
    monkeypatch.setattr("datasets.load_dataset", hub)
    rows = [row for row in read_source("chartqa", "HuggingFaceM4/ChartQA") if isinstance(row, SourceRow)]
    assert hub.asked == [
        ("HuggingFaceM4/ChartQA", None, {"val": "data/val-*"}, "val"),
        ("HuggingFaceM4/ChartQA", None, {"test": "data/test-*"}, "test"),
    ]
    assert [(row.row, row.question, row.answer, row.family) for row in rows] == [
        ("val:0", "val?", "7", "chartqa"),
        ("test:0", "test?", "7", "chartqa"),
    ]
    assert [row.image() for row in rows] == [picture(3), picture(4)]


@pytest.mark.parametrize("place", ["MMMU/MMMU", "hub:MMMU/MMMU", "hub:someone/MMMU-copy"])
def test_mmmu_requests_six_validation_subjects_from_the_hub(place: str, monkeypatch: pytest.MonkeyPatch) -> None:
    image = {"bytes": picture(1), "path": "1.png"}
    hub = _Hub(
        lambda config, split: {"question": f"{config}?", "options": "['x', 'y']", "answer": "B", "image_1": image}
    )
    monkeypatch.setattr("datasets.load_dataset", hub)
    rows = [row for row in read_source("mmmu", place) if isinstance(row, SourceRow)]
    subjects = ["Physics", "History", "Psychology", "Computer_Science", "Art", "Economics"]
    assert hub.asked == [
        (place.removeprefix("hub:"), s, {"validation": f"{s}/validation-*"}, "validation") for s in subjects
    ]
    assert [(row.row, row.subject, row.question, row.answer) for row in rows] == [
        (f"{s}/validation:0", s, f"{s}?", "y") for s in subjects
    ]
    assert rows[0].image() == picture(1)


@pytest.mark.parametrize("name", ["chartqa", "mmmu", "rows", "released"])
@pytest.mark.parametrize("place", ["data/chartqa", "MMMU/mmmu", "HuggingfaceM4/ChartQA", "gone"])
def test_mistyped_folder_does_not_use_the_network(
    name: str, place: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    hub = _Hub(lambda config, split: {})
    monkeypatch.setattr("datasets.load_dataset", hub)
    monkeypatch.chdir(tmp_path)
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
        "import time\n"
        "time.sleep = lambda seconds: None\n"
        "from benchmarks.cmc_bench.sources import read_source\n"
        "from benchmarks.errors import SourceError\n"
        "try: list(read_source('mmmu', 'MMMU/MMMU'))\n"
        "except SourceError as error: print(error)\n"
        "import logging\n"
        "logging.getLogger('huggingface_hub').warning('heard again')\n"
    )
    closed = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HOME": str(tmp_path), "HF_HUB_OFFLINE": "0"}
    with RecordingProxy() as proxy:
        environment = {**os.environ, **closed, "http_proxy": proxy.url, "no_proxy": "elsewhere.invalid"}
        process = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True
        )
    assert proxy.carried == []
    assert process.stderr == "heard again\n"
    (sentence,) = process.stdout.splitlines()
    assert sentence.startswith("MMMU/MMMU (Physics, validation) cannot be loaded from the Hub")


@pytest.mark.slow
def test_offline_error_names_a_usable_layout(tmp_path: Path) -> None:
    code = (
        "from benchmarks.cmc_bench.sources import read_source\n"
        "from benchmarks.errors import SourceError\n"
        "try: list(read_source('chartqa', 'HuggingFaceM4/ChartQA'))\n"
        "except SourceError as error: print(error)\n"
    )
    environment = {**os.environ, "HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path), "HF_DATASETS_OFFLINE": "1"}
    process = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment, check=True)
    assert "HuggingFaceM4/ChartQA (val) cannot be loaded from the Hub" in process.stdout
    assert "png/ and *_human.json" in process.stdout


def test_existing_path_is_never_a_hub_id(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert requested_hub_id("chartqa", "HuggingFaceM4/ChartQA") == "HuggingFaceM4/ChartQA"
    assert requested_hub_id("mmmu", "HuggingFaceM4/ChartQA") is None
    original_chartqa(tmp_path / "HuggingFaceM4" / "ChartQA")
    assert requested_hub_id("chartqa", "HuggingFaceM4/ChartQA") is None
    assert len(list(read_source("chartqa", "HuggingFaceM4/ChartQA"))) == 24
