"""The instances of a sample under its possible conditions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import zip_longest

from benchmarks.audit.blind_question import BlindOption, BlindQuestion, blind_question
from benchmarks.contra4 import contra4_prompts
from benchmarks.contra4.contra4_constants import CONDITIONS, LETTERS, MODALITIES
from benchmarks.contra4.contra4_prompts import DisplayedScene
from benchmarks.contra4.contra4_sample import Contra4Sample
from benchmarks.prompt_template import Prompts
from benchmarks.vocabulary import Instance, Media, Text

PREDICTED, GOLD_CAPTIONS, MODALITY_NAMES = "predicted captions", "gold captions", "modalities"
"""The references behind caption quality, and behind what is known without looking: one of each per scene, in scene order."""


def instances(sample: Contra4Sample, prompt_set: Prompts, rendered: bool) -> Iterator[Instance]:
    """Yield an instance per condition for which every scene has its input, in condition order.

    ``rendered`` is whether the build was asked for pictures; a sample without 3D and video is then asked as in "media".
    """
    for condition in CONDITIONS:
        shown = _shown(sample, condition)
        if all(shown) and (rendered or condition != "rendered"):
            yield _instance(sample, condition, shown, prompt_set)


def all_instances(sample: Contra4Sample, prompt_set: Prompts, rendered: bool) -> Iterator[Instance]:
    """Yield the sample's instances, and then those that leave out scenes or the question.

    A single modality is shown alone where the sample has scenes of others.
    """
    full = {instance.condition: instance for instance in instances(sample, prompt_set, rendered)}
    yield from full.values()
    yield _partial(sample, "closed-book", sample.question, [()] * len(sample.scenes), prompt_set)
    for condition, name in (("media", "options-only"), ("gold-captions", "gold-captions-options-only")):
        if condition in full:
            yield _partial(sample, name, "", _shown(sample, condition), prompt_set)
    present = {scene.modality for scene in sample.scenes}
    for modality, word in MODALITIES.items():
        if "media" in full and modality in present and len(present) > 1:
            shown = [(scene.media,) if scene.media and scene.modality == modality else () for scene in sample.scenes]
            yield _partial(sample, f"{word.lower()}-only", sample.question, shown, prompt_set)


def _partial(
    sample: Contra4Sample, condition: str, question: str, shown: Sequence[DisplayedScene], prompt_set: Prompts
) -> Instance:
    instance = _instance(sample, condition, shown, prompt_set)
    return replace(instance, parts=contra4_prompts.parts(question, shown, prompt_set))


def _shown(sample: Contra4Sample, condition: str) -> Sequence[DisplayedScene]:
    match condition:
        case "media":
            return [(scene.media,) if scene.media else () for scene in sample.scenes]
        case "rendered":
            return [scene.shown for scene in sample.scenes]
        case "captions":
            return [scene.predicted for scene in sample.scenes]
    return [scene.caption for scene in sample.scenes]


def _instance(sample: Contra4Sample, condition: str, shown: Sequence[DisplayedScene], prompt_set: Prompts) -> Instance:
    letters = sample.letters
    references = {
        "answer": (letters[sample.answer],),
        "gold": (sample.gold,),
        "options": tuple(letters),
        MODALITY_NAMES: tuple(scene.modality for scene in sample.scenes),
    }
    if condition in ("captions", "gold-captions"):
        references[GOLD_CAPTIONS] = tuple(scene.caption for scene in sample.scenes)
    if condition == "captions":
        references[PREDICTED] = tuple(scene.predicted for scene in sample.scenes)
    return Instance(
        id=f"{sample.id}/{condition}",
        group=sample.id,
        condition=condition,
        question=sample.question,
        parts=contra4_prompts.parts(sample.question, shown, prompt_set),
        references=references,
        strata=strata(sample),
    )


def answer_forms(instance: Instance) -> tuple[str, ...]:
    """Return the answer that chooses each scene, in the form that the prompt asks for."""
    last = instance.parts[-1]
    named = isinstance(last, Text) and last.text.endswith("Option")  # the captions' prompt begins the answer itself
    return tuple(letter if named else f"Scene {letter}" for letter in LETTERS[: int(instance.strata["size"])])


def blind_scenes(instance: Instance) -> BlindQuestion | None:
    """Return the question as it stands without its scenes: their modalities, files, and captions where these are shown."""
    letters, right = instance.references["options"], instance.references["answer"][0]
    captions = instance.references.get(PREDICTED, instance.references.get(GOLD_CAPTIONS, ()))
    shown = [part for part in instance.parts if isinstance(part, Media)]
    media = shown if len(shown) == len(letters) else []  # a rendered scene has several pictures
    modalities = instance.references.get(MODALITY_NAMES, [medium.modality for medium in media])
    scenes = zip_longest(captions[: len(letters)], modalities, [medium.sha256 for medium in media])
    options = [BlindOption(text or "", modality or "", sha256) for text, modality, sha256 in scenes]
    if len(options) != len(letters):  # a run of an earlier version, by captions or pictures
        return None
    task = f"{instance.strata['size']} scenes, {instance.condition}"
    question = blind_question(instance, options, [letters.index(right)], task=task, text="")
    return replace(question, texts_are_sources=bool(captions))


def strata(sample: Contra4Sample) -> dict[str, str]:
    """Return ``size`` (scenes), ``negatives``, ``modalities``, ``category``, ``split``, ``source``, ``kind``.

    ``kind`` is size and negatives together, by which subsets are stratified.
    """
    size = str(len(sample.scenes))
    return {
        "kind": f"{size}-{sample.negatives}",
        "size": size,
        "negatives": sample.negatives,
        "modalities": sample.modalities,
        "category": sample.category,
        "split": sample.split or sample.source,
        "source": sample.source,
    }
