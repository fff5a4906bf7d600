"""The prompts of a construction by prompt set: those that the paper prints, and those of the official code."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from benchmarks.build import BuildOptions
from benchmarks.clash.clash_official_code import read_prompts
from benchmarks.clash.construction.caption_checks import ANSWERS, ATTRIBUTE, OBJECT, QUESTIONS, CaptionDraft, ModelCheck
from benchmarks.clash.construction.clash_construction_prompts import ANSWERS as PRINTED_ANSWERS
from benchmarks.clash.construction.clash_construction_prompts import CONFLICTING_CAPTION, add_caption, add_inputs


class PrintedPrompts:
    """The prompts of Appendix B.1 and B.2 with our form of their inputs."""

    def caption(self, caption: str) -> str:
        """Return the prompt for a conflicting caption and a question."""
        return add_caption(CONFLICTING_CAPTION, caption)

    def gives_up(self, reply: str) -> bool:
        """Return whether a reply to :meth:`caption` says that the caption allows no change."""
        return False

    def answers(self, draft: CaptionDraft) -> str:
        """Return the prompt for the three answers to a draft's question."""
        return add_inputs(
            PRINTED_ANSWERS,
            original_caption=draft.original_caption,
            conflicting_caption=draft.conflicting_caption,
            question=draft.question,
        )

    def check(self, check: ModelCheck, draft: CaptionDraft) -> str:
        """Return the prompt of a check."""
        return check.text(draft)


class OfficialPrompts(PrintedPrompts):
    """The prompts of the official code, given their inputs as its ``generate_synthetic_data.py`` does."""

    def __init__(self, prompts: Mapping[str, str]) -> None:
        self._prompts = prompts

    def caption(self, caption: str) -> str:
        prompt = self._prompts["GENERATE_CONFLICTING_CAPTION_AND_ANSWER"]
        return f"{prompt}\n    The original image caption is: {caption}\n    "

    def gives_up(self, reply: str) -> bool:
        return reply.strip(" .*`\"'\n") == "None"

    def answers(self, draft: CaptionDraft) -> str:
        return (
            f"{self._prompts['GENERATE_MCQA_ANSWERS']} Input:\n"
            f'    - Original Caption: "{draft.original_caption}"\n'
            f'    - Conflicting Caption: "{draft.conflicting_caption}"\n'
            f'    - Question: "{draft.question}"\n'
        )

    def check(self, check: ModelCheck, draft: CaptionDraft) -> str:
        name, inputs = _CHECKS[check.name]
        return self._prompts[name] + inputs(draft)


def construction_prompts(options: BuildOptions) -> PrintedPrompts:
    """Return the prompts that a build uses. Raises SourceError if its ``official_code`` is not the code as published."""
    return PrintedPrompts() if options.official_code is None else OfficialPrompts(read_prompts(options.official_code))


def _changed_words(indent: str) -> Callable[[CaptionDraft], str]:
    return lambda draft: f" Input:\n{indent}- Original: {draft.original}\n{indent}- Conflicting: {draft.conflicting}\n"


def _answers(draft: CaptionDraft) -> str:
    return f"{draft.image_only}, {draft.text_only}, {draft.distractor}"


def _question(draft: CaptionDraft) -> str:
    return (
        " Input: \n"
        f'        - Question: "{draft.question}"\n'
        f"        - Changed words: {draft.original}, {draft.conflicting}\n"
        f"        - Answers: {_answers(draft)}\n"
    )


_CHECKS: Mapping[str, tuple[str, Callable[[CaptionDraft], str]]] = {
    ATTRIBUTE.name: ("ATTRIBUTE_CHECK", _changed_words("    ")),
    OBJECT.name: ("OBJECT_CHECK", _changed_words("        ")),
    ANSWERS.name: ("ANSWERS_CHECK", lambda draft: f" Input: {_answers(draft)}"),
    QUESTIONS.name: ("QUESTION_CHECK", _question),
}
"""The name of each check's prompt in the official code, and its inputs."""
