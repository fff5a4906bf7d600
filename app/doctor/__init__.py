"""Checks of this machine, each with a message and a fix in one line."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from app.doctor.check_result import CheckResult

if TYPE_CHECKING:
    from app.store.workspace import Workspace

__all__ = ["CheckResult", "examine"]

Check = Callable[["Workspace"], CheckResult | list[CheckResult]]


def examine(workspace: Workspace) -> Iterator[CheckResult]:
    """Yield the results of each check as it completes; some take seconds."""
    from app.doctor import access, contents, libraries, machine, names

    checks: tuple[Check, ...] = (
        machine.machine,
        machine.memory,
        *((machine.load, machine.panics) if sys.platform == "darwin" else ()),
        libraries.packages,
        names.names,
        machine.mlx,
        machine.torch,
        libraries.mlx_vlm,
        libraries.extras,
        libraries.plugins,
        access.workspace,
        access.cache,
        contents.models,
        contents.data,
        contents.demo,
        contents.device,
        contents.checks,
        contents.features,
        access.network,
        access.proxies,
        access.hub,
        access.keys,
    )
    return (result for check in checks for result in _results(check(workspace)))


def _results(result: CheckResult | list[CheckResult]) -> list[CheckResult]:
    return result if isinstance(result, list) else [result]
