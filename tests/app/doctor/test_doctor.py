"""`rashomon doctor`: each thing that can be wrong is found and has its mend in a line."""

from __future__ import annotations

import json
import os
import platform
import sys
from collections.abc import Callable
from dataclasses import asdict
from datetime import date
from pathlib import Path
from typing import Any

import pytest

from app.doctor import content_checks, machine_checks, workspace_and_network_checks
from app.doctor import library_checks as libraries
from app.store.workspace import Workspace
from app.system.mac_state import Panic
from mlx_backends.models.metal_working_set import estimated_working_set
from tests.support.command import ROOT, Rashomon

Examined = Callable[..., dict[str, dict[str, Any]]]


@pytest.fixture
def examined(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Examined:
    """Return a function that runs doctor's checks in a home of its own."""

    def examine(**variables: str) -> dict[str, dict[str, Any]]:
        for name in ("HF_HOME", "HF_HUB_CACHE", "HF_TOKEN", "HF_TOKEN_PATH"):
            monkeypatch.delenv(name, raising=False)
        for name, value in (Rashomon(tmp_path).environment | variables).items():
            monkeypatch.setenv(name, value)
        checks = (
            workspace_and_network_checks.workspace,
            workspace_and_network_checks.cache,
            workspace_and_network_checks.hub,
            content_checks.models,
            content_checks.data,
            content_checks.demo,
            content_checks.device,
            content_checks.features,
        )
        return {result.check: asdict(result) for result in (check(Workspace.find()) for check in checks)}

    return examine


@pytest.mark.slow
def test_a_bare_machine_works_and_is_told_what_to_fetch(tmp_path: Path) -> None:
    rashomon = Rashomon(tmp_path, variables={"HF_HUB_OFFLINE": "0"})
    output = rashomon.run("doctor").stdout
    assert "see   models       0 vision-language and 0 text models" in output
    assert "-> `rashomon models get mlx-community/Qwen3-VL-4B-Instruct-4bit` fetches one" in output
    assert "-> `rashomon data get cmc-bench` fetches a benchmark's data" in output
    outcome = {item["check"]: item for item in rashomon.json("doctor")}
    assert all(item["ok"] for item in outcome.values())
    assert {name for name, item in outcome.items() if item["fix"]} == {"models", "data"}
    assert not (rashomon.workspace).exists()  # looking makes nothing


def test_what_the_environment_says_is_told_by_name_and_never_by_value(tmp_path: Path) -> None:
    secret = "hf_thisisasecret"
    rashomon = Rashomon(
        tmp_path,
        variables={"OPENAI_API_KEY": secret, "HF_TOKEN": secret, "HTTPS_PROXY": f"http://u:{secret}@127.0.0.1:9"},
    )
    output = rashomon.run("doctor").stdout
    assert secret not in output
    assert "set: OPENAI_API_KEY" in output
    assert "HF_TOKEN is set" in output
    assert "HF_HUB_OFFLINE is set" in output
    assert "unset it to use" in output


def test_proxies_in_effect_are_listed_without_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in [name for name in os.environ if name.lower().endswith("_proxy")]:
        monkeypatch.delenv(name)
    workspace = Workspace.find()
    assert workspace_and_network_checks.proxies(workspace).message == "none"
    monkeypatch.setenv("HTTPS_PROXY", "http://somebody:secret@proxy.invalid:3128")
    result = workspace_and_network_checks.proxies(workspace)
    assert result.ok
    assert "https through http://proxy.invalid:3128 (HTTPS_PROXY)" in result.message
    monkeypatch.setenv("HTTPS_PROXY", "gopher://somebody:secret@proxy.invalid")
    invalid = workspace_and_network_checks.proxies(workspace)
    assert not invalid.ok
    assert "HTTPS_PROXY" in invalid.fix
    assert not any(word in str((result, invalid)) for word in ("somebody", "secret"))


def test_a_login_is_found_where_the_hub_puts_it(tmp_path: Path, examined: Examined) -> None:
    token = tmp_path / "cache" / "huggingface" / "token"
    token.parent.mkdir(parents=True)
    token.write_text("hf_secret")
    match = examined()["hub token"]
    assert match["message"] == f"logged in ({token})"


def test_a_workspace_that_cannot_be_written_fails(tmp_path: Path, examined: Examined) -> None:
    (tmp_path / "a file").touch()
    bad = str(tmp_path / "a file" / "workspace")
    match = examined(RASHOMON_WORKSPACE=bad)["workspace"]
    assert not match["ok"]
    assert match["fix"] == "choose another with --workspace or RASHOMON_WORKSPACE."


def test_a_workspace_in_icloud_is_warned_of(tmp_path: Path, examined: Examined) -> None:
    place = tmp_path / "Library" / "Mobile Documents" / "work"
    match = examined(RASHOMON_WORKSPACE=str(place))["workspace"]
    assert match["ok"]
    assert "cloud-synchronised" in match["fix"]


def test_a_cache_that_cannot_be_written(tmp_path: Path, examined: Examined) -> None:
    (tmp_path / "a file").touch()
    match = examined(HF_HOME=str(tmp_path / "a file" / "hf"))["cache"]
    assert "set HF_HOME" in match["fix"]


def test_the_size_and_limit_of_vision_features_are_displayed_and_forgotten(tmp_path: Path, examined: Examined) -> None:
    folder = tmp_path / "cache/rashomon/vision-features"
    folder.mkdir(parents=True)
    for name in ("a", "b"):
        (folder / f"{name}.features").touch()
        os.truncate(folder / f"{name}.features", 100_000_000)
    message = examined(RASHOMON_VISION_CACHE="3.5")["features"]["message"]
    assert message.startswith(f"0.2 of at most 3.5 GB (2 files), in {folder}")
    assert "off" in examined(RASHOMON_VISION_CACHE="0")["features"]["message"]
    rashomon = Rashomon(tmp_path, variables={"RASHOMON_VISION_CACHE": "1"})
    done = rashomon.run("doctor", "--forget-features")
    assert "2 files" in done.stderr
    assert "0.0 of at most 1.0 GB (0 files)" in done.stdout
    assert not list(folder.iterdir())


@pytest.mark.parametrize("kind", ["file", "link"])
def test_something_in_place_of_the_folder_of_features_stays(kind: str, tmp_path: Path, examined: Examined) -> None:
    place, outside = tmp_path / "cache/rashomon/vision-features", tmp_path / "outside"
    outside.mkdir()
    (outside / "a.features").touch()
    place.parent.mkdir(parents=True)
    if kind == "link":
        place.symlink_to(outside)
    else:
        place.write_text("mine")
    assert examined()["features"]["ok"]
    Rashomon(tmp_path).run("doctor", "--forget-features", code=2)
    assert (outside / "a.features").exists()
    assert place.exists()


def test_a_model_that_cannot_be_run_is_named_with_its_reason(tmp_path: Path, examined: Examined) -> None:
    snapshot = tmp_path / "cache/huggingface/hub/models--org--broken/snapshots/abc"
    snapshot.mkdir(parents=True)
    (snapshot.parents[1] / "refs").mkdir()
    (snapshot.parents[1] / "refs" / "main").write_text("abc")
    (snapshot / "config.json").write_text("{")
    (tmp_path / "models--").mkdir()
    match = examined()["models"]
    assert "0 vision-language" in match["message"]
    for name in ("model-4bit", "model-bf16"):
        there = tmp_path / f"cache/huggingface/hub/models--org--{name}"
        (there / "snapshots").mkdir(parents=True)
        (there / "snapshots" / "abc").symlink_to(ROOT / "assets" / "demo" / name)
        (there / "refs").mkdir()
        (there / "refs" / "main").write_text("abc")
    match = examined()["models"]
    assert "2 vision-language and 0 text models" in match["message"]
    assert match["fix"].startswith("1 more cannot run; org/broken: ")
    assert "cannot be read as JSON" in match["fix"]
    for name in ("dangling", "dangling-too"):
        (tmp_path / f"cache/huggingface/hub/models--lena--{name}").mkdir()
    (tmp_path / "cache/huggingface/hub/models--org--broken/snapshots/abc/config.json").unlink()
    match = examined()["models"]
    assert match["fix"].startswith("3 more cannot run; lena/dangling is only partly fetched")
    assert match["fix"].endswith("`rashomon models` names the others.")


def test_data_that_were_fetched_in_part_fetched_built_or_damaged(tmp_path: Path, examined: Examined) -> None:
    rashomon = Rashomon(tmp_path)
    sources, builds = rashomon.workspace / "sources", rashomon.workspace / "benchmarks"
    (sources / "clash").mkdir(parents=True)
    (sources / "clash" / ".fetched.json").write_text(
        json.dumps({"benchmark": "clash", "files": 1, "bytes": 1, "licences": [], "revisions": []})
    )
    match = examined()["data"]
    assert match["message"].startswith("fetched: clash; not fetched: ")
    assert match["fix"].startswith("`rashomon build clash` ")
    (sources / "pope").mkdir()
    (sources / "pope" / "half").touch()
    assert examined()["data"]["fix"].startswith("`rashomon data get pope` ")
    (builds / "cmc-bench").mkdir(parents=True)
    match = examined()["data"]
    assert not match["ok"]
    assert "cmc-bench is not a built benchmark" in match["message"]
    assert "build cmc-bench" in match["fix"]


@pytest.mark.parametrize("how", ["raise ImportError('no libmlx')", "import os; os.abort()"])
def test_an_mlx_that_does_not_start_fails_and_nothing_else_does(how: str, tmp_path: Path) -> None:
    broken = tmp_path / "broken" / "mlx"
    broken.mkdir(parents=True)
    (broken / "__init__.py").touch()
    (broken / "core.py").write_text(how)
    path = os.pathsep.join([str(tmp_path / "broken"), str(ROOT)])
    rashomon = Rashomon(tmp_path, variables={"PYTHONPATH": path})
    output = {item["check"]: item for item in rashomon.json("doctor", code=1)}
    assert [name for name, item in output.items() if not item["ok"]] == ["mlx"]
    assert "install mlx again" in output["mlx"]["fix"]


def test_libraries_that_are_missing_or_of_another_version_are_named() -> None:
    problems = libraries._unmet_requirements(
        ["click>=8.1", "click<1", "no-such-library>=2", "other; sys_platform == 'nowhere'", 'x; extra == "api"']
    )
    assert problems == [f"click is {libraries._version('click')}, but <1 is required", "no-such-library is missing"]


def test_a_library_that_is_not_mended_is_said(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(libraries, "version", lambda name: "0.99.0")
    assert "no known problem" in libraries.mlx_vlm(Workspace(tmp_path)).message


def test_a_network_disk_is_found_by_where_it_is_mounted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    mounts = [("/", "ext4"), ("/Volumes/share", "smbfs"), ("/Volumes/share/local", "apfs"), ("/Volumes/sh", "nfs4")]
    monkeypatch.setattr(workspace_and_network_checks, "_mounts", lambda: mounts)
    assert workspace_and_network_checks.network_filesystem(Path("/Volumes/share/x")) == "smbfs"
    assert workspace_and_network_checks.network_filesystem(Path("/Volumes/share")) == "smbfs"
    assert workspace_and_network_checks.network_filesystem(Path("/Volumes/share/local/x")) is None
    assert workspace_and_network_checks.network_filesystem(Path("/Volumes/shared")) is None
    assert workspace_and_network_checks.network_filesystem(Path("/home")) is None
    mounts.append((str(tmp_path), "nfs4"))
    assert "on a network disk (nfs4)" in workspace_and_network_checks.workspace(Workspace(tmp_path / "ws")).fix


def test_this_machines_mounts_are_read() -> None:
    assert any(where == "/" for where, _ in workspace_and_network_checks._mounts())


def test_macs_output_of_mount_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    class Told:
        returncode = 0
        stdout = (
            "/dev/disk3s1s1 on / (apfs, sealed, local, read-only, journaled)\n"
            "//me@server/my%20share on /Volumes/my share (smbfs, nodev, nosuid, mounted by me)\n"
        )

    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("subprocess.run", lambda *_, **__: Told)
    assert workspace_and_network_checks._mounts() == [("/", "apfs"), ("/Volumes/my share", "smbfs")]
    assert workspace_and_network_checks.network_filesystem(Path("/Volumes/my share/runs")) == "smbfs"


@pytest.mark.parametrize(
    ("version", "processor", "ok", "says"),
    [
        ("15.2", "arm64", True, ""),
        ("13.6", "arm64", False, "MLX needs macOS 14"),
        ("15.2", "x86_64", False, "Intel Mac"),
    ],
)
def test_macs_that_mlx_does_not_run_on(
    version: str, processor: str, ok: bool, says: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr(platform, "mac_ver", lambda: (version, ("", "", ""), processor))
    monkeypatch.setattr(platform, "machine", lambda: processor)
    monkeypatch.setattr(platform, "release", lambda: "")
    outcome = machine_checks.machine(Workspace(tmp_path))
    assert (outcome.ok, says in outcome.fix) == (ok, True)


def test_a_machine_too_small_for_the_papers_models_is_told(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(
        "mlx_backends.models.memory_and_cache_sizes._available", lambda device: (2**30, "a small machine")
    )
    memory = machine_checks.memory(Workspace(tmp_path))
    assert memory.ok
    assert "`rashomon demo` still runs" in memory.fix


def test_a_mac_is_examined_for_what_slows_or_panics_it(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(machine_checks, "load_state", lambda: (["low power mode is on."], ""))
    monkeypatch.setattr(
        machine_checks, "recent_panics", lambda: [Panic(f"{n}.panic", date(2026, 11, n)) for n in range(5, 0, -1)]
    )
    load, panics = machine_checks.load(Workspace(tmp_path)), machine_checks.panics(Workspace(tmp_path))
    assert load.ok
    assert load.fix == "low power mode is on."
    assert panics.ok
    assert "5.panic (2026-11-05), 4.panic (2026-11-04), 3.panic (2026-11-03) and 2 more" in panics.message
    assert "RASHOMON_NO_WIRED_LIMIT=1" in panics.fix
    monkeypatch.setattr(machine_checks, "load_state", lambda: ([], ""))
    monkeypatch.setattr(machine_checks, "recent_panics", list)
    assert (
        machine_checks.load(Workspace(tmp_path)).message == "no memory pressure, no other models in memory, full power"
    )
    assert not machine_checks.load(Workspace(tmp_path)).fix
    assert not machine_checks.panics(Workspace(tmp_path)).fix


@pytest.mark.parametrize(("gigabytes", "limits"), [(8, True), (16, False)])
def test_a_small_mac_is_told_to_limit_images(
    gigabytes: int, limits: bool, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    available = estimated_working_set(gigabytes * 2**30)
    monkeypatch.setattr(sys, "platform", "darwin")
    monkeypatch.setattr("mlx_backends.models.memory_and_cache_sizes._available", lambda device: (available, "Metal"))
    assert ("--max-pixels 3400000" in machine_checks.memory(Workspace(tmp_path)).fix) is limits
