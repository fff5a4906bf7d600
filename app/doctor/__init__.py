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
    from app.doctor import (
        content_checks,
        library_checks,
        machine_checks,
        package_name_check,
        workspace_and_network_checks,
    )

    checks: tuple[Check, ...] = (
        machine_checks.machine,
        machine_checks.memory,
        *((machine_checks.load, machine_checks.panics) if sys.platform == "darwin" else ()),
        library_checks.packages,
        package_name_check.names,
        machine_checks.mlx,
        machine_checks.torch,
        library_checks.mlx_vlm,
        library_checks.extras,
        library_checks.plugins,
        workspace_and_network_checks.workspace,
        workspace_and_network_checks.cache,
        content_checks.models,
        content_checks.data,
        content_checks.demo,
        content_checks.device,
        content_checks.checks,
        content_checks.features,
        workspace_and_network_checks.network,
        workspace_and_network_checks.proxies,
        workspace_and_network_checks.hub,
        workspace_and_network_checks.keys,
    )
    return (result for check in checks for result in _results(check(workspace)))


def _results(result: CheckResult | list[CheckResult]) -> list[CheckResult]:
    return result if isinstance(result, list) else [result]
