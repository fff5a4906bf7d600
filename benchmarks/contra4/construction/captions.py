"""Predicted captions: a captioner for each modality describes every medium once (Appendix H)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.base import Decoding, Generation, Media, Message, Modality, Part, Request, Text
from benchmarks.contra4.prompts import DESCRIBE
from benchmarks.contra4.sample import LONGEST, Contra4Sample, Scene
from benchmarks.errors import ModelError
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, mute

_MAX_TOKENS = 128

Captioners = Mapping[Modality, TextModel]


def predict(
    samples: Sequence[Contra4Sample], captioners: Captioners, seed: int
) -> Iterator[tuple[Contra4Sample, tuple[str, ...]]]:
    """Each sample with the captions that could be predicted, and why each other scene with a medium has none.

    A medium that several samples show is described once. Raises ModelError where a captioner answers nothing at all.
    """
    said: dict[tuple[Modality, str], str] = {}
    problems: dict[tuple[Modality, str], str] = {}
    for modality, captioner in captioners.items():
        requests = {each.id: each for each in _requests(samples, modality, seed)}
        replies = {reply.request_id: reply for reply in captioner.ask(requests.values())}
        if error := mute(replies.values(), len(requests)):
            raise ModelError(
                f"{captioner.name} described none of {len(requests)} media ({error}); name another captioner for them."
            )
        for request in requests.values():
            caption, problem = _read(replies.get(request.id))
            (said if caption else problems)[modality, request.instance_id] = caption or problem
    for sample in samples:
        scenes = tuple(_with(scene, said) for scene in sample.scenes)
        lost = (problems.get((scene.modality, scene.media.sha256)) for scene in scenes if scene.media)
        yield replace(sample, scenes=scenes), tuple(problem for problem in lost if problem)


def shown(scene: Scene) -> tuple[Media, ...]:
    """What a captioner is shown of a scene: its pictures, where it was rendered, else the medium itself."""
    return scene.pictures or ((scene.media,) if scene.media else ())


def _requests(samples: Sequence[Contra4Sample], modality: Modality, seed: int) -> Iterator[Request]:
    seen: set[str] = set()
    for scene in (scene for sample in samples for scene in sample.scenes):
        if scene.modality == modality and scene.media and scene.media.sha256 not in seen:
            seen.add(scene.media.sha256)
            parts: tuple[Part, ...] = (*shown(scene), Text(DESCRIBE[modality]))
            decoding = Decoding(max_tokens=_MAX_TOKENS, seed=seed)
            yield Request(scene.media.sha256, 0, (Message("user", parts),), decoding)


def _read(reply: Generation | None) -> tuple[str, str]:
    """The caption, or why there is none."""
    if reply is None or reply.finish_reason == "error":
        return "", f"the captioner gave no reply ({reply.error if reply else 'none came'})"
    caption = " ".join(visible_answer(reply.text).split())[:LONGEST]
    return caption, "" if caption else "the captioner's reply is empty"


def _with(scene: Scene, said: Mapping[tuple[Modality, str], str]) -> Scene:
    caption = said.get((scene.modality, scene.media.sha256), "") if scene.media else ""
    return replace(scene, predicted=caption) if caption else scene
