"""The words of Contra4: modalities, conditions, negatives, where media lie."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from benchmarks.base import Modality

MODALITIES: Mapping[Modality, str] = {"audio": "Audio", "point_cloud": "3D", "image": "Image", "video": "Video"}
"""The modalities as the paper's tables call them, in the order of the published sampling."""

OF_FIELD: Mapping[str, Modality] = {
    "audio": "audio",
    "pc": "point_cloud",
    "point_cloud": "point_cloud",
    "3d": "point_cloud",
    "image": "image",
    "video": "video",
}
"""What rows call a modality."""

CONDITIONS = ("media", "rendered", "captions", "gold-captions")
"""How the scenes are put: media as they are; 3D and video as images; predicted captions; the data set's own captions."""

LABELS = ("CORRECT", "INCORRECT")

LETTERS = "ABCD"
SIZES = (2, 3, 4)
"""How many scenes a question may have: the paper's numbers of modalities."""

NEGATIVES: Mapping[str, str] = {"random": "random", "similarity": "similar", "similar": "similar"}
"""``selection_type`` of a row to the stratum ``negatives``."""

CATEGORIES = (
    "Other",
    "Emotions & Sentory Experiences",
    "Motion & Physical Activity",
    "Objects, Tools & Technology",
    "Environmental & Scene Context",
    "Humans, Animals & Social Behavior",
    "Audio, Sound & Music",
    "Threats, Risks & Safety",
    "Time, Space & Location",
)
"""The categories of the published test rows, as they are spelt there, by their number."""

NO_CATEGORY = "no category"

FILTERS = ("MF", "UF", "PMF", "PUF")
"""Majority, unanimous, and both under all permutations (Algorithm 1)."""

SUFFIXES: Mapping[Modality, tuple[str, ...]] = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
    "audio": (".wav", ".flac", ".ogg", ".mp3"),
    "video": (".mp4", ".webm", ".mkv", ".avi", ".mov"),
    "point_cloud": (".npz", ".npy", ".ply", ".glb", ".obj", ".off", ".stl"),
}
"""The files that a modality's media may be, the likeliest first."""


def combination(modalities: tuple[Modality, ...]) -> str:
    """The modalities in one order, joined: ``audio+3d+image``."""
    return "+".join(MODALITIES[each].lower() for each in MODALITIES for other in modalities if other == each)


COMBINATIONS = tuple(combination(each) for size in SIZES for each in combinations(tuple(MODALITIES), size))
"""The eleven combinations of different modalities (Figure 5)."""
