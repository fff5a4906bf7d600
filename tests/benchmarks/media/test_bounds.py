"""Expensive media: every file is read or refused, quickly and in little memory."""

from __future__ import annotations

import io
import json
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from benchmarks.errors import MediaError
from benchmarks.media import load_image
from benchmarks.media.audio_files import load_sound
from benchmarks.media.media_decoder import TOO_MUCH_TIME
from benchmarks.media.media_previews import check_media
from benchmarks.media.shape_files import load_views
from tests.support.media import sound
from tests.support.media_bombs import BOMBS, Medium, ascii_ply, glb, mutated, node_chain, png, textured

SECONDS = 10
MEMORY = 500 * 10**6

FEW = (
    "WAV at 1 Hz",
    "GLB with a chain of 9,000 nodes",
    "PNG with an EXIF of 3,000 times 2 MB",
    "TIFF of 3,000 tags of 2 MB",
)


def read_apart(folder: Path, media: Iterable[Medium]) -> list[dict[str, Any]]:
    """Return what became of reading ``media``, one after the other in one process; its figures are checked."""
    lines = []
    for number, (data, suffix, modality) in enumerate(media):
        file = folder / f"{number:05}{suffix}"
        file.write_bytes(data)
        lines.append(json.dumps([str(file), suffix, modality]))
    done = subprocess.run(
        [sys.executable, "-m", "tests.support.media_apart"],
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    results = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(results) == len(lines)
    for result in results:
        assert result["seconds"] < SECONDS, result
        assert result["grown"] < MEMORY, result
        assert result["child"] < MEMORY, result
    return results


def test_a_few_bombs_and_mutations(tmp_path: Path) -> None:
    bombs = ((make(), suffix, modality) for make, suffix, modality in map(BOMBS.__getitem__, FEW))
    read_apart(tmp_path, [*mutated(75, seed=1), *bombs])


@pytest.mark.slow
def test_all_bombs(tmp_path: Path) -> None:
    for number, (name, (make, suffix, modality)) in enumerate(BOMBS.items()):
        folder = tmp_path / str(number)
        folder.mkdir()
        data = make()
        (result,) = read_apart(folder, [(data, suffix, modality)])
        print(
            f"{name:50} {len(data) / 1e6:6.1f} MB {result['seconds']:5.1f} s, wall {result['wall']:5.1f} s, "
            f"+{result['grown'] / 1e6:4.0f} MB, child +{result['child'] / 1e6:4.0f} MB; {result['said']}"
        )
        for file in folder.iterdir():
            file.unlink()


@pytest.mark.slow
def test_three_thousand_mutations(tmp_path: Path) -> None:
    worst: dict[str, list[float]] = defaultdict(lambda: [0, 0, 0, 0, 0, 0])
    for result in read_apart(tmp_path, mutated(3000, seed=2)):
        kind = worst[Path(result["file"]).suffix]
        kind[0] += 1
        kind[1] += result["said"] == "read"
        for place, key in ((2, "seconds"), (3, "wall"), (4, "grown"), (5, "child")):
            kind[place] = max(kind[place], result[key])
    for suffix, (count, read, seconds, wall, grown, child) in sorted(worst.items()):
        print(
            f"{suffix:6} {count:5.0f} media, {read:5.0f} read, {seconds:5.2f} s, wall {wall:5.2f} s, "
            f"+{grown / 1e6:.0f} MB, child +{child / 1e6:.0f} MB"
        )


def test_large_image_is_decoded_exactly() -> None:
    noise = np.random.default_rng(0).integers(0, 256, (40, 50, 4), dtype=np.uint8)
    large = Image.fromarray(noise).resize((4000, 3200), Image.Resampling.NEAREST)  # beyond what is decoded in-process
    out = io.BytesIO()
    large.save(out, "PNG", compress_level=1)
    white = Image.new("RGBA", large.size, "white")
    expected = Image.alpha_composite(white, large).convert("RGB")
    assert load_image(out.getvalue()).tobytes() == expected.tobytes()
    small = load_image(out.getvalue(), 100_000)
    assert small.tobytes() == expected.resize(small.size, Image.Resampling.LANCZOS).tobytes()


def test_tiff_is_oriented_and_scaled_in_the_child() -> None:
    exif = Image.Exif()
    exif[0x0112] = 6
    out = io.BytesIO()
    Image.new("RGB", (40, 20), "red").save(out, "TIFF", exif=exif)
    assert load_image(out.getvalue()).size == (20, 40)


def test_killed_reader_is_restarted() -> None:
    with pytest.raises(MediaError, match="memory"):
        check_media(textured(7740, 7740), ".glb", "point_cloud")
    assert len(load_sound(sound(0.5), 8000)) == 4000
    assert load_views(ascii_ply(3, 1), ".ply", ["front"])[1] == 3


@pytest.mark.slow
def test_endless_work_is_stopped() -> None:
    make, suffix, modality = BOMBS["JPEG of 3,000 scans"]
    with pytest.raises(MediaError) as caught:
        check_media(make(), suffix, modality)
    assert caught.value.reason == TOO_MUCH_TIME


def test_scene_depth_is_limited() -> None:
    check_media(node_chain(150), ".glb", "point_cloud")
    with pytest.raises(MediaError, match="levels"):
        check_media(node_chain(300), ".glb", "point_cloud")
    with pytest.raises(MediaError):
        check_media(glb({"nodes": [{"children": [0]}]}), ".glb", "point_cloud")


def test_decoders_do_not_see_api_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.untrusted.bounded_process import _environment

    monkeypatch.setenv("RASHOMON_ENDPOINT_KEY", "secret")
    assert "secret" not in _environment().values()
    assert os.environ["PATH"] == _environment()["PATH"]


def test_ordinary_picture_is_decoded_in_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("benchmarks.media.image_files.run_decoder", None)
    assert load_image(png(2000, 2000)).size == (2000, 2000)
