"""The prompts of the construction (Appendix C), verbatim, with its six examples."""

from __future__ import annotations

import re
from collections.abc import Sequence

from benchmarks.contra4 import contra4_prompts
from benchmarks.contra4.contra4_constants import LETTERS

_QUESTION_TASK = (
    "You are given some scenes described in text. Each scene is represented by a short caption. Your task is to generate a "
    "question that compares the scenes based on their content. The generated question should be relevant to the context of the "
    "scenes and should require a comparison between them. There should be only one correct answer. Here are some examples to "
    "guide you:"
)
_ANSWER_TASK = (
    "You are given some scenes described in text as well as a question about them. Each scene is represented by a short caption. "
    "Your task is to provide a clear and concise answer that explains the reasoning behind the correct choice. Here are some "
    "examples to guide you:"
)

_EXAMPLES: tuple[tuple[tuple[str, ...], str, str], ...] = (
    (
        (
            "a shattered piece of paper, resembling a broken phone and a flying newspaper",
            "tourists walking near a catholic church in Mexico on a sunny summer day",
        ),
        "Which scene evokes a sense of chaos and abandonment?",
        "Scene A. Scene A evokes feelings of chaos and abandonment, contrasting sharply with the joy and vibrancy of Scene B.",
    ),
    (
        (
            "Someone is using a rip saw in a carpenter's workshop",
            "An elegant bathroom featuring a tub, sink, mirror, and decorations",
        ),
        "Which scene is more likely to involve louder noises?",
        "Scene A. Scene A is characterized by the noise and activity of craftsmanship, whereas Scene B offers a serene and "
        "luxurious ambiance for relaxation.",
    ),
    (
        (
            "The night sky showcasing the Milky Way",
            "A bustling city street at midday",
            "A serene mountain landscape in the morning",
        ),
        "Which scene is different from the other two?",
        "Scene B. Scene B, with its bustling city life, differs in its dynamic and urban setting from the tranquil and natural "
        "settings of Scenes A and C.",
    ),
    (
        (
            "A painting depicting a stormy sea",
            "A photograph of a calm beach at sunset",
            "A digital illustration of a bustling space station",
            "A sculpture of a tranquil garden",
        ),
        "Which scene is most different from the other three?",
        "Scene C. Scene C, a digital illustration of a bustling space station, diverges in its futuristic and technological "
        "theme from the natural and serene subjects of the other inputs.",
    ),
    (
        ("A team of firefighters putting out a blaze in a city", "A family enjoying a picnic in a peaceful park"),
        "Which scene involves a greater sense of danger and urgency?",
        "Scene A. Scene A, with firefighters responding to a blaze, conveys a strong sense of danger and urgency compared to the "
        "calm and leisurely atmosphere of Scene B.",
    ),
    (
        (
            "A snowy mountain peak illuminated by the golden light of sunrise",
            "A tropical beach with crystal-clear water and palm trees swaying in the breeze",
            "A bustling city park filled with people enjoying outdoor activities",
            "A vast desert under a blazing sun with sand dunes stretching to the horizon",
        ),
        "Which scene represents a colder and more remote environment?",
        "Scene A. Scene A, featuring a snowy mountain peak, exemplifies a cold and remote environment in contrast to the other "
        "settings, which are warmer or more populated.",
    ),
)

_REFUSED = re.compile(
    r"\b(?:words?|text|verb|noun|descri|question|sentenc|detail|visual|image|video|audio|sound|hear(?:s|d|ing)?\b|3d|point cloud"
    r"|caption|more elements|most elements|more objects|more people|most objects|more colou?rs|more than one|similar|rating"
    r"|score)",
    re.IGNORECASE,
)
_GENERATED = re.compile(r"\A(?:generated\s+)?question\s*:\s*", re.IGNORECASE)


def question_prompt(captions: Sequence[str]) -> str:
    """Return the prompt of step 2, which requests a question about the scenes."""
    examples = [f"{_scenes(scenes)}\nGenerated Question: {question}" for scenes, question, _ in _EXAMPLES]
    return "\n\n".join((_QUESTION_TASK, *examples, f"{_scenes(captions)}\nGenerated Question:"))


def answer_prompt(captions: Sequence[str], question: str) -> str:
    """Return the prompt of step 3, which requests an answer with its reason."""
    examples = [
        f"{_scenes(scenes)}\nQuestion: {example_question}\nAnswer: {answer}"
        for scenes, example_question, answer in _EXAMPLES
    ]
    return "\n\n".join((_ANSWER_TASK, *examples, f"{_scenes(captions)}\nQuestion: {question}\nAnswer:"))


def choice_prompt(captions: Sequence[str], question: str) -> str:
    """Return the prompt of step 4, which requests a choice."""
    return "".join(
        str(piece) for piece in contra4_prompts.paper_prompt(question, [f'"{caption}"' for caption in captions])
    )


def parse_question(reply: str) -> str | None:
    """Return the question on the first line of a reply to step 2; None if there is none."""
    line = next((line.strip() for line in reply.splitlines() if line.strip()), "")
    question = _GENERATED.sub("", line).strip().strip("\"'“”*").strip()
    return question if question.endswith("?") and 8 <= len(question) <= 300 and question.isprintable() else None


def excluded_term(question: str) -> str | None:
    """Return the term for which the rule filter of step 2 rejects a question, or None; terms match word beginnings."""
    match = _REFUSED.search(question)
    return match[0].lower() if match else None


def _scenes(captions: Sequence[str]) -> str:
    return "\n".join(f'Scene {letter}. "{caption}"' for letter, caption in zip(LETTERS, captions, strict=False))
