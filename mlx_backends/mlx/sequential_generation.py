"""Generations of sequential requests: an open answer step by step, or the likeliest of a question's options."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from time import perf_counter
from typing import Any

from benchmarks.vocabulary import Candidates, Generation, Likelihood, Request
from mlx_backends.core.batch_invariance import ReferenceAnswer
from mlx_backends.core.detokenize import Detokenizer
from mlx_backends.core.loglikelihood import CandidateScoring, score_options
from mlx_backends.core.observed_answers import ObservedAnswers
from mlx_backends.mlx.metal.mlx_memory_limits import MemoryLimits
from mlx_backends.mlx.prompt_probes import PromptProbes
from mlx_backends.mlx.sequential_answers import SequentialAnswers, SequentialRequest
from mlx_backends.mlx.teacher_forcing import TeacherForcing

_SLICE_S = 0.05


class SequentialGeneration:
    """Generator of one loaded model.

    ``observed`` are the answers that are to be observed. ``force_options`` forces a prompt through the tokens of its options
    with shared prefixes, and returns None where these are not shared.
    """

    def __init__(
        self,
        sequential: SequentialAnswers,
        forcing: TeacherForcing,
        probes: PromptProbes,
        observed: ObservedAnswers,
        tokenizer: Any,
        detokenizer: Detokenizer,
        limits: MemoryLimits,
        force_options: Callable[[Sequence[ReferenceAnswer]], Sequence[Any] | None],
    ) -> None:
        self._sequential = sequential
        self._forcing = forcing
        self._probes = probes
        self._observed = observed
        self._tokenizer = tokenizer
        self._detokenizer = detokenizer
        self._limits = limits
        self._force_options = force_options

    def advance(self, work: SequentialRequest) -> Generation | None:
        """Read the prompt, or decode for a few tens of milliseconds; return the generation once it is complete."""
        if isinstance(work.request.form, Likelihood):
            return self._likeliest(work.request, work.request.form)
        last = self._read(work) if work.stream is None else self._decode(work)
        return last and self._generation(work, last)

    def scoring(self, request: Request) -> CandidateScoring | None:
        """Return what scores the candidates of a request; None if it has none."""
        return CandidateScoring(request.form, self._tokenizer) if isinstance(request.form, Candidates) else None

    def _likeliest(self, request: Request, form: Likelihood) -> Generation:
        """Return the likeliest of the options, with shared prefixes read once where the batch-invariance check allows it."""
        import mlx.core as mx

        started = perf_counter()
        mx.reset_peak_memory()

        def forced_logits(sequences: Sequence[Sequence[int]]) -> Sequence[Any]:
            unconstrained = replace(request, form=None)
            cases = [ReferenceAnswer(unconstrained, list(tokens), None) for tokens in sequences]
            logits = self._force_options(cases)
            return [self._forcing.forced(request, tokens) for tokens in sequences] if logits is None else logits

        scored = score_options(form, self._tokenizer, forced_logits)
        tokens = self._sequential.prompt_tokens(request)
        return scored.generation(request, tokens, perf_counter() - started, self._limits.usage().peak)

    def _read(self, work: SequentialRequest) -> Any | None:
        """Read the prompt; return mlx-vlm's closing response, if that comes at once."""
        work.scoring = self.scoring(work.request)
        work.observer = self._observed.observer(work.request)
        recorders = [work.scoring.answer] if work.scoring else []
        observers = [work.observer.recorder] if work.observer else []
        work.stream = self._sequential.stream(work.request, recorders, observers=observers)
        started = perf_counter()
        if work.observer is None:
            last = work.next_token()
        else:
            with self._probes.embedded_rows() as rows:
                last = work.next_token()
            work.observer.image_rows = rows[-1] if rows else None
        work.prefill_s = perf_counter() - started
        return last

    def _decode(self, work: SequentialRequest) -> Any | None:
        """Decode for a moment; return mlx-vlm's closing response, if any."""
        started = perf_counter()
        while (last := work.next_token()) is None and perf_counter() - started < _SLICE_S:
            pass
        work.decode_s += perf_counter() - started
        return last

    def _scores(self, work: SequentialRequest, answer: Sequence[int]) -> tuple[float | None, ...]:
        """Return the scores of a request's candidates, each forced sequentially, and of its answer."""
        if work.scoring is None:
            return ()
        started, prompt = perf_counter(), work.request.unscored
        work.scoring.start(self._detokenizer.text(answer))
        logits = [self._forcing.forced(prompt, tokens) for tokens in work.scoring.sequences]
        work.prefill_s += perf_counter() - started
        return work.scoring.scores(answer, logits)

    def _generation(self, work: SequentialRequest, last: Any) -> Generation:
        stopped = last.finish_reason == "stop"
        tokens = tuple(work.tokens if last.token_ids is None else map(int, last.token_ids))
        answer = tokens[:-1] if stopped else tokens
        scores = self._scores(work, answer)
        memory = self._limits.usage()
        return Generation(
            work.request.id,
            self._detokenizer.reply(work.request, answer),
            "stop" if stopped else "length",
            tokens=tokens,
            prompt_tokens=int(last.prompt_tokens),
            completion_tokens=len(tokens),
            prefill_s=work.prefill_s,
            decode_s=work.decode_s,
            peak_memory=memory.peak,
            active_memory=memory.active,
            cache_memory=memory.cache,
            scores=scores,
        )
