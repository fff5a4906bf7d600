# ruff: noqa: E501
"""Sounds, videos and 3D models: reading, previews, rendering, and quick refusals in little memory."""

from __future__ import annotations

import io
import json
import struct
import subprocess
import sys
import zipfile
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image

from benchmarks.errors import MediaError
from benchmarks.media.audio_files import load_sound
from benchmarks.media.media_limits import MOST_POINTS
from benchmarks.media.media_previews import check_media, media_facts, media_pictures, thumbnail
from benchmarks.media.shape_files import decode_shape
from benchmarks.media.shape_renderer import SIZE, VIEWS
from benchmarks.media.video_files import load_frames
from benchmarks.vocabulary import Modality
from tests.support.data.contra4 import DATA, real_rows
from tests.support.media import cloud, sound, video

CUBE = "OFF\n8 6 0\n" + "".join(f"{x} {y} {z}\n" for x in (0, 1) for y in (0, 1) for z in (0, 1))
CUBE += "4 0 1 3 2\n4 4 6 7 5\n4 0 4 5 1\n4 2 3 7 6\n4 0 2 6 4\n4 1 5 7 3\n"


def _opened(data: bytes) -> Image.Image:
    return Image.open(io.BytesIO(data))


# --- sounds --------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
def test_a_sound_is_one_channel_at_the_rate_asked_for(kind: str) -> None:
    heard = load_sound(sound(1.0, 44100, kind, channels=2, pitch=1000), 16000)
    assert heard.dtype == np.float32
    assert abs(len(heard) - 16000) <= 2
    spectrum = np.abs(np.fft.rfft(heard))
    assert abs(int(spectrum.argmax()) - 1000) <= 2
    assert np.abs(heard[1000:-1000]).max() == pytest.approx(0.5, abs=0.02)


def test_sound_properties_are_read() -> None:
    assert media_facts(sound(0.5, 16000, channels=2), ".wav", "audio") == {
        "length": "0.5 s",
        "rate": "16000 Hz",
        "channels": "stereo",
    }


# --- videos --------------------------------------------------------------------------------------


@pytest.mark.parametrize(("kind", "codec"), [("mp4", "mpeg4"), ("matroska", "mpeg4"), ("avi", "mpeg4")])
def test_frames_are_midpoints_of_equal_intervals(kind: str, codec: str) -> None:
    data = video(30, kind, codec)
    brightness = [np.asarray(frame).mean() for frame in load_frames(data, 3)]
    assert brightness == pytest.approx([20 + 200 * n / 29 for n in (5, 15, 25)], abs=4)
    assert len(load_frames(video(2, kind, codec), 8)) == 2


# --- 3D ------------------------------------------------------------------------------------------


def test_point_cloud_layouts_are_equivalent() -> None:
    xyz = np.random.default_rng(1).normal(size=(40, 3)).astype(np.float32)
    rgb = np.linspace(0, 1, 120).reshape(40, 3)
    pointllm = decode_shape(cloud(arr_0=np.concatenate([xyz, rgb], 1)), ".npz")
    point_e = decode_shape(cloud(coords=xyz, R=rgb[:, 0], G=rgb[:, 1], B=rgb[:, 2]), ".npz")
    named = decode_shape(cloud(points=xyz, rgb=(rgb * 255).astype(np.uint8)), ".npz")
    for shape in (pointllm, point_e, named):
        assert shape.colours is not None
        np.testing.assert_allclose(shape.points[:, 1], xyz[:, 2], rtol=1e-6)  # z is up there
        assert np.abs(shape.colours.astype(int) - (rgb * 255).astype(np.uint8)).max() <= 1


def test_views_are_labelled_squares_and_reproducible() -> None:
    once, again = (media_pictures(CUBE.encode(), ".off", "point_cloud") for _ in range(2))
    assert once == again
    assert [_opened(view).size for view in once] == [(SIZE, SIZE)] * len(VIEWS)
    front, quarter = (np.asarray(_opened(once[i])) for i in (0, -1))
    # A face from the front is one shade; from the corner three are seen.
    assert len(np.unique(front[100:236, 100:236].reshape(-1, 3), axis=0)) == 1
    shades, counts = np.unique(quarter[:, :, 0], return_counts=True)
    assert (counts[shades < 250] > 500).sum() == 3


def test_nearer_objects_hide_farther_ones() -> None:
    points = np.array([[0, -1, 0]] * 50 + [[0, 1, 0]] * 50, np.float32)  # y of an npz goes away from the eye
    points = np.concatenate([points, [[-1, 0, -1], [1, 0, 1]]]).astype(np.float32)
    colours = np.array([[1, 0, 0]] * 50 + [[0, 0, 1]] * 50 + [[0, 1, 0]] * 2)
    views = media_pictures(cloud(xyz=points, rgb=colours), ".npz", "point_cloud")
    front, _, back = (np.asarray(_opened(views[i]))[SIZE // 2, SIZE // 2] for i in range(3))
    assert front[0] > 100 > front[2]
    assert back[2] > 100 > back[0]


@real_rows
@pytest.mark.parametrize(
    "name", ["bunny.ply", "pc_corgi.npz", pytest.param("CesiumMilkTruck.glb", marks=pytest.mark.slow)]
)
def test_real_models_fill_their_views_reproducibly(name: str) -> None:
    data = (DATA / "pc" / name).read_bytes()
    views = media_pictures(data, Path(name).suffix, "point_cloud")
    assert views == media_pictures(data, Path(name).suffix, "point_cloud")
    for view in views:
        coverage = (np.asarray(_opened(view)).min(2) < 250).mean()
        assert 0.05 < coverage < 0.6


@real_rows
def test_real_media_are_whole_and_have_thumbnails() -> None:
    for file in sorted((DATA / "audio").glob("*.*g"))[:5] + sorted((DATA / "audio").glob("*.wav")):
        assert check_media(file.read_bytes(), file.suffix, "audio") == file.suffix
        assert thumbnail(file.read_bytes(), file.suffix, "audio", 200).size == (200, 66)
    for file in sorted((DATA / "video").iterdir()):
        assert check_media(file.read_bytes(), file.suffix, "video") == file.suffix
        small = thumbnail(file.read_bytes(), file.suffix, "video", 200)
        assert max(small.size) <= 200
    for name in ("Duck.glb", "rabbit.obj", "sphere.ply", "20mm-xyz-cube.stl"):
        assert check_media((DATA / "pc" / name).read_bytes(), Path(name).suffix, "point_cloud") == Path(name).suffix


# --- hostile -------------------------------------------------------------------------------------


def _ten_hours() -> bytes:
    data = bytearray(sound(0.1, 8000, "FLAC"))
    data[21] = data[21] & 0xF0  # the upper bits of the count of samples, then the rest: ten hours of them
    data[22:26] = (36_000 * 8000).to_bytes(4, "big")
    return bytes(data)


def _huge_rate() -> bytes:
    data = bytearray(sound())
    data[24:28] = (2_000_000_000).to_bytes(4, "little")
    return bytes(data)


def _wave_of_nan() -> bytes:
    import soundfile

    out = io.BytesIO()
    soundfile.write(out, np.full(100, np.nan, np.float32), 8000, format="WAV", subtype="FLOAT")
    return out.getvalue()


def _no_frames() -> bytes:
    import av

    out = io.BytesIO()
    with av.open(out, "w", format="matroska") as container:
        stream = container.add_stream("pcm_s16le", rate=8000)
        frame = av.AudioFrame.from_ndarray(np.zeros((1, 800), np.int16), format="s16", layout="mono")
        frame.sample_rate = 8000
        container.mux(stream.encode(frame))
    return out.getvalue()


def _zip_bomb() -> bytes:
    out = io.BytesIO()
    with (
        zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as inside,
        inside.open("arr_0.npy", "w", force_zip64=True) as member,
    ):
        np.lib.format.write_array_header_1_0(member, {"descr": "<f4", "fortran_order": False, "shape": (25_000_000, 3)})
        for _ in range(300):
            member.write(bytes(1 << 20))
    return out.getvalue()


def _pickled() -> bytes:
    out = io.BytesIO()
    np.save(out, np.array([{"run": "this"}], object), allow_pickle=True)
    return out.getvalue()


def _glb(tree: object) -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    return struct.pack("<4sIIII", b"glTF", 2, 20 + len(text), len(text), 0x4E4F534A) + text


def _promised_array() -> bytes:
    out = io.BytesIO()
    np.lib.format.write_array_header_1_0(out, {"descr": "<f8", "fortran_order": False, "shape": (10**12, 3)})
    return out.getvalue()


PLY = "ply\nformat binary_little_endian 1.0\nelement vertex {}\nproperty float x\nproperty float y\nproperty float z\nelement face {}\nproperty list uchar int vertex_indices\nend_header\n"

HOSTILE: list[tuple[str, Callable[[], bytes], str, Modality, str]] = [
    ("empty", lambda: b"", ".wav", "audio", "is empty"),
    ("a picture that is called a sound", lambda: b"\x89PNG\r\n\x1a\n" + bytes(99), ".wav", "audio", "is not a WAV"),
    ("a cut WAV", lambda: sound(1.0)[:5000], ".wav", "audio", "truncated"),
    ("a cut FLAC", lambda: sound(1.0, kind="FLAC")[:3000], ".flac", "audio", "truncated"),
    ("a cut Ogg", lambda: sound(1.0, kind="OGG")[:-300], ".ogg", "audio", "truncated"),
    ("no samples", lambda: sound(0.0), ".wav", "audio", "holds no sound"),
    ("ten hours", lambda: _ten_hours(), ".flac", "audio", "longer than 20 minutes"),
    ("a huge rate", lambda: _huge_rate(), ".wav", "audio", "rate above"),
    ("a sound of NaN", lambda: _wave_of_nan(), ".wav", "audio", "damaged"),
    ("a playlist that is called a video", lambda: b"#EXTM3U\n/etc/passwd\n", ".mp4", "video", "is not an MP4"),
    ("a cut video", lambda: video(30)[:1000], ".mp4", "video", "truncated"),
    ("a video of sound alone", lambda: _no_frames(), ".mkv", "video", "holds no pictures"),
    ("a header alone", lambda: video(30)[:40], ".mp4", "video", "truncated"),
    ("NaN points", lambda: cloud(arr_0=np.full((9, 3), np.nan)), ".npz", "point_cloud", "no numbers"),
    ("endless points", lambda: cloud(arr_0=np.full((9, 3), 1e300)), ".npz", "point_cloud", "no numbers"),
    ("no points", lambda: cloud(arr_0=np.zeros((0, 3))), ".npz", "point_cloud", "holds no points"),
    ("an unknown layout", lambda: cloud(weights=np.zeros((4, 3))), ".npz", "point_cloud", "unknown layout"),
    ("complex numbers as text", lambda: cloud(arr_0=np.full((3, 3), "x")), ".npz", "point_cloud", "unknown layout"),
    ("a pickle", lambda: _pickled(), ".npy", "point_cloud", "damaged"),
    ("a zip bomb", lambda: _zip_bomb(), ".npz", "point_cloud", "has more than"),
    ("an array that is not there", lambda: _promised_array(), ".npy", "point_cloud", "truncated"),
    ("a cut npz", lambda: cloud()[:900], ".npz", "point_cloud", "truncated"),
    ("too many points", lambda: cloud(arr_0=np.zeros((MOST_POINTS + 1, 3), np.float16)), ".npz", "point_cloud", "has more than"),
    ("a million faces", lambda: PLY.format(3, 10**6).encode() + bytes(36 + 13 * 10**6), ".ply", "point_cloud", "has more than"),
    ("faces that are promised", lambda: PLY.format(3, 4 * 10**5).encode() + bytes(36), ".ply", "point_cloud", "truncated"),
    ("a million faces as text", lambda: b"v 0 0 0\n" * 3 + b"f 1 2 3\n" * 10**6, ".obj", "point_cloud", "has more than"),
    ("faces of points that are not there", lambda: b"v 0 0 0\nv 1 0 0\nf 1 2 9\n", ".obj", "point_cloud", "damaged"),
    ("a text that is called a mesh", lambda: b"hello", ".off", "point_cloud", "damaged"),
    ("a mesh of a thousand meshes", lambda: _glb({"accessors": [{"count": 3000}], "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "nodes": [{"mesh": 0}] * 9000}), ".glb", "point_cloud", "has more than"),
    ("nodes in a circle", lambda: _glb({"nodes": [{"children": [1, 1]}, {"children": [0]}]}), ".glb", "point_cloud", "damaged"),
    ("a buffer elsewhere", lambda: _glb({"buffers": [{"uri": "/etc/passwd", "byteLength": 9}], "scenes": [{"nodes": [0]}], "nodes": [{"mesh": 0}], "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}], "accessors": [{"count": 3, "bufferView": 0, "type": "VEC3", "componentType": 5126}], "bufferViews": [{"buffer": 0, "byteLength": 36}]}), ".glb", "point_cloud", "damaged"),
]  # fmt: skip


@pytest.mark.parametrize(
    ("data", "suffix", "modality", "message"), [case[1:] for case in HOSTILE], ids=[e[0] for e in HOSTILE]
)
def test_a_bad_medium_is_refused_in_a_sentence(
    data: Callable[[], bytes], suffix: str, modality: Modality, message: str
) -> None:
    medium = data()
    with pytest.raises(MediaError, match=message):
        check_media(medium, suffix, modality)


@pytest.mark.slow
def test_bad_media_are_refused_quickly_in_little_memory(tmp_path: Path) -> None:
    for number, (_, data, suffix, _, _) in enumerate(HOSTILE):
        (tmp_path / f"{number:02}{suffix}").write_bytes(data())
    (tmp_path / "kinds.json").write_text(json.dumps([modality for _, _, _, modality, _ in HOSTILE]))
    script = (
        "import json, pathlib, resource, sys\n"
        "from benchmarks.media.media_previews import check_media\n"
        "from benchmarks.errors import MediaError\n"
        "import av, soundfile, soxr, trimesh\n"
        "folder = pathlib.Path(sys.argv[1])\n"
        "kinds = json.loads((folder / 'kinds.json').read_text())\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "for path, kind in zip(sorted(folder.glob('[0-9]*')), kinds, strict=True):\n"
        "    try: check_media(path.read_bytes(), path.suffix, kind)\n"
        "    except MediaError: continue\n"
        "    sys.exit(path.name)\n"
        "print(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, timeout=120, check=False
    )
    assert done.returncode == 0, done.stderr
    unit = 1 if sys.platform == "darwin" else 1024
    assert int(done.stdout) * unit < 400 * 1024**2


@settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(st.data())
def test_damaged_bytes_are_read_or_refused(drawn: st.DataObject) -> None:
    cases: list[tuple[bytes, str, Modality]] = [
        (sound(0.1, kind="OGG"), ".ogg", "audio"),
        (video(3), ".mp4", "video"),
        (cloud(), ".npz", "point_cloud"),
        (CUBE.encode(), ".off", "point_cloud"),
    ]
    data, suffix, modality = drawn.draw(st.sampled_from(cases))
    at = drawn.draw(st.integers(0, len(data) - 1))
    damaged = data[:at] + drawn.draw(st.binary(max_size=8)) + data[at + drawn.draw(st.integers(0, 8)) :]
    with suppress(MediaError):
        assert check_media(damaged, suffix, modality).startswith(".")
