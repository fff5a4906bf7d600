"""Sounds and videos in prompts: the same inputs as mlx-vlm's own, in the right place and never another request's."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import mlx.core as mx
import numpy as np
import pytest

from benchmarks.media import load_image
from benchmarks.media.audio_files import load_sound
from benchmarks.media.video_files import Clip
from benchmarks.vocabulary import Decoding, Media, Message, Modality, Request, Text
from mlx_backends.core.audio_video_inputs import MAX_FRAMES, AudioVideoReader
from mlx_backends.core.prompts.message_forms import PromptError
from mlx_backends.core.saved_work import shared_prefix_length
from mlx_backends.engine_registry import load_backend
from mlx_backends.mlx import prompt_reading
from mlx_backends.mlx.mlx_preprocess import Preprocessor
from mlx_backends.mlx.mode_choice import BATCHED_SHARED
from mlx_backends.mlx.vlm_backend import VLMBackend
from tests.mlx_backends.conftest import Pictures, answer, request_of
from tests.mlx_backends.mlx.test_batched_answers import loaded, tokens
from tests.support import tiny_models
from tests.support.benchmark_requests import answers
from tests.support.media import sound, video
from tests.support.tiny_models import TEXTS
from tests.support.tiny_qwen3_omni import build_tiny_omni

REAL = Path(__file__).resolve().parents[3].parent / "shared" / "data" / "contra4"
real_media = pytest.mark.skipif(not REAL.is_dir(), reason="the real media are not beside the project")


class Files(Pictures):
    """Media of every kind, named as a build names them."""

    def put(self, data: bytes, suffix: str, modality: Modality) -> Media:
        media = Media(hashlib.sha256(data).hexdigest(), suffix, modality)
        self.path(media).write_bytes(data)
        return media

    def sound(self, **how: Any) -> Media:
        return self.put(sound(**how), ".wav", "audio")

    def video(self, **how: Any) -> Media:
        return self.put(video(**how), ".mp4", "video")


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Files:
    return Files(tmp_path_factory.mktemp("clips"))


@pytest.fixture(scope="module")
def omni(tmp_path_factory: pytest.TempPathFactory, files: Files) -> Iterator[VLMBackend]:
    folder = build_tiny_omni(tmp_path_factory.mktemp("omni") / "omni", TEXTS)
    backend = load_backend(str(folder), files.path)
    assert isinstance(backend, VLMBackend)
    yield backend
    backend.close()


@pytest.fixture(scope="module")
def qwen(tmp_path_factory: pytest.TempPathFactory, files: Files) -> Iterator[VLMBackend]:
    backend = loaded("qwen3_vl", tmp_path_factory.mktemp("qwen") / "model", files.path, width=4)
    yield backend
    backend.close()


def mlx_vlms_own(backend: VLMBackend, request: Request, **media: Any) -> tuple[int, ...]:
    """Return the tokens of mlx-vlm's answer to the same prompt with the media themselves."""
    from mlx_vlm import stream_generate

    prompt = backend._preprocessor.prompter.prompt(request.messages)
    backend._processor.detokenizer = __import__("mlx_backends.mlx.sequential_answers", fromlist=["NoText"]).NoText()
    stream = stream_generate(
        backend._model,
        backend._processor,
        prompt.text,
        max_tokens=request.decoding.max_tokens,
        temperature=0.0,
        **media,
    )
    return tuple(int(response.token) for response in stream if response.finish_reason is None)


@pytest.fixture(scope="module")
def gemma(tmp_path_factory: pytest.TempPathFactory, files: Files) -> Iterator[VLMBackend]:
    """Gemma 4, whose processor is another's than Qwen's in everything."""
    folder = tiny_models.gemma4(tmp_path_factory.mktemp("gemma") / "gemma4")
    backend = load_backend(str(folder), files.path)
    assert isinstance(backend, VLMBackend)
    yield backend
    backend.close()


@pytest.mark.parametrize("name", ["omni", "gemma"])
@pytest.mark.slow
def test_mixed_media_prompt_matches_mlx_vlm(name: str, files: Files, request: pytest.FixtureRequest) -> None:
    backend: VLMBackend = request.getfixturevalue(name)
    image, heard, filmed = files.noise(4, 96, 64), files.sound(seconds=2), files.video(frames=30)
    scenes = (Text("Scene A: "), heard, Text(" Scene B: "), filmed, Text(" Scene C: "), image, Text(" Which?"))
    asking = request_of(*scenes, decoding=Decoding(8))
    clips = backend._preprocessor.audio_video
    samples = clips.read_audio(files.path(heard), heard, keep=False)[1].samples
    seen = clips.read_video(files.path(filmed), filmed, None, keep=False)[1]
    theirs = mlx_vlms_own(
        backend,
        asking,
        image=[load_image(files.path(image))],
        audio=[samples],
        video=[seen.frames],
        video_metadata=[seen.metadata],
    )
    ours = answer(backend, asking)
    assert ours.error is None
    assert theirs
    assert ours.tokens[: len(theirs)] == theirs


def test_gemma_3n_receives_its_sounds(files: Files, tmp_path: Path) -> None:
    """Only the processor of Gemma 3n is used, since its image tower has one size, 300 million parameters."""
    from mlx_vlm.models.gemma3n.processing_gemma3n import Gemma3nProcessor
    from transformers import AutoTokenizer, Gemma3nAudioFeatureExtractor

    class Processor(Gemma3nProcessor):  # type: ignore[misc]
        def check_argument_for_proper_class(self, name: str, argument: Any) -> type:
            return type(argument)

    class NoImages:
        model_input_names = ("pixel_values",)

    marks = {f"{kind}_token": f"<{kind}>" for kind in ("image", "audio", "boi", "eoi", "boa", "eoa")}
    audio_block = "{%- elif c.type == 'audio' %}{{- '<audio>' }}"
    template = tiny_models.base.TURNS.replace("IMAGE", "<image>").replace(
        "{%- elif c.type == 't", audio_block + "{%- elif c.type == 't"
    )
    special = ["<|endoftext|>", "<|im_start|>", "<|im_end|>", *marks.values()]
    ids = tiny_models.base.write_tokenizer(tmp_path / "gemma3n", special, template, extra_special_tokens=marks)
    tokenizer = AutoTokenizer.from_pretrained(tmp_path / "gemma3n")
    processor = Processor(Gemma3nAudioFeatureExtractor(), NoImages(), tokenizer, tokenizer.chat_template)
    config = SimpleNamespace(model_type="gemma3n", image_token_id=ids["<image>"], audio_token_id=ids["<audio>"])
    preparer = Preprocessor(processor, config, files.path)
    assert preparer.audio_video.max_seconds == 30
    asking = request_of(
        Text("Scene A: "), files.sound(seconds=2), Text(" Scene B: "), files.sound(pitch=900), Text(" Which?")
    )
    text, tensors = preparer.tensors(asking)
    assert "Scene A: <audio> Scene B: <audio> Which?" in text
    assert tensors["input_features"].shape[0] == 2
    assert int(tensors["input_features_mask"][0].sum()) > 3 * int(tensors["input_features_mask"][1].sum())
    assert int((tensors["input_ids"] == ids["<audio>"]).sum()) == 2 * 188


def sound_requests(files: Files) -> list[Request]:
    """Three prompts with a sound each."""
    return [
        Request(str(n), 0, (Message("user", (Text("A: "), files.sound(pitch=200 + n), Text(" What?"))),), Decoding(3))
        for n in range(3)
    ]


@pytest.mark.slow
def test_sounds_are_answered_in_a_batch_as_alone(gemma: VLMBackend, files: Files) -> None:
    gemma.use_sequential_mode()
    requests = sound_requests(files)
    expected = tokens(answers(gemma, requests))
    proof = gemma.choose_mode(requests)
    assert proof is not None
    assert (proof.way, proof.failed) == (BATCHED_SHARED, {})
    assert tokens(answers(gemma, requests)) == expected


def test_where_a_batch_is_not_known_a_model_is_asked_alone(
    gemma: VLMBackend, files: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(prompt_reading, "_KNOWN", prompt_reading._KNOWN - {"per_layer_inputs"})
    gemma.use_sequential_mode()
    requests = sound_requests(files)
    expected = tokens(answers(gemma, requests))
    assert gemma.choose_mode(requests) is not None
    assert "per_layer_inputs, which is not known to be the same in a batch" in gemma.remarks[0]
    assert tokens(answers(gemma, requests)) == expected


# --- sounds ----------------------------------------------------------------------------------------


@pytest.mark.slow
@real_media
def test_sound_input_matches_mlx_vlm(omni: VLMBackend, files: Files, tmp_path: Path) -> None:
    pytest.importorskip("mlx_audio")
    import soundfile
    from mlx_vlm.utils import load_audio

    path = sorted((REAL / "audio").glob("*.ogg"))[7]
    wave, rate = tmp_path / "as-it-is.wav", tmp_path / "at-its-rate.wav"
    soundfile.write(wave, *soundfile.read(path), subtype="FLOAT")  # its readers know no ogg without ffmpeg
    heard = load_sound(path.read_bytes(), 16000)
    assert np.abs(heard - load_audio(str(wave), 16000)).max() < 0.05, "two resamplers"
    soundfile.write(rate, heard, 16000, subtype="FLOAT")
    medium = files.put(rate.read_bytes(), ".wav", "audio")
    request = request_of(Text("Scene A: "), medium, Text(" Is it loud?"))
    ours, theirs = answer(omni, request), mlx_vlms_own(omni, request, audio=[str(rate)])
    assert ours.error is None
    assert ours.tokens[: len(theirs)] == theirs
    assert len(theirs) == len(ours.tokens) or ours.finish_reason == "stop"


def test_sound_changes_the_answer(omni: VLMBackend, files: Files) -> None:
    settings = {
        answer(omni, request_of(Text("Listen: "), files.sound(pitch=pitch, seconds=2), Text(" What is it?"))).tokens
        for pitch in (110.0, 880.0, 3000.0)
    }
    assert len(settings) == 3


def test_a_sound_is_one_channel_at_the_processors_rate(omni: VLMBackend, files: Files) -> None:
    clips = AudioVideoReader(omni._processor)
    assert (clips.rate, clips.max_seconds) == (16000, 30.0)
    stereo = files.sound(seconds=0.5, rate=44100, channels=2)
    _, heard = clips.read_audio(files.path(stereo), stereo, keep=False)
    assert heard.samples.shape == (8000,)
    assert heard.samples.dtype == np.float32
    assert not heard.truncated


def test_truncated_sound_is_reported(omni: VLMBackend, files: Files) -> None:
    long = files.sound(seconds=31)
    generation = answer(omni, request_of(Text("Listen: "), long, Text(" What?"), decoding=Decoding(2)))
    assert generation.error is None
    assert "omni hears the first 30 s of audio; 1 longer files were truncated." in omni.remarks
    same = omni._preprocessor.tensors(request_of(Text("Listen: "), files.sound(seconds=30), Text(" What?")))[1]
    cut = omni._preprocessor.tensors(request_of(Text("Listen: "), long, Text(" What?")))[1]
    assert cut["input_features"].shape == same["input_features"].shape
    assert mx.array_equal(cut["input_features"][..., :-3], same["input_features"][..., :-3]), "all but the very end"


def test_model_without_audio_is_refused(qwen: VLMBackend, files: Files) -> None:
    generation = answer(qwen, request_of(Text("Listen: "), files.sound(), Text(" What?")))
    assert generation.error == "this model cannot be given this prompt: no audio can be put into its prompt."


def test_second_sound_is_not_dropped(omni: VLMBackend, files: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    """mlx-vlm gives a processor that takes one sound the first of several, with a warning."""
    request = request_of(files.sound(), Text(" or "), files.sound(pitch=880), Text("?"))
    assert answer(omni, request).error is None
    monkeypatch.setattr(type(omni._processor), "supports_multiple_audio", False)
    assert answer(omni, request).error == "this model takes one audio clip per prompt, and the request holds 2."


# --- videos ----------------------------------------------------------------------------------------


@real_media
@pytest.mark.parametrize(
    "name", ["tiny_3frames.mov", "arm_wrestling.mp4", pytest.param("man_playing_drums.mp4", marks=pytest.mark.slow)]
)
def test_frames_and_times_match_mlx_vlm(qwen: VLMBackend, files: Files, name: str) -> None:
    pytest.importorskip("cv2")
    from mlx_vlm.utils import load_video, resolve_video_sampling

    path = REAL / "video" / name
    medium = files.put(path.read_bytes(), path.suffix, "video")
    _, seen = qwen._preprocessor.audio_video.read_video(files.path(medium), medium, None, keep=False)
    sampling = replace(resolve_video_sampling(qwen._processor, {}), max_frames=MAX_FRAMES)
    frames, metadata = load_video(str(path), sampling)
    assert seen.frames.shape == frames.shape
    assert seen.metadata.frames_indices == metadata.frames_indices
    assert np.allclose(seen.metadata.timestamps, metadata.timestamps, atol=0.15)
    apart = [float(np.abs(frame.astype(int) - other).mean()) for frame, other in zip(seen.frames, frames, strict=True)]
    assert np.median(apart) < 1, "OpenCV's seeking is a frame late in the end of one of them"
    assert seen.subsampled == (name == "man_playing_drums.mp4")


def test_video_answer_matches_mlx_vlm(qwen: VLMBackend, files: Files) -> None:
    medium = files.video(frames=40)
    request = request_of(Text("Scene A: "), medium, Text(" Is it bright?"))
    _, seen = qwen._preprocessor.audio_video.read_video(files.path(medium), medium, None, keep=False)
    assert len(seen.frames) == 8, "two a second"
    inputs = qwen._preprocessor.tensors(request)[1]
    read = qwen._tokenizer.decode(inputs["input_ids"][0].tolist())
    assert "Scene A: <0.3 seconds><|vision_start|><|video_pad|>" in read
    assert "<3.6 seconds>" in read
    theirs = mlx_vlms_own(qwen, request, video=[seen.frames], video_metadata=[seen.metadata])
    ours = answer(qwen, request)
    assert ours.error is None
    assert ours.tokens[: len(theirs)] == theirs


@pytest.mark.parametrize(
    ("frames", "fps", "expected"),
    [(1, 10.0, 1), (2, 10.0, 2), (3, 10.0, 2), (5, 10.0, 4), (100, 10.0, 20), (3000, 10.0, MAX_FRAMES)],
)
def test_frame_count_follows_the_duration(qwen: VLMBackend, frames: int, fps: float, expected: int) -> None:
    numbers = AudioVideoReader(qwen._processor).sample_frames(Clip(64, 48, frames, frames / fps))
    assert len(numbers) == expected
    assert numbers == sorted(set(numbers))
    assert numbers[0] == 0
    assert expected == 1 or numbers[-1] == frames - 1


def test_a_large_frame_is_scaled_down_and_max_pixels_bounds_it(qwen: VLMBackend, files: Files) -> None:
    medium = files.video(frames=4, size=(1600, 1200))
    clips = qwen._preprocessor.audio_video
    for bound, most in ((None, 1024 * 1024), (5000, 5000)):
        _, seen = clips.read_video(files.path(medium), medium, bound, keep=True)
        assert seen.frames.shape[1] == 3
        assert most * 0.9 < seen.frames.shape[2] * seen.frames.shape[3] <= most


def test_damaged_clip_fails_only_its_request(omni: VLMBackend, files: Files) -> None:
    clip = video(frames=30)
    broken = [
        (files.put(clip[: len(clip) // 2], ".mp4", "video"), "the video"),
        (files.put(b"no sound", ".wav", "audio"), "the sound"),
        (Media("0" * 64, ".wav", "audio"), f"the sound '{'0' * 64}.wav' is missing"),
        (Media("0" * 64, ".npz", "point_cloud"), "no model takes media of type point_cloud"),
    ]
    for medium, says in broken:
        generation = answer(omni, request_of(Text("A: "), medium, Text(" What?")))
        assert generation.finish_reason == "error"
        assert generation.error is not None
        assert says in generation.error
    assert answer(omni, request_of(Text("Still there?"))).error is None


# --- in their places, and never another's ------------------------------------------------------------


def mixed(files: Files) -> list[Request]:
    """Images and videos in every order, siblings and lookalikes side by side."""
    requests = []
    for number in range(3):
        image, clip = files.noise(number, 64, 64), files.video(frames=12 + 10 * number)
        other = files.video(frames=14 + 10 * number)
        for kind, parts in enumerate(
            [
                (Text("Scene A: "), clip, Text(" Scene B: "), image, Text(" Which is louder?")),
                (Text("Scene A: "), clip, Text(" Scene B: "), other, Text(" Which is louder?")),
                (Text("Scene A: "), clip, Text(" Scene B: "), other, Text(" Which is calmer?")),
                (Text("Scene A: "), image, Text(" Scene B: "), clip, Text(" Which is it?")),
                (Text("Scene A: "), other, Text(" 1.5 "), clip, Text(" seconds?")),
                (Text(f"No scene, {number}."),),
            ]
        ):
            requests.append(Request(f"{number}-{kind}", 0, (Message("user", parts),), Decoding(max_tokens=6)))
    return requests


@pytest.mark.slow
def test_batched_and_shared_videos_equal_sequential(qwen: VLMBackend, files: Files) -> None:
    qwen.use_sequential_mode()
    requests = mixed(files)
    expected = tokens(answers(qwen, requests))
    assert len({answer_tokens[0] for answer_tokens in expected.values()}) > len(expected) / 2
    proof = qwen.choose_mode(requests)
    assert proof is not None
    assert (proof.way, proof.failed) == (BATCHED_SHARED, {})
    assert tokens(answers(qwen, requests)) == expected
    assert tokens(answers(qwen, requests[::-1])) == expected
    total = sum(len(qwen._preprocessor.inputs(request).content) for request in requests)
    assert qwen.reuse is not None
    assert qwen.reuse.computed_tokens < 1.7 * total, "of two rounds"


def test_positions_match_the_media(qwen: VLMBackend, files: Files) -> None:
    clip, other, image = files.video(frames=20), files.video(frames=21), files.noise(9, 64, 64)

    def content(*parts: Any) -> Any:
        return qwen._preprocessor.inputs(request_of(*parts))

    inputs = content(Text("A: "), clip, Text(" B: "), image, Text(" Which?"))
    same = content(Text("A: "), clip, Text(" B: "), image, Text(" Why?"))
    later = content(Text("A: "), clip, Text(" B: "), other, Text(" Which?"))
    assert (len(inputs.images), len(inputs.videos)) == (1, 1)
    assert inputs.videos == same.videos == later.videos[:1]
    before = int((inputs.ids[0] == qwen._model.config.image_token_id).tolist().index(True))
    assert shared_prefix_length(inputs.content, same.content) > before
    assert int(np.argmax(inputs.content < 0)) + 8 < shared_prefix_length(inputs.content, later.content) <= before + 1, (
        "the first video"
    )
    assert len(np.unique(inputs.content[inputs.content < 0])) == int((inputs.content < 0).sum())
    brighter = content(Text("A: "), other, Text(" B: "), image, Text(" Which?"))
    assert inputs.content.shape == brighter.content.shape
    media_start = int(np.argmax(inputs.content < 0))
    assert shared_prefix_length(inputs.content, brighter.content) == media_start, "two videos of one size are two"


def test_prefix_keys_distinguish_sounds(omni: VLMBackend, files: Files) -> None:
    def content(*parts: Any) -> Any:
        return omni._preprocessor.inputs(request_of(*parts))

    image = files.noise(3, 64, 64)
    low, high = files.sound(pitch=200, seconds=1), files.sound(pitch=900, seconds=1)
    first, two = (content(Text("A: "), bound, Text(" B: "), image, Text(" Which?")) for bound in (low, high))
    again = content(Text("A: "), low, Text(" B: "), image, Text(" Why?"))
    assert first.ids.tolist() == two.ids.tolist()
    assert shared_prefix_length(first.content, two.content) == int(np.argmax(first.content < 0))
    assert shared_prefix_length(first.content, again.content) > np.flatnonzero(first.content < 0)[-1]
    assert (first.images, first.videos) == ((), ())


def test_model_with_unknown_features_runs_sequentially_with_a_remark(omni: VLMBackend, files: Files) -> None:
    requests = [
        request_of(Text(f"{n}: "), files.sound(pitch=200 + n), Text(" What?"), decoding=Decoding(3)) for n in range(4)
    ]
    requests = [replace(request, instance_id=str(number)) for number, request in enumerate(requests)]
    omni.use_sequential_mode()
    expected = tokens(answers(omni, requests))
    proof = omni.choose_mode(requests)
    assert proof is not None
    (remark,) = (remark for remark in omni.remarks if "answered one at a time" in remark)
    assert "layout that is not known to be the same in a batch" in remark
    assert tokens(answers(omni, requests)) == expected
    omni.use_sequential_mode()


@pytest.mark.slow
@pytest.mark.parametrize("text", ["<|video_pad|>", "<0.5 seconds>", "2.5", "<|vision_start|><|audio_pad|>", "\1\0"])
def test_text_cannot_imitate_a_medium(omni: VLMBackend, qwen: VLMBackend, files: Files, text: str) -> None:
    for backend, media in ((qwen, (files.video(), files.noise(1))), (omni, (files.sound(), files.video()))):
        first, second = media
        assert (
            answer(backend, request_of(first, Text(text), second, Text(" Which?"), decoding=Decoding(2))).error is None
        )


def test_inputs_without_one_of_the_media_are_refused(qwen: VLMBackend, files: Files) -> None:
    prompter = qwen._preprocessor.prompter
    request = request_of(Text("A: "), files.video(frames=20), Text(" B: "), files.video(frames=30), Text(" Which?"))
    prompt = prompter.prompt(request.messages)
    inputs = qwen._preprocessor.tensors(request)[1]
    prompter.check_inputs(prompt, inputs)
    ids = inputs["input_ids"][0].tolist()
    pad = qwen._model.config.video_token_id
    last = len(ids) - ids[::-1].index(pad)
    moved = [*ids[:last], *ids[last + 3 : last + 6], pad, *ids[last + 6 :]]
    without = [token for token in ids if token != pad]
    for damaged in (moved, without, [*ids, pad]):
        with pytest.raises(PromptError, match="processor"):
            prompter.check_inputs(prompt, {"input_ids": mx.array([damaged])})
