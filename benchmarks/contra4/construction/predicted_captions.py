"""Predicted captions: one captioner per modality describes every medium once (Appendix H)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

from benchmarks.contra4.contra4_prompts import DESCRIBE
from benchmarks.contra4.contra4_sample import LONGEST_TEXT, Contra4Sample, Scene
from benchmarks.errors import NoAnswerError
from benchmarks.text.answer_text import visible_answer
from benchmarks.text_model import TextModel, common_failure
from benchmarks.vocabulary import Decoding, Generation, Media, Message, Modality, Part, Request, Text

_MAX_TOKENS = 128

Captioners = Mapping[Modality, TextModel]


def predict_captions(
    samples: Sequence[Contra4Sample], captioners: Captioners, seed: int
) -> Iterator[tuple[Contra4Sample, tuple[str, ...]]]:
    """Yield each sample with its predicted captions, and the reasons for captions that are missing.

    A scene that has a predicted caption keeps it. A medium that several samples show is described once.
    Raises NoAnswerError where a captioner answers nothing at all.
    """
    captions: dict[tuple[Modality, str], str] = {}
    problems: dict[tuple[Modality, str], str] = {}
    for modality, captioner in captioners.items():
        requests = {request.id: request for request in _requests(samples, modality, seed)}
        replies = {reply.request_id: reply for reply in captioner.generate(requests.values())}
        if error := common_failure(replies.values(), len(requests)):
            raise NoAnswerError(
                f"{captioner.name} described none of {len(requests)} media ({error}); name another captioner for them."
            )
        for request in requests.values():
            caption, problem = _read(replies.get(request.id))
            (captions if caption else problems)[modality, request.instance_id] = caption or problem
    for sample in samples:
        scenes = tuple(_with(scene, captions) for scene in sample.scenes)
        reasons = (problems.get((scene.modality, scene.media.sha256)) for scene in scenes if scene.media)
        yield replace(sample, scenes=scenes), tuple(problem for problem in reasons if problem)


def captioner_input(scene: Scene) -> tuple[Media, ...]:
    """Return a captioner's input for a scene: its pictures if it was rendered, else the medium itself."""
    return scene.pictures or ((scene.media,) if scene.media else ())


def _requests(samples: Sequence[Contra4Sample], modality: Modality, seed: int) -> Iterator[Request]:
    seen: set[str] = set()
    for scene in (scene for sample in samples for scene in sample.scenes):
        if scene.modality == modality and scene.media and not scene.predicted and scene.media.sha256 not in seen:
            seen.add(scene.media.sha256)
            parts: tuple[Part, ...] = (*captioner_input(scene), Text(DESCRIBE[modality]))
            decoding = Decoding(max_tokens=_MAX_TOKENS, seed=seed)
            yield Request(scene.media.sha256, 0, (Message("user", parts),), decoding)


def _read(reply: Generation | None) -> tuple[str, str]:
    """Return the caption and an empty reason, or an empty caption and the reason."""
    if reply is None or reply.finish_reason == "error":
        return "", f"the captioner gave no reply ({reply.error if reply else 'none came'})"
    caption = " ".join(visible_answer(reply.text).split())[:LONGEST_TEXT]
    return caption, "" if caption else "the captioner's reply is empty"


def _with(scene: Scene, captions: Mapping[tuple[Modality, str], str]) -> Scene:
    caption = captions.get((scene.modality, scene.media.sha256), "") if scene.media else ""
    return replace(scene, predicted=caption) if caption and not scene.predicted else scene
