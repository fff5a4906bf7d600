"""Decoders that do not work here: an error of its own kind, never a damaged medium."""

from __future__ import annotations

import io

import pytest

from benchmarks.errors import DecoderError, MediaError
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.shape_files import load_views
from benchmarks.media.video_files import load_frames, probe_clip
from tests.support.media import video


def test_a_changed_function_of_the_library_is_no_damaged_video(monkeypatch: pytest.MonkeyPatch) -> None:
    import av

    clip = video()
    monkeypatch.setattr(av, "open", lambda file, mode="r": None)
    with pytest.raises(TypeError, match="unexpected keyword"):
        probe_clip(io.BytesIO(clip))
    monkeypatch.delattr(av, "open")
    with pytest.raises(AttributeError):
        probe_clip(io.BytesIO(clip))


def test_a_truncated_video_is_still_damaged() -> None:
    with pytest.raises(MediaError, match="truncated"):
        probe_clip(io.BytesIO(video()[:400]))


def test_what_the_child_raises_is_named_and_the_next_request_works() -> None:
    with pytest.raises(DecoderError, match="KeyError: 'hologram'"):
        list(run_decoder("hologram", "the hologram", b"bytes"))
    assert len(load_frames(video(), 3)) == 3


def test_metadata_that_are_not_utf8_do_no_harm() -> None:
    clip = video(kind="matroska", metadata={"title": "plain title"}).replace(b"plain title", b"\xff\xfe\xfdn title")
    assert b"\xff\xfe\xfd" in clip
    assert len(load_frames(clip, 3)) == 3


def test_a_model_whose_faces_have_an_unknown_name_is_damaged() -> None:
    """The library's parser then leaves a variable unset, which is no fault of its code's surroundings."""
    pytest.importorskip("trimesh")
    header = "ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\nproperty float y\nproperty float z\n"
    faces = "element face 2\nproperty list uchar int vertex_indicez\nend_header\n"
    model = f"{header}{faces}0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n4 0 1 2 0\n"
    with pytest.raises(MediaError):
        load_views(model.encode(), ".ply", ())
