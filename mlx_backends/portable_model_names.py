"""Names of models as they may be passed on: without the folders of this machine."""

from __future__ import annotations

from pathlib import Path

from mlx_backends.baseline_engine import baseline_name, split_baseline
from mlx_backends.models.adapter_folder import adapter_name, join_adapter, split_adapter
from mlx_backends.models.model_discovery import model_name
from mlx_backends.pytorch.torch_names_and_devices import split_name

_ROOTS = ("/", "~", ".")
"""The beginnings of paths, with which no Hub id begins."""


def without_folders(model: str) -> str:
    """Return the name of a model with each folder in it, also an adapter's, replaced by the folder's own name.

    A snapshot in a Hugging Face cache gets its Hub id. Hub ids, addresses and all other names stay.
    """
    rule, of = split_baseline(model)
    if rule:
        return baseline_name(rule, without_folders(of))
    prefix, name, options = split_name(model)
    if not prefix and ":" in name and not name.startswith(_ROOTS):  # another engine's
        engine, _, rest = name.partition(":")
        return f"{engine}:{model_name(Path(rest))}" if rest.startswith(_ROOTS) else model
    name, adapter = split_adapter(name)
    if name.startswith(_ROOTS) or name.count("/") > 1:  # a Hub id is OWNER/NAME
        name = model_name(Path(name)) or name
    if adapter is not None:
        name = join_adapter(name, adapter_name(adapter))
    return f"{prefix}{name}{options}"
