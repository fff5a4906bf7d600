"""Stand-in for the Hub and other hosts, with small drawn data, for the commands of the documentation."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

from app.fetch import benchmark_downloads
from benchmarks.cmc_bench.cmc_constants import SUBJECTS
from benchmarks.fetch.remote_file import Digest, RemoteFile
from benchmarks.plain import DATA_SETS
from tests.benchmarks.cmc_bench.test_hub import chartqa_parquet, mmmu_parquet
from tests.benchmarks.test_vqa import gqa_copy, okvqa_copy
from tests.support.data.plain import data_set_of, hub_repo
from tests.support.data.small import picture
from tests.support.demo import FOUR_BIT
from tests.support.fake_hub import FakeHub, Repo

MODELS = (
    "mlx-community/Qwen3-VL-4B-Instruct-4bit",
    "mlx-community/Qwen3-VL-4B-Instruct-8bit",
    "mlx-community/LFM2.5-VL-1.6B-4bit",
    "mlx-community/gemma-3n-E2B-it-4bit",
    "mlx-community/deepseek-vl2-small-4bit",
)
"""The models that can be fetched; each is the demo model."""


@contextmanager
def online(data: Path, drafts: Path) -> Iterator[FakeHub]:
    """Serve the network: the Hub with data sets and models, and the files in ``data`` for other hosts.

    CLASH, POPE and Contra4 are known by the digests of their published questions; here they are those of the drawn ones.
    """
    with FakeHub().running() as hub:
        chartqa_parquet(drafts / "chartqa", "data")
        for number, subject in enumerate(SUBJECTS):
            mmmu_parquet(drafts / "mmmu" / subject, "validation", number)
        hub.repos["HuggingFaceM4/ChartQA"] = Repo("dataset", _contents(drafts / "chartqa"), "gpl-3.0")
        hub.repos["MMMU/MMMU"] = Repo("dataset", _contents(drafts / "mmmu"))
        hub.repos["starjyf/MLLMKC-datasets"] = Repo("dataset", _contents(data / "MLLMKC"), "")
        hub.repos["lmms-lab/OK-VQA"] = Repo("dataset", _contents(okvqa_copy(drafts / "okvqa")), "")
        hub.repos["lmms-lab/GQA"] = Repo("dataset", _contents(gqa_copy(drafts / "gqa")), "mit")
        hub.repos |= {data_set_of(name).hub_id: hub_repo(name) for name in DATA_SETS if data_set_of(name).hub_id}
        hub.repos |= {model: Repo("model", _contents(FOUR_BIT)) for model in MODELS}
        small = {
            file.name: file.read_bytes()
            for name in ("clash", "pope", "contra4")
            for file in (data / name).glob("*.json")
        }

        def drawn(url: str, path: Path, owner: str, *known: Any, begins: bytes = b"") -> RemoteFile:
            content = small[path.name] if known else picture(1, "JPEG")
            hub.files[url.partition("/mirror/")[2]] = content
            if not known:
                return RemoteFile(url, path, owner, begins=begins)
            return RemoteFile(url, path, owner, len(content), Digest("sha256", hashlib.sha256(content).hexdigest()))

        with patch.object(benchmark_downloads, "RemoteFile", drawn):
            yield hub


def _contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}
