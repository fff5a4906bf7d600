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
    "image": ("PIL.Image", "numpy", "benchmarks.media.image_pixels"),
    "pdf": ("pypdfium2", "PIL.Image", "benchmarks.media.pdf_pages"),
    "sound": ("soundfile", "soxr", "benchmarks.media.audio_files"),
    "clip": ("av", "PIL.Image", "benchmarks.media.video_files"),
    "shape": (
        "scipy.spatial",
        "trimesh.exchange.load",
        "PIL.Image",
        "benchmarks.media.shape_files",
        "benchmarks.media.shape_renderer",
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
    from benchmarks.media import image_pixels

    decoded = image_pixels.decode(file, request["max_pixels"], managed=request["managed"])
    fields = {name: getattr(decoded, name) for name in ("full_size", "notes", "warnings", "converted")}
    yield {"size": decoded.image.size, **fields}, b""
    yield from _strips(decoded.image)


def _pdf(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import pdf_pages

    page = pdf_pages.decode_page(file, request["page"])
    yield {"size": page.size}, b""
    yield from _strips(page)


def _strips(image: PILImage) -> Messages:
    rows = max(1, _STRIP // (3 * image.width))
    for top in range(0, image.height, rows):
        yield {}, image.crop((0, top, image.width, min(top + rows, image.height))).tobytes()


def _sound_header(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import audio_files

    sound = audio_files.decode_header(file)
    yield {"frames": sound.frames, "rate": sound.rate, "channels": sound.channels}, b""


def _sound(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import audio_files

    for samples in audio_files.decode_blocks(file, request["rate"]):
        if isinstance(samples, int):
            yield {"at_most": samples}, b""
        else:
            yield {}, samples.tobytes()


def _clip(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from dataclasses import asdict

    from benchmarks.media import video_files

    clip = video_files.probe_clip(file)
    for _ in video_files.decode(file, {0}):
        pass
    yield asdict(clip), b""


def _clip_frames(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import video_files

    numbers = request["numbers"]
    if numbers is None:
        numbers = video_files.middle_frames(video_files.probe_clip(file), request["count"])
    for number, frame in video_files.decode(
        file, set(numbers), request["most_pixels"], video_files.FILTERS[request["filter"]]
    ):
        yield {"number": number, "size": frame.size}, frame.tobytes()


def _shape_views(file: IO[bytes], request: dict[str, Any]) -> Messages:
    from benchmarks.media import shape_files, shape_renderer

    shape = shape_files.decode_shape(file.read(), request["suffix"])
    yield {"points": len(shape.points), "faces": None if shape.faces is None else len(shape.faces)}, b""
    for view in shape_renderer.views(shape, tuple(request["names"])):
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
