"""Sounds in WAV, FLAC, Ogg and MP3 files, decoded to one channel at a chosen sample rate."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import MediaError
from benchmarks.media.decoder_faults import refusing_bytes
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import HIGHEST_RATE, LONGEST_SOUND, LOWEST_RATE, MOST_CHANNELS, MOST_SAMPLES

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "the sound"
NO_SOUND = "is not a WAV, FLAC, Ogg or MP3 sound; convert it to one of them"
TOO_LONG = f"is longer than {LONGEST_SOUND // 60} minutes, or too many channels and samples for that; cut or convert it"
TOO_FINE = (
    f"has a rate below {LOWEST_RATE // 1000} kHz, a rate above {HIGHEST_RATE // 1000} kHz, "
    f"or more than {MOST_CHANNELS} channels; convert it"
)
DAMAGED = "is truncated or damaged; replace the file"
SILENT = "holds no sound; replace the file"

_BLOCK = 1 << 16
_OGG_LAST = 4
_LARGEST_PAGE = 1 << 16  # of Ogg
_HEAD = 64
_UNKNOWN_SIZES = (0, 0xFFFFFFFF)


@dataclass(frozen=True, slots=True)
class Sound:
    """The header of a sound: samples per channel, sample rate in Hz, number of channels."""

    frames: int
    rate: int
    channels: int

    @property
    def seconds(self) -> float:
        return self.frames / self.rate


def sound_suffix(data: bytes) -> str | None:
    """Return the suffix (with its dot) of the sound format whose signature ``data`` has; None for anything else."""
    if data[:4] in (b"RIFF", b"RF64") and data[8:12] == b"WAVE":
        return ".wav"
    if data[:4] == b"fLaC":
        return ".flac"
    if data[:4] == b"OggS":
        return ".ogg"
    if data[:3] == b"ID3" or (len(data) > 1 and data[0] == 0xFF and data[1] & 0xE6 == 0xE2):
        return ".mp3"
    return None


def read_header(data: bytes) -> Sound:
    """Return the header of a sound within the limits. Raises MediaError."""
    ((fields, _),) = run_decoder("sound-header", NAME, data)
    return Sound(int(fields["frames"]), int(fields["rate"]), int(fields["channels"]))


def load_sound(data: bytes, rate: int) -> NDArray[np.float32]:
    """Return the sound at ``rate`` Hz: the mean of its channels, shape (samples,), in [-1, 1] if the file's samples are.

    A child process reads and resamples it in blocks, so the result bounds the memory. Raises MediaError if the data are not
    a sound, are truncated, contain samples that are not finite, or exceed a limit.
    """
    samples, filled = np.zeros(0, np.float32), 0
    for fields, payload in run_decoder("sound", NAME, data, rate=rate):
        if "at_most" in fields:
            samples = np.empty(min(int(fields["at_most"]), _at_most(LONGEST_SOUND, rate)), np.float32)
        else:
            block = np.frombuffer(payload, np.float32)
            samples[filled : filled + len(block)] = block
            filled += len(block)
    return samples[:filled]


def decode_header(file: IO[bytes]) -> Sound:
    """Return the header as :func:`read_header` does, in this process."""
    with _opened(file) as (_, sound):
        return sound


def decode_blocks(file: IO[bytes], rate: int) -> Iterator[int | NDArray[np.float32]]:
    """Yield an upper bound of the number of samples, then the samples, as in :func:`load_sound`, in this process."""
    import soxr

    with _opened(file) as (sound_file, sound):
        yield _at_most(sound.seconds, rate)
        resampled = None if sound.rate == rate else soxr.ResampleStream(sound.rate, rate, 1, dtype="float32")
        # Resampling turns a few samples at a low rate into many.
        size = max(1, min(_BLOCK, _BLOCK * sound.rate // rate, _BLOCK * 2 // sound.channels))
        samples_read = 0
        while len(block := sound_file.read(size, dtype="float32", always_2d=True)):
            samples_read += len(block)
            if not np.isfinite(block).all():
                raise MediaError(NAME, DAMAGED)
            mono = block[:, 0] if sound.channels == 1 else block.mean(1, dtype=np.float32)
            yield mono if resampled is None else resampled.resample_chunk(mono)
        if samples_read < sound.frames:
            raise MediaError(NAME, DAMAGED)
        if resampled is not None:
            yield resampled.resample_chunk(np.zeros(0, np.float32), last=True)


def _at_most(seconds: float, rate: int) -> int:
    """Return an upper bound of the number of samples of a resampled sound."""
    return int((seconds + 1) * rate)


@contextmanager
def _opened(file: IO[bytes]) -> Iterator[tuple[Any, Sound]]:
    import soundfile

    file.seek(0)
    head = file.read(_HEAD)
    if (suffix := sound_suffix(head)) is None:
        raise MediaError(NAME, NO_SOUND)
    size = file.seek(0, os.SEEK_END)
    file.seek(max(0, size - _LARGEST_PAGE))
    if _is_truncated(head, file.read(), size, suffix):
        raise MediaError(NAME, DAMAGED)
    file.seek(0)
    with refusing_bytes(NAME, DAMAGED), soundfile.SoundFile(file) as sound_file:
        sound = Sound(sound_file.frames, sound_file.samplerate, sound_file.channels)
        if not LOWEST_RATE <= sound.rate <= HIGHEST_RATE or not 0 < sound.channels <= MOST_CHANNELS:
            raise MediaError(NAME, TOO_FINE)
        if sound.frames <= 0:
            raise MediaError(NAME, SILENT)
        if sound.seconds > LONGEST_SOUND or sound.frames * sound.channels > MOST_SAMPLES:
            raise MediaError(NAME, TOO_LONG)
        yield sound_file, sound


def _is_truncated(head: bytes, tail: bytes, file_size: int, suffix: str) -> bool:
    """Return whether the end of the file is missing, which libsndfile does not report."""
    if suffix == ".ogg":
        last = tail.rfind(b"OggS")
        lengths = tail[last + 27 : last + 27 + tail[last + 26]] if 0 <= last < len(tail) - 26 else b""
        return not lengths or not tail[last + 5] & _OGG_LAST or len(tail) < last + 27 + len(lengths) + sum(lengths)
    if suffix == ".wav" and head[:4] == b"RIFF":
        size = int.from_bytes(head[4:8], "little")
        return size not in _UNKNOWN_SIZES and size + 8 > file_size + 1  # some writers omit the final padding byte
    return False
