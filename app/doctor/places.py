"""Places: the workspace, the Hub's cache, disks and networks, and the keys by their names."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

from app.doctor.finding import CheckResult
from app.fetch.hub import is_offline
from app.store.workspace import Workspace

_LOW_DISK_BYTES = 5 * 10**9
_REMOTE = ("nfs", "cifs", "smb", "afp", "webdav", "sshfs", "9p", "ceph", "glusterfs", "fuse.rclone", "fuse.s3fs")


def workspace(workspace: Workspace) -> CheckResult:
    """Whether the workspace can be written, has room, and lies where a database is safe."""
    try:
        free = _free(workspace.path)
    except OSError as error:
        told = f"{workspace.path}: {error.strerror}"
        return CheckResult("workspace", False, told, "name another with --workspace or RASHOMON_WORKSPACE.")
    told = f"{workspace.path}, {free / 1e9:.1f} GB free, {len(workspace.run_names())} runs"
    if warning := workspace.warning():
        return CheckResult("workspace", True, told, warning)
    if kind := remote_disk(workspace.path):
        mend = f"it is on a network disk ({kind}), where locks may not hold: name a folder of this machine with --workspace."
        return CheckResult("workspace", True, told, mend)
    if free < _LOW_DISK_BYTES:
        return CheckResult("workspace", True, told, "little disk space is left; models and media need gigabytes.")
    return CheckResult("workspace", True, told)


def cache(workspace: Workspace) -> CheckResult:
    """Whether models can be fetched into the Hub's cache, and whether there is room."""
    from mlx_backends.models.discovery import hub_cache

    place = hub_cache()
    try:
        free = _free(place)
    except OSError as error:
        told = f"{place}: {error.strerror}"
        return CheckResult(
            "cache", True, told, "no model can be fetched there; set HF_HOME to a folder that can be written."
        )
    told = f"{place}, {free / 1e9:.1f} GB free"
    if free < _LOW_DISK_BYTES:
        return CheckResult(
            "cache", True, told, "a model in 4 bits takes 1 to 10 GB; free some, or set HF_HOME to a larger disk."
        )
    return CheckResult("cache", True, told)


def network(workspace: Workspace) -> CheckResult:
    """Whether commands that fetch may."""
    if is_offline():
        mend = "`rashomon data get` and `rashomon models get` fetch nothing until it is unset."
        return CheckResult("network", True, "HF_HUB_OFFLINE is set", mend)
    proxies = [
        name
        for name in ("HTTPS_PROXY", "https_proxy", "ALL_PROXY", "HF_ENDPOINT", "RASHOMON_MIRROR")
        if os.environ.get(name)
    ]
    by = f", by way of {', '.join(proxies)}" if proxies else ""
    return CheckResult("network", True, f"used only by commands that say so{by}")


def hub(workspace: Workspace) -> CheckResult:
    """Whether there is a token for the Hub; never the token."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    file = Path(os.environ.get("HF_TOKEN_PATH") or Path(home).expanduser() / "token")
    if os.environ.get("HF_TOKEN"):
        return CheckResult("hub token", True, "HF_TOKEN is set")
    if file.is_file():
        return CheckResult("hub token", True, f"logged in ({file})")
    return CheckResult("hub token", True, "none; only gated repositories need one (`hf auth login`)")


def keys(workspace: Workspace) -> CheckResult:
    """Which keys of remote engines are set, by name."""
    from mlx_backends.remote.api_keys import VARIABLES

    found = [name for name in VARIABLES if os.environ.get(name)]
    told = f"set: {', '.join(found)}" if found else "none set; none is needed for local models and judges by rule"
    return CheckResult("keys", True, told)


def remote_disk(place: Path) -> str | None:
    """The kind of the network disk that ``place`` lies on, or None."""
    text = str(place)
    on = [
        (mount, kind)
        for mount, kind in _mounts()
        if text == mount or text.startswith(mount.rstrip("/") + "/") or mount == "/"
    ]
    kind = max(on, default=("", ""), key=lambda each: len(each[0]))[1]
    return kind if kind.startswith(_REMOTE) else None


def _mounts() -> list[tuple[str, str]]:
    """Where disks are mounted, and their kinds."""
    try:
        if sys.platform == "darwin":
            told = subprocess.run(["/sbin/mount"], capture_output=True, text=True, check=False, timeout=10).stdout
            parts = (line.partition(" on ")[2].rpartition(" (") for line in told.splitlines())
            return [(where, rest.split(",")[0].rstrip(")")) for where, _, rest in parts if where]
        lines = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
        return [(line[1].replace("\\040", " "), line[2]) for line in lines if len(line) > 2]
    except (OSError, subprocess.SubprocessError):
        return []


def _free(place: Path) -> int:
    """Bytes free where ``place`` is or will be. Raises OSError where nothing can be written."""
    while not place.exists():
        place = place.parent
    with tempfile.TemporaryFile(dir=place):
        return shutil.disk_usage(place).free
