"""``python -m benchmarks.media.decoder_process``: the child process in which media are decoded, under limits.

Each task yields JSON objects and raw pixels, samples or coordinates; ``{"error": reason}`` says why a medium is refused.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from typing import IO, Any

from benchmarks.errors import MediaError
from benchmarks.untrusted.bounded_process import serve

Answer = Iterator[tuple[dict[str, Any], bytes]]

_LIBRARIES = {
    "image": ("PIL.Image", "benchmarks.media.image"),
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


def _handle(request: dict[str, Any], file: IO[bytes] | None) -> Answer:
    assert file is not None
    try:
        yield from _TASKS[request["task"]](file, request)
    except MediaError as error:
        yield {"error": error.reason}, b""


def _image(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import image

    decoded, whole = image.decode(file, request["max_pixels"])
    yield {"size": decoded.size, "whole": whole}, b""
    rows = max(1, _STRIP // (3 * decoded.width))
    for top in range(0, decoded.height, rows):
        yield {}, decoded.crop((0, top, decoded.width, min(top + rows, decoded.height))).tobytes()


def _sound_header(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import audio

    sound = audio.header(file)
    yield {"frames": sound.frames, "rate": sound.rate, "channels": sound.channels}, b""


def _sound(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import audio

    for samples in audio.blocks(file, request["rate"]):
        if isinstance(samples, int):
            yield {"at_most": samples}, b""
        else:
            yield {}, samples.tobytes()


def _clip(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from dataclasses import asdict

    from benchmarks.media import video

    clip = video.measure(file)
    for _ in video.decode(file, {0}):
        pass
    yield asdict(clip), b""


def _clip_frames(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import video

    wanted = request["numbers"]
    if wanted is None:
        wanted = video.middles(video.measure(file), request["count"])
    for number, frame in video.decode(file, set(wanted), request["most_pixels"], video.FILTERS[request["filter"]]):
        yield {"number": number, "size": frame.size}, frame.tobytes()


def _shape(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import points

    shape = points.parse(file.read(), request["suffix"])
    for name, kind in points.ARRAYS.items():
        array = getattr(shape, name)
        if array is not None:
            yield {"array": name}, array.astype(kind).tobytes()


def _shape_views(file: IO[bytes], request: dict[str, Any]) -> Answer:
    from benchmarks.media import points, render

    shape = points.parse(file.read(), request["suffix"])
    yield {"points": len(shape.points), "faces": None if shape.faces is None else len(shape.faces)}, b""
    for view in render.views(shape, tuple(request["names"])):
        yield {}, view.tobytes()


_TASKS: dict[str, Callable[[IO[bytes], dict[str, Any]], Answer]] = {
    "image": _image,
    "sound": _sound,
    "sound-header": _sound_header,
    "clip": _clip,
    "clip-frames": _clip_frames,
    "shape": _shape,
    "shape-views": _shape_views,
}


if __name__ == "__main__":
    serve(_handle, _prepare)
