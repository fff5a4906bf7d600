"""The folder of vision features: a limit that holds for several processes, and no run that drops its own files."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import time
from collections import namedtuple
from pathlib import Path

import mlx.core as mx
import pytest

from benchmarks.errors import StoreError
from mlx_backends.mlx.vision import feature_folder
from mlx_backends.mlx.vision.feature_folder import LIMIT, FeatureFolder, forget_features, limit_bytes
from mlx_backends.mlx.vision.feature_store import FeatureStore

Usage = namedtuple("Usage", "total used free")

NUMBERS = 10_000
"""The numbers in the features of an image; with header and checksum they take less than :data:`SIZE` bytes."""

SIZE = 4 * NUMBERS + 1000


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr("platformdirs.user_cache_path", lambda name: tmp_path / "cache" / name)
    return tmp_path / "cache" / "rashomon"


def new_run(folder: Path, images: int = 10) -> FeatureStore:
    """Return the store of a run that starts now, with room for so many images; what is there was used a day ago."""
    for path in stored_files(folder):
        os.utime(path, (path.stat().st_mtime - 86_400,) * 2)
    return FeatureStore(dict, FeatureFolder(folder, images * SIZE))


def stored_files(folder: Path) -> list[Path]:
    return sorted((folder / "vision-features").glob("*.features"))


def stored_bytes(folder: Path) -> int:
    return sum(path.stat().st_size for path in (folder / "vision-features").iterdir())


def pass_over(store: FeatureStore, images: range) -> int:
    """Return how many of the images a run finds; it encodes and stores the others."""
    count = 0
    for image in images:
        if store.get(image) is None:
            store.put(image, mx.ones(NUMBERS) * image)
        else:
            count += 1
    return count


def test_a_second_pass_over_twice_as_many_images_as_fit_finds_half(folder: Path) -> None:
    assert pass_over(new_run(folder), range(20)) == 0
    for _ in range(2):
        assert pass_over(new_run(folder), range(20)) in (9, 10)
    assert stored_bytes(folder) <= 10 * SIZE


def test_files_that_were_used_longest_ago_make_room_for_other_images(folder: Path) -> None:
    pass_over(new_run(folder), range(10))
    pass_over(new_run(folder), range(5))
    assert pass_over(new_run(folder), range(100, 104)) == 0
    assert stored_bytes(folder) <= 10 * SIZE
    store = new_run(folder)
    assert pass_over(store, range(100, 104)) == 4
    assert pass_over(store, range(5)) == 5, "used later than the others"


def test_a_time_in_the_future_keeps_no_file_for_ever(folder: Path) -> None:
    pass_over(new_run(folder), range(10))
    store = new_run(folder)
    for path in stored_files(folder):
        os.utime(path, (time.time() + 1e8,) * 2)
    pass_over(store, range(100, 105))
    assert pass_over(new_run(folder), range(100, 105)) == 5


def test_a_lowered_limit_takes_effect_with_the_next_image(folder: Path) -> None:
    pass_over(new_run(folder), range(10))
    new_run(folder, images=4).put(100, mx.ones(NUMBERS))
    assert stored_bytes(folder) <= 4 * SIZE


def test_an_image_larger_than_the_limit_drops_nothing(folder: Path) -> None:
    pass_over(new_run(folder), range(8))
    store = new_run(folder)
    store.put("large", mx.ones(20 * NUMBERS))
    assert store.get("large") is None
    assert pass_over(store, range(8)) == 8
    store.put("small", mx.ones(NUMBERS))
    assert store.get("small") is not None


def test_a_full_folder_is_looked_at_once(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    store, scans, scan = new_run(folder), list[Path](), feature_folder.stored_files

    def counted(cache: Path) -> list[feature_folder.StoredFile]:
        scans.append(cache)
        return scan(cache)

    monkeypatch.setattr(feature_folder, "stored_files", counted)
    pass_over(store, range(12))
    before = len(scans)
    pass_over(store, range(12, 40))
    assert len(scans) == before


def test_the_limit_holds_for_all_processes_together(folder: Path) -> None:
    stores = [new_run(folder, images=100) for _ in range(3)]  # each counts by itself
    for image in range(150):
        for number, store in enumerate(stores):
            store.put([number, image], mx.ones(NUMBERS))
    assert 90 * SIZE < stored_bytes(folder) <= (100 + 3 * 5) * SIZE


PAUSED_WRITER = """
import os, sys; from pathlib import Path; import mlx.core as mx
from mlx_backends.mlx.vision.feature_folder import FeatureFolder
from mlx_backends.mlx.vision.feature_store import FeatureStore
store, save = FeatureStore(dict, FeatureFolder(Path(sys.argv[1]), 10**6)), mx.save_safetensors
def save_and_wait(*arguments, **named):
    save(*arguments, **named)
    print("in progress", flush=True)
    sys.stdin.readline()
mx.save_safetensors = save_and_wait
for image in "ab":
    store.put(image, mx.ones(10_000))
    print(store.get(image) is not None, flush=True)
os._exit(0)  # as a worker ends
"""


@pytest.mark.parametrize("is_removed", [False, True])
def test_a_process_goes_on_storing_while_others_drop_files(is_removed: bool, folder: Path) -> None:
    command = [sys.executable, "-c", PAUSED_WRITER, str(folder)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stdout.readline() == "in progress\n"
        (part,) = (folder / "vision-features").glob(".rashomon-*")
        os.utime(part, (time.time() - 600,) * 2)  # on a slow disk
        pass_over(new_run(folder, images=2), range(3))
        assert part.exists(), "another process is writing it"
        if is_removed:  # by the user
            part.unlink()
        process.stdin.write("\n\n")
        process.stdin.flush()
        assert process.stdout.read().split("\n") == [str(not is_removed), "in progress", "True", ""]
    assert process.returncode == 0


@pytest.mark.parametrize(
    ("free", "used", "limit"), [(1, 0, 4), (39, 0, 4), (100, 0, 10), (70, 30, 10), (2000, 0, 50), (3, 37, 4)]
)
def test_the_limit_is_a_tenth_of_the_free_space_within_bounds(
    free: int, used: int, limit: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(LIMIT)
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage(0, 0, free * 10**9))
    assert limit_bytes(folder, used * 10**9) == limit * 10**9


@pytest.mark.parametrize(
    ("text", "limit"), [("0.5", 500_000_000), ("0", 0), ("-3", 0), ("much", 0), ("inf", 0), ("nan", 0)]
)
def test_the_limit_comes_from_the_environment(
    text: str, limit: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(LIMIT, text)
    assert limit_bytes(folder, 10**12) == limit
    assert FeatureFolder(folder).is_on is bool(limit)


def test_forgetting_removes_the_files_of_features_alone(folder: Path) -> None:
    pass_over(new_run(folder), range(3))
    (folder / "vision-features/encoders.json").write_text("{}")
    (folder / "vision-features/mine.txt").write_text("mine")
    (folder / "weights.json").write_text("{}")
    count, size = forget_features()
    assert count == 3
    assert 2 * SIZE < size <= 3 * SIZE
    assert [path.name for path in (folder / "vision-features").iterdir()] == ["mine.txt"]
    assert (folder / "weights.json").exists()
    assert forget_features() == (0, 0)


def test_nothing_is_forgotten_through_a_link(folder: Path, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "a.features").write_text("theirs")
    folder.mkdir(parents=True)
    (folder / "vision-features").symlink_to(outside)
    with pytest.raises(StoreError):
        forget_features()
    assert (outside / "a.features").exists()


def test_a_folder_that_cannot_be_read_costs_a_warning(folder: Path, caplog: pytest.LogCaptureFixture) -> None:
    folder.mkdir(parents=True)
    (folder / "vision-features").write_text("mine")
    with caplog.at_level(logging.WARNING):
        pass_over(new_run(folder), range(3))
    assert len(caplog.records) == 1
