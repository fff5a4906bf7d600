"""`rashomon models --for`: three models for a memory and a build's prompts."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.commands.data_and_models import models_command as module
from app.new_run.longest_prompt import longest_prompt
from app.store.workspace import Workspace
from benchmarks.build import BuildWriter
from benchmarks.errors import ModelError, SpecError
from mlx_backends.model_recommendation import TYPICAL
from mlx_backends.models import memory_and_cache_sizes
from tests.support.command import Rashomon
from tests.support.review_builds import clash_build


def recommend(rashomon: Rashomon, *arguments: str | Path) -> dict[str, Any]:
    """Return the recommendation, with each model's facts beside what it needs."""
    listing: dict[str, Any] = rashomon.json("models", *arguments)
    return listing | {"models": [item.pop("model") | item for item in listing["models"]]}


def test_a_mac_and_this_machine_get_three_models_with_their_facts(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    listing = recommend(rashomon, "--for", "16GB")
    assert listing == recommend(rashomon, "--for", " 16 gb ")
    assert len({item["base"] for item in listing["models"]}) == 3
    for item in listing["models"]:
        assert item["needs"] <= 0.9 * listing["available"]
        assert {"reason", "licence", "released", "checked", "fetched", "bytes"} <= item.keys()
    printed = rashomon.run("models", "--for", "16GB").stdout
    assert all(f"{place}. {item['name']}\n" in printed for place, item in enumerate(listing["models"], 1))
    assert f"next: rashomon models get {listing['models'][0]['name']}" in printed
    assert recommend(rashomon, "--for")["available"] == memory_and_cache_sizes.memory_fit(0).available


NO_MEMORY = (
    "16",
    "0GB",
    "0.0 GB",
    "abc",
    "",
    "-8GB",
    "16GiB",
    "1e9GB",
    "999999999GB",
    "\uff11" + "6GB",
    "16GB\n\x1b[2J",
)


@pytest.mark.parametrize("memory", NO_MEMORY)
def test_what_is_no_memory_is_refused(tmp_path: Path, memory: str) -> None:
    stderr = Rashomon(tmp_path).run("models", "--for", memory, code=2).stderr
    assert "\x1b" not in stderr


def test_a_memory_in_which_no_model_fits_is_refused(tmp_path: Path) -> None:
    Rashomon(tmp_path).run("models", "--for", "1GB", code=2)
    with pytest.raises(ModelError, match="no listed model fits"):
        module.recommend(Workspace(tmp_path), "1GB", None, as_json=False)


def test_the_smallest_need_is_that_of_the_model_which_more_memory_lists(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path)
    (model,) = recommend(rashomon, "--for", "4GB")["models"]
    stderr = " ".join(rashomon.run("models", "--for", "2GB", code=2).stderr.split())
    assert f"needs {model['needs'] / 1e9:.1f} GB" in stderr


def test_a_machine_of_unknown_memory_asks_for_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_and_cache_sizes, "_total", lambda: -4096)  # as os.sysconf says that it does not know
    monkeypatch.setattr(memory_and_cache_sizes, "metal_working_set", lambda: None)
    with pytest.raises(SpecError, match="--for 16GB"):
        module.recommend(Workspace(tmp_path), None, None, as_json=False)


def test_the_longest_prompt_of_a_build_decides(tmp_path: Path) -> None:
    build = clash_build(tmp_path / "clash", images=3, per_stratum=1)
    small = longest_prompt(build)
    assert small.images
    assert small.text_tokens < TYPICAL.text_tokens
    rashomon = Rashomon(tmp_path)
    listing = recommend(rashomon, "--for", "16GB", "--data", build.path)
    assert listing["prompt"]["text_tokens"] == small.text_tokens
    needs = {item["name"]: item["needs"] for item in recommend(rashomon, "--for", "16GB")["models"]}
    assert all(item["needs"] <= needs.get(item["name"], item["needs"]) for item in listing["models"])
    for medium in (build.path / "media").iterdir():
        Image.new("RGB", (9000, 7000)).save(medium, "JPEG" if medium.suffix == ".jpg" else "PNG")
    large = recommend(rashomon, "--for", "16GB", "--data", build.path)
    assert large["prompt"]["images"] == [[9000, 7000]] * len(small.images)
    assert large["models"] != listing["models"]
    assert recommend(rashomon, "--data", build.path)["models"], "--data alone is for this machine"


def test_a_build_without_instances_and_a_folder_that_is_none_are_refused(tmp_path: Path) -> None:
    with BuildWriter(tmp_path / "empty") as writer:
        build = writer.finish({"benchmark": "clash", "seed": 0})
    with pytest.raises(SpecError, match="no instances"):
        longest_prompt(build)
    rashomon = Rashomon(tmp_path)
    rashomon.run("models", "--for", "16GB", "--data", build.path, code=2)
    rashomon.run("models", "--for", "16GB", "--data", tmp_path / "nothing", code=2)
    rashomon.run("models", "--for", "16GB", "--data", "clash", code=2)
