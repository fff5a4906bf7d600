"""Loading of models through mlx-vlm or mlx-lm, from their folders alone, without running code in them."""

from __future__ import annotations

import glob
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from pathlib import Path
from typing import Any

from benchmarks.errors import ModelError
from benchmarks.untrusted.own_files import scratch_folder
from mlx_backends.core.error_text import one_line
from mlx_backends.core.library_isolation import contained
from mlx_backends.mlx.loaded_model_check import check_model
from mlx_backends.mlx.patches import apply_patches
from mlx_backends.models.config_forms import library_form
from mlx_backends.models.end_tokens import end_tokens
from mlx_backends.models.model_discovery import model_name, read_config
from mlx_backends.models.model_folder_check import check_tokens, has_head
from mlx_backends.models.model_types import refusal, text_type_problem, type_problem
from mlx_backends.models.tokenizer_limits import check_tokenizer


def check_supported(path: Path) -> None:
    """Raise ModelError where mlx-vlm has no vision-language model of the type that the folder ``path`` declares."""
    config = read_config(path)
    with contained():
        import mlx_vlm.models
        from mlx_vlm.utils import get_model_type

        roots = [Path(root) for root in mlx_vlm.models.__path__]
        try:
            kind = get_model_type(config)
        except (AttributeError, TypeError, ValueError):  # the configuration is malformed
            kind = None
    plain = kind is not None and re.fullmatch(r"\w+", kind) is not None
    reason = refusal({"model_type": kind}) if plain else None
    if reason or not plain or not any((root / str(kind) / "__init__.py").is_file() for root in roots):
        problem = reason or type_problem({"model_type": config.get("model_type")})
        raise ModelError(f"{model_name(path)} {problem or 'is of a type that this version of mlx-vlm does not know.'}")


def check_text_supported(path: Path) -> None:
    """Raise ModelError where mlx-lm has no model of the type that the folder ``path`` declares."""
    if (problem := text_type_problem(read_config(path))) is not None:
        raise ModelError(f"{model_name(path)} {problem}")


def import_libraries(engine: str) -> None:
    """Import what loading and answering need, for ``engine`` "mlx-vlm" or "mlx-lm"."""
    modules = (
        ("mlx_vlm", "mlx_backends.mlx.vlm_backend", "mlx_backends.mlx.batched_answers")
        if engine == "mlx-vlm"
        else ("mlx_lm", "mlx_backends.mlx.lm_backend")
    )
    with contained():
        for module in modules:
            import_module(module)


def load(path: Path) -> tuple[Any, Any]:
    """Return the vision-language model and the processor of folder ``path``, in memory.

    Nothing is fetched, no code of the model's folder is run, and what libraries print goes to standard error. An answer ends
    with any of the tokens that the folder names for it. Raises ModelError where the model cannot be loaded, or does not compute
    with what its folder says.
    """
    with library_folder(path) as (folder, config):
        try:
            with contained():
                from mlx_vlm import load as load_vlm
                from mlx_vlm.utils import get_model_type
                from transformers.utils import logging

                apply_patches(get_model_type(config))
                logging.set_verbosity_error()  # it warns at every prompt of something only mlx-vlm can change
                # Without the explicit False, mlx-vlm's own processors turn it on.
                model, processor = load_vlm(str(folder), trust_remote_code=False)
        except Exception as error:  # a malformed folder can make these libraries raise anything
            raise _load_error(path, error) from error
    check_model(model, path)
    if ends := end_tokens(path, config):
        model.config.eos_token_id = ends  # mlx-vlm takes either file's
    return model, processor


def load_processor(path: Path) -> tuple[Any, Any]:
    """Return the processor of the vision-language model in folder ``path``, and its configuration; no weights are read.

    Raises ModelError as :func:`load`.
    """
    with library_folder(path) as (folder, config):
        try:
            with contained():
                from mlx_vlm import utils
                from transformers.utils import logging

                apply_patches(utils.get_model_type(config))
                logging.set_verbosity_error()
                trust = {"trust_remote_code": False}
                model_module, _ = utils.get_model_and_args(config)  # brings the model's own processors along
                processor = utils.load_processor(folder, False, **trust)
                if (images := utils.load_image_processor(folder, **trust)) is not None:
                    processor.image_processor = images
                return processor, model_module.ModelConfig.from_dict(config)
        except Exception as error:  # a malformed folder can make these libraries raise anything
            raise _load_error(path, error) from error


def _load_error(path: Path, error: Exception, *, text_only: bool = False) -> ModelError:
    if isinstance(error, ImportError) and "torchvision" in str(error).lower():
        return ModelError(
            f"the image processor of {model_name(path)} needs torchvision, which is not installed; choose a model whose "
            "processor does without, or run `pip install torchvision`."
        )
    if isinstance(error, ValueError) and (mismatch := _MISMATCH.match(str(error))):
        return _weights_error(path, mismatch[0], text_only=text_only)
    subject = "the text-only model " if text_only else ""
    return ModelError(f"{subject}{model_name(path)} could not be loaded: {one_line(error)}")


_MISMATCH = re.compile(r"(Received|Missing) \d+ parameters[^:]*: \n?[^,\n]+|Expected shape [^\n]+")
"""Messages of mlx.nn for weights that are not a model's, up to the first name."""


def _weights_error(path: Path, mismatch: str, *, text_only: bool) -> ModelError:
    library, other = ("mlx-lm", "") if text_only else ("mlx-vlm", ", or cuda:MODEL@cpu for PyTorch")
    version = str(read_config(path).get("transformers_version"))
    writer = f", saved by transformers {version[:12]}," if re.match(r"\d+\.", version) else ""
    what = " ".join(mismatch.split()).rstrip(".")
    return ModelError(
        f"the names or shapes of the weights of {model_name(path)}{writer} are not those that this version of {library} "
        f"reads for its config.json ({what[:200]}); choose a version of the model that was converted for MLX{other}."
    )


def load_text(path: Path) -> tuple[Any, Any]:
    """Return the text-only model of folder ``path`` and mlx-lm's tokenizer for it, in memory; otherwise as :func:`load`."""
    with library_folder(path) as (folder, config):
        try:
            with contained():
                from mlx_lm import load as load_lm
                from transformers.utils import logging

                logging.set_verbosity_error()
                trust = {"trust_remote_code": False}
                model, tokenizer = load_lm(str(folder), tokenizer_config=trust, trust_remote_code=False)
        except Exception as error:  # a malformed folder can make these libraries raise anything
            raise _load_error(path, error, text_only=True) from error
    check_model(model, path)
    tokenizer.eos_token_ids |= set(end_tokens(path, config))  # mlx-lm takes either file's
    return model, tokenizer


@contextmanager
def library_folder(path: Path) -> Iterator[tuple[Path, dict[str, Any]]]:
    """Yield the folder to load instead of ``path``, and its configuration, once the files of ``path`` belong together.

    Both libraries look for weights by ``glob`` and read ``config.json`` themselves. Where they would misread either, the
    folder is a temporary one that links to the files of ``path``. Raises ModelError where the files contradict each other.
    """
    stated = read_config(path)
    config = library_form(stated, path / "config.json", has_head=has_head(path))
    check_tokens(path, config, check_tokenizer(path))
    if config == stated and not glob.has_magic(str(path)):
        yield path, config
        return
    with scratch_folder() as folder:
        for file in path.absolute().iterdir():
            if file.name != "config.json":
                (folder / file.name).symlink_to(file)
        (folder / "config.json").write_text(json.dumps(config), "utf-8")
        yield folder, config
