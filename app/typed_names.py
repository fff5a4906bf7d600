"""Names of models, judges and prompt sets as typed, and the same with absolute paths."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.errors import SpecError
from benchmarks.prompt_template import SUFFIX
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from judges.judge_registry import judging_members
from mlx_backends.engine_registry import has_prefix
from mlx_backends.models.adapter_folder import join_adapter, split_adapter
from mlx_backends.pytorch.torch_names_and_devices import split_name


def absolute_models(value: Any, base: Path) -> Any:
    """Return the list of models with folders below ``base`` made absolute; a value of another type as it is."""
    if isinstance(value, str):
        value = [value]
    if not isinstance(value, list):
        return value
    return [_absolute(model, base) if isinstance(model, str) and model else model for model in value]


def with_members(values: Mapping[str, Any]) -> dict[str, Any]:
    """Return a spec's ``values`` with the members of a panel that judges in its place. Raises SpecError."""
    names = [values["judge"]] if isinstance(values.get("judge"), str) else values.get("judge")
    if not isinstance(names, (list, tuple)) or not all(isinstance(name, str) for name in names):
        return dict(values)
    members, undecided_by = judging_members(names)
    return {**values, "judge": members, **({"undecided_by": undecided_by} if undecided_by else {})}


def absolute_prompt_files(value: Any, base: Path) -> Any:
    """Return the list of prompt sets with files below ``base`` made absolute; a value of another type as it is."""
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, list):
        return value
    return [str(typed_path(name, base)) if isinstance(name, str) and name.endswith(SUFFIX) else name for name in names]


def _absolute(model: str, base: Path) -> str:
    prefix, path, suffix = split_name(model)
    path, adapter = split_adapter(path, base)
    if path and path_exists(path, base):
        path = str(typed_path(path, base))
    return f"{prefix}{path if adapter is None else join_adapter(path, str(typed_path(adapter, base)))}{suffix}"


def with_adapter(model: str, adapter: str | None) -> str:
    """Return ``model`` with ``adapter``. Raises SpecError for a model that takes none, or has another."""
    prefix, path, suffix = split_name(model)
    if adapter is None:
        return model
    if not prefix and has_prefix(model):
        raise SpecError(f"{model} cannot run with an adapter; --adapter is for models of this machine.")
    if split_adapter(path)[1] is not None:
        raise SpecError(f"{model} names an adapter already; remove it, or --adapter.")
    return f"{prefix}{join_adapter(path, adapter)}{suffix}"


def resolve_models(names: Sequence[str]) -> list[str]:
    """Return judges or models as typed, without duplicates, with folders below the current one made absolute."""
    return list(dict.fromkeys(absolute_models(list(names), Path())))


def resolve_judges(names: Sequence[str]) -> tuple[list[str], str | None]:
    """Return judges as :func:`resolve_models`, and the one for whose undecided answers alone models are asked, if any.

    Raises SpecError as :func:`judges.judge_registry.judging_members` does.
    """
    members, undecided_by = judging_members(names)
    return resolve_models(members), undecided_by
