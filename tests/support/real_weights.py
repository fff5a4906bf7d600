"""Answers of a real language model in every mode, next to those of mlx-lm.

``python -m tests.support.real_weights [MODE ...]`` compares all fifty prompts and prints, for each mode, how many answers are
equal, the differences and the seconds. It takes minutes; with OpenBLAS preloaded, MLX is about six times as fast on a CPU.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from benchmarks.vocabulary import Request, Text
from mlx_backends.base import no_media
from mlx_backends.engine_registry import load_backend
from tests.support.benchmark_requests import answers
from tests.support.real_prompts import real_requests
from tests.support.smollm2 import build_smollm2, build_smolvlm, quantise_smollm2

Tokens = Mapping[str, tuple[int, ...]]


@dataclass(frozen=True)
class Difference:
    """The first tokens at which two answers differ, and by how much the reference's logit is ahead there."""

    request: str
    place: int
    tokens: tuple[int, int]
    ahead: float


class Reference:
    """A model loaded and asked with mlx-lm alone: its own template, its own loop."""

    def __init__(self, folder: Path) -> None:
        from mlx_lm import load

        self._model, self.tokenizer = load(str(folder))

    def prompt(self, request: Request) -> list[int]:
        """Return the token ids of the prompt."""
        turns = [
            {"role": message.role, "content": "".join(part.text for part in message.parts if isinstance(part, Text))}
            for message in request.messages
        ]
        return list(self.tokenizer.apply_chat_template(turns, add_generation_prompt=True))

    def tokens(self, requests: Iterable[Request], max_tokens: int | None = None) -> Tokens:
        """Return the greedy answers, with the token that ended each."""
        from mlx_lm import stream_generate

        return {
            request.id: tuple(
                response.token
                for response in stream_generate(
                    self._model,
                    self.tokenizer,
                    self.prompt(request),
                    max_tokens=max_tokens or request.decoding.max_tokens,
                )
            )
            for request in requests
        }

    def differences(self, requests: Sequence[Request], expected: Tokens, actual: Tokens) -> list[Difference]:
        """Return where ``actual`` differs from ``expected``; ``ahead`` is infinite where one answer just ends earlier."""
        import mlx.core as mx

        differences = []
        for request in requests:
            ours, theirs = actual[request.id], expected[request.id]
            if ours == theirs:
                continue
            pairs = zip(ours, theirs, strict=False)
            place = next((n for n, (a, b) in enumerate(pairs) if a != b), None)
            if place is None:  # the same tokens, but one ended earlier: no near tie
                differences.append(Difference(request.id, min(len(ours), len(theirs)), (-1, -1), float("inf")))
                continue
            logits = self._model(mx.array([[*self.prompt(request), *theirs[:place]]]))[0, -1].astype(mx.float32)
            ahead = (logits[theirs[place]] - logits[ours[place]]).item()
            differences.append(Difference(request.id, place, (theirs[place], ours[place]), ahead))
        return differences


@dataclass(frozen=True)
class ModeAnswers:
    """Answers of one mode: ``way`` is what the check chose, ``prompts`` the numbers of prompt tokens."""

    tokens: Tokens
    way: str
    prompts: Mapping[str, int]
    failed: Mapping[str, str]


def our_answers(folder: Path, requests: Sequence[Request], *, exact: bool) -> ModeAnswers:
    """Answer ``requests`` one by one, or as the batch-invariance check allows."""
    backend = load_backend(str(folder), no_media)
    try:
        proof = None
        if exact:
            backend.use_sequential_mode()
        else:
            proof = backend.choose_mode(requests)
        generations = answers(backend, requests)
    finally:
        backend.close()
    assert not [generation.error for generation in generations.values() if generation.error]
    return ModeAnswers(
        {name: generation.tokens for name, generation in generations.items()},
        "sequentially" if proof is None else proof.way,
        {name: generation.prompt_tokens or 0 for name, generation in generations.items()},
        {} if proof is None else proof.failed,
    )


def main(modes: Sequence[str]) -> None:
    """Print the comparison of ``modes`` on all prompts."""
    requests = real_requests()
    with tempfile.TemporaryDirectory() as scratch:
        folders = {"fp32": build_smollm2(Path(scratch) / "fp32", "float32")}

        @cache
        def reference(name: str) -> tuple[Reference, Tokens, float]:
            begin = time.process_time()
            library = Reference(folders[name])
            return library, library.tokens(requests), time.process_time() - begin

        for mode in modes or ("exact", "batched", "shared", "4bit-exact", "4bit-batched"):
            against = "4bit" if mode.startswith("4bit") else "fp32"
            folder = folders["fp32"]
            if against == "4bit":
                folder = folders.setdefault("4bit", Path(scratch) / "4bit")
                if not folder.exists():
                    quantise_smollm2(folders["fp32"], folder)
            if mode == "shared":
                folder = build_smolvlm(folders["fp32"], Path(scratch) / "vlm")
            library, expected, cost = reference(against)
            begin = time.process_time()
            ours = our_answers(folder, requests, exact=mode.endswith("exact"))
            seconds = time.process_time() - begin
            differences = library.differences(requests, expected, ours.tokens)
            print(f"{mode}: {len(requests) - len(differences)} of {len(requests)} equal, {ours.way}; "
                  f"prompts of {min(ours.prompts.values())} to {max(ours.prompts.values())} tokens, "
                  f"{sum(map(len, expected.values()))} tokens generated, "
                  f"{sum(tokens[-1] == 2 for tokens in expected.values())} ended by the model; "
                  f"{seconds:.0f} s of CPU, mlx-lm {cost:.0f} s", ours.failed, flush=True)  # fmt: skip
            for difference in differences:
                print("  ", difference, flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
