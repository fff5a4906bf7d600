"""Extras: a missing one is one sentence that names it, and no row is skipped for it."""

from __future__ import annotations

import sys

import pytest

from benchmarks.errors import ExtraMissingError
from benchmarks.media.shape_files import load_views
from benchmarks.media.video_files import load_frames, read_clip

OBJ = b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n"


def test_a_video_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "av", None)
    with pytest.raises(ExtraMissingError, match=r"rashomon\[video\]"):
        read_clip(b"")
    with pytest.raises(ExtraMissingError, match=r"rashomon\[video\]"):
        load_frames(b"", 2)


def test_mesh_without_its_library_names_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    assert load_views(OBJ, ".obj", ["front"])[1] == 3
    monkeypatch.setitem(sys.modules, "trimesh", None)
    with pytest.raises(ExtraMissingError, match=r"rashomon\[shapes\]"):
        load_views(OBJ, ".obj", ["front"])
