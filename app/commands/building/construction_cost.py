"""Cost of a construction: the calls, tokens, seconds and money of its models."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

from app.engine.cached_text_models import CachedTextModel
from app.json_output.builds_json import ModelUsage
from app.text.plural import count_of
from benchmarks.build import BuildOptions
from benchmarks.text_model import TextModel
from benchmarks.untrusted.safe_files import UnsafeFileError, read_bytes, replace_file
from benchmarks.untrusted.safe_json import parse_json
from mlx_backends.options import RemoteOptions
from mlx_backends.remote.api_budget import Budget

_SUFFIX = "-usage.json"
"""The end of the name of the file beside a build with what its construction has cost in all commands so far."""

_LARGEST = 1 << 20
_SUMMED = ("replies", "cached", "failed", "prompt_tokens", "completion_tokens", "seconds", "cost")


def construction_usage(options: BuildOptions, remote: RemoteOptions) -> tuple[ModelUsage, ...]:
    """Return the usage of the models that a construction asked, in order of their roles; ``remote`` has the prices."""
    roles: dict[int, tuple[CachedTextModel, list[str]]] = {}
    for role, model in _roles(options):
        if isinstance(model, CachedTextModel):
            roles.setdefault(id(model), (model, []))[1].append(role)
    return tuple(_usage(model, names, remote) for model, names in roles.values() if model.usage.replies)


def record_usage(usage: Sequence[ModelUsage], folder: Path) -> tuple[ModelUsage, ...]:
    """Add the usage of a command to what the build in ``folder`` has cost before, and return the sums.

    A command that was interrupted counts, so that the sums are those of the whole construction. A file that cannot be read is
    begun anew.
    """
    if not usage:
        return ()
    name = folder.name + _SUFFIX
    before: dict[str, ModelUsage] = {}
    with suppress(OSError, UnsafeFileError, ValueError, TypeError, KeyError):
        for row in parse_json(read_bytes(folder.parent, name, limit=_LARGEST).decode()):
            before[row["model"]] = ModelUsage(**row | {"roles": tuple(row["roles"])})
    for model in usage:
        before[model.model] = _sum(before[model.model], model) if model.model in before else model
    text = json.dumps([asdict(model) for model in before.values()], indent=2, ensure_ascii=False)
    folder.parent.mkdir(parents=True, exist_ok=True)
    replace_file(folder.parent, name, f"{text}\n".encode())
    return tuple(before.values())


def _sum(before: ModelUsage, now: ModelUsage) -> ModelUsage:
    sums: dict[str, Any] = {}
    for name in _SUMMED:
        values = [value for value in (getattr(before, name), getattr(now, name)) if value is not None]
        sums[name] = sum(values) if values else None
    return replace(now, roles=tuple(dict.fromkeys((*before.roles, *now.roles))), **sums)


def usage_line(usage: ModelUsage) -> str:
    """Return the usage of a model in words."""
    tokens = f"{usage.prompt_tokens:,} + {usage.completion_tokens:,} tokens"
    seconds = "" if usage.seconds is None else f", {usage.seconds:,.1f} s of generation"
    money = "" if usage.cost is None else f", {usage.cost:.4f} in the currency of the prices"
    cached = f" ({usage.cached:,} from the cache)" if usage.cached else ""
    failed = f", {usage.failed:,} failed" if usage.failed else ""
    roles = ", ".join(usage.roles)
    return f"{usage.model} ({roles}): {count_of(usage.replies, 'call')}{cached}{failed}, {tokens}{seconds}{money}"


def _roles(options: BuildOptions) -> Iterator[tuple[str, TextModel | None]]:
    yield "writer", options.writer
    yield from (("checker", model) for model in options.checkers)
    yield from (("reader", model) for model in options.readers)
    yield from ((f"captioner of {modality}", model) for modality, model in options.captioners.items())


def _usage(model: CachedTextModel, roles: Sequence[str], remote: RemoteOptions) -> ModelUsage:
    usage = model.usage
    cost = Budget(remote).cost(usage.prompt_tokens, usage.completion_tokens) if model.is_remote else None
    return ModelUsage(
        model=model.name,
        roles=tuple(dict.fromkeys(roles)),
        replies=usage.replies,
        cached=usage.cached,
        failed=usage.failed,
        prompt_tokens=usage.prompt_tokens,
        completion_tokens=usage.completion_tokens,
        seconds=None if model.is_remote else round(usage.seconds, 2),
        cost=cost,
    )
