"""The constants of Contra4: modalities, conditions, negatives, media suffixes."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import combinations

from benchmarks.vocabulary import Modality

MODALITIES: Mapping[Modality, str] = {"audio": "Audio", "point_cloud": "3D", "image": "Image", "video": "Video"}
"""The names of the modalities in the paper's tables, in the order of the published sampling."""

MODALITY_BY_NAME: Mapping[str, Modality] = {
    "audio": "audio",
    "pc": "point_cloud",
    "point_cloud": "point_cloud",
    "3d": "point_cloud",
    "image": "image",
    "video": "video",
}
"""The modality for each name that rows use."""

CONDITIONS = ("media", "rendered", "captions", "gold-captions")
"""The display of scenes: original media; 3D and video as images; predicted captions; the data set's captions."""

WITHOUT_SOURCES: Mapping[str, tuple[str, ...]] = {
    "closed-book": CONDITIONS,
    "options-only": ("media",),
    "gold-captions-options-only": ("gold-captions",),
    **{f"{MODALITIES[modality].lower()}-only": ("media",) for modality in MODALITIES},
}
"""The conditions that leave out all scenes, the question, or all modalities but one, and those they are compared with. Ours."""

LABELS = ("CORRECT", "INCORRECT")

LETTERS = "ABCD"
SIZES = (2, 3, 4)
"""The number of scenes of a question: the paper's numbers of modalities."""

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
"""The categories of the published test rows, as spelt there, in their numbering."""

NO_CATEGORY = "no category"

FILTERS = ("MF", "UF", "PMF", "PUF")
"""Majority, unanimous, and both under all permutations (Algorithm 1)."""

SUFFIXES: Mapping[Modality, tuple[str, ...]] = {
    "image": (".jpg", ".jpeg", ".png", ".webp", ".gif", ".bmp", ".tif", ".tiff"),
    "audio": (".wav", ".flac", ".ogg", ".mp3"),
    "video": (".mp4", ".webm", ".mkv", ".avi", ".mov"),
    "point_cloud": (".npz", ".npy", ".ply", ".glb", ".obj", ".off", ".stl"),
}
"""The file suffixes of each modality, the likeliest first."""


def combination_name(modalities: tuple[Modality, ...]) -> str:
    """Return the modalities in a fixed order, joined: ``audio+3d+image``."""
    return "+".join(
        MODALITIES[modality].lower() for modality in MODALITIES for other in modalities if other == modality
    )


COMBINATIONS = tuple(combination_name(subset) for size in SIZES for subset in combinations(tuple(MODALITIES), size))
"""The eleven combinations of different modalities (Figure 5)."""
