"""Machines on one network, each a network namespace of Linux: what runs in one of them can be cut off from the others."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass

import pytest

from tests.support.command import Rashomon


class Machines:
    """``count`` machines, numbered from 0, and the switch that joins them."""

    def __init__(self, count: int) -> None:
        self._prefix = f"r{os.getpid() % 100_000}"
        self._switch = f"{self._prefix}s"
        self._count = count
        _ip("netns", "add", self._switch)
        _ip("-n", self._switch, "link", "add", "switch", "type", "bridge")
        _ip("-n", self._switch, "link", "set", "switch", "up")
        for number in range(count):
            name, plug = self._name(number), f"p{number}"
            _ip("netns", "add", name)
            _ip("-n", self._switch, "link", "add", plug, "type", "veth", "peer", "name", "eth0", "netns", name)
            _ip("-n", self._switch, "link", "set", plug, "master", "switch", "up")
            _ip("-n", name, "addr", "add", f"{self.address(number)}/24", "dev", "eth0")
            for device in ("lo", "eth0"):
                _ip("-n", name, "link", "set", device, "up")

    def _name(self, number: int) -> str:
        return f"{self._prefix}m{number}"

    def address(self, number: int) -> str:
        """Return a machine's address."""
        return f"10.77.0.{number + 1}"

    def prefix(self, number: int) -> list[str]:
        """Return the words before a command that run it on a machine."""
        return ["ip", "netns", "exec", self._name(number)]

    def cut(self, number: int) -> None:
        """Pull a machine's plug."""
        _ip("-n", self._switch, "link", "set", f"p{number}", "down")

    def join(self, number: int) -> None:
        """Put a machine's plug back."""
        _ip("-n", self._switch, "link", "set", f"p{number}", "up")

    def close(self) -> None:
        for name in (*map(self._name, range(self._count)), self._switch):
            with suppress(subprocess.CalledProcessError):
                _ip("netns", "del", name)


@dataclass(frozen=True)
class RashomonOn(Rashomon):
    """`rashomon` on one of the machines."""

    prefix: tuple[str, ...] = ()

    def command(self, *arguments: object) -> list[str]:
        return [*self.prefix, *super().command(*map(str, arguments))]


@contextmanager
def machines(count: int) -> Iterator[Machines]:
    """Machines, gone after the block; the test is skipped where they cannot be had."""
    try:
        network = Machines(count)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("machines need network namespaces, and the right to make them")
    try:
        yield network
    finally:
        network.close()


def _ip(*arguments: str) -> None:
    subprocess.run(["ip", *arguments], check=True, capture_output=True)
