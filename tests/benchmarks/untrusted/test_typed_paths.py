"""Text that a user types where a path is wanted."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.errors import SpecError
from benchmarks.untrusted.typed_paths import folder_exists, path_exists, typed_path

IMPOSSIBLE = ("x" * 300, "x/" * 3000, "a\0b", "~nobody-at-all/x", "\ud800")


@pytest.mark.parametrize("text", IMPOSSIBLE)
def test_text_that_can_be_no_path_is_refused_and_names_nothing(text: str, tmp_path: Path) -> None:
    with pytest.raises(SpecError) as caught:
        typed_path(text, tmp_path)
    assert caught.value.exit_code == 2
    assert len(str(caught.value)) < 400
    assert not path_exists(text)
    assert not folder_exists(text, tmp_path)


@pytest.mark.parametrize("text", ["new/folder", "a\nb", "x" * 200, "\udcff", ""])
def test_any_other_text_is_a_path(text: str, tmp_path: Path) -> None:
    assert typed_path(text, tmp_path) == tmp_path / text


def test_home_folders_are_expanded_below_any_base(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    (tmp_path / "model").mkdir()
    (tmp_path / "file").touch()
    assert typed_path("~/model", Path("/elsewhere")) == tmp_path / "model"
    assert folder_exists("~/model", Path("/elsewhere"))
    assert folder_exists("model", tmp_path)
    assert path_exists("~/file")
    assert not folder_exists("~/file")
