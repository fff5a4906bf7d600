"""Sight check: a model's next token must depend on each image of its prompt, and be the same when asked twice.

It runs before a worker's first answer, on a request with one image and on one with several. Each image is replaced by a
blank one and by its inverted mirror image, of the same size.
"""

from __future__ import annotations

import hashlib
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import ModelError
from benchmarks.vocabulary import Media, Message, Part, Request

if TYPE_CHECKING:
    from mlx_backends.base import Backend, MediaPath
    from mlx_backends.core.probe import Probe

MAX_NOISE = 1e-3
"""Greatest change of a logprob when a request is repeated, as a share of the range of the likeliest tokens' logprobs.

Rounding stays below it; a model that reads beyond its tensors, as DeepSeek-VL2 in mlx-vlm 0.7.10, changes by about 1.
"""

_FORCED = (0,)
"""One forced token: its logits are those right after the prompt."""


class ImageFeaturesError(ModelError):
    """Image features that do not reach every image position of a prompt."""


@dataclass(frozen=True, slots=True)
class SightCheck:
    """Result of the sight check.

    ``requests`` and ``images`` were checked. The greatest change of a logprob, in nats: ``repeated`` when a request was
    repeated, ``changed`` the smallest one over the images, each replaced by another. ``problem`` says in a clause what is
    wrong; it is empty where nothing is.
    """

    requests: int
    images: int
    repeated: float
    changed: float
    problem: str = ""


class ReplaceableMedia:
    """A :data:`MediaPath` whose media can be joined by temporary images."""

    def __init__(self, media: MediaPath) -> None:
        self._media = media
        self._added: dict[str, Path] = {}

    def __call__(self, medium: Media) -> Path:
        return self._added.get(medium.name) or self._media(medium)

    @contextmanager
    def temporary(self) -> Iterator[Callable[[Any], Media]]:
        """Yield a function that adds a picture until the context ends, and returns its :class:`Media`."""
        with tempfile.TemporaryDirectory(prefix="rashomon-sight-") as folder:

            def add(picture: Any) -> Media:
                path = Path(folder) / "picture.png"
                picture.save(path)
                medium = Media(hashlib.sha256(path.read_bytes()).hexdigest(), ".png")
                self._added[medium.name] = path.rename(path.with_name(medium.name))
                return medium

            try:
                yield add
            finally:
                self._added.clear()


def check_sight(
    backend: Backend, media: ReplaceableMedia, selected: Sequence[Request], stop: Callable[[], bool] = lambda: False
) -> SightCheck | None:
    """Return the result of a loaded ``backend`` for the :func:`sight_requests` ``selected``.

    None if there are none, if none can be prepared (each becomes an error in its turn), or if ``stop`` returns True meanwhile.
    ``media`` is the function with which the backend was loaded.
    """
    image_count, noise, smallest_change = 0, 0.0, float("inf")
    for request in (replace(request, form=None) for request in selected):
        images = _images(request)
        try:
            first = backend.probe(request, _FORCED)
        except ImageFeaturesError as error:
            return SightCheck(len(selected), image_count, noise, 0.0, str(error).rstrip("."))
        except Exception:
            continue
        if stop():
            return None
        repeated = _change(first, backend.probe(request, _FORCED))
        noise = max(noise, repeated)
        if repeated > MAX_NOISE * _range(first):
            problem = f"its logits change by {repeated:.3g} when the same request is repeated"
            return SightCheck(len(selected), image_count, noise, 0.0, problem)
        rows, places = backend.image_rows(request), [-1.0]
        for number, image in enumerate(images):
            with media.temporary() as add:
                blank, mirrored = (add(picture) for picture in _variants(media(image), image))
                variants = [_with_image(request, number, variant) for variant in (blank, mirrored)]
                changes = []
                for variant in variants:
                    if stop():
                        return None
                    changes.append(_change(first, backend.probe(variant, _FORCED)))
                places.append(_place_of_change(rows, backend.image_rows(variants[0]), places[-1] + 1))
            image_count += 1
            smallest_change = min(smallest_change, max(changes))
            which = f"image {number + 1} of {len(images)}" if len(images) > 1 else "the image"
            problem = ""
            if max(changes) <= repeated or places[-1] < 0:
                problem = (
                    f"its {'logits' if places[-1] >= 0 else 'image features'} stay the same when {which} is replaced"
                )
            elif places[-1] <= places[-2]:
                problem = f"{which} is read in the place of an earlier one"
            if problem:
                return SightCheck(len(selected), image_count, noise, max(changes), problem)
    return SightCheck(len(selected), image_count, noise, smallest_change) if image_count else None


def _images(request: Request) -> list[Media]:
    parts = (part for message in request.messages for part in message.parts)
    return [part for part in parts if isinstance(part, Media) and part.modality == "image"]


def sight_requests(requests: Sequence[Request]) -> list[Request]:
    """Return the requests to check: the first with one image, and the one with the fewest of several different images."""
    single = next((request for request in requests if len(_images(request)) == 1), None)
    several = [request for request in requests if len(set(_images(request))) == len(_images(request)) > 1]
    fewest = min(several, key=lambda request: len(_images(request)), default=None)
    return [request for request in (single, fewest) if request is not None]


def _variants(path: Path, image: Media) -> tuple[Any, Any]:
    """Return a blank picture and the inverted mirror image of an image, both of its size and without marks."""
    from PIL import Image, ImageOps

    from benchmarks.media import load_image, read_media

    picture = load_image(read_media(path, image), None, ())
    inverted = ImageOps.invert(ImageOps.mirror(picture.convert("RGB")))
    grey = 96 if picture.convert("L").getextrema() == (160, 160) else 160
    return Image.new("RGB", picture.size, (grey, grey, grey)), inverted


def _with_image(request: Request, number: int, image: Media) -> Request:
    """Return ``request`` with its image ``number`` replaced by ``image``, marks included."""
    messages, index = [], 0
    for message in request.messages:
        parts: list[Part] = []
        for part in message.parts:
            if isinstance(part, Media) and part.modality == "image":
                parts.append(replace(image, marks=part.marks) if index == number else part)
                index += 1
            else:
                parts.append(part)
        messages.append(Message(message.role, tuple(parts)))
    return replace(request, messages=tuple(messages))


def _change(first: Probe, second: Probe) -> float:
    """Return the greatest change of a logprob among the likeliest tokens of two probes."""
    before, after = dict(first.top[0]), dict(second.top[0])
    common = before.keys() & after.keys()
    floor = min(*before.values(), *after.values())
    changes = [abs(before[token] - after[token]) for token in common]
    changes += [abs(value - floor) for top in (before, after) for token, value in top.items() if token not in common]
    return max(changes)


def _range(probe: Probe) -> float:
    logprobs = [logprob for _, logprob in probe.top[0]]
    return max(logprobs) - min(logprobs)


def _place_of_change(before: Any | None, after: Any | None, unknown: float) -> float:
    """Return the mean image position at which the model's input changed, weighted by the change.

    ``unknown`` if the engine does not show its input; negative if nothing changed.
    """
    import numpy as np

    if before is None or after is None or before.shape != after.shape:
        return unknown
    changes = np.abs(before - after).mean(axis=-1)
    total = changes.sum()
    return float((changes * np.arange(len(changes))).sum() / total) if total > 0 else -1.0
