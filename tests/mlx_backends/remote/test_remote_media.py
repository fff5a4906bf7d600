"""Sounds and videos sent to remote engines: what arrives, what is refused before a call, and what survives faults."""

from __future__ import annotations

import base64
import io
import wave
from hashlib import sha256
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from benchmarks.vocabulary import Media, Modality, Text
from mlx_backends.engine_registry import describe, load_backend
from mlx_backends.options import RemoteOptions
from mlx_backends.remote import remote_media
from mlx_backends.remote.api_budget import estimate_usage
from tests.support.fault_server import FaultServer, faults
from tests.support.media import sound, video
from tests.support.remote import ask, generate_one, run

pytestmark = pytest.mark.usefixtures("client")

BASES = ("OPENAI_BASE_URL", "ANTHROPIC_BASE_URL", "GOOGLE_GEMINI_BASE_URL", "AZURE_OPENAI_ENDPOINT")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FaultServer:
    faulty = FaultServer()
    for name in BASES:
        monkeypatch.setenv(name, faulty.url)
    return faulty


def medium(folder: Path, data: bytes, suffix: str, modality: Modality) -> Media:
    name = sha256(data).hexdigest()
    (folder / f"{name}{suffix}").write_bytes(data)
    return Media(name, suffix, modality)


def decoded(data: str) -> bytes:
    return base64.b64decode(data.replace("-", "+").replace("_", "/"))


def check_wav(data: bytes) -> None:
    """A second of a sine at 16 kHz, in one channel."""
    with wave.open(io.BytesIO(data)) as opened:
        assert (opened.getnchannels(), opened.getframerate(), opened.getsampwidth()) == (1, 16_000, 2)
        samples = np.frombuffer(opened.readframes(opened.getnframes()), "<i2").astype(float) / 32767
    assert len(samples) == 16_000
    assert np.abs(samples[100:-100]).max() == pytest.approx(0.5, abs=0.02)
    assert np.argmax(np.abs(np.fft.rfft(samples))) == 440


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["WAV", "FLAC", "OGG"])
def test_gemini_gets_sounds_and_videos_in_place(kind: str, server: FaultServer, tmp_path: Path) -> None:
    heard = medium(tmp_path, sound(1.0, 44_100, kind, channels=2), f".{kind.lower()}", "audio")
    seen = medium(tmp_path, video(), ".mp4", "video")
    parts = (Text("Scene A: "), heard, Text("Scene B: "), seen, Text("Which?"))
    with server:
        backend = load_backend(
            "gemini:gemini-2.0-flash-exp", lambda media: tmp_path / media.name, remote=RemoteOptions()
        )
        assert generate_one(backend, ask(1, *parts)).text == "yes"
        backend.close()
    a, audio, b, clip, question = server.received[0].body["contents"][0]["parts"]
    assert [a["text"], b["text"], question["text"]] == ["Scene A: ", "Scene B: ", "Which?"]
    assert (audio["inlineData"]["mime_type"], clip["inlineData"]["mime_type"]) == ("audio/wav", "video/mp4")
    check_wav(decoded(audio["inlineData"]["data"]))
    assert decoded(clip["inlineData"]["data"]) == (tmp_path / seen.name).read_bytes()


@pytest.mark.parametrize("engine", ["openai", "azure"])
def test_openais_audio_models_get_sounds(engine: str, server: FaultServer, tmp_path: Path) -> None:
    heard = medium(tmp_path, sound(1.0), ".wav", "audio")
    with server:
        backend = load_backend(f"{engine}:gpt-audio", lambda media: tmp_path / media.name, remote=RemoteOptions())
        assert generate_one(backend, ask(1, heard, Text("What is it?"))).text == "yes"
        backend.close()
    audio, question = server.received[0].body["messages"][0]["content"]
    assert (audio["type"], audio["input_audio"]["format"], question["type"]) == ("input_audio", "wav", "text")
    check_wav(base64.b64decode(audio["input_audio"]["data"]))


@pytest.mark.parametrize(
    ("model", "takes"),
    [
        ("gemini:gemini-2.0-flash-exp", ("image", "audio", "video")),
        ("gemini:models/gemini-2.5-pro", ("image", "audio", "video")),
        ("gemini:gemma-3-27b-it", ("image",)),
        ("openai:gpt-4o-audio-preview", ("audio",)),
        ("openai:gpt-4o", ("image",)),
        ("anthropic:claude-opus-4", ("image",)),
        ("endpoint:gpt-audio@http://127.0.0.1:1/v1", ("image",)),
    ],
)
def test_modalities_follow_from_the_name(model: str, takes: tuple[str, ...]) -> None:
    assert describe(model).takes == takes


@pytest.mark.parametrize(
    ("model", "content", "expected"),
    [
        ("openai:gpt-4o", [("a.wav", "audio")], "openai:gpt-4o takes image media only"),
        ("openai:gpt-audio", [("a.mp4", "video")], "takes audio media only"),
        ("gemini:gemini-2.0", [("a.npz", "point_cloud")], "takes image and audio and video media only"),
        ("gemini:gemini-2.0", [("broken.wav", "audio")], "sound"),
        ("gemini:gemini-2.0", [("broken.mkv", "video")], "no .mkv videos; convert it to MP4"),
        ("gemini:gemini-2.0", [("changed.mp4", "video")], "is not the one that was built"),
        ("gemini:gemini-2.0", [("gone.mp4", "video")], "is missing"),
        ("gemini:gemini-2.0", [("a.mp4", "video"), ("b.mp4", "video")], "exceed 0 MB; cut or compress"),
    ],
)
def test_unsendable_media_are_errors_without_a_call(
    model: str, content: list[tuple[str, Modality]], expected: str, server: FaultServer, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:  # fmt: skip
    parts: list[Media] = []
    for name, modality in content:
        path = Path(name)
        data = {"broken": b"RIFF0000WAVEnothing", "b": video(5)}.get(
            path.stem, video() if modality == "video" else sound()
        )
        parts.append(medium(tmp_path, data, path.suffix, modality))
        if path.stem == "changed":
            (tmp_path / parts[-1].name).write_bytes(video(3))
        elif path.stem == "gone":
            (tmp_path / parts[-1].name).unlink()
    monkeypatch.setattr("mlx_backends.remote.api_provider.MAX_REQUEST_BYTES", len(video()) + 10)
    with server:
        backend = load_backend(model, lambda media: tmp_path / media.name, remote=RemoteOptions())
        (done,) = run(backend, [ask(1, *parts, Text("?"))])
        backend.close()
    assert server.requests == 0
    assert (done.finish_reason, done.calls) == ("error", 0)
    assert expected in (done.error or "")


def test_media_survive_faults_and_are_decoded_once(server: FaultServer, tmp_path: Path, monkeypatch: Any) -> None:
    heard = medium(tmp_path, sound(1.0), ".wav", "audio")
    server.fault = faults(3, 0.4, ("429", "500", "reset", "half", "empty"))
    decodes: list[Media] = []
    encode = remote_media.EncodedMedia._wav

    def counted(self: remote_media.EncodedMedia, media: Media) -> bytes:
        decodes.append(media)
        return encode(self, media)

    monkeypatch.setattr(remote_media.EncodedMedia, "_wav", counted)
    with server:
        options = RemoteOptions(attempts=12)
        backend = load_backend("gemini:gemini-2.0-flash", lambda media: tmp_path / media.name, remote=options)
        # At temperature 0, a request that has the same faulty reply again and again is taken for the cause, and fails.
        done = run(backend, [ask(n, heard, Text(f"{n}?"), temperature=1.0) for n in range(12)])
        assert len(done) == 12
        backend.close()
    assert [generation.error for generation in done if generation.finish_reason != "stop"] == []
    assert server.requests > 12
    assert len(decodes) == 1
    for received in server.received:
        check_wav(decoded(received.body["contents"][0]["parts"][0]["inlineData"]["data"]))


def test_estimate_reads_no_more_than_sizes(tmp_path: Path) -> None:
    heard = medium(tmp_path, b"x" * 25_000, ".wav", "audio")
    seen = medium(tmp_path, b"x" * 30_000, ".mp4", "video")
    gone = Media("0" * 64, ".mp3", "audio")
    requests = [ask(1, heard), ask(2, seen), ask(3, gone)]
    usage = estimate_usage([(request, 0) for request in requests], RemoteOptions(), lambda media: tmp_path / media.name)
    assert (usage.calls, usage.media, usage.input_tokens) == (3, 3, 3 * 8 + 10 + 100)
    assert "(3 media)" in str(usage)
