"""Connection to a cluster of Ray: its address, this process's environment for it, and what to do where it fails."""

from __future__ import annotations

import os
import platform
import secrets
import signal
import socket
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from app.engine.workers.cluster.cluster_interface import ClusterError
from app.engine.workers.cluster.node_worker import SECRETS
from benchmarks.untrusted.own_files import OwnFolder
from mlx_backends.core.error_text import one_line
from mlx_backends.remote.api_keys import hidden_from_processes

CONNECT_SECONDS = 5.0
"""The seconds in which a cluster's head must take a connection."""

_MANY_MACHINES = "RAY_ENABLE_WINDOWS_OR_OSX_CLUSTER"
"""The variable, read on every system, without which Ray listens on the loopback address only."""

_FILES = "RAY_TMPDIR"
"""The variable with the folder for the files of a cluster that Ray starts, and the beginning of the name of ours."""

_QUIET = {
    "RAY_AUTH_MODE": "token",
    "RAY_DEDUP_LOGS": "0",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_DISABLE_IMPORT_WARNING": "1",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # or a call after the connection is lost makes another, or a cluster
}
"""Environment variables for Ray in this process, where the user has not set them."""


@contextmanager
def ray_environment(own_folder: OwnFolder | None) -> Iterator[None]:
    """Set Ray's variables, and hide keys from the processes that start within the block.

    A cluster of our own, with a folder for its files, listens on the loopback address only.
    """
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    own = {}
    if own_folder is not None:
        os.environ.setdefault("RAY_AUTH_TOKEN", secrets.token_hex(32))  # otherwise Ray would store one
        own = {_MANY_MACHINES: "0", _FILES: str(own_folder.path)}
    before = {name: os.environ.get(name) for name in own}
    os.environ.update(own)
    try:
        with hidden_from_processes(SECRETS):
            yield
    finally:
        for name, earlier in before.items():
            if earlier is None:
                del os.environ[name]
            else:
                os.environ[name] = earlier


@contextmanager
def signals_kept() -> Iterator[None]:
    """Keep this process's handlers of signals, which Ray replaces."""
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def own_cluster_folder() -> OwnFolder:
    """Return a new folder for the files of a cluster of our own. Raises ModelError."""
    parent = Path(os.environ.get(_FILES) or "/tmp")  # not TMPDIR: a path of Ray's sockets has at most 103 bytes
    try:
        return OwnFolder(parent)
    except OSError as error:
        raise ClusterError(
            f"{parent} cannot be written ({error.strerror}); set {_FILES} to a folder that can."
        ) from error


def node_address(address: str) -> tuple[str, int] | None:
    """Return the host and the port of an address as ``RAY_ADDRESS`` gives it to a node; None for any other."""
    host, _, port = address.rpartition(":")
    return (host.strip("[]"), int(port)) if host and "/" not in host and port.isdecimal() and len(port) < 6 else None


def check_head(address: str, host: str, port: int) -> None:
    """Raise ModelError if nothing listens there: Ray would try for half a minute."""
    if error := unreachable(host, port):
        raise ClusterError(
            f"no cluster answers at {address} ({error.strerror or error}); check its address, and that `ray start --head` "
            "runs there with this port."
        ) from error


def unreachable(host: str, port: int) -> OSError | None:
    """Return why nothing takes connections there; None if something does."""
    try:
        socket.create_connection((host, port), CONNECT_SECONDS).close()
    except OSError as error:
        return error
    return None


def connection_error(address: str, error: Exception) -> ClusterError:
    """Return an error of the connection to ``address`` with what to do about it."""
    from ray.exceptions import AuthenticationError

    hint, cause = "", one_line(error)
    if isinstance(error, AuthenticationError):
        cause = "this machine lacks its token"
        hint = "; copy ~/.ray/auth_token from the head, or set RAY_AUTH_TOKEN to what `ray get-auth-token` prints there"
    elif isinstance(error, ConnectionAbortedError):  # what the head reports, as a traceback
        cause = one_line(type(error)(str(error).strip().rpartition("\n")[2].strip()))
        versions = f"Ray {version('ray')} and Python {platform.python_version()}"
        hint = f"; try again if its head is busy, and check that it has what this machine has: {versions}"
    elif isinstance(error, ConnectionError) and "//" in address:
        hint = (
            "; check that the port is the client server's (10001 unless the head has another), and that this machine has "
            "the cluster's token (`ray get-auth-token`), its TLS settings and the same Ray"
        )
    elif isinstance(error, ConnectionError):
        hint = (
            "; check that this machine is a node of it (any other needs --workers ray://HOST:10001), and has its token "
            "(`ray get-auth-token`)"
        )
    return ClusterError(f"the cluster {address} cannot be used: {cause}{hint}.")
