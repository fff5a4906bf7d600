"""Models and adapters for other programs: ``models adapter``, and ``models fuse --layout hf``; with a check of the answers."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from app.commands.data_and_models.new_folder import new_folder
from app.commands.terminal.spinner import spinner
from app.text.text_escaping import clean
from benchmarks.errors import ModelError, SpecError
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.greedy_check import TORCH, Agreement, compare, greedy_answers, torch_problem
from mlx_backends.models.adapter_folder import TRAINING, Adapter, join_adapter, read_adapter
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_discovery import ModelInfo, inspect, resolve


def convert_adapter(adapter: Path, model: str, *, to_peft: Path | None, to_mlx: Path | None) -> int:
    """Write ``adapter`` of ``model`` in the other library's format to a folder; return the exit code."""
    target = to_peft or to_mlx
    if target is None or (to_peft and to_mlx):
        raise SpecError("name one folder to write, with --to-peft or --to-mlx.")
    source, info = typed_path(adapter), inspect(resolve(model))
    lines: list[str] = []
    with new_folder(target) as folder:
        if to_peft:
            lines = _to_peft(read_adapter(source), info, model, folder)
        else:
            from mlx_backends.mlx.adapters.from_peft import convert_from_peft

            convert_from_peft(source, info, folder)
        if (source / TRAINING).is_file():
            shutil.copyfile(source / TRAINING, folder / TRAINING)
    print(f"converted {clean(adapter.name)} to {'peft' if to_peft else 'mlx-vlm'}, in {clean(str(typed_path(target)))}")
    for line in lines:
        print(clean(line))
    return 0


def print_agreements(info: ModelInfo, adapter: Adapter, folder: Path) -> None:
    """Print which programs answer alike with the fused model in ``folder``."""
    for agreement in _fused_agreements(info, adapter, folder, inspect(folder).weights_bytes):
        print(clean(agreement.sentence))


def _fused_agreements(info: ModelInfo, adapter: Adapter, folder: Path, weights_bytes: int) -> list[Agreement]:
    programs = {"mlx-vlm": str(folder), "transformers": f"{TORCH}{folder}"}
    fit = memory_fit(2 * weights_bytes)
    if not fit.ok:
        return [Agreement(name, problem=f"in 32 bits {fit.sentence}.") for name in programs]
    with spinner("comparing answers"):
        try:
            expected = greedy_answers(join_adapter(str(info.path), str(adapter.path)))
        except ModelError as error:
            return [Agreement("mlx-vlm", problem=str(error))]
        problem = torch_problem()
        return [
            Agreement(name, problem=problem) if problem and name == "transformers" else compare(name, expected, model)
            for name, model in programs.items()
        ]


def _to_peft(adapter: Adapter, info: ModelInfo, model: str, folder: Path) -> list[str]:
    """Write ``adapter`` as peft's to ``folder``; return lines on what was checked."""
    from mlx_backends.mlx.adapters.to_peft import convert_to_peft

    convert_to_peft(adapter, info, str(typed_path(model)) if path_exists(model) else model, folder)
    lines = [_read_back(adapter, info, folder)]
    problem = torch_problem("peft")
    fit = memory_fit(info.weights_bytes * (8 if _is_quantised(info) else 2))
    if problem or not fit.ok:
        lines.append(Agreement("peft", problem=problem or f"in 32 bits {fit.sentence}.").sentence)
    else:
        with spinner("comparing answers"):
            try:
                expected = greedy_answers(join_adapter(str(info.path), str(adapter.path)))
                lines.append(compare("peft", expected, f"{TORCH}{info.path}", folder).sentence)
            except ModelError as error:
                lines.append(Agreement("peft", problem=str(error)).sentence)
    if adapter.base_quantisation or _is_quantised(info):
        lines.append(
            f"note: the adapter was fitted to {adapter.base_quantisation or info.quantisation} weights of MLX, and peft needs "
            "the original model, with which its answers can differ; `rashomon models fuse --layout hf` keeps them."
        )
    return lines


def _read_back(adapter: Adapter, info: ModelInfo, folder: Path) -> str:
    """Return a line on the adapter as it is read from ``folder`` again. Raises ModelError if any number differs."""
    import mlx.core as mx

    from mlx_backends.mlx.adapters.from_peft import convert_from_peft

    with scratch_folder() as copied:
        convert_from_peft(folder, info, copied)
        copy = read_adapter(copied)
        first: Any = mx.load(str(adapter.weights))
        second: Any = mx.load(str(copy.weights))
        is_same = first.keys() == second.keys() and all(bool(mx.array_equal(first[key], second[key])) for key in first)
        if not is_same or copy.scale != adapter.scale:
            raise ModelError(f"the adapter {adapter.name} read from peft's format is not the one that was written.")
    return f"read back: {len(first)} tensors, bit for bit the same"


def _is_quantised(info: ModelInfo) -> bool:
    return "bit" in (info.quantisation or "")
