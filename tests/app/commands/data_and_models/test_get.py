"""`rashomon data get` and `rashomon models get` by the real command, against a Hub on loopback."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from benchmarks.errors import ModelError
from mlx_backends.models.memory_and_cache_sizes import required_memory, smallest_mac
from mlx_backends.models.model_catalog import catalog_models
from mlx_backends.models.model_discovery import inspect
from tests.benchmarks.cmc_bench.test_hub import chartqa_parquet, mmmu_parquet
from tests.benchmarks.test_vqa import gqa_copy, okvqa_copy
from tests.support.command import ROOT, Rashomon
from tests.support.data.clash import CLASH_DATA, TEST_FILE
from tests.support.data.contra4 import COCO
from tests.support.data.contra4 import DATA as CONTRA4_DATA
from tests.support.data.mmkc_bench import er_row
from tests.support.data.small import picture
from tests.support.decoy import KINDS, Outside
from tests.support.fake_hub import FakeHub, Repo

SUBJECTS = ("Physics", "History", "Psychology", "Computer_Science", "Art", "Economics")
COCO_HOST = "s3.amazonaws.com/images.cocodataset.org"
DEMO = ROOT / "assets" / "demo" / "model-4bit"


@pytest.fixture
def hub() -> Iterator[FakeHub]:
    with FakeHub().running() as running:
        yield running


@pytest.fixture
def rashomon(hub: FakeHub, tmp_path: Path) -> Rashomon:
    return Rashomon(tmp_path, variables=hub.variables)


def until(condition: Callable[[], bool]) -> None:
    """Wait for another process to come so far."""
    end = time.monotonic() + 60
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.01)


def contents(folder: Path) -> dict[str, bytes]:
    return {file.relative_to(folder).as_posix(): file.read_bytes() for file in folder.rglob("*") if file.is_file()}


def cmc_hub(hub: FakeHub, folder: Path) -> None:
    """ChartQA and MMMU as the Hub has them, with training data, dev, test and other subjects beside."""
    chartqa_parquet(folder / "chartqa", "data")
    for number, subject in enumerate((*SUBJECTS, "Biology")):
        for split in ("validation", "test", "dev"):
            mmmu_parquet(folder / "mmmu" / subject, split, number)
    hub.repos["HuggingFaceM4/ChartQA"] = Repo("dataset", contents(folder / "chartqa"), "gpl-3.0")
    hub.repos["MMMU/MMMU"] = Repo("dataset", contents(folder / "mmmu"))


CARD = b"---\nlicense: mit\n---\n# A card\n"
COPIES = {
    f"{name}_copy_{number}.json": (DEMO / f"{name}.json").read_bytes()
    for name in ("config", "tokenizer")
    for number in range(8)
}


def tiny_model(hub: FakeHub) -> None:
    """The demo's model with a card, files of equal content, and files that are not fetched."""
    files = contents(DEMO) | {
        **COPIES,
        "README.md": CARD,
        "pytorch_model.bin": b"p" * 5000,
        "original/model.safetensors": b"x",
    }
    hub.repos["org/tiny"] = Repo("model", files, "mit")


def clash_hub(hub: FakeHub) -> list[int]:
    """CLASH's published questions and an image for each; their ids, in the questions' order."""
    hub.files[
        "raw.githubusercontent.com/tpopordanoska/clash/d9609c3178be1ab87151ce3668703f0eb2e7d6a6/data/" + TEST_FILE.name
    ] = TEST_FILE.read_bytes()
    ids = list(dict.fromkeys(sample["image_id"] for sample in json.loads(TEST_FILE.read_bytes())["samples"]))
    small = picture(1, "JPEG")
    for id in ids:
        name = f"{id:012d}.jpg"
        real = CLASH_DATA / "coco" / "train2017" / name
        hub.files[f"{COCO_HOST}/train2017/{name}"] = real.read_bytes() if real.exists() else small
    return ids


@pytest.mark.slow
@pytest.mark.skipif(not TEST_FILE.exists(), reason="the published samples are not here")
def test_clash_gets_the_questions_and_their_1281_images_and_is_built_from_them(
    hub: FakeHub, rashomon: Rashomon
) -> None:
    ids = clash_hub(hub)
    plan = rashomon.run("data", "get", "clash", "--dry-run").stdout
    assert "to fetch 1,282 files, about" in plan
    assert "its repository has no licence" in plan
    assert " free\n" in plan
    folder = rashomon.workspace / "sources" / "clash"
    assert not folder.exists()
    assert "--yes" in rashomon.run("data", "get", "clash", code=2).stderr
    assert not folder.exists()

    missing = f"{ids[7]:012d}.jpg"
    hub.faults[missing] = ["404"]
    stderr = rashomon.run("data", "get", "clash", "--yes", code=3).stderr
    assert f"1 of 1,282 files could not be fetched ({missing}: it does not exist (404)); " in stderr
    assert "`rashomon data get clash" in rashomon.run("build", "clash", code=2).stderr

    before = len(hub.asked)
    done = rashomon.run("data", "get", "clash", "--yes").stdout
    assert "to fetch 1 file," in done
    assert "1,281 files already here" in done
    assert "next: rashomon build clash" in done
    assert [entry.path.rpartition("/")[2] for entry in hub.asked[before:]] == [missing] * 2
    assert not list(folder.rglob("*.part"))
    built = rashomon.run("build", "clash").stdout
    assert "1289 rows" in built
    states = {item["benchmark"]: item for item in rashomon.json("data")}
    assert (states["clash"]["state"], states["clash"]["files"]) == ("fetched", 1282)


@pytest.mark.slow
@pytest.mark.skipif(not TEST_FILE.exists(), reason="the published samples are not here")
def test_ctrl_c_keeps_what_is_whole_and_says_how_to_go_on(hub: FakeHub, rashomon: Rashomon) -> None:
    ids = clash_hub(hub)
    for id in ids[100:]:
        hub.faults[f"{id:012d}.jpg"] = ["wait 100!"]
    process = rashomon.start("data", "get", "clash", "--yes")
    for _ in range(8):  # as many as are fetched at once
        assert hub.stalled.acquire(timeout=60)
    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert process.returncode == 130, out + err
    assert "complete files are kept, and `rashomon data get clash --yes` resumes" in err
    assert "Traceback" not in err
    folder = rashomon.workspace / "sources" / "clash"
    whole = [file for file in folder.rglob("*.jpg") if not file.name.startswith(".")]
    assert len(whole) == 100
    assert all(file.read_bytes() == hub.files[f"{COCO_HOST}/train2017/{file.name}"] for file in whole)
    assert "partly fetched" in rashomon.run("data").stdout
    hub.faults.clear()
    hub.released.set()
    again = rashomon.run("data", "get", "clash", "--yes").stdout
    assert "101 files already here" in again
    assert (folder / ".fetched.json").exists()


def test_cmc_bench_gets_two_splits_and_six_subjects(hub: FakeHub, rashomon: Rashomon, tmp_path: Path) -> None:
    cmc_hub(hub, tmp_path / "hub")
    stdout = rashomon.run("data", "get", "cmc-bench", "--yes").stdout
    assert "to fetch 8 files" in stdout
    assert "GPL-3.0" in stdout
    assert "the Hub says gpl-3.0" in stdout
    folder = rashomon.workspace / "sources" / "cmc-bench"
    names = {file.relative_to(folder).as_posix() for file in folder.rglob("*.parquet")}
    assert names == {
        "chartqa/data/val-00000-of-00001.parquet",
        "chartqa/data/test-00000-of-00001.parquet",
        *(f"mmmu/{subject}/validation-00000-of-00001.parquet" for subject in SUBJECTS),
    }
    whole = folder / "chartqa/data/val-00000-of-00001.parquet"
    whole.write_bytes(whole.read_bytes()[:-1] + b"x")  # somebody changed it: same length, another checksum
    assert "to fetch 1 file," in rashomon.run("data", "get", "cmc-bench", "--yes").stdout
    note = json.loads((folder / ".fetched.json").read_text())
    assert note["revisions"] == [f"HuggingFaceM4/ChartQA@{'a' * 40}", f"MMMU/MMMU@{'a' * 40}"]
    sources = rashomon.json("build", "cmc-bench")["manifest"]["sources"]
    assert (sources["chartqa"]["skipped"], sources["chartqa"]["usable_rows"]) == ({}, 3)
    assert sources["mmmu"]["usable_rows"] == 6  # one of each subject


@pytest.mark.slow
def test_mmkc_bench_to_a_folder_of_ones_own(hub: FakeHub, rashomon: Rashomon, tmp_path: Path) -> None:
    files = {"ER.json": json.dumps([er_row(1)]).encode(), ".gitattributes": b"x"}
    files |= {path: picture(number) for number, path in enumerate(er_row(1)["image_path"])}
    hub.repos["starjyf/MLLMKC-datasets"] = Repo("dataset", files, "")
    folder = tmp_path / "a folder"
    stdout = rashomon.run("data", "get", "mmkc-bench", "--yes", "--to", folder).stdout
    assert "the Hub says none" in stdout
    assert f"next: rashomon build mmkc-bench --source published='{folder}'" in stdout
    built = rashomon.run("build", "mmkc-bench", "--source", f"published={folder}").stdout
    assert "3 media" in built


@pytest.mark.slow
def test_okvqa_and_gqa_are_built_from_the_hubs_copies(hub: FakeHub, rashomon: Rashomon, tmp_path: Path) -> None:
    """Of GQA's copy only the balanced test-dev part is fetched; the questions and images are ours."""
    for name, repo, make, unwanted in (
        ("okvqa", "lmms-lab/OK-VQA", okvqa_copy, "data/train-00000-of-00001.parquet"),
        ("gqa", "lmms-lab/GQA", gqa_copy, "train_balanced_images/train-00000-of-00002.parquet"),
    ):
        files = {path: data for path, data in contents(make(tmp_path / name)).items() if path.endswith(".parquet")}
        hub.repos[repo] = Repo("dataset", {**files, unwanted: b"x", "README.md": b"x"}, "mit")
        plan = rashomon.run("data", "get", name, "--dry-run").stdout
        assert "to fetch 2 files" in plan
        assert "the Hub says mit" in plan
        assert f"next: rashomon build {name}" in rashomon.run("data", "get", name, "--yes").stdout
        folder = rashomon.workspace / "sources" / name
        assert {path for path in contents(folder) if path.endswith(".parquet")} == set(files)
        assert "6 instances, 3 media" in rashomon.run("build", name).stdout


@pytest.mark.slow
@pytest.mark.skipif(not (CONTRA4_DATA / "test.json").exists(), reason="the published rows are not here")
def test_contra4_gets_its_rows_and_coco_images_and_says_what_is_left(hub: FakeHub, rashomon: Rashomon) -> None:
    hub.files[
        "raw.githubusercontent.com/artemisp/contra4-fork/8492529137ad096d39022175cfe4c1d550b69fad/data/final_data/test.json"
    ] = (CONTRA4_DATA / "test.json").read_bytes()
    for file in (COCO / "val2017").iterdir():
        hub.files[f"{COCO_HOST}/val2017/{file.name}"] = file.read_bytes()
    stdout = rashomon.run("data", "get", "contra4", "--dry-run").stdout
    assert "to fetch 1,573 files" in stdout
    assert "AudioCaps" in stdout


@pytest.mark.slow
def test_pope_is_asked_for_the_questions_as_they_were_published(hub: FakeHub, rashomon: Rashomon) -> None:
    if not (CLASH_DATA / "pope").exists():
        pytest.skip("POPE's questions are not here")
    where = "raw.githubusercontent.com/RUCAIBox/POPE/3df3ba1b110ecce25696989577fad583b67d4239/output/coco/"
    for file in (CLASH_DATA / "pope").iterdir():
        hub.files[where + file.name] = file.read_bytes()
    assert "to fetch 503 files" in rashomon.run("data", "get", "pope", "--dry-run").stdout
    hub.files[where + "coco_pope_random.json"] = b"changed"
    stderr = rashomon.run("data", "get", "pope", "--dry-run", code=3).stderr
    assert "coco_pope_random.json of POPE's repository cannot be fetched: it has 7 bytes, not 368,166, twice" in stderr


@pytest.mark.parametrize(
    ("shut", "says"),
    [
        ("gated", "MMMU/MMMU is gated: accept its terms at"),
        ("401", "MMMU/MMMU requires a login (401)"),
        ("403", "MMMU/MMMU denies access to this account (403)"),
        ("private", "there is no dataset MMMU/MMMU on the Hub, or it is private"),
    ],
)
def test_a_hub_that_does_not_let_one_in(shut: str, says: str, hub: FakeHub, rashomon: Rashomon, tmp_path: Path) -> None:
    cmc_hub(hub, tmp_path / "hub")
    hub.repos["MMMU/MMMU"].shut = shut
    if shut in ("gated", "401", "403"):
        hub.repos["HuggingFaceM4/ChartQA"].files.clear()
        hub.repos["HuggingFaceM4/ChartQA"].files["data/val-0.parquet"] = b"v"
    stderr = rashomon.run("data", "get", "cmc-bench", "--yes", code=3).stderr
    assert says in stderr
    assert "hf auth login" in stderr
    assert len(stderr.splitlines()) == 1
    assert not (rashomon.workspace / "sources").exists()


@pytest.mark.slow
def test_a_token_opens_what_is_gated_and_goes_to_no_other_host(hub: FakeHub, tmp_path: Path) -> None:
    tiny_model(hub)
    hub.repos["org/tiny"].shut = "gated"
    rashomon = Rashomon(tmp_path, variables={**hub.variables, "HF_TOKEN": "right"})
    result = rashomon.run("models", "get", "org/tiny", "--yes")
    assert "right" not in result.stdout + result.stderr
    sent = {(item.path.split("/")[1], item.authorization) for item in hub.asked if item.method == "GET"}
    assert ("org", "Bearer right") in sent
    assert ("cdn", None) in sent
    assert not any(place == "cdn" and token for place, token in sent)


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        (["data", "get", "crosscheck-bench"], "CrossCheck-Bench's data is announced but not published"),
        (["data", "get", "cmc-bnch"], "did you mean 'cmc-bench'?"),
        (["models", "get", "Qwen3-VL-4B-Instruct-4bit"], "for example mlx-community/Qwen3-VL-4B-Instruct-4bit"),
    ],
)
def test_what_cannot_be_asked_for(arguments: list[str], says: str, tmp_path: Path) -> None:
    stderr = Rashomon(tmp_path).run(*arguments, code=2).stderr
    assert says in stderr
    assert len(stderr.splitlines()) == 1


def test_offline_nothing_is_fetched(tmp_path: Path) -> None:
    for arguments in (["data", "get", "clash"], ["models", "get", "org/tiny"]):
        stderr = Rashomon(tmp_path).run(*arguments, code=3).stderr
        assert stderr == "rashomon: HF_HUB_OFFLINE is set, so nothing is fetched; unset it and run the same command.\n"


def test_without_a_network_it_is_one_sentence(tmp_path: Path) -> None:
    nowhere = {"HF_ENDPOINT": "http://127.0.0.1:9", "HF_HUB_OFFLINE": "0"}
    stderr = Rashomon(tmp_path, variables=nowhere).run("models", "get", "org/tiny", code=3).stderr
    assert stderr.startswith("rashomon: the Hub cannot be reached (about org/tiny); ")
    assert len(stderr.splitlines()) == 1


def test_a_model_is_fetched_into_the_cache_checked_and_listed(hub: FakeHub, rashomon: Rashomon) -> None:
    tiny_model(hub)
    hub.faults["model.safetensors"] = ["cut 500000", "flip"]
    plan = rashomon.run("models", "get", "org/tiny", "--dry-run").stdout
    assert "to fetch 10 files" in plan
    assert "licence   mit" in plan
    assert "it needs about 1.1 GB" in plan
    cache = rashomon.home / "cache" / "huggingface" / "hub" / "models--org--tiny"
    assert not cache.exists()
    stdout = rashomon.run("models", "get", "org/tiny", "--yes").stdout
    assert "Qwen3VLForConditionalGeneration, 4-bit g64" in stdout
    snapshot = cache / "snapshots" / ("a" * 40)
    assert contents(snapshot) == {**contents(DEMO), **COPIES, "README.md": CARD}
    listed = {item["name"]: item for item in rashomon.json("models")["cached"]}
    assert listed["org/tiny"]["quantisation"] == "4-bit g64"
    before = len(hub.gets(""))
    assert "to fetch nothing" in rashomon.run("models", "get", "org/tiny", "--yes").stdout
    assert not [request for request in hub.gets("")[before:] if "/resolve/" in request.path]


def test_a_file_that_the_hub_itself_has_broken_is_not_to_be_fetched_again(hub: FakeHub, rashomon: Rashomon) -> None:
    tiny_model(hub)
    hub.repos["org/tiny"].files["config.json"] = b"{broken"
    stderr = rashomon.run("models", "get", "org/tiny", "--yes", code=2).stderr
    advice = (
        "config.json cannot be read as JSON; choose another model, since its owner publishes this file like this.\n"
    )
    assert stderr.endswith(advice)
    (rashomon.home / "edited").mkdir()
    (rashomon.home / "edited" / "config.json").write_text("{broken")
    with pytest.raises(ModelError, match=r"config\.json cannot be read as JSON; fetch the model again\.$"):
        inspect(rashomon.home / "edited")


@pytest.mark.slow
def test_a_model_that_broke_off_is_no_model_until_it_is_whole(hub: FakeHub, rashomon: Rashomon) -> None:
    tiny_model(hub)
    hub.faults["model.safetensors"] = ["wait 700000!"]
    process = rashomon.start("models", "get", "org/tiny", "--yes")
    assert hub.stalled.acquire(timeout=60)
    blobs = rashomon.home / "cache/huggingface/hub/models--org--tiny/blobs"
    until(lambda: any(part.stat().st_size > 500_000 for part in blobs.glob(".*.part")))
    process.send_signal(signal.SIGTERM)
    process.communicate(timeout=60)
    assert process.returncode == 130
    listed = {item["name"]: item for item in rashomon.json("models")["cached"]}
    assert "`rashomon models get org/tiny` fetches the rest" in listed["org/tiny"]["problem"]
    hub.released.set()
    hub.faults.clear()
    rashomon.run("models", "get", "org/tiny", "--yes")
    assert hub.gets("model.safetensors")[-1].range is not None


@pytest.mark.slow
def test_a_listing_that_names_a_file_outside_is_refused(hub: FakeHub, rashomon: Rashomon, tmp_path: Path) -> None:
    cmc_hub(hub, tmp_path / "hub")
    hub.repos["MMMU/MMMU"].names = {
        "Physics/validation-00000-of-00001.parquet": "Physics/validation-/../../../../../x.parquet"
    }
    assert "nothing was fetched" in rashomon.run("data", "get", "cmc-bench", "--yes", code=3).stderr


def test_a_model_without_safetensors_or_too_large_is_not_fetched(hub: FakeHub, rashomon: Rashomon) -> None:
    hub.repos["org/old"] = Repo("model", {"config.json": b"{}", "pytorch_model.bin": b"p" * 5000})
    assert "no safetensors weights" in rashomon.run("models", "get", "org/old", "--yes", code=2).stderr


@pytest.mark.slow
def test_two_at_once_do_not_fetch_the_same(hub: FakeHub, rashomon: Rashomon) -> None:
    tiny_model(hub)
    hub.faults["model.safetensors"] = ["wait 700000!"]
    process = rashomon.start("models", "get", "org/tiny", "--yes")
    assert hub.stalled.acquire(timeout=60)
    assert "is fetching org/tiny; wait for it" in rashomon.run("models", "get", "org/tiny", "--yes", code=4).stderr
    os.killpg(process.pid, signal.SIGKILL)
    process.communicate()


def test_the_curated_models_say_what_they_take(tmp_path: Path) -> None:
    by_id = {catalog_model.id: catalog_model for catalog_model in catalog_models()}
    assert len(by_id) == len(catalog_models())
    # Sizes of these models' files that others have published, in GB; the computed ones are within a twentieth.
    known = {
        "mlx-community/Qwen3-VL-2B-Instruct-4bit": 1.798,
        "mlx-community/Qwen3-VL-4B-Instruct-4bit": 3.110,
        "mlx-community/Qwen3-VL-8B-Instruct-4bit": 5.777,
        "mlx-community/Qwen3-VL-30B-A3B-Instruct-4bit": 18.268,
        "mlx-community/Qwen3-VL-32B-Instruct-8bit": 36.02,
        "mlx-community/Qwen3.5-2B-MLX-8bit": 2.663,
        "mlx-community/Qwen3.5-4B-MLX-4bit": 3.061,
        "mlx-community/Qwen3.5-9B-8bit": 10.453,
        "mlx-community/Qwen3.5-27B-4bit": 16.081,
        "mlx-community/Qwen3.5-35B-A3B-8bit": 37.748,
        "mlx-community/Qwen3.5-122B-A10B-4bit": 69.593,
        "mlx-community/Qwen3.6-27B-bf16": 54.713,
        "mlx-community/Qwen3.6-35B-A3B-4bit": 20.429,
        "mlx-community/gemma-3n-E2B-it-4bit": 4.503,
        "mlx-community/gemma-3-27b-it-4bit": 16.873,
        "mlx-community/gemma-3-27b-it-8bit": 31.08,
        "mlx-community/gemma-4-e2b-it-8bit": 5.899,
        "mlx-community/gemma-4-e4b-it-bf16": 15.992,
        "mlx-community/gemma-4-12B-it-4bit": 6.773,
        "mlx-community/gemma-4-26b-a4b-it-4bit": 15.609,
        "mlx-community/gemma-4-31b-it-4bit": 18.444,
        "mlx-community/InternVL3-38B-bf16": 76.79,
        "mlx-community/InternVL3_5-30B-A3B-4bit": 17.81,
        "mlx-community/Mistral-Small-3.1-24B-Instruct-2503-4bit": 14.119,
        "mlx-community/Phi-3-vision-128k-instruct-4bit": 2.33,
    }
    for name, size in known.items():
        assert by_id[name].weights_bytes / 1e9 == pytest.approx(size, rel=0.05)
    assert smallest_mac(by_id["mlx-community/Qwen3-VL-4B-Instruct-4bit"].weights_bytes) == 8
    assert smallest_mac(10**13) is None
    listed = {first["name"]: first for first in Rashomon(tmp_path).json("models")["catalog"]}
    first = listed["mlx-community/Qwen3-VL-4B-Instruct-4bit"]
    assert (first["fetched"], first["benchmarks"], first["memory"]) == (
        False,
        ["cmc-bench"],
        required_memory(first["bytes"]),
    )
    assert "not fetched" in Rashomon(tmp_path).run("models").stdout


SOURCE_NAMES = (
    ".lock",
    ".fetched.json",
    "chartqa",
    "chartqa/data",
    "chartqa/data/.val-00000-of-00001.parquet.part",
    "chartqa/data/val-00000-of-00001.parquet",
)


@pytest.mark.parametrize(
    ("name", "kind"),
    [
        pytest.param(name, kind, marks=() if (name, kind) == ("chartqa/data", "link to a folder") else pytest.mark.slow)
        for name in SOURCE_NAMES
        for kind in KINDS
    ],
)
def test_fetching_writes_through_nothing_in_the_folder_of_sources(
    hub: FakeHub, rashomon: Rashomon, tmp_path: Path, name: str, kind: str
) -> None:
    cmc_hub(hub, tmp_path / "hub")
    outside = Outside(tmp_path / "outside")
    outside.put(rashomon.workspace / "sources" / "cmc-bench" / name, kind)
    before = outside.state()
    command = rashomon.command("data", "get", "cmc-bench", "--yes")
    done = subprocess.run(
        command, env=rashomon.environment, cwd=tmp_path, capture_output=True, text=True, timeout=60, check=False
    )
    assert outside.state() == before
    assert "Traceback" not in done.stderr
    if done.returncode:
        assert done.returncode in (1, 2)
        assert Path(name).name in done.stderr
        assert done.stderr.strip().count("\n") == 0
    else:
        assert name in (".fetched.json", "chartqa/data/val-00000-of-00001.parquet"), "these are replaced"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_the_lock_on_a_model_that_is_fetched_leads_nowhere(
    hub: FakeHub, rashomon: Rashomon, tmp_path: Path, kind: str
) -> None:
    tiny_model(hub)
    outside = Outside(tmp_path / "outside")
    rashomon.run("models", "get", "org/tiny", "--yes")
    (lock,) = tmp_path.rglob(".rashomon.lock")
    outside.put(lock, kind)
    before = outside.state()
    assert ".rashomon.lock" in rashomon.run("models", "get", "org/tiny", "--yes", code=2).stderr
    assert outside.state() == before
