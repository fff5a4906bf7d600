"""Loading a model through mlx-vlm or mlx-lm: from its folder alone, running nothing that lies in it."""

from __future__ import annotations

import glob
import re
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stdout
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError, RashomonError
from mlx_backends.core.template_process import bound_templates
from mlx_backends.models.discovery import model_name, read_config
from mlx_backends.models.tokenizer_limits import check_tokenizer


def supported(path: Path) -> None:
    """Raises ModelError where mlx-vlm has no vision-language model of the type that the folder ``path`` declares."""
    config = read_config(path)
    declared = config.get("model_type")
    with contained():
        import mlx_vlm.models
        from mlx_vlm.utils import get_model_type

        roots = [Path(root) for root in mlx_vlm.models.__path__]
        try:
            kind = get_model_type(config)
        except (AttributeError, TypeError, ValueError):  # of a configuration that is not made as such files are
            kind = None
    plain = kind is not None and re.fullmatch(r"\w+", kind) is not None
    if not plain or not any((root / str(kind) / "__init__.py").is_file() for root in roots):
        raise ModelError(
            f"{model_name(path)} is of type {declared!r}, which this version of mlx-vlm does not know; "
            "update mlx-vlm or choose another model."
        )


def supported_text(path: Path) -> None:
    """Raises ModelError where mlx-lm has no model of the type that the folder ``path`` declares."""
    declared = read_config(path).get("model_type")
    with contained():
        import mlx_lm.models
        from mlx_lm.utils import MODEL_REMAPPING

        roots = [Path(root) for root in mlx_lm.models.__path__]
    kind = MODEL_REMAPPING.get(declared, declared) if isinstance(declared, str) else ""
    if not re.fullmatch(r"[\w-]+", kind) or not any((root / f"{kind}.py").is_file() for root in roots):
        raise ModelError(
            f"{model_name(path)} is a text-only model of type {declared!r}, which this version of mlx-lm does not know; "
            "update mlx-lm or choose another model."
        )


def load(path: Path) -> tuple[Any, Any]:
    """The vision-language model and the processor of folder ``path``, in memory.

    Nothing is fetched, no code of the model's folder is run, and what libraries print goes to standard error.
    Raises ModelError where it cannot be loaded.
    """
    check_tokenizer(path)
    try:
        with contained():
            from mlx_vlm import load as load_vlm
            from transformers.utils import logging

            logging.set_verbosity_error()  # it warns at every prompt of something that is mlx-vlm's to change
            # Without the explicit False, mlx-vlm's own processors turn it on.
            with _globbed(path) as place:
                model, processor = load_vlm(place, trust_remote_code=False)
    except Exception as error:  # whatever a folder's content makes a dozen libraries raise
        raise ModelError(f"{model_name(path)} could not be loaded: {one_line(error)}") from error
    return model, processor


def load_text(path: Path) -> tuple[Any, Any]:
    """The text-only model of folder ``path`` and mlx-lm's tokenizer for it, in memory; otherwise as :func:`load`.

    The tokenizer's ``eos_token_ids`` are all the tokens that end an answer: by the model's configuration, by its generation
    settings, and the tokenizer's own.
    """
    check_tokenizer(path)
    try:
        with contained():
            from mlx_lm import load as load_lm
            from transformers.utils import logging

            logging.set_verbosity_error()
            trust = {"trust_remote_code": False}
            with _globbed(path) as place:
                model, tokenizer = load_lm(place, tokenizer_config=trust, trust_remote_code=False)
    except Exception as error:  # whatever a folder's content makes a dozen libraries raise
        raise ModelError(f"the text-only model {model_name(path)} could not be loaded: {one_line(error)}") from error
    ends = read_config(path).get("eos_token_id")  # mlx-lm takes the generation settings' instead
    tokenizer.eos_token_ids |= {end for end in (ends if isinstance(ends, list) else [ends]) if isinstance(end, int)}
    return model, tokenizer


@contextmanager
def _globbed(path: Path) -> Iterator[str]:
    """The folder under a name in which no character is a pattern's: both libraries look for weights by ``glob``."""
    if not glob.has_magic(str(path)):
        yield str(path)
        return
    with tempfile.TemporaryDirectory() as folder:
        link = Path(folder) / "model"
        link.symlink_to(path.absolute(), target_is_directory=True)
        yield str(link)


@contextmanager
def contained() -> Iterator[None]:
    """No network, no code from a model's folder, nothing on standard output; chat templates in a process of their own."""
    import huggingface_hub.constants
    import transformers.dynamic_module_utils

    bound_templates()

    def refuse(*_: object, **__: object) -> None:
        raise ModelError("it needs code that lies in its folder, and Rashomon runs none from a model; choose another.")

    with (
        redirect_stdout(sys.stderr),
        _set(huggingface_hub.constants, "HF_HUB_OFFLINE", True),
        _set(transformers.dynamic_module_utils, "get_class_in_module", refuse),
    ):
        yield


@contextmanager
def _set(module: Any, name: str, value: object) -> Iterator[None]:
    before = getattr(module, name)
    setattr(module, name, value)
    try:
        yield
    finally:
        setattr(module, name, before)


def one_line(error: BaseException) -> str:
    """An exception as one line of printable text, of at most 300 characters."""
    said = " ".join(str(error).split())
    kind = "" if isinstance(error, RashomonError) and said else error.__class__.__name__ + (": " if said else "")
    return "".join(c if c.isprintable() else "?" for c in kind + said)[:300]
