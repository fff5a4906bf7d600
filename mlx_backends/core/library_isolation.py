"""Isolation of libraries that load a model's folder: no network, no code of the folder, no chat templates in this process."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from typing import Any

from benchmarks.errors import ModelError
from mlx_backends.core.prompts.template_process import bound_templates
from mlx_backends.core.transformers_names import remember_names


@contextmanager
def contained() -> Iterator[None]:
    """Load libraries without network, code from a model's folder, standard output, or chat templates in this process."""
    remember_names()
    os.environ.setdefault("TRANSFORMERS_NO_ADVISORY_WARNINGS", "1")  # that PyTorch is missing, which nothing here needs
    import huggingface_hub.constants
    import transformers.dynamic_module_utils

    bound_templates()

    def refuse(*_: object, **__: object) -> None:
        raise ModelError("it needs code from its own folder, which Rashomon never runs; choose another model.")

    with (
        redirect_stdout(sys.stderr),
        _set(huggingface_hub.constants, "HF_HUB_OFFLINE", True),
        _set(transformers.dynamic_module_utils, "get_class_in_module", refuse),
    ):
        yield


@contextmanager
def _set(module: Any, name: str, value: object) -> Iterator[None]:
    previous = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, previous)
