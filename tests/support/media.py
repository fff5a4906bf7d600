"""Small sounds, videos and 3D models that tests make."""

from __future__ import annotations

import io
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

import numpy as np


def sound(seconds: float = 0.25, rate: int = 8000, kind: str = "WAV", channels: int = 1, pitch: float = 440.0) -> bytes:
    """A sine."""
    import soundfile

    wave = 0.5 * np.sin(2 * np.pi * pitch * np.arange(int(seconds * rate)) / rate)
    out = io.BytesIO()
    soundfile.write(out, np.repeat(wave[:, None], channels, 1), rate, format=kind)
    return out.getvalue()


def video(
    frames: int = 12,
    kind: str = "mp4",
    codec: str = "mpeg4",
    size: tuple[int, int] = (64, 48),
    metadata: Mapping[str, str] = MappingProxyType({}),
) -> bytes:
    """Grey frames that grow lighter evenly, 10 a second."""
    import av

    out = io.BytesIO()
    with av.open(out, "w", format=kind) as container:
        container.metadata.update(metadata)
        stream: Any = container.add_stream(codec, rate=10)
        stream.width, stream.height, stream.pix_fmt = *size, "yuv420p"
        for number in range(frames):
            level = 20 + 200 * number // max(frames - 1, 1)
            frame = av.VideoFrame.from_ndarray(np.full((size[1], size[0], 3), level, np.uint8), format="rgb24")
            container.mux(stream.encode(frame))
        container.mux(stream.encode())
    return out.getvalue()


def cloud(**arrays: Any) -> bytes:
    """An npz of ``arrays``; without any, of 300 coloured points in PointLLM's layout."""
    drawn = np.random.default_rng(0).uniform(0, 1, (300, 6)).astype(np.float32)
    out = io.BytesIO()
    np.savez(out, **(arrays or {"arr_0": drawn}))
    return out.getvalue()
