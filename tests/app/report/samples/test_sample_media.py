"""Media as people are shown them: a line of facts and a small picture, or one line that says why not."""

from __future__ import annotations

import hashlib
import io
import re
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from app.report.samples.sample_media import media_path, preview_media
from benchmarks.vocabulary import Mark, Media, Modality
from tests.support.media import cloud, sound, video


def test_a_medium_that_leads_out_of_the_build_or_could_be_run_has_no_path(tmp_path: Path) -> None:
    media = tmp_path / "media"
    media.mkdir()
    (tmp_path / "secret.png").write_bytes(b"x")
    (media / f"{'a' * 64}.command").write_bytes(b"x")
    (media / f"{'b' * 64}.png").symlink_to(tmp_path / "secret.png")
    assert media_path(tmp_path, Media("a" * 64, ".command")) is None
    assert media_path(tmp_path, Media("b" * 64, ".png")) is None
    assert media_path(tmp_path, Media("../secret", ".png")) is None
    assert media_path(tmp_path, Media("c" * 64, ".png")) is None


def kept(build: Path, data: bytes, suffix: str, modality: Modality, marks: tuple[Mark, ...] = ()) -> Media:
    """A medium in a build."""
    (build / "media").mkdir(exist_ok=True)
    media = Media(hashlib.sha256(data).hexdigest(), suffix, modality, marks)
    (build / "media" / media.name).write_bytes(data)
    return media


def test_a_medium_of_any_kind_is_seen_as_facts_and_a_picture(tmp_path: Path) -> None:
    out = io.BytesIO()
    Image.new("RGB", (300, 200)).save(out, "PNG")
    off = b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n"
    wanted = [
        (kept(tmp_path, out.getvalue(), ".png", "image", (Mark("A", (0, 0, 1, 1)),)), (100, 67)),
        (kept(tmp_path, sound(1.5, channels=2), ".wav", "audio"), (100, 33)),
        (kept(tmp_path, video(), ".mp4", "video"), (100, 25)),
        (kept(tmp_path, cloud(), ".npz", "point_cloud"), (100, 100)),
        (kept(tmp_path, off, ".off", "point_cloud"), (100, 100)),
    ]
    items = []
    for media, size in wanted:
        result = preview_media(media, media_path(tmp_path, media), 100)
        assert result.picture is not None
        assert (result.picture.mode, result.picture.size) == ("RGB", size)
        items.append(re.sub(r"[\d.]+ kB", "N kB", result.facts))
    assert items == [
        "image, png, N kB, 300 x 200 pixels, with 1 marks drawn: A",
        "audio, wav, N kB, 1.5 s, 8000 Hz, stereo",
        "video, mp4, N kB, 1.2 s, 64 x 48 pixels, 12 frames, 10 a second",
        "3D model, npz, N kB, 300 points",
        "3D model, off, N kB, 3 points, 1 faces",
    ]


@pytest.mark.parametrize(
    ("suffix", "modality"), [(".png", "image"), (".wav", "audio"), (".mp4", "video"), (".ply", "point_cloud")]
)
def test_what_cannot_be_seen_is_one_line_and_is_looked_at_again(
    suffix: str, modality: Modality, tmp_path: Path
) -> None:
    hostile = kept(tmp_path, b"\x1b[31m" + bytes(range(256)) * 9, suffix, modality)
    path = media_path(tmp_path, hostile)
    result = preview_media(hostile, path, 100)
    assert result.picture is None
    assert "\n" not in result.facts
    assert re.search("is no[t ]|damaged|cannot be read", result.facts)
    assert preview_media(hostile, None, 100).facts.endswith(", not there")
    whole = {".png": _png, ".wav": sound, ".mp4": video, ".ply": _ply}[suffix]()
    media = kept(tmp_path, whole, suffix, modality)
    path = tmp_path / "media" / media.name
    path.write_bytes(whole[: len(whole) // 2])
    assert "is not the one that was built" in preview_media(media, path, 100).facts, "half of it has come"
    path.write_bytes(whole)
    assert preview_media(media, path, 100).picture is not None


def test_a_medium_is_read_once_for_all_samples_that_show_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from benchmarks.media import media_previews

    reads = []
    glance = media_previews.preview

    def counted(data: bytes, *rest: Any) -> Any:
        reads.append(len(data))
        return glance(data, *rest)

    monkeypatch.setattr(media_previews, "preview", counted)
    media = kept(tmp_path, sound(0.7, pitch=333), ".wav", "audio")
    for _ in range(3):
        assert preview_media(media, media_path(tmp_path, media), 90).picture is not None
    assert len(reads) == 1


def test_no_memory_for_a_medium_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def glance(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr("benchmarks.media.media_previews.preview", glance)
    media = kept(tmp_path, sound(0.6), ".wav", "audio")
    assert "cannot be read (MemoryError)" in preview_media(media, media_path(tmp_path, media), 90).facts


def _png() -> bytes:
    out = io.BytesIO()
    Image.new("RGB", (30, 20), "#c1440e").save(out, "PNG")
    return out.getvalue()


def _ply() -> bytes:
    head = "ply\nformat ascii 1.0\nelement vertex 2\nproperty float x\nproperty float y\nproperty float z\nend_header\n"
    return (head + "0 0 0\n1 1 1\n").encode()
