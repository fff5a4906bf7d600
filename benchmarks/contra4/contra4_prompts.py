"""The prompts for answering: those of the published code, and the printed one (Appendix C, step 4)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.contra4.contra4_constants import LETTERS
from benchmarks.prompt_template import Prompts, PromptTemplate
from benchmarks.protocols.protocols import ABSTENTION
from benchmarks.vocabulary import Media, Modality, Part, Text

PROMPT_SETS: Mapping[str, str] = {
    "official": "the published code's: its Gemini script's for media, its caption baseline's for captions",
    "paper": "the one prompt for choosing that the paper prints (Appendix C, step 4), for media and captions alike",
}

SELECT = (
    "Select which of the scenes best answers the question. Respond with brevity, and only include your choice in the "
    "response."
)
"""Appendix C, step 4."""

DESCRIBE: Mapping[Modality, str] = {
    "image": "Describe the image",
    "audio": "Describe the audio",
    "point_cloud": "Describe the 3d model",
    "video": "Describe this set of frames. Consider the frames to be a part of the same video.",
}
"""Appendix H."""

DisplayedScene = Sequence[Media] | str
"""A scene as displayed: its media, or a caption."""


def parts(question: str, scenes: Sequence[DisplayedScene], prompt_set: Prompts) -> tuple[Part, ...]:
    """Return the prompt for a question about scenes that are all media, or all captions.

    A scene without anything is named among the choices alone; without a question, the prompt asks for a choice (both ours).
    """
    if isinstance(prompt_set, PromptTemplate):
        return _from_template(prompt_set, question, scenes)
    if prompt_set == "paper":
        return _joined(paper_prompt(question, scenes))
    captions = [scene for scene in scenes if isinstance(scene, str)]
    if captions:
        return (Text(_caption_baseline(question, captions)),)
    pieces: list[Part | str] = []
    for letter, scene in zip(LETTERS, scenes, strict=False):
        pieces += [f"Scene {letter}: ", *scene] if scene else []
    choices = ", ".join(f"Scene {letter}" for letter in LETTERS[: len(scenes)])
    return _joined([*pieces, f"{question} Choose from: {choices}\nAnswer:".lstrip()])


def _from_template(template: PromptTemplate, question: str, scenes: Sequence[DisplayedScene]) -> tuple[Part, ...]:
    """Return the prompt of a set from a file, with all scenes, media or captions, in ``{image}``."""
    shown: list[Part] = []
    for letter, scene in zip(LETTERS, scenes, strict=False):
        if not scene:
            continue
        head = Text(("\n" if shown else "") + f"Scene {letter}: ")
        shown += [head, *([Text(scene)] if isinstance(scene, str) else scene)]
    choices = ", ".join(f"Scene {letter}" for letter in LETTERS[: len(scenes)])
    return template.parts(
        {
            "question": (Text(question),) if question else (),
            "image": shown,
            "options": (Text(f"Choose from: {choices}"),),
            "abstention": (Text(ABSTENTION),),
        }
    )


def paper_prompt(question: str, scenes: Sequence[DisplayedScene]) -> list[Part | str]:
    """Return the prompt of Appendix C, step 4, used for the round-trip consistency."""
    pieces: list[Part | str] = [f"{SELECT}\n", f"Question: {question}\n" if question else "", "Choices:\n"]
    for letter, scene in zip(LETTERS, scenes, strict=False):
        pieces += [f"Scene {letter}. ", *([scene] if isinstance(scene, str) else scene), "\n"]
    return [*pieces, "Answer:"]


def _caption_baseline(question: str, captions: Sequence[str]) -> str:
    options = ", ".join(f"Option {letter}: {caption}" for letter, caption in zip(LETTERS, captions, strict=False))
    asked = f"Answer the question {question} by selecting" if question else "Answer by selecting"
    return f"{asked} one of the following options: {options}. Answer: Option"


def _joined(pieces: Sequence[Part | str]) -> tuple[Part, ...]:
    """Return the pieces with adjacent texts merged."""
    merged_parts: list[Part] = []
    for piece in pieces:
        part = Text(piece) if isinstance(piece, str) else piece
        if merged_parts and isinstance(part, Text) and isinstance(merged_parts[-1], Text):
            merged_parts[-1] = Text(merged_parts[-1].text + part.text)
        else:
            merged_parts.append(part)
    return tuple(merged_parts)
