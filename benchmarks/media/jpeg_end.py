"""JPEG files that lack only the mark of their end, which viewers show."""

from __future__ import annotations

import io
from typing import IO

from benchmarks.media.decoder_faults import is_decoder_fault

_END = b"\xff\xd9"
_FILLERS = (bytes(64), b"\xaa\x55" * 32)


def with_end(file: IO[bytes]) -> IO[bytes] | None:
    """Return a JPEG file with the mark of its end added, if the file lacks nothing else; None otherwise.

    A decoder that has all rows skips bytes before the mark; one that has not takes them for pixels, and different bytes make
    different pictures.
    """
    from PIL import Image

    file.seek(0)
    data = file.read()
    if data.endswith(_END):
        return None
    pixels = []
    for filler in _FILLERS:
        try:
            with Image.open(io.BytesIO(data.removesuffix(_END[:1]) + filler + _END), formats=["JPEG"]) as image:
                pixels.append(image.tobytes())
        except Exception as error:  # a decoder can raise anything for hostile bytes
            if isinstance(error, MemoryError) or is_decoder_fault(error):
                raise
            return None
    return io.BytesIO(data.removesuffix(_END[:1]) + _END) if pixels[0] == pixels[1] else None
