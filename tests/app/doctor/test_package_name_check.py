"""`rashomon doctor` on other packages that are called as Rashomon's."""

from __future__ import annotations

import hashlib
from base64 import urlsafe_b64encode
from pathlib import Path

import pytest

from app.doctor.package_name_check import names
from app.store.workspace import Workspace
from tests.support.command import Rashomon

WORKSPACE = Workspace(Path("nowhere"))


def install(folder: Path, distribution: str, **files: str) -> None:
    """Write a distribution's modules, and the record of them that pip leaves."""
    lines = []
    for path, content in files.items():
        name = f"{path.replace('__', '/', 1)}.py"
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(content)
        digest = urlsafe_b64encode(hashlib.sha256(content.encode()).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(content)}")
    info = folder / f"{distribution}-1.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {distribution}\nVersion: 1\n")
    (info / "RECORD").write_text("\n".join(lines) + "\n")


def test_another_distribution_called_app_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert names(WORKSPACE).fix == ""
    install(tmp_path, "somebodys-server", app__main="x = 1\n", app____init__="")
    monkeypatch.syspath_prepend(tmp_path)
    result = names(WORKSPACE)
    assert result.ok
    assert "app of somebodys-server" in result.message
    assert str(tmp_path / "app") in result.message
    assert "pipx install rashomon" in result.fix


def test_replaced_modules_of_the_installation_fail(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "rashomon", app__main="print('ours')\n", judges__base="x = 1\n")
    monkeypatch.syspath_prepend(tmp_path)
    assert names(WORKSPACE).ok
    (tmp_path / "app" / "main.py").write_text("print('theirs')\n")
    (tmp_path / "judges" / "base.py").unlink()
    result = names(WORKSPACE)
    assert not result.ok
    assert "app/main.py" in result.message
    assert "judges/base.py" in result.message


@pytest.mark.slow
def test_the_command_lists_the_check(tmp_path: Path) -> None:
    listed = {item["check"]: item for item in Rashomon(tmp_path).json("doctor")}
    assert listed["names"]["ok"]
