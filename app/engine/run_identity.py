"""Identities of runs and trainings: what must be the same for one to be resumed."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from mlx_backends.base import EngineInfo

_VERSION = "version of "
_DEVICE = "device"


def engine_facts(info: EngineInfo) -> dict[str, Any]:
    """Return the device and versions of an engine, as parts of an identity."""
    return {_DEVICE: info.device, **{_VERSION + name: version for name, version in info.versions.items()}}


def is_engine_fact(key: str) -> bool:
    """Return whether a part of an identity, or a difference in it, is of :func:`engine_facts`."""
    return key.startswith((_VERSION, _DEVICE))


def engine_in(identity: Mapping[str, Any], info: EngineInfo) -> EngineInfo:
    """Return ``info`` with the device and the versions in a run's identity."""
    versions = {key.removeprefix(_VERSION): value for key, value in identity.items() if key.startswith(_VERSION)}
    return replace(info, device=identity[_DEVICE], versions=versions)


def with_engine(identity: Mapping[str, Any], info: EngineInfo) -> dict[str, Any]:
    """Return a run's identity with the device and the versions of the engine that answers."""
    return {**{key: value for key, value in identity.items() if not is_engine_fact(key)}, **engine_facts(info)}


def differences(before: Mapping[str, Any], after: Mapping[str, Any]) -> list[str]:
    """Return the differences as "key: was ..., is ...", in words for options and with digests shortened."""
    keys = [key for key in {**before, **after} if before.get(key) != after.get(key)]
    return [f"{key}: was {_short(before.get(key))}, is {_short(after.get(key))}" for key in keys]


def refused_differences(
    recorded: Mapping[str, Any], identity: Mapping[str, Any], *, accept_engine: bool
) -> tuple[list[str], str]:
    """Return the differences for which nothing may be resumed, and the advice if the engine alone differs.

    With ``accept_engine``, another device and other versions of the engine are none.
    """
    changes = differences(recorded, identity)
    engine = [change for change in changes if is_engine_fact(change)]
    if accept_engine:
        return [change for change in changes if change not in engine], ""
    return changes, "add --accept-engine to continue anyway" if changes == engine else ""


def _short(value: Any) -> str:
    if value is None or isinstance(value, bool):
        return {None: "not set", True: "on", False: "off"}[value]
    return value[:12] if isinstance(value, str) and re.fullmatch("[0-9a-f]{64}", value) else repr(value)
