"""ConflictVIS: images of unusual actions and places, against what a model knows (arXiv 2410.08145)."""

from __future__ import annotations

from collections.abc import Mapping

from benchmarks.plain.one_image_data_set import OneImageDataSet
from benchmarks.plain.plain_data_set import CONFLICT
from benchmarks.vocabulary import CLOSED_BOOK, Decoding


class ConflictVis(OneImageDataSet):
    """1,122 questions about 374 images: one with yes or no, one with four options and one open question about each."""

    name = "conflict-vis"
    title = "ConflictVIS: images that contradict common sense"
    in_plain_words = (
        "A model gets a picture of something unusual, such as an officer who paddles a boat in a police station, and is asked "
        "what it shows. A good model answers by the picture; a bad one by what is usual."
    )
    paper = "Insight Over Sight: Exploring the Vision-Knowledge Conflicts in Multimodal LLMs (arXiv 2410.08145), ConflictVIS"
    paper_rows = "nothing: the paper's tables could not be seen"
    paper_judge = (
        "not seen; code that evaluates it compares letters, searches for yes, and has people judge open answers"
    )
    paper_decoding = "not seen; code that evaluates it is greedy, with at most 25 new tokens"
    decoding = Decoding(max_tokens=25)
    hub_id = "xiaoyuanliu/conflict_vis"
    hub_files = ("data/train-",)
    amount = "the 1,122 rows with their images"
    columns: Mapping[str, tuple[str, ...]] = {
        "question": ("question",),
        "image": ("images",),
        "image_answer": ("answer",),
        "type": ("question_type",),
    }
    optional_columns: Mapping[str, tuple[str, ...]] = {"target": ("conflict_target",)}
    types = ("YN", "MC", "SUBJ")
    polar_type = "YN"
    metrics: Mapping[str, tuple[str, tuple[str, ...]]] = {}
    prompt_sets: Mapping[str, str] = {
        "plain": "the image, then the question as published, with its options",
        "focus": "the same, and the paper's request to focus on the image (its Focus-on-Vision)",
    }
    prompts: Mapping[str, Mapping[str, str]] = {
        "plain": {CONFLICT: "{image}{question}", CLOSED_BOOK: "{question}"},
        "focus": {CONFLICT: "{image}{question} Please focus on the visual information.", CLOSED_BOOK: "{question}"},
    }
