"""``rashomon models fuse``: an adapter fused into a model's folder, and the check of what that keeps."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from app.annotation.review_session import find_build
from app.commands.data_and_models.model_export_command import print_agreements
from app.commands.data_and_models.new_folder import new_folder, temporary_folder, writing
from app.commands.terminal.spinner import counter, spinner
from app.engine.cached_text_models import LocalModelSlot
from app.engine.fusing.fusing_answers import answers
from app.engine.fusing.held_out_rows import HeldOutRows, rows_of, validation_rows
from app.exit_codes import DONE, INCONCLUSIVE, REGRESSED, EndedError
from app.report.tables.single_source_accuracy import join_names
from app.store.workspace import Workspace
from app.text.text_escaping import clean, size
from benchmarks import number_ranges as ranges
from benchmarks.errors import BusyError, ModelError, RashomonError, SourceError, SpecError, StoreError
from benchmarks.training.training_set import TrainingSet, is_training_set
from benchmarks.untrusted.own_files import sweep
from benchmarks.untrusted.safe_files import replace_file, write_error
from benchmarks.untrusted.safe_json import OutsideJSONError, read_json_file
from benchmarks.untrusted.typed_paths import path_exists, typed_path
from mlx_backends.core.response_cache import ResponseCache
from mlx_backends.mlx.adapters.fuse_adapter import CODES, FuseOptions, check_fusable, fuse, fuse_record
from mlx_backends.mlx.adapters.fuse_hf import fuse_to_hf
from mlx_backends.mlx.adapters.mlx_adapter import changes_nothing
from mlx_backends.models.adapter_folder import FUSED, Adapter, join_adapter, read_adapter
from mlx_backends.models.fuse_effect import CHECK, FuseEffect
from mlx_backends.models.memory_and_cache_sizes import memory_fit
from mlx_backends.models.model_discovery import ModelInfo, inspect, read_config, resolve

CHECK_ROWS = 48
"""The rows that a fused model is checked on by default."""

_DIGEST, _OPTIONS = "data digest", "options"
_EIGHT = 8


@dataclass(frozen=True)
class FuseArguments:
    """Arguments of the command."""

    model: str
    adapter: Path
    target: Path
    bits: int | None = None
    dequantise: bool = False
    layout: Literal["mlx", "hf"] = "mlx"
    check: Path | None = None
    no_check: bool = False
    check_rows: int | None = None
    wait: float | None = None

    def verify(self) -> None:
        """Raise SpecError for values that are outside their range, or contradict each other."""
        ranges.WEIGHT_BITS.check("--bits", self.bits)
        ranges.ROWS.check("--check-rows", self.check_rows)
        if self.bits is not None and self.dequantise:
            raise SpecError("--bits quantises and --dequantise does not; leave one of them out.")
        if self.bits is not None and self.layout == "hf":
            raise SpecError("--layout hf stores unquantised weights; leave --bits out, or fuse for MLX.")
        if self.no_check and (self.check is not None or self.check_rows is not None):
            raise SpecError("--no-check leaves the check out; leave out --check and --check-rows, too.")


def fuse_command(workspace: Workspace, arguments: FuseArguments) -> int:
    """Write a model with an adapter in its weights to a new folder, and check it; return the exit code.

    A folder that the same command wrote earlier is checked, unless it was. Raises EndedError if the adapter's effect is lost,
    or the check shows nothing of it.
    """
    arguments.verify()
    info, adapter = inspect(resolve(arguments.model)), read_adapter(typed_path(arguments.adapter))
    if info.engine != "mlx-vlm":
        raise ModelError(f"{info.name} is a text-only model; adapters are for vision-language models.")
    fit = memory_fit(info.weights_bytes)
    if not fit.ok:
        raise ModelError(f"{info.name} cannot be fused here: {fit.sentence}.")
    target, options = typed_path(arguments.target), FuseOptions(arguments.bits, arguments.dequantise, arguments.layout)
    check_fusable(info, adapter)
    expected = fuse_record(info, adapter, options)
    record = _earlier_record(target, expected)
    for warning in _warnings(info, adapter, options, expected["weights digest"]):
        print(f"warning: {clean(warning)}", file=sys.stderr)
    rows = _held_out_rows(workspace, arguments, info, adapter)
    with ExitStack() as stack:
        owner = f"fuse {target.name} (process {os.getpid()})"
        device = LocalModelSlot(_print_holder, owner=owner, patience=arguments.wait)
        stack.callback(device.close)
        sweep(target.parent)
        if record is None:
            device.hold()
            record = _write(info, adapter, target, options)
        _print_fused(info, adapter, target, record)
        if arguments.layout == "hf":
            device.hold()
            print_agreements(info, adapter, target)
        if rows is None:
            _print_next(arguments, target)
            return DONE
        check = _Check(workspace, arguments, info, adapter, target, rows, device)
        effect, others = check.run(record)
    return _end(arguments, target, rows, effect, others)


def _warnings(info: ModelInfo, adapter: Adapter, options: FuseOptions, weights: str) -> Iterator[str]:
    """Yield what is unusual about fusing ``adapter`` into the model ``info``, whose weights' digest is ``weights``."""
    if changes_nothing(adapter):
        yield (
            f"{adapter.name} changes nothing: its products are all zero, so the fused model answers as {info.name}; take "
            "another checkpoint of its training."
        )
    own = adapter.base_quantisation
    if own and "-bit" not in (info.quantisation or ""):
        is_plain = options.dequantise or options.layout == "hf"
        yield (
            f"{adapter.name} was trained on {own} weights, so those of {info.name} are rounded to {own} before it is added; "
            f"the fused model {'stores the sum' if is_plain else 'is quantised, too; add --dequantise to store the sum'} "
            "unquantised."
        )
    elif adapter.base is not None and adapter.base[1] not in (None, weights):
        yield (
            f"{adapter.name} was trained on {adapter.base[0]}, whose weights are not those of {info.name}, so its effect can "
            f"differ here; if you have {adapter.base[0]}, fuse into it, and choose the size with --bits."
        )


def _print_holder(holder: str) -> None:
    print(f"waiting for {clean(holder)}", file=sys.stderr, flush=True)


def _earlier_record(target: Path, expected: Mapping[str, Any]) -> dict[str, Any] | None:
    """Return the record of ``target`` if it is the same fused model, None if there is no such folder. Raises StoreError."""
    if not path_exists(target):
        return None
    record: Any = None
    if (target / FUSED).is_file():
        try:
            record = read_json_file(target / FUSED)
        except (OSError, OutsideJSONError):
            record = None
    if not isinstance(record, dict) or any(record.get(key) != value for key, value in expected.items()):
        raise StoreError(f"{clean(str(target))} exists and is not this fused model; name another folder.")
    return record


def _held_out_rows(
    workspace: Workspace, arguments: FuseArguments, info: ModelInfo, adapter: Adapter
) -> HeldOutRows | None:
    """Return the rows of the check; None without one. Raises SourceError or SpecError for a ``--check`` that has no rows."""
    count = arguments.check_rows or CHECK_ROWS
    if arguments.no_check:
        return None
    with spinner("reading the held-out rows"):
        if arguments.check is not None:
            path = typed_path(arguments.check)
            data = TrainingSet.open(path) if is_training_set(path) else find_build(workspace, arguments.check)
            return rows_of(data, info.takes, count)
        try:
            return validation_rows(workspace, adapter, count)
        except (StoreError, SourceError) as error:
            reason = str(error).rstrip(".")
    print(
        f"warning: the fused model is not checked: the rows of {clean(adapter.name)} are not at hand ({clean(reason)}); name a "
        "training set or a build with --check, or leave the check out with --no-check.",
        file=sys.stderr,
    )
    return None


def _write(info: ModelInfo, adapter: Adapter, target: Path, options: FuseOptions) -> dict[str, Any]:
    with spinner(f"fusing {adapter.name} into {info.name}"), new_folder(target) as folder:
        return fuse_to_hf(info, adapter, folder) if options.layout == "hf" else fuse(info, adapter, folder, options)


def _print_fused(info: ModelInfo, adapter: Adapter, target: Path, record: Mapping[str, Any]) -> None:
    fused = inspect(target)
    changed = ""
    match record.get(CODES):
        case [int(count), int(total)] | (int(count), int(total)) if total > 0:
            changed = f"; {count / total:.1%} of its codes changed"
    print(
        f"fused {clean(adapter.name)} into {clean(info.name)}: {fused.quantisation}, {size(fused.weights_bytes)}, in "
        f"{clean(str(target))}{changed}"
    )


def _print_next(arguments: FuseArguments, target: Path) -> None:
    if arguments.layout == "hf":
        print(f"next: vllm serve {clean(str(target))}, or python llama.cpp/convert_hf_to_gguf.py {clean(str(target))}")
        return
    print(f"next: rashomon --batch --benchmark cmc-bench --model {clean(str(target))} --limit 50")


@dataclass
class _Check:
    """The check of a fused model: what it and its alternatives keep of the adapter's effect."""

    workspace: Workspace
    arguments: FuseArguments
    info: ModelInfo
    adapter: Adapter
    target: Path
    rows: HeldOutRows
    device: LocalModelSlot

    def run(self, record: dict[str, Any]) -> tuple[FuseEffect, dict[str, FuseEffect | str]]:
        """Return the effect of the fused model, and where that is lost, of each other way to fuse, or why it was not measured.

        Both are recorded in the fused model's folder, and not measured again.
        """
        known = record.get(CHECK)
        known = known if isinstance(known, dict) and known.get(_DIGEST) == self.rows.digest else {}
        effect = FuseEffect.read(known)
        if effect is None:
            effect = self._effect(self.target)
            known = {"data": self.rows.name, _DIGEST: self.rows.digest, **effect.to_json()}
            self._record(record | {CHECK: known})
        if not effect.is_lost:
            return effect, {}
        stored = known.get(_OPTIONS)
        if isinstance(stored, dict):
            return effect, {name: FuseEffect.read(value) or "not measured" for name, value in stored.items()}
        others = {name: self._other_effect(name, options) for name, options in self._other_options()}
        measured = {name: other.to_json() for name, other in others.items() if isinstance(other, FuseEffect)}
        if len(measured) == len(others):
            self._record(record | {CHECK: known | {_OPTIONS: measured}})
        return effect, others

    def _effect(self, fused: Path) -> FuseEffect:
        """Return the effect of the fused model in a folder."""
        model = self.arguments.model
        names = (model, join_adapter(model, str(self.adapter.path)), str(fused))
        replies = ResponseCache(self.workspace.replies)
        with counter(len(names) * len(self.rows.requests), "answers compared") as done:
            return FuseEffect.between(*(answers(name, self.rows, self.device, replies, done) for name in names))

    def _other_options(self) -> Iterator[tuple[str, FuseOptions]]:
        """Yield the other ways to fuse that round less, each with the option of the command line."""
        quantisation = read_config(self.target).get("quantization")
        if not isinstance(quantisation, dict):
            return
        if quantisation["bits"] < _EIGHT:
            yield f"--bits {_EIGHT}", FuseOptions(bits=_EIGHT)
        yield "--dequantise", FuseOptions(dequantise=True)

    def _other_effect(self, name: str, options: FuseOptions) -> FuseEffect | str:
        """Return the effect of fusing otherwise, in a folder that is removed again; or why it was not measured."""
        try:
            with temporary_folder(self.target) as parent:
                folder = parent.path / f"{self.target.name}{name}"  # the same at every try, so that answers are cached
                with writing(folder):
                    folder.mkdir()
                    fuse(self.info, self.adapter, folder, options)
                return self._effect(folder)
        except RashomonError as error:
            if isinstance(error, BusyError):
                raise
            return f"not measured: {error}"

    def _record(self, record: Mapping[str, Any]) -> None:
        try:
            replace_file(self.target, FUSED, (json.dumps(record, indent=2) + "\n").encode())
        except OSError as error:
            advice = "the fused model is complete; free some space and run the same command again to record its check"
            raise write_error(self.target / FUSED, error, advice) from error


def _end(
    arguments: FuseArguments,
    target: Path,
    rows: HeldOutRows,
    effect: FuseEffect,
    others: Mapping[str, FuseEffect | str],
) -> int:
    """Print the result of the check; return 0, or raise EndedError if the effect is lost or nothing of it is shown."""
    where = f"{effect.rows} held-out rows of {clean(rows.name)}"
    if not effect.changed and not effect.is_lost:
        raise EndedError(
            INCONCLUSIVE,
            f"the check shows nothing: the adapter changes no answer to {where}; name rows on which it does with --check.",
        )
    print(
        f"check on {where}: the adapter changes {effect.changed} answers, and the fused model keeps {effect.kept_share}"
    )
    if not effect.is_lost:
        if effect.differing:
            print(f"it differs from the adapter on {effect.differing} of the {effect.rows} rows")
        _print_next(arguments, target)
        return DONE
    unfused = f"--model {clean(arguments.model)} --adapter {clean(str(arguments.adapter))}"
    lines = [("as written", _kept(effect)), *((name, _kept(other)) for name, other in others.items())]
    width = max(len(name) for name, _ in [*lines, ("unfused", "")])
    for name, kept in lines:
        print(f"  {name:<{width}}  {kept}")
    print(f"  {'unfused':<{width}}  all, by `rashomon --batch {unfused}`")
    lost = [
        f"of the {effect.changed} answers that the adapter changed, the fused model keeps {effect.kept}",
        *([f"{effect.reverted} are the base's again"] if effect.reverted else []),
        *([f"it changes {effect.disturbed} others"] if effect.disturbed else []),
    ]
    raise EndedError(REGRESSED, f"fusing loses the adapter's effect: {join_names(lost)}; {_advice(others)}")


def _kept(effect: FuseEffect | str) -> str:
    if isinstance(effect, str):
        return clean(effect)
    others = f", changes {effect.disturbed} others" if effect.disturbed else ""
    return f"keeps {effect.kept_share}{others}"


def _advice(others: Mapping[str, FuseEffect | str]) -> str:
    keeping = [name for name, effect in others.items() if isinstance(effect, FuseEffect) and not effect.is_lost]
    if keeping:
        keeps = "keeps" if len(keeping) == 1 else "keep"
        return f"fuse with {' or '.join(keeping)}, which {keeps} it, into another folder, or use the adapter unfused."
    return "use the adapter unfused."
