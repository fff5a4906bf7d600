"""Checks of folders and access: the workspace, the Hub's cache, the network, tokens and API keys."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from pathlib import Path

from app.doctor.check_result import CheckResult
from app.store.workspace import Workspace
from benchmarks.errors import SpecError
from benchmarks.fetch.hub_repository import is_offline
from benchmarks.fetch.proxies import CARRIED, proxy_for_scheme
from benchmarks.untrusted.system_tools import tool_output

_LOW_DISK_BYTES = 5 * 10**9
_NETWORK_FILESYSTEMS = (
    "nfs",
    "cifs",
    "smb",
    "afp",
    "webdav",
    "sshfs",
    "9p",
    "ceph",
    "glusterfs",
    "fuse.rclone",
    "fuse.s3fs",
)


def workspace(workspace: Workspace) -> CheckResult:
    """Check that the workspace is writable, has free space and is on a disk that is safe for a database."""
    try:
        free_bytes = _free(workspace.path)
    except OSError as error:
        message = f"{workspace.path}: {error.strerror}"
        return CheckResult("workspace", False, message, "choose another with --workspace or RASHOMON_WORKSPACE.")
    message = f"{workspace.path}, {free_bytes / 1e9:.1f} GB free, {len(workspace.run_names())} runs"
    if warning := workspace.warning():
        return CheckResult("workspace", True, message, warning)
    if kind := network_filesystem(workspace.path):
        fix = f"it is on a network disk ({kind}), where file locks may fail; choose a local folder with --workspace."
        return CheckResult("workspace", True, message, fix)
    if free_bytes < _LOW_DISK_BYTES:
        return CheckResult("workspace", True, message, "free some disk space; models and media need gigabytes.")
    return CheckResult("workspace", True, message)


def cache(workspace: Workspace) -> CheckResult:
    """Check that the Hub's cache is writable and has free space."""
    from benchmarks.fetch.hub_cache import hub_cache

    folder = hub_cache()
    try:
        free_bytes = _free(folder)
    except OSError as error:
        message = f"{folder}: {error.strerror}"
        return CheckResult("cache", True, message, "models cannot be fetched; set HF_HOME to a writable folder.")
    message = f"{folder}, {free_bytes / 1e9:.1f} GB free"
    if free_bytes < _LOW_DISK_BYTES:
        return CheckResult(
            "cache",
            True,
            message,
            "a 4-bit model takes 1 to 10 GB; free some disk space, or set HF_HOME to a larger disk.",
        )
    return CheckResult("cache", True, message)


def network(workspace: Workspace) -> CheckResult:
    """Check that fetching is allowed."""
    if is_offline():
        fix = "unset it to use `rashomon data get` and `rashomon models get`."
        return CheckResult("network", True, "HF_HUB_OFFLINE is set", fix)
    others = [name for name in ("HF_ENDPOINT", "RASHOMON_MIRROR") if os.environ.get(name)]
    via = f", through {', '.join(others)}" if others else ""
    return CheckResult("network", True, f"used only by commands that say so{via}")


def proxies(workspace: Workspace) -> CheckResult:
    """List the proxies in effect without their credentials, and what goes through them."""
    try:
        in_effect = [(scheme, proxy) for scheme in CARRIED if (proxy := proxy_for_scheme(scheme))]
    except SpecError as error:
        return CheckResult("proxies", False, "a proxy is invalid, so nothing that needs it can be sent", str(error))
    if not in_effect:
        return CheckResult("proxies", True, "none")
    carried = ", ".join(f"{scheme} through {proxy.name} ({proxy.source})" for scheme, proxy in in_effect)
    what = "downloads, uploads, and what remote models are sent; not to this machine, nor to hosts in NO_PROXY"
    return CheckResult("proxies", True, f"{carried}: {what}")


def hub(workspace: Workspace) -> CheckResult:
    """Check whether there is a Hub token, without printing it."""
    home = os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "huggingface"
    file = Path(os.environ.get("HF_TOKEN_PATH") or Path(home).expanduser() / "token")
    if os.environ.get("HF_TOKEN"):
        return CheckResult("hub token", True, "HF_TOKEN is set")
    if file.is_file():
        return CheckResult("hub token", True, f"logged in ({file})")
    return CheckResult("hub token", True, "none; only gated repositories need one (`hf auth login`)")


def keys(workspace: Workspace) -> CheckResult:
    """List the API keys that are set, by name and place; their values are not read from the keychain."""
    from mlx_backends.remote.api_keys import VARIABLES, keychain_entries

    in_environment = [name for name in VARIABLES if os.environ.get(name)]
    in_keychain = keychain_entries()
    places = [f"set: {', '.join(in_environment)}"] if in_environment else []
    if in_keychain:
        places.append(f"in the keychain: {', '.join(in_keychain)}")
    return CheckResult("keys", True, "; ".join(places) or "none set; local models and rule-based judges need none")


def network_filesystem(place: Path) -> str | None:
    """Return the file system of ``place`` if it is on a network disk, or else None."""
    text = str(place)
    mounts = [
        (mount, kind)
        for mount, kind in _mounts()
        if text == mount or text.startswith(mount.rstrip("/") + "/") or mount == "/"
    ]
    kind = max(mounts, default=("", ""), key=lambda entry: len(entry[0]))[1]
    return kind if kind.startswith(_NETWORK_FILESYSTEMS) else None


def _mounts() -> list[tuple[str, str]]:
    """Return the mount points and their file systems."""
    try:
        if sys.platform == "darwin":
            lines_of_mount = tool_output("/sbin/mount").splitlines()
            parts = (line.partition(" on ")[2].rpartition(" (") for line in lines_of_mount)
            return [(where, rest.split(",")[0].rstrip(")")) for where, _, rest in parts if where]
        lines = (line.split() for line in Path("/proc/mounts").read_text().splitlines())
        return [(line[1].replace("\\040", " "), line[2]) for line in lines if len(line) > 2]
    except OSError:
        return []


def _free(place: Path) -> int:
    """Return the free bytes at ``place``, which need not exist yet. Raises OSError if it is not writable."""
    while not place.exists():
        place = place.parent
    with tempfile.TemporaryFile(dir=place):
        return shutil.disk_usage(place).free
