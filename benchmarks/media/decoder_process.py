"""Child process that decodes media under limits: ``python -m benchmarks.media.decoder_process``.

Each task yields JSON objects and raw pixels or samples; ``{"error": reason}`` refuses a medium.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, TYPE_CHECKING, Any

from benchmarks.errors import MediaError
from benchmarks.untrusted.bounded_process import serve

if TYPE_CHECKING:
    from PIL.Image import Image as PILImage

Messages = Iterator[tuple[dict[str, Any], bytes]]

_LIBRARIES = {
    "image": ("PIL.Image", "numpy", "benchmarks.media.pixels"),
    "pdf": ("pypdfium2", "PIL.Image", "benchmarks.media.pdf"),
    "sound": ("soundfile", "soxr", "benchmarks.media.audio"),
    "clip": ("av", "PIL.Image", "benchmarks.media.video"),
    "shape": (
        "scipy.spatial",
        "trimesh.exchange.load",
        "PIL.Image",
        "benchmarks.media.points",
        "benchmarks.media.render",
    ),
}
_STRIP = 4 * 1024 * 1024


def _prepare(request: dict[str, Any]) -> None:
    for module in _LIBRARIES[request["task"].partition("-")[0]]:
        import_module(module)


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Messages:
    assert file is not None
    try:
        yield from _TASKS[request["task"]](file, request)
    except MediaError as error:
        yield {"error": error.reason}, b""


def _image(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import pixels

    decoded = pixels.decode(file, request["max_pixels"], managed=request["managed"])
    fields = {name: getattr(decoded, name) for name in ("full_size", "notes", "warnings", "converted")}
    yield {"size": decoded.image.size, **fields}, b""
    yield from _strips(decoded.image)


def _pdf(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import pdf

    page = pdf.decode_page(file, request["page"])
    yield {"size": page.size}, b""
    yield from _strips(page)


def _strips(image: PILImage) -> Messages:
    rows = max(1, _STRIP // (3 * image.width))
    for top in range(0, image.height, rows):
        yield {}, image.crop((0, top, image.width, min(top + rows, image.height))).tobytes()


def _sound_header(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import audio

    sound = audio.decode_header(file)
    yield {"frames": sound.frames, "rate": sound.rate, "channels": sound.channels}, b""


def _sound(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import audio

    for samples in audio.decode_blocks(file, request["rate"]):
        if isinstance(samples, int):
            yield {"at_most": samples}, b""
        else:
            yield {}, samples.tobytes()


def _clip(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from dataclasses import asdict

    from benchmarks.media import video

    clip = video.probe_clip(file)
    for _ in video.decode(file, {0}):
        pass
    yield asdict(clip), b""


def _clip_frames(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import video

    numbers = request["numbers"]
    if numbers is None:
        numbers = video.middle_frames(video.probe_clip(file), request["count"])
    for number, frame in video.decode(file, set(numbers), request["most_pixels"], video.FILTERS[request["filter"]]):
        yield {"number": number, "size": frame.size}, frame.tobytes()


def _shape_views(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import points, render

    shape = points.decode_shape(file.read(), request["suffix"])
    yield {"points": len(shape.points), "faces": None if shape.faces is None else len(shape.faces)}, b""
    for view in render.views(shape, tuple(request["names"])):
        yield {}, view.tobytes()


_TASKS: dict[str, Callable[[IO[bytes], dict[str, Any]], Messages]] = {
    "image": _image,
    "pdf": _pdf,
    "sound": _sound,
    "sound-header": _sound_header,
    "clip": _clip,
    "clip-frames": _clip_frames,
    "shape-views": _shape_views,
}


if __name__ == "__main__":
    serve(_handle, _prepare)
