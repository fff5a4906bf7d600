"""The CUDA shim: vision-language models in PyTorch, through transformers, on an NVIDIA GPU, on Apple's (mps) or on a CPU.

A model is named ``cuda:ID``. Nothing here imports MLX or mlx-vlm, which changes transformers for the whole process.
"""

from __future__ import annotations

import gc
import os
import sys
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import redirect_stdout
from dataclasses import dataclass, field, replace
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import perf_counter
from typing import Any

from benchmarks.base import Decoding, FinishReason, Generation, Likelihood, Message, Request, Text
from benchmarks.errors import ModelError
from mlx_backends import memory
from mlx_backends.base import Backend, EngineInfo, MediaPath
from mlx_backends.canary import ALONE, Case, Proof, chosen, prove
from mlx_backends.constrain import Constrainer, Constraint
from mlx_backends.likelihood import score
from mlx_backends.limits import out_of_memory
from mlx_backends.loading import one_line
from mlx_backends.models import ModelInfo, inspect, read_config, resolve, revision
from mlx_backends.probe import Probe, made, pictures
from mlx_backends.reading import Reader
from mlx_backends.torch_inputs import TorchInputs, TorchPreparer, together
from mlx_backends.weights import weights_digest

PREFIX = "cuda:"
ENGINE = "transformers"
WIDTH = 8
"""How many requests are answered together, where nobody says otherwise."""
BATCHED = "together, with nothing shared"

_OPTIONS = ("bf16", "fp16", "fp32", "nf4", "cpu")
_SLICE_S = 0.05
_PADDED = 2
_MIN_TEMPERATURE = 0.01  # mlx-vlm's


@dataclass(frozen=True, slots=True)
class Named:
    """What a name like ``cuda:ID@fp32@cpu`` asks for: the model, the type to compute in (None: as stored), the device."""

    model: str
    precision: str | None
    device: str


def split(name: str) -> tuple[str, str, str]:
    """A model's name as what stands before the folder or Hub id, that, and what stands behind it: the first is empty elsewhere."""
    if not name.startswith(PREFIX):
        return "", name, ""
    model = name.removeprefix(PREFIX)
    while "@" in model and model.rpartition("@")[2] in _OPTIONS:
        model = model.rpartition("@")[0]
    return PREFIX, model, name[len(PREFIX) + len(model) :]


def named(name: str) -> Named:
    """The parts of a model's name that begins with ``cuda:``."""
    _, model, options = split(name)
    said = options.split("@")[1:]
    return Named(model, next((word for word in said if word != "cpu"), None), "cpu" if "cpu" in said else device())


def device() -> str:
    """What PyTorch would compute on here, told by the machine and what is installed, without importing it."""
    if sys.platform == "darwin":
        return "mps"
    return "cuda" if gpu() and not _version("torch").endswith("+cpu") else "cpu"


def gpu() -> bool:
    """Whether this machine has an NVIDIA GPU that is not hidden by CUDA_VISIBLE_DEVICES, told by its driver's files."""
    hidden = os.environ.get("CUDA_VISIBLE_DEVICES", "all") in ("", "-1")
    return not hidden and (Path("/proc/driver/nvidia/version").exists() or Path("/dev/dxg").exists())


def describe(name: str) -> EngineInfo:
    """What would answer as ``name``, without importing PyTorch. Raises ModelError."""
    return _described(named(name))[0]


def load(name: str, media: MediaPath, *, force: bool = False, width: int | None = None) -> Cuda:
    """The backend that answers as ``name``, loaded; ``width`` bounds how many requests it takes.

    Raises ModelError without PyTorch, for a model that transformers does not know by itself, one that cannot be loaded, and
    before loading where it does not fit, unless ``force``.
    """
    asked = named(name)
    info, found = _described(asked)
    if _version("torch") == "none":
        raise ModelError("PyTorch is not installed; `pip install 'rashomon[torch]'`.")
    import torch

    from mlx_backends import torch_models

    if asked.device == "cuda" and not torch.cuda.is_available():
        raise ModelError(
            "there is an NVIDIA GPU, but PyTorch cannot use it; install a PyTorch for its driver, or name the model with @cpu."
        )
    fit = memory.fits(_needed(found, asked), _memory(asked.device))
    if not fit.ok and not force:
        raise ModelError(f"{info.model} was not loaded: {fit.sentence}; add --force to try all the same.")
    model, processor = torch_models.load(found.path, asked.device, asked.precision)
    try:
        return Cuda(info, media, model, processor, read_config(found.path), width=width)
    except Exception as error:  # a processor or template unlike any other
        raise ModelError(f"{info.model} was loaded but cannot be asked: {one_line(error)}") from error


class Cuda(Backend):
    """A vision-language model in PyTorch.

    A model's own generation settings never apply but for the tokens that end an answer, greedy answers are the most likely
    token's, and sampling is seeded from the request's digest. Requests are answered one at a time, until :meth:`prove` has
    found that they are answered the same together. Whatever goes wrong while answering becomes a Generation with an error.

    The model works in a thread, so that :meth:`step` can return meanwhile. Of a Generation, ``tokens`` are all that the model
    gave, the one that ended the answer included; times are a request's share of what was spent while it was under way;
    ``peak_memory`` is PyTorch's on a GPU, of the whole batch, and the process's own most so far on a CPU.
    """

    def __init__(
        self,
        info: EngineInfo,
        media: MediaPath,
        model: Any,
        processor: Any,
        config: dict[str, Any],
        *,
        width: int | None = None,
    ) -> None:
        """``config`` is what the model's folder says; ``width`` bounds how many requests are answered together."""
        from transformers import GenerationConfig

        self.info = info
        self.width = width or WIDTH
        self.proof: Proof | None = None
        self._model = model
        self._config = config
        self._tokenizer = tokenizer = processor.tokenizer
        self._ends = _ends(Path(tokenizer.name_or_path), config, tokenizer)
        self._pad = tokenizer.pad_token_id if tokenizer.pad_token_id is not None else next(iter(self._ends), 0)
        model.generation_config = GenerationConfig(pad_token_id=self._pad)  # nothing of the model's own is to apply
        with redirect_stdout(sys.stderr):
            self._preparer = TorchPreparer(processor, model.config, media)
        self._reader = Reader(tokenizer)
        self._constrainer = Constrainer(tokenizer, self._ends)
        self._waiting: deque[Request] = deque()
        self._alone: deque[Request] = deque()
        """Requests that are asked by themselves, because a batch that they were part of failed."""
        self._batch: _Batch | None = None

    @property
    def remarks(self) -> Sequence[str]:
        return () if self.proof is None else self.proof.remarks(self.info.model)

    @property
    def widest(self) -> int:
        return self.width

    def submit(self, request: Request) -> None:
        if self._model is None:
            raise RuntimeError("the model is closed")
        if self._in_flight >= self.capacity:
            raise RuntimeError(f"the model takes at most {self.capacity} requests at a time")
        self._waiting.append(request)

    @property
    def _in_flight(self) -> int:
        return len(self._waiting) + len(self._alone) + (len(self._batch.live) if self._batch else 0)

    def step(self) -> Sequence[Generation]:
        if self._batch is None:
            return list(self._begin())
        done = [self._generation(row) for row in self._batch.finished(_SLICE_S)]
        if not self._batch.live:  # the thread is about to end; nothing else may use the model before it has
            self._batch.join()
            self._batch = None
        elif self._batch.over:
            done += self._ended(self._batch)
            self._batch = None
        return done

    def cancel(self, request_id: str) -> None:
        self._waiting = deque(request for request in self._waiting if request.id != request_id)
        self._alone = deque(request for request in self._alone if request.id != request_id)
        for row in self._batch.live if self._batch else ():
            row.dropped = row.dropped or row.request.id == request_id

    def exact(self) -> None:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        self.proof = None
        self.capacity = 1

    def prove(self, requests: Sequence[Request], stop: Callable[[], bool] = lambda: False) -> Proof | None:
        self.exact()
        cases: list[Case] = []
        for request in chosen(requests):
            if stop():
                return None
            try:
                cases.append(self._case(request))
            except Exception:  # it will be an error in its turn
                continue
        if not cases:
            return None
        width = self._width(requests, cases)
        ways = {BATCHED: lambda cases: self._led(cases, width)} if width > 1 else {}
        self.proof = prove(cases, self._padded, ways)
        if self.proof.way != ALONE:
            self.capacity = width
        return self.proof

    def probe(self, request: Request, forced: Sequence[int], *, keep: bool = False) -> Probe:
        if self._in_flight:
            raise RuntimeError("the model is answering")
        inputs = self._preparer.inputs(request)
        (logits,) = self._forced([(request, inputs, forced)]) if forced else ([],)
        images = pictures(inputs.tensors, inputs.images)
        return made(request, inputs.text, inputs.ids, images, forced, logits, keep=keep)

    def close(self) -> None:
        self._waiting.clear()
        self._alone.clear()
        if self._batch is not None:
            for row in self._batch.live:
                row.dropped = True
            self._batch.join()
        self._batch = self._model = None
        del self._preparer, self._reader, self._constrainer
        gc.collect()
        import torch

        if torch.cuda.is_available():
            torch.cuda.empty_cache()

    def _begin(self) -> Iterator[Generation]:
        """Start answering what waits; the errors of requests that cannot be prepared."""
        rows: list[_Row] = []
        waiting, most = (self._alone, 1) if self._alone else (self._waiting, self.capacity)
        while waiting and len(rows) < most:
            request = waiting.popleft()
            try:
                with redirect_stdout(sys.stderr):
                    inputs = self._preparer.inputs(request)
                if isinstance(request.form, Likelihood):
                    yield self._likeliest(request, request.form, inputs)
                else:
                    rows.append(self._row(request, inputs))
            except Exception as error:  # a request that fails must not end the run
                yield Generation(request.id, "", "error", error=one_line(error))
        if rows:
            self._batch = _Batch(self._model, rows, self._ends, self._pad)

    def _row(self, request: Request, inputs: TorchInputs) -> _Row:
        constraints = self._constrainer.processors(request.form)
        draw = _draw(request.decoding, int(request.digest[:8], 16))
        return _Row(request, inputs, request.decoding.max_tokens, next(iter(constraints), None), draw)

    def _likeliest(self, request: Request, form: Likelihood, inputs: TorchInputs) -> Generation:
        """The likeliest of the options, which are read together where that is proven."""
        started = perf_counter()

        def led(sequences: Sequence[Sequence[int]]) -> Sequence[Any]:
            asked = [(request, inputs, tokens) for tokens in sequences]
            at = range(0, len(asked), self.capacity)
            return [logits for start in at for logits in self._forced(asked[start : start + self.capacity])]

        found = score(form, self._tokenizer, led)
        return found.generation(request, len(inputs.ids), perf_counter() - started, _peak(self.info.device))

    def _ended(self, batch: _Batch) -> list[Generation]:
        """What becomes of the rows of a batch that failed: alone they are errors, else each of them is asked again by itself."""
        if batch.error is None:
            return []
        requests = [row.request for row in batch.live]
        if out_of_memory(batch.error):
            self.capacity = max(1, self.capacity // 2)
            gc.collect()
        if len(batch.rows) == 1:
            return [Generation(each.id, "", "error", error=one_line(batch.error)) for each in requests]
        self._alone.extend(requests)
        return []

    def _generation(self, row: _Row) -> Generation:
        stopped = row.finished == "stop"
        return Generation(
            row.request.id,
            self._reader.text(row.tokens[:-1] if stopped else row.tokens),
            row.finished or "error",
            tokens=tuple(row.tokens),
            prompt_tokens=len(row.inputs.ids),
            completion_tokens=len(row.tokens),
            prefill_s=row.prefill_s,
            decode_s=row.decode_s,
            peak_memory=row.peak_memory,
        )

    # --- what the canary, probes and scores compare ---------------------------------------------------

    def _case(self, request: Request) -> Case:
        """``request`` answered by itself."""
        import numpy as np

        row = self._row(request, self._preparer.inputs(request))
        row.logits = []
        self._whole([row])
        return Case(request, row.tokens, np.stack(row.logits))

    def _padded(self, cases: Sequence[Case]) -> list[Any]:
        """The first cases, each beside a longer row that pads it."""
        found = []
        for case in cases[:_PADDED]:
            words = len(self._preparer.inputs(case.request).ids) + 16
            longer = replace(case.request, messages=(Message("user", (Text("and " * words),)),))
            found.append(self._led([case, Case(longer, case.tokens, None)], 2)[0])
        return found

    def _led(self, cases: Sequence[Case], width: int) -> list[Any]:
        """The logits of ``cases`` when they are led through their tokens, ``width`` together."""
        found: list[Any] = []
        for start in range(0, len(cases), width):
            some = cases[start : start + width]
            found += self._forced([(case.request, self._preparer.inputs(case.request), case.tokens) for case in some])
        return found

    def _forced(self, asked: Sequence[tuple[Request, TorchInputs, Sequence[int]]]) -> list[Any]:
        """The logits, of the shape (tokens, vocabulary), of rows that are led through given tokens together."""
        import numpy as np

        rows = [_Row(request, inputs, len(tokens), forced=tokens, logits=[]) for request, inputs, tokens in asked]
        self._whole(rows)
        return [np.stack(row.logits or []) for row in rows]

    def _whole(self, rows: Sequence[_Row]) -> None:
        batch = _Batch(self._model, rows, self._ends, self._pad)
        batch.join()
        if batch.error is not None:
            raise batch.error

    def _width(self, requests: Sequence[Request], cases: Sequence[Case]) -> int:
        """How many of ``requests`` fit beside the model, if a prompt twice as long as those that were tried is still to come."""
        longest = 2 * max(len(self._preparer.inputs(case.request).ids) for case in cases)
        return memory.width(
            self._config,
            self._model.get_memory_footprint(),
            longest,
            max(request.decoding.max_tokens for request in requests),
            _memory(self.info.device, loaded=True),
            most=self.width,
            read_at_once=longest,
        )


@dataclass(eq=False)
class _Row:
    """An answer under way: what it is of, how its tokens are chosen, and those that have come.

    ``forced`` are tokens it is led through instead; ``logits`` collects what tokens are chosen from, unless it is None.
    """

    request: Request
    inputs: TorchInputs
    max_tokens: int
    constraint: Constraint | None = None
    draw: Callable[[Any], int] | None = None
    forced: Sequence[int] | None = None
    logits: list[Any] | None = None
    tokens: list[int] = field(default_factory=list)
    finished: FinishReason | None = None
    dropped: bool = False
    prefill_s: float = 0.0
    decode_s: float = 0.0
    peak_memory: int | None = None

    def chosen(self, logits: Any) -> int | None:
        """The next token, where it is not simply the most likely one."""
        if self.logits is not None:
            self.logits.append(logits.float().cpu().numpy().copy())
        if self.forced is not None:
            return self.forced[len(self.tokens)]
        if self.constraint is None and self.draw is None:
            return None
        import numpy as np

        values = logits.double().cpu().numpy()
        if self.constraint is not None:
            values = np.where(self.constraint.allowed(lambda: self.tokens[-1], len(values)), values, -np.inf)
        return int(values.argmax()) if self.draw is None else self.draw(values)

    def take(self, token: int, ends: frozenset[int]) -> None:
        """Take the token that came."""
        self.tokens.append(token)
        if self.forced is None and token in ends:
            self.finished = "stop"
        elif len(self.tokens) >= self.max_tokens:
            self.finished = "length"


class _Batch:
    """Rows that transformers generates together, in a thread; each is to be had as soon as it is finished.

    What transformers calls before it chooses a token (a logits processor) and after (a stopping criterion) are this object's.
    """

    def __init__(self, model: Any, rows: Sequence[_Row], ends: frozenset[int], pad: int) -> None:
        self.rows = rows
        self.over = False
        self.error: BaseException | None = None
        self._model = model
        self._ends = ends
        self._pad = pad
        self._done: SimpleQueue[_Row | None] = SimpleQueue()
        self._since = perf_counter()
        self._read = False
        self._thread = Thread(target=self._work, name="generate", daemon=True)
        self._thread.start()

    @property
    def live(self) -> list[_Row]:
        """The rows that nobody has had yet."""
        return [row for row in self.rows if not row.dropped]

    def finished(self, seconds: float) -> list[_Row]:
        """The rows that are finished, after at most so many seconds of waiting for one."""
        found: list[_Row] = []
        try:
            item = self._done.get(timeout=seconds)
            while item is not None:
                if not item.dropped:
                    item.dropped = True
                    found.append(item)
                item = self._done.get_nowait()
            self.join()
            self.over = True
        except Empty:
            pass
        return found

    def join(self) -> None:
        """Wait for the end."""
        self._thread.join()

    def _work(self) -> None:
        try:
            self._generate()
        except BaseException as error:  # it belongs to whoever asks
            self.error = error
        finally:
            self._done.put(None)

    def _generate(self) -> None:
        import torch
        from transformers import GenerationConfig, LogitsProcessorList, StoppingCriteriaList

        where = self._model.device
        if where.type == "cuda":
            torch.cuda.reset_peak_memory_stats()
        tensors = together([row.inputs for row in self.rows], self._pad)
        numbers = self._model.dtype
        moved = {
            name: value.to(where, numbers) if value.is_floating_point() else value.to(where)
            for name, value in tensors.items()
        }
        most = max(row.max_tokens for row in self.rows)
        with torch.inference_mode():
            self._model.generate(
                **moved,
                generation_config=GenerationConfig(max_new_tokens=most, do_sample=False, pad_token_id=self._pad),
                logits_processor=LogitsProcessorList([self._before]),
                stopping_criteria=StoppingCriteriaList([self._after]),
            )

    def _before(self, _: Any, logits: Any) -> Any:
        for number, row in enumerate(self.rows):
            if row.finished or row.dropped:
                continue
            token = row.chosen(logits[number])
            if token is not None:
                logits[number] = -float("inf")
                logits[number, token] = 0
        return logits

    def _after(self, tokens: Any, *_: Any, **__: Any) -> Any:
        import torch

        came = tokens[:, -1].tolist()
        now = perf_counter()
        live = [row for row in self.rows if not row.finished and not row.dropped]
        share, self._since = (now - self._since) / max(1, len(live)), now
        for row, token in zip(self.rows, came, strict=True):
            if row not in live:
                continue
            row.take(token, self._ends)
            if self._read:
                row.decode_s += share
            else:
                row.prefill_s += share
            if row.finished:
                row.peak_memory = _peak(tokens.device.type)
                self._done.put(row)
        self._read = True
        return torch.tensor([bool(row.finished or row.dropped) for row in self.rows], device=tokens.device)


def _draw(decoding: Decoding, seed: int) -> Callable[[Any], int] | None:
    """What draws the tokens of one sampled answer, the same on every device; nothing for a greedy one.

    Temperature is applied first, then top-p, as mlx-vlm does; the random numbers are NumPy's and not MLX's.
    """
    if decoding.temperature == 0:
        return None
    import numpy as np

    random = np.random.default_rng(seed)

    def draw(logits: Any) -> int:
        scaled = logits / max(decoding.temperature, _MIN_TEMPERATURE)
        shares = np.exp(scaled - scaled.max())
        order = np.argsort(-shares, kind="stable")
        whole = np.cumsum(shares[order]) / shares.sum()
        kept = int(np.searchsorted(whole, decoding.top_p)) + 1
        at = np.searchsorted(whole[:kept], random.random() * whole[:kept][-1], side="right")
        return int(order[min(int(at), kept - 1)])

    return draw


def _ends(folder: Path, config: dict[str, Any], tokenizer: Any) -> frozenset[int]:
    """The tokens that end an answer, as mlx-vlm finds them: the generation settings', else the configuration's; and the tokenizer's."""
    import json

    own = folder / "generation_config.json"
    said = json.loads(own.read_text("utf-8")) if own.is_file() else {}
    found = said.get("eos_token_id", config.get("eos_token_id"))
    every = [*(found if isinstance(found, list) else [found]), tokenizer.eos_token_id]
    return frozenset(token for token in every if isinstance(token, int))


def _described(asked: Named) -> tuple[EngineInfo, ModelInfo]:
    found = inspect(resolve(asked.model))
    if found.engine != "mlx-vlm":
        raise ModelError(f"{found.name} is a text-only model, and cuda: asks models that see; name it without cuda:.")
    stored = found.quantisation
    computed = f"{stored} in {asked.precision}" if asked.precision and asked.precision != "nf4" else stored
    return (
        EngineInfo(
            engine=ENGINE,
            model=PREFIX + found.name,
            revision=revision(found.path),
            weights=weights_digest(found.path),
            quantisation=asked.precision if asked.precision == "nf4" else computed,
            device=asked.device,
            versions={name: _version(name) for name in ("torch", ENGINE)},
            weights_bytes=found.weights_bytes,
        ),
        found,
    )


def _needed(found: ModelInfo, asked: Named) -> int:
    """Bytes of the weights once they are loaded: those of 4 and 8 bits are computed back to 16."""
    from mlx_backends.torch_weights import quantisation

    bits = quantisation(read_config(found.path)).get("bits")
    packed = found.weights_bytes * 16 // bits if isinstance(bits, int) and 0 < bits < 16 else found.weights_bytes
    times = {"fp32": 2.0, "nf4": 0.3}.get(asked.precision or "", 1.0) if found.quantisation != "fp32" else 1.0
    return int(packed * times)


def _memory(where: str, *, loaded: bool = False) -> dict[str, Any]:
    """A GPU's memory, as :func:`memory.fits` takes it: what is free, and what PyTorch itself has if a model is ``loaded``."""
    if where != "cuda":
        return {}
    import torch

    free, _ = torch.cuda.mem_get_info()
    return {"total_memory": free + (torch.cuda.memory_reserved() if loaded else 0)}


def _peak(where: str) -> int | None:
    """The most memory in bytes: PyTorch's on a GPU since the batch began, the process's since it began on a CPU."""
    import torch

    if where == "cuda":
        return int(torch.cuda.max_memory_allocated())
    if where == "mps":
        return int(torch.mps.driver_allocated_memory())
    import resource

    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    return int(most if sys.platform == "darwin" else most * 1024)


def _version(library: str) -> str:
    try:
        return version(library)
    except PackageNotFoundError:
        return "none"
