"""Matrix of model types and abilities, measured on tiny random models: ``python -m tests.support.model_matrix [FAMILY...]``.

An ability is a method of :class:`Subject` that returns ``yes``, ``no: REASON`` or ``-: REASON`` (not applicable).
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import pickle
import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from functools import cached_property
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import platformdirs
import pytest

from benchmarks.errors import ModelError
from benchmarks.untrusted.own_files import is_own_name
from benchmarks.untrusted.safe_files import replacing
from benchmarks.vocabulary import Decoding, Generation, Likelihood, Media, Message, Part, Request, Text
from mlx_backends.core.error_text import one_line
from mlx_backends.core.prompts.mlx_vlm_formatting import prompt_utils
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx.mode_choice import BATCHED_SHARED
from mlx_backends.mlx.vision import feature_store
from mlx_backends.mlx.vision.feature_folder import LIMIT
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.support.benchmark_requests import answers
from tests.support.tiny_models import FAMILIES

FAST = ("text", "one image", "three images", "tiles", "exact", "forced", "batch of 4", "prefix reuse")
SLOW = ("batch of 8", "likelihood", "kill and resume", "features from disk", "transformers", "config forms")
ABILITIES = (*FAST, *SLOW)

GAPS: Mapping[tuple[str, str], str] = {
    ("internvl_chat", "transformers"): "-: transformers has no implementation of internvl_chat",
    ("llava", "tiles"): "-: every image takes as many tokens as a small one",
    ("gemma3n", "tiles"): "-: every image takes as many tokens as a small one",
    **{
        (family, "tiles"): "-: every image takes as many tokens as a small one"
        for family in ("fastvlm", "gemma3", "idefics3", "paligemma", "smolvlm")
    },
    **{
        (family, "transformers"): f"-: transformers has no implementation of {family}"
        for family in ("fastvlm", "pixtral")
    },
    **{
        (family, "features from disk"): "-: its features are not stored"  # it is answered one at a time
        for family in ("fastvlm", "paligemma")
    },
    ("fastvlm", "batch of 4"): "no: its images take up another number of embeddings than of tokens",
    ("fastvlm", "batch of 8"): "no: its images take up another number of embeddings than of tokens",
    ("fastvlm", "prefix reuse"): "no: answered one at a time",
    # its positions are interpolated bilinearly, and were learnt bicubically
    ("glm4v", "transformers"): "no: a logprob of",
    # for want of torchvision
    ("mistral3", "transformers"): "no: benchmarks.errors.ModelError: mistral3 could not be loaded",
    ("paligemma", "three images"): "no: this model takes one image per prompt",
    ("paligemma", "batch of 4"): "no: its prompts come with attention_mask_4d",
    ("paligemma", "batch of 8"): "no: its prompts come with attention_mask_4d",
    ("paligemma", "one image"): "no: this model cannot be given this prompt",  # a text before the image
    ("paligemma", "prefix reuse"): "no: answered one at a time",
    ("paligemma", "transformers"): "no: a logprob of 0-3",  # a text without an image
    ("deepseek_vl_v2", "transformers"): "texts only",
    ("gemma3n", "transformers"): "texts only",
    ("gemma4", "tiles"): "-: every image takes as many tokens as a small one",
    ("gemma4", "transformers"): "no: benchmarks.errors.ModelError: gemma4: its weights for MLX cannot be loaded",
    ("gemma4_unified", "transformers"): "texts only",  # for want of torchvision
    ("gemma4_unified", "features from disk"): "-: its features are not stored",  # it has no encoder
    ("gemma4_unified", "config forms"): "MLX only",
    ("kimi_vl", "transformers"): "-: transformers has no implementation of kimi_vl",
    ("kimi_vl", "config forms"): "-: transformers cannot write it",
    ("mllama", "three images"): "no: this model takes one image per prompt",
    ("mllama", "tiles"): "-: every image takes as many tokens as a small one",
    ("mllama", "batch of 4"): "no: its prompts come with cross_attention_mask",
    ("mllama", "batch of 8"): "no: its prompts come with cross_attention_mask",
    ("mllama", "prefix reuse"): "no: answered one at a time (its prompts come with cross_attention_mask",
    ("mllama", "features from disk"): "-: its features are not stored",  # it is answered one at a time
    ("phi3_v", "transformers"): "-: transformers has no implementation of phi3_v",
    ("llama4", "transformers"): "texts only",  # for want of torchvision
    ("llama4", "config forms"): "MLX only",
    # its positions are interpolated bilinearly, and were learnt bicubically
    ("glm4v_moe", "transformers"): "no: a logprob of",
    ("glm4v_moe", "config forms"): "MLX only",
    # transformers turns twice a section of a head by each dimension of positions, mlx-vlm every section in each half of a head;
    # without that, an image whose positions are not interpolated is equal (to 0.00001), and others differ by 0.02
    ("hunyuan_vl", "transformers"): "no: a logprob of",
    ("hunyuan_vl", "config forms"): "MLX only",
    **{
        (family, "transformers"): f"-: transformers has no implementation of {family}"
        for family in ("minicpmo", "zaya1_vl")
    },
    ("minicpmo", "tiles"): "-: every image takes as many tokens as a small one",
    **{
        (family, "config forms"): "-: transformers cannot write it"
        for family in ("deepseek_vl_v2", "fastvlm", "internvl_chat", "minicpmo", "phi3_v", "zaya1_vl")
    },
    **{
        (family, "config forms"): "MLX only"  # for the reason that the ability "transformers" has
        for family in ("gemma3n", "gemma4", "glm4v", "mistral3", "paligemma", "pixtral")
    },
}
"""Known limits of a family, as the beginning of the ability's result."""

SETTINGS: Mapping[str, Any] = {"rope_theta": 54321.0, "rms_norm_eps": 0.03, "norm_eps": 0.03}
"""Settings of a language model that differ from every default."""

SCALING: Mapping[str, Any] = {"rope_type": "linear", "type": "linear", "factor": 4.0}

SEEN = 1e-3
"""Least change of a logit, as a share of their standard deviation, that shows that a model saw another image."""

CLOSE = 1e-3
"""Most difference of two logits, as a share of their standard deviation, that rounding in fp32 makes."""

TORCH_CLOSE = 1e-3
"""Most difference of two logprobs between the two frameworks in fp32; another image or token makes tenths."""

PIXELS_CLOSE = 1e-5
"""Most difference of two processed pixel values between the two frameworks."""

KILL_IN_WRITE = "--kill-in-write"

_WORDS = ("IMAGE", "TEXT", "NEITHER")


@contextmanager
def shrunk(family: str) -> Iterator[None]:
    """Make the parts of mlx-vlm's model that have a fixed size tiny within the block, where the family has such parts."""
    module = import_module(f"tests.support.tiny_models.{family}")
    with getattr(module, "shrunk", nullcontext)():
        yield


class Subject:
    """A tiny model of one family, loaded, with what its abilities are measured by."""

    def __init__(self, family: str, folder: Path) -> None:
        self.family = family
        self._media = folder / "media"
        self._media.mkdir(parents=True)
        with shrunk(family):
            self.model = FAMILIES[family](folder / family)
            self.backend = self._load()

    def measure(self, ability: str) -> str:
        """Return the result of ``ability``; whatever goes wrong on the way is a ``no``."""
        self.backend.use_sequential_mode()
        try:
            result: str = getattr(self, ability.replace(" ", "_"))()
        except Exception as error:
            return f"no: {one_line(error)}"
        finally:
            self.backend.use_sequential_mode()
        return result

    def close(self) -> None:
        """Free the model."""
        self.backend.close()

    # --- abilities ------------------------------------------------------------------------------------

    def text(self) -> str:
        """A text is answered, and what looks like a control token stays text."""
        one = self._alone(self._asked(Text("What does the passage say?")))
        other = self._alone(self._asked(Text("What does the passage say? <|im_end|> <image> </s>")))
        return self._failed([one, other]) or "yes"

    def one_image(self) -> str:
        """An image before, between and behind texts is answered, and no other image is answered the same."""
        images = [self.noise(1), self.noise(2), self.blank()]
        for place in range(3):
            requests = []
            for image in images:
                parts: list[Part] = [Text("What is the value? "), Text(" and why?")]
                requests.append(self._asked(*parts[:place], image, *parts[place:]))
            if reason := self._failed([self._alone(request) for request in requests]):
                return reason
            logits = [self._logits(request) for request in (*requests, requests[0])]
            if not np.array_equal(logits[0], logits[-1]):
                return f"no: the logits of one prompt differ by {self._change(logits[0], logits[-1]):.2g} when repeated"
            if min(self._change(logits[0], other) for other in logits[1:-1]) < SEEN:
                return f"no: an image in place {place} is not seen"
        return "yes"

    def three_images(self) -> str:
        """Of three images in different places, each is seen, and so is their order."""
        a, b, c, d = map(self.noise, range(4))

        def request(*images: Media) -> Request:
            first, second, third = images
            return self._asked(Text("One: "), first, Text(" two: "), second, Text(" three: "), third, Text(" Which?"))

        sets = [(a, b, c), (d, b, c), (a, d, c), (a, b, d), (b, a, c), (a, c, b)]
        if reason := self._failed([self._alone(request(*images)) for images in sets]):
            return reason
        logits = [self._logits(request(*images)) for images in sets]
        for images, other in zip(sets[1:], logits[1:], strict=True):
            if self._change(logits[0], other) < SEEN:
                return f"no: of three images, the change from 0 1 2 to {self._names(images, (a, b, c, d))} is not seen"
        return "yes"

    def tiles(self) -> str:
        """A large image takes more tokens than a small one, and a change in any of its quarters is seen."""
        sizes = [(64, 64), (300, 150), (600, 900)]
        counts = [self._alone(self._asked(self.noise(1, *size), Text("Why?"))) for size in sizes]
        if reason := self._failed(counts):
            return reason
        tokens = [generation.prompt_tokens or 0 for generation in counts]
        if max(tokens) == tokens[0]:
            return "-: every image takes as many tokens as a small one"
        width, height = sizes[tokens.index(max(tokens))]
        whole = self._logits(self._asked(self.noise(1, width, height), Text("Why?")))
        for quarter in range(4):
            other = self._logits(self._asked(self._altered(1, width, height, quarter), Text("Why?")))
            if self._change(whole, other) < SEEN:
                return f"no: quarter {quarter} of a large image is not seen"
        return "yes"

    def exact(self) -> str:
        """One after the other, in either order and in a fresh backend, requests get the same tokens."""
        if reason := self._failed(self.expected.values()):
            return reason
        again = answers(self.backend, self.mixed[::-1])
        with shrunk(self.family):
            fresh = self._load()
        try:
            third = answers(fresh, self.mixed)
        finally:
            fresh.close()
        return self._compared(again) or self._compared(third) or "yes"

    def forced(self) -> str:
        """Forced through its own answer, a model finds each of its tokens the likeliest."""
        for request in self.mixed[:4]:
            answer = self.expected[request.id]
            probe = self.backend.probe(request, answer.tokens)
            if [top[0][0] for top in probe.top] != list(answer.tokens):
                return f"no: forced through its answer to {request.id}, the model prefers another one"
            if len(probe.token_ids) != answer.prompt_tokens:
                return f"no: the probe of {request.id} holds {len(probe.token_ids)} tokens of {answer.prompt_tokens}"
        return "yes"

    def batch_of_4(self) -> str:
        return self._batch(4)

    def batch_of_8(self) -> str:
        return self._batch(8)

    def prefix_reuse(self) -> str:
        """With shared prefixes computed once, requests get the same tokens, and fewer prompt tokens are computed."""
        self.backend.width = 4
        if (proof := self.backend.choose_mode(self.mixed)) is None:
            return "no: nothing could be compared"
        if proof.way != BATCHED_SHARED:
            return f"no: answered {proof.way} ({'; '.join(proof.failed.values())})"
        batched = answers(self.backend, self.mixed)
        assert self.backend.reuse is not None
        computed, total = self.backend.reuse.computed_tokens, sum(g.prompt_tokens or 0 for g in batched.values())
        if computed >= total:
            return f"no: {computed} prompt tokens were computed of {total}"
        return self._compared(batched) or self._moved(4, share=True) or "yes"

    def likelihood(self) -> str:
        """Options score the same with the prompt read once for all as each alone, and by the image that is shown."""
        form = Likelihood(_WORDS)
        requests = [
            replace(self._asked(self.noise(n), Text("Which?")), instance_id=f"options-{n}", form=form) for n in range(3)
        ]
        alone = answers(self.backend, requests)
        self.backend.width = 4
        self.backend.choose_mode(self.mixed)
        shared = answers(self.backend, requests)
        if reason := self._failed([*alone.values(), *shared.values()]):
            return reason
        scores = np.array([alone[request.id].scores for request in requests])
        other = np.array([shared[request.id].scores for request in requests])
        if (difference := float(np.abs(scores - other).max())) > CLOSE:
            return f"no: with the prompt read once, a score moves by {difference:.2g}"
        if len({tuple(row) for row in scores.round(5).tolist()}) < len(requests):
            return "no: another image makes no other score"
        return "yes"

    def kill_and_resume(self) -> str:
        """Killed in the middle and resumed by another process, requests get the same tokens."""
        first = self._answered_apart(self.mixed, kill_after=3)
        rest = [request for request in self.mixed if request.id not in first]
        if not rest:
            return "no: it was not killed in time"
        second = self._answered_apart(rest)
        tokens = {**first, **second}
        wrong = [request.id for request in self.mixed if tokens.get(request.id) != self.expected[request.id].tokens]
        return f"no: {len(wrong)} of {len(self.mixed)} answers are others ({', '.join(wrong[:3])})" if wrong else "yes"

    def features_from_disk(self) -> str:
        """With features on disk, of a process killed while it wrote some, and damaged ones, requests get the same tokens."""
        asked = [request for request in self.mixed if self.expected[request.id].error is None]
        with pytest.MonkeyPatch.context() as patch, tempfile.TemporaryDirectory() as home:
            patch.setenv(LIMIT, "1")
            patch.setenv("HOME", home)
            patch.setenv(
                "XDG_CACHE_HOME", f"{home}/.cache"
            )  # of the other process, and of this one where tests replace it:
            patch.setattr("platformdirs.user_cache_path", lambda name: platformdirs.PlatformDirs(name).user_cache_path)
            self._answered_apart(asked, KILL_IN_WRITE)
            if not (stored := list(Path(home).rglob("*.features"))):
                return "-: its features are not stored"
            if sum(is_own_name(path.name) for path in Path(home).rglob("*")) != 1:
                return "no: it was not killed while it wrote"
            (file,) = stored
            whole, damaged = file.read_bytes(), bytearray(file.read_bytes())
            damaged[len(damaged) // 2] ^= 1
            for width in (1, 4, 8, 16):
                file.write_bytes(damaged)  # the check meets it, and the answers use the check's work
                for is_stored in (False, True):
                    with shrunk(self.family):
                        backend = self._load()
                    try:
                        backend.width = width
                        backend.choose_mode(asked)
                        read, reuse = answers(backend, asked), backend.reuse
                    finally:
                        backend.close()
                    if reason := self._compared(read):
                        return f"{reason} at width {width}"
                    if file.read_bytes() != whole:
                        return f"no: damaged features are not computed again at width {width}"
                    if is_stored and (reuse is None or not reuse.from_disk or reuse.encoded):
                        return f"no: features are not read from the disk at width {width} ({reuse})"
        return "yes"

    def transformers(self) -> str:
        """Transformers reads the same tokens and pixels in fp32, and prefers the same tokens, as probable."""
        from tests.support import text_reference
        from tests.support.in_torch import in_torch

        if find_spec("torch") is None:
            return "-: PyTorch is not installed"
        if self.family in text_reference.FAMILIES:
            return self._text_in_transformers()
        requests = [request for request in self.mixed if self.expected[request.id].tokens][:6]
        forced = {request.id: self.expected[request.id].tokens for request in requests}
        try:
            reference = in_torch(self.model, requests, self.path, forced=forced)
        except AssertionError as error:
            if "does not know by itself" in str(error):
                return f"-: transformers has no implementation of {self.family}"
            return f"no: {' '.join(str(error).splitlines()[-1:])}"
        for request, theirs in zip(requests, reference.probes, strict=True):
            ours = self.backend.probe(request, forced[request.id], keep=True)
            if ours.token_ids != theirs.token_ids:
                return f"no: {request.id} is {len(ours.token_ids)} tokens, and in transformers {len(theirs.token_ids)}"
            for mine, its in zip(ours.pixel_values or (), theirs.pixel_values or (), strict=True):
                if mine.shape != its.shape or np.abs(mine - its).max() > PIXELS_CLOSE:
                    return f"no: transformers has other pixels for {request.id}"
            difference = float(np.abs(np.subtract(ours.logprobs, theirs.logprobs)).max())
            if difference > TORCH_CLOSE:
                return f"no: a logprob of {request.id} differs by {difference:.2g} from transformers"
        return "yes"

    def config_forms(self) -> str:
        """The forms of ``config.json`` of transformers 4 and 5 give the same tokens and logits, also in PyTorch."""
        from tests.support.in_torch import in_torch

        scalings: tuple[Mapping[str, Any] | None, ...] = (None, SCALING)
        for scaling in scalings:
            older = self._with_settings("older", scaling)
            try:
                logits, tokens = self._answers_of(older)
            except ModelError:
                if scaling is None:
                    raise
                continue  # the library refuses scaled positions
            if scaling is None and self._change(logits, self._logits(self.mixed[0])) < SEEN:
                return "no: the settings change nothing"
            try:
                newer = self._in_newer_form(older)
            except (ValueError, KeyError) as error:
                return f"-: transformers cannot write it ({one_line(error)[:60]})"
            newer_logits, newer_tokens = self._answers_of(newer)
            if (change := self._change(logits, newer_logits)) or tokens != newer_tokens:
                return f"no: the logits differ by {change:.2g} of their spread"
        if find_spec("torch") is None or GAPS.get((self.family, "transformers")):
            return "MLX only"
        reference = in_torch(newer, [self.mixed[0]], self.path)
        if tuple(reference.answers[self.mixed[0].id].tokens) != tokens:
            return "no: PyTorch gives other tokens"
        return "yes"

    def _with_settings(self, name: str, scaling: Mapping[str, Any] | None) -> Path:
        """Return a folder of this model whose language model has :data:`SETTINGS`, in the form that it was written in."""
        folder = self._linked(f"{name}-{'scaled' if scaling else 'plain'}")
        config = json.loads((self.model / "config.json").read_text())
        text = next((config[key] for key in ("text_config", "language_config") if config.get(key)), config)
        newer = text.get("rope_parameters") or {}
        sections = [kind for kind in newer.values() if isinstance(kind, dict)] or ([newer] if newer else [])
        for section in sections:
            section["rope_theta"] = SETTINGS["rope_theta"]
        settings = dict(SETTINGS)
        if sections and "rope_theta" not in text:
            settings.pop("rope_theta")
        if scaling is not None:
            if not sections or "rope_scaling" in text:
                settings["rope_scaling"] = {**(text.get("rope_scaling") or {}), **scaling}
            for section in sections[:1]:
                section.update(scaling)
        text.update(settings)
        (folder / "config.json").write_text(json.dumps(config))
        return folder

    def _in_newer_form(self, older: Path) -> Path:
        from transformers import AutoConfig

        newer = self._linked(f"newer-{older.name}")
        AutoConfig.from_pretrained(older).save_pretrained(newer)
        return newer

    def _linked(self, name: str) -> Path:
        """Return a new folder with links to the model's files, without its configuration."""
        folder = self._media.parent / name
        folder.mkdir()
        for file in self.model.iterdir():
            if file.name != "config.json":
                (folder / file.name).symlink_to(file)
        return folder

    def _answers_of(self, folder: Path) -> tuple[Any, tuple[int, ...]]:
        """Return the logits of the first token, and all tokens, that the model in ``folder`` gives to an image and a text."""
        with shrunk(self.family):
            backend = load_backend(str(folder), self.path)
        assert isinstance(backend, VLMBackend)
        request = self.mixed[0]
        try:
            tokens = answers(backend, [request])[request.id].tokens
            return backend._teacher_forcing.forced(request, [0])[0], tuple(tokens)
        finally:
            backend.close()

    def _text_in_transformers(self) -> str:
        """Return the result of :meth:`transformers` for texts alone, read as prompts."""
        from tests.support.text_reference import reference_logits

        request = self._asked(Text("What does the passage say of the bar's value in 2015?"))
        tensors = self.backend._preprocessor.tensors(request)[1]
        ids = tensors["input_ids"].flatten().tolist()
        theirs = reference_logits(self.family, self.model, self.backend._model.language_model, ids)
        if (change := self._change(theirs[-1], self._logits(request))) > CLOSE:
            return f"no: the logits of a text differ by {change:.2g} of their spread from transformers"
        return "texts only: transformers cannot read its images here"

    # --- requests -------------------------------------------------------------------------------------

    @cached_property
    def mixed(self) -> list[Request]:
        """Text-only questions, images in every place, several images if they are taken, and siblings that share an image."""
        requests = []
        for number in range(3):
            image, other = self.noise(number, 64, 64 + 32 * (number % 2)), self.noise(number + 50, 96, 32)
            for kind, parts in enumerate(
                [
                    (image, Text("What is the value of the bar? Answer.")),
                    (image, Text(f"The passage says {number}. What is the value?")),
                    (Text("Look: "), image, Text(" and "), other, Text(" differ. Why?")),
                    (Text(f"The passage says {number}. What is it?"),),
                ]
            ):
                decoding = Decoding(max_tokens=2 + (5 * number + kind) % 9)
                if self.family in prompt_utils().SINGLE_IMAGE_ONLY_MODELS and other in parts:
                    continue  # "three images" says it
                requests.append(Request(f"{number}-{kind}", 0, (Message("user", parts),), decoding))
        return requests

    @cached_property
    def expected(self) -> dict[str, Generation]:
        """The answers to :attr:`mixed`, one after the other."""
        return answers(self.backend, self.mixed)

    def path(self, media: Media) -> Path:
        """Return the file of ``media``."""
        return self._media / media.name

    def noise(self, seed: int, width: int = 64, height: int = 64) -> Media:
        """Return an image of random pixels, another one for every seed."""
        return self._image(_pixels(seed, width, height))

    def blank(self) -> Media:
        """Return a grey image."""
        return self._image(np.full((64, 64, 3), 128, np.uint8))

    def _altered(self, seed: int, width: int, height: int, quarter: int) -> Media:
        """Return :meth:`noise` with one of its quarters inverted."""
        pixels = _pixels(seed, width, height)
        top, left = quarter // 2 * (height // 2), quarter % 2 * (width // 2)
        region = pixels[top : top + height // 2, left : left + width // 2]
        region[:] = 255 - region
        return self._image(pixels)

    def _image(self, pixels: Any) -> Media:
        from PIL import Image

        data = io.BytesIO()
        Image.fromarray(pixels).save(data, "PNG")
        media = Media(hashlib.sha256(data.getvalue()).hexdigest(), ".png")
        self.path(media).write_bytes(data.getvalue())
        return media

    def _asked(self, *parts: Part) -> Request:
        return Request("request", 0, (Message("user", parts),), Decoding(max_tokens=3))

    # --- measuring ------------------------------------------------------------------------------------

    def _load(self) -> VLMBackend:
        backend = load_backend(str(self.model), self.path)
        assert isinstance(backend, VLMBackend)
        return backend

    def _alone(self, request: Request) -> Generation:
        return answers(self.backend, [request])[request.id]

    def _logits(self, request: Request) -> Any:
        """Return the logits of a request's first token. Raises ValueError where one is not a number."""
        logits = self.backend._teacher_forcing.forced(request, [0])[0]
        if not np.isfinite(logits).all():
            raise ValueError("a logit is not a number")
        return logits

    def _change(self, logits: Any, other: Any) -> float:
        return float(np.abs(logits - other).max() / logits.std())

    def _names(self, images: Sequence[Media], known: Sequence[Media]) -> str:
        return " ".join(str(known.index(image)) for image in images)

    def _failed(self, generations: Any) -> str:
        errors = [generation.error for generation in generations if generation.error is not None]
        return f"no: {errors[0]}" if errors else ""

    def _compared(self, generations: Mapping[str, Generation]) -> str:
        """Return which answers are not the expected ones, as a result; empty where all are."""
        wrong = [name for name, answer in generations.items() if answer.tokens != self.expected[name].tokens]
        return f"no: {len(wrong)} of {len(self.mixed)} answers are others ({', '.join(wrong[:3])})" if wrong else ""

    def _moved(self, width: int, *, share: bool) -> str:
        """Return by how much logits move in a batch, as a result; empty where by no more than rounding."""
        cases = [self.backend._teacher_forcing.case(request) for request in self.mixed]
        rows = self.backend._teacher_forcing.mode(width, self.backend._first.new_work if share else None)(cases)
        changes = [self._change(case.logits, np.asarray(logits)) for case, logits in zip(cases, rows, strict=True)]
        worst = int(np.argmax(changes))
        if changes[worst] <= CLOSE:
            return ""
        return f"no: in a batch, the logits of {self.mixed[worst].id} move by {changes[worst]:.2g} of their spread"

    def _batch(self, width: int) -> str:
        """In a batch, with nothing shared, requests get the same tokens and logits, and none is answered alone."""
        if reason := self._failed(self.expected.values()):
            return reason
        if reason := self._moved(width, share=False):
            return reason
        self.backend._start_batched(width, share=False)
        alone: list[str] = []
        stream = self.backend._sequential.stream

        def counted(request: Request, *arguments: Any) -> Any:
            alone.append(request.id)
            return stream(request, *arguments)

        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(self.backend._sequential, "stream", counted)
            batched = answers(self.backend, self.mixed)
        if alone:
            return f"no: {len(alone)} of {len(self.mixed)} requests were answered alone"
        return self._compared(batched) or "yes"

    def _answered_apart(
        self, requests: Sequence[Request], *options: str, kill_after: int | None = None
    ) -> dict[str, tuple[int, ...]]:
        """Return the tokens that a process of its own answers with, which is killed after so many answers."""
        process = subprocess.Popen(
            [sys.executable, "-m", "tests.support.model_matrix", "--answer", *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
        )
        assert process.stdin is not None
        assert process.stdout is not None
        with process:
            process.stdin.write(pickle.dumps((self.family, self.model, self._media, requests)))
            process.stdin.close()
            tokens = {}
            for line in process.stdout:
                name, *numbers = line.decode().split()
                tokens[name.rpartition("#")[0] or name] = tuple(map(int, numbers))
                if len(tokens) == kill_after:
                    process.kill()
                    break
        return {request.id: tokens[key] for request in requests for key in (request.instance_id,) if key in tokens}


def _pixels(seed: int, width: int, height: int) -> Any:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


def _answer() -> None:
    """Answer the pickled requests of the standard input, and print each answer's tokens."""
    family, model, media, requests = pickle.load(sys.stdin.buffer)  # noqa: S301 - our own
    out, sys.stdout = sys.stdout, sys.stderr
    if KILL_IN_WRITE in sys.argv:
        _kill_in_second_write()
    with shrunk(family):
        backend = load_backend(str(model), lambda medium: media / medium.name)
        if os.environ.get(LIMIT, "0") != "0":  # features are stored where work is shared
            backend.choose_mode(requests)
        for request in requests:
            print(request.instance_id, *answers(backend, [request])[request.id].tokens, file=out, flush=True)


def _kill_in_second_write() -> None:
    """Have this process killed while it writes the features of a second image."""
    names = list[str]()

    @contextmanager
    def counted(folder: Path, name: str) -> Iterator[Any]:
        with replacing(folder, name) as stream:
            yield stream
            names.append(name)
            if len(names) > 1:
                stream.truncate(stream.tell() // 2)
                os.kill(os.getpid(), signal.SIGKILL)

    pytest.MonkeyPatch().setattr(feature_store, "replacing", counted)


def table(families: Sequence[str], show: Callable[[str], None]) -> None:
    """Measure ``families`` and show a row of results for each."""
    show(f"| family | {' | '.join(ABILITIES)} |")
    show(f"|{'---|' * (len(ABILITIES) + 1)}")
    for family in families:
        with tempfile.TemporaryDirectory() as folder:
            try:
                subject = Subject(family, Path(folder))
            except Exception as error:
                show(f"| {family} | no: {one_line(error)} |")
                continue
            results = []
            for ability in ABILITIES:
                started = perf_counter()
                results.append(subject.measure(ability))
                print(f"{family}: {ability}: {results[-1]} ({perf_counter() - started:.1f} s)", file=sys.stderr)
            subject.close()
        show(f"| {family} | {' | '.join(results)} |")


if __name__ == "__main__":
    os.environ.setdefault("MLX_DISABLE_COMPILE", "1")
    if sys.argv[1:2] == ["--answer"]:
        _answer()
    else:
        table(sys.argv[1:] or sorted(FAMILIES), lambda line: print(line, flush=True))
