"""Sight check: a model's next token must depend on each image of its prompt, and be the same when asked twice.

It runs before a worker's first answer is stored, on a request with one image and on one with several. The logits that others are
compared with are those of these requests' answers, where a backend has observed them. Each image is replaced by its inverted
mirror image, of the same size, and a single one by a blank image where that changes nothing. The result is stored for later
runs of the same model (:mod:`mlx_backends.stored_checks`), which replace one image only.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from benchmarks.errors import ModelError, RashomonError
from benchmarks.untrusted.own_files import scratch_folder
from benchmarks.vocabulary import Media, Message, Part, Request
from mlx_backends.core.engine_probe import LikelyTokens, likeliest
from mlx_backends.core.error_text import one_line
from mlx_backends.core.metal_faults import metal_fault, out_of_memory
from mlx_backends.stored_checks import StoredCheck, StoredChecks, is_measure, report_unconfirmed

if TYPE_CHECKING:
    from mlx_backends.base import Backend, MediaPath

MAX_NOISE = 1e-3
"""Greatest change of a logprob when a request is repeated, as a share of the range of the likeliest tokens' logprobs.

Rounding stays below it; a model that reads beyond its tensors, as DeepSeek-VL2 in mlx-vlm 0.7.10, changes by about 1.
"""

CHECK = "sight"
"""The check's name among the stored checks."""

_FORCED = (0,)
"""One forced token: its logits are those right after the prompt."""


_NO_PICTURES = (
    "its pictures cannot be processed as preprocessor_config.json and config.json say; one may be of another model"
)
_NOTHING = "this machine's libraries cannot compute it, not even without pictures"


class ImageFeaturesError(ModelError):
    """Image features that do not reach every image position of a prompt."""


@dataclass(frozen=True, slots=True)
class SightCheck:
    """Result of the sight check.

    ``requests`` and ``images`` were checked. The greatest change of a logprob, in nats: ``repeated`` when a request was
    repeated, ``changed`` the smallest one over the images, each replaced by another. ``problem`` says in a clause what is
    wrong; it is empty where nothing is. ``key`` and ``checked_at`` (seconds since 1970) identify the stored check; the key is
    empty for one that is not stored. If it was stored by an earlier run, this run replaced ``confirmed`` images again.
    """

    requests: int
    images: int
    repeated: float
    changed: float
    problem: str = ""
    key: str = ""
    checked_at: float | None = None
    confirmed: int = 0


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
        with scratch_folder() as folder:

            def add(picture: Any) -> Media:
                path = folder / "picture.png"
                picture.save(path, compress_level=1)
                medium = Media(hashlib.sha256(path.read_bytes()).hexdigest(), ".png")
                self._added[medium.name] = path.rename(path.with_name(medium.name))
                return medium

            try:
                yield add
            finally:
                self._added.clear()


def stored_or_checked_sight(
    backend: Backend,
    media: ReplaceableMedia,
    selected: Sequence[Request],
    stored_checks: StoredChecks | None,
    stop: Callable[[], bool] = lambda: False,
) -> SightCheck | None:
    """Return a stored result that is confirmed, else that of :func:`check_sight`, which is then stored unless it is a problem."""
    conditions = {"images": [len(_images(request)) for request in selected]}
    if stored_checks is not None and (stored := stored_checks.find(CHECK, conditions)) is not None:
        earlier = _parse(stored)
        if earlier is not None and _confirms(backend, media, selected[0], earlier):
            return replace(earlier, confirmed=1)
        report_unconfirmed(stored)
    result = check_sight(backend, media, selected, stop)
    if stored_checks is None or result is None or result.problem:
        return result
    evidence = {name: getattr(result, name) for name in ("requests", "images", "repeated", "changed", "problem")}
    new = stored_checks.save(CHECK, conditions, evidence)
    return result if new is None else replace(result, key=new.key, checked_at=new.at)


def check_sight(
    backend: Backend, media: ReplaceableMedia, selected: Sequence[Request], stop: Callable[[], bool] = lambda: False
) -> SightCheck | None:
    """Return the result of a loaded ``backend`` for the :func:`sight_requests` ``selected``.

    None if there are none, if none can be prepared (each becomes an error in its turn), or if ``stop`` returns True meanwhile.
    A request that can be prepared and not computed is a problem: the settings of its images and the model's do not fit.
    ``media`` is the function with which the backend was loaded.
    """
    result = SightCheck(len(selected), 0, 0.0, 0.0)
    for request in (replace(request, form=None) for request in selected):
        if backend.observed(request) is None and not _is_prepared(backend, request):
            continue
        try:
            for step in _check_request(backend, media, request):
                if stop():
                    return None
                result = _combined(result, step)
                if result.problem:
                    return result
        except ImageFeaturesError as error:
            return replace(result, problem=str(error).rstrip("."))
        except Exception as error:  # whatever a library raises for images of another shape than it expects
            if isinstance(error, RashomonError) or metal_fault(error) is not None or out_of_memory(error):
                raise
            cause = _NO_PICTURES if _computes_text(backend, request) else _NOTHING
            return replace(result, problem=f"{cause} ({one_line(error).rstrip('.')})")
    return result if result.images else None


def _is_prepared(backend: Backend, request: Request) -> bool:
    """Return whether a request can be prepared. A fault of the GPU is raised."""
    try:
        backend.probe(request, ())
    except Exception as error:
        if metal_fault(error) is not None:
            raise
        return False
    return True


def _top(backend: Backend, request: Request) -> LikelyTokens:
    """Return the likeliest first tokens of an answer to ``request``, computed now."""
    return backend.probe(request, _FORCED).top[0]


def _observed_top(backend: Backend, request: Request) -> LikelyTokens:
    """Return the likeliest first tokens of the answer to ``request``: observed, or else computed now."""
    observed = backend.observed(request)
    return _top(backend, request) if observed is None else likeliest(observed.logits[0])


def _repeated_top(backend: Backend, request: Request, first: LikelyTokens) -> LikelyTokens:
    """Return the likeliest first tokens when ``request`` is computed again.

    What repeats an observed answer may do so in another way, so that it does not count where it differs by more than rounding.
    """
    repeated = backend.repeated(request)
    if repeated is not None and _change(first, top := likeliest(repeated[0])) <= MAX_NOISE * _range(first):
        return top
    return _top(backend, request)


def _confirms(backend: Backend, media: ReplaceableMedia, request: Request, earlier: SightCheck) -> bool:
    """Return whether the logits of ``request`` change by more than noise when its first image is replaced."""
    request = replace(request, form=None)
    image = _images(request)[0]
    try:
        with media.temporary() as add:
            variant = _with_image(request, 0, add(_variants(media(image), image)[0]))
            change = _change(_observed_top(backend, request), _top(backend, variant))
    except Exception as error:
        if metal_fault(error) is not None:
            raise
        return False
    return change > earlier.repeated


def _parse(stored: StoredCheck) -> SightCheck | None:
    """Return a stored result; None for a damaged one."""
    result: Mapping[str, Any] = stored.result
    match result:
        case {
            "requests": int(requests),
            "images": int(images),
            "repeated": repeated,
            "changed": changed,
            "problem": "",
        }:
            if all(map(is_measure, (requests, images, repeated, changed))):
                return SightCheck(requests, images, repeated, changed, key=stored.key, checked_at=stored.at)
    return None


@dataclass(frozen=True, slots=True)
class _Step:
    repeated: float = 0.0
    changed: float | None = None
    problem: str = ""


def _combined(result: SightCheck, step: _Step) -> SightCheck:
    repeated = max(result.repeated, step.repeated)
    if step.changed is None:
        return replace(result, repeated=repeated, problem=step.problem)
    smallest = min(result.changed, step.changed) if result.images else step.changed
    return replace(result, images=result.images + 1, repeated=repeated, changed=smallest, problem=step.problem)


def _check_request(backend: Backend, media: ReplaceableMedia, request: Request) -> Iterator[_Step]:
    """Yield the result of repeating a request, then that of replacing each of its images."""
    images = _images(request)
    observed = backend.observed(request)
    first = _observed_top(backend, request)
    noise = _change(first, _repeated_top(backend, request, first))
    if noise > MAX_NOISE * _range(first):
        yield _Step(noise, problem=f"its logits change by {noise:.3g} when the same request is repeated")
    yield _Step(noise)
    rows, place = backend.image_rows(request) if observed is None else observed.image_rows, -1.0
    for number, image in enumerate(images):
        which = f"image {number + 1} of {len(images)}" if len(images) > 1 else "the image"
        with media.temporary() as add:
            picture, *others = _variants(media(image), image)
            variant = _with_image(request, number, add(picture))
            change = _change(first, _top(backend, variant))
            last_place, place = place, _place_of_change(rows, backend.image_rows(variant), place + 1)
            if change <= noise and len(images) == 1:
                variants = [_with_image(request, number, add(other)) for other in others]
                change = max([change, *(_change(first, _top(backend, variant)) for variant in variants)])
        if place < 0:
            yield _Step(noise, change, f"its image features stay the same when {which} is replaced")
        elif change <= noise:
            yield _Step(noise, change, f"its logits stay the same when {which} is replaced")
        elif place <= last_place:
            yield _Step(noise, change, f"{which} is read in the place of an earlier one")
        yield _Step(noise, change)


def _computes_text(backend: Backend, request: Request) -> bool:
    """Return whether the model computes ``request`` without its media."""
    messages = (
        Message(message.role, tuple(part for part in message.parts if not isinstance(part, Media)))
        for message in request.messages
    )
    try:
        backend.probe(replace(request, messages=tuple(messages)), _FORCED)
    except Exception:
        return False
    return True


def _images(request: Request) -> list[Media]:
    parts = (part for message in request.messages for part in message.parts)
    return [part for part in parts if isinstance(part, Media) and part.modality == "image"]


def sight_requests(requests: Sequence[Request]) -> list[Request]:
    """Return the requests to check: the first with one image, and the one with the fewest of several different images."""
    single_image_request = next((request for request in requests if len(_images(request)) == 1), None)
    several_image_requests = [
        request for request in requests if len(set(_images(request))) == len(_images(request)) > 1
    ]
    smallest_request = min(several_image_requests, key=lambda request: len(_images(request)), default=None)
    return [request for request in (single_image_request, smallest_request) if request is not None]


def _variants(path: Path, image: Media) -> list[Any]:
    """Return the inverted mirror image of an image, unless it is the same, and a blank one, of its size and without marks."""
    from PIL import Image, ImageOps

    from benchmarks.media import load_image, read_media

    picture = load_image(read_media(path, image), None, ()).convert("RGB")
    inverted = ImageOps.invert(ImageOps.mirror(picture))
    grey = 96 if picture.convert("L").getextrema() == (160, 160) else 160
    blank = Image.new("RGB", picture.size, (grey, grey, grey))
    return [blank] if inverted.tobytes() == picture.tobytes() else [inverted, blank]


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


def _change(first: LikelyTokens, second: LikelyTokens) -> float:
    """Return the greatest change of a logprob among the likeliest tokens of two answers."""
    before, after = dict(first), dict(second)
    common_tokens = before.keys() & after.keys()
    floor = min(*before.values(), *after.values())
    changes = [abs(before[token] - after[token]) for token in common_tokens]
    changes += [
        abs(value - floor) for top in (before, after) for token, value in top.items() if token not in common_tokens
    ]
    return max(changes)


def _range(tokens: LikelyTokens) -> float:
    logprobs = [logprob for _, logprob in tokens]
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
