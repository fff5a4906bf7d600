"""The spatial subset: which captions are reversed, and the samples that come of them."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import BuildOptions, BuildWriter
from benchmarks.clash.clash_constants import RELATIONS
from benchmarks.clash.clash_sample import ClashSample
from benchmarks.clash.construction.caption_checks import first_refusal
from benchmarks.clash.construction.caption_dialogue import ConstructionModels
from benchmarks.clash.construction.spatial_subset import (
    SPATIAL_ANSWER_CHECKS,
    SPATIAL_CAPTION_CHECKS,
    construct_spatial,
    reverse_relation,
)
from benchmarks.errors import SpecError
from tests.benchmarks.clash.test_clash_construction import (
    COCO,
    build,
    contents,
    draft_of,
    scripted,
    skipped,
    small_coco,
)
from tests.support.scripted_writer import ScriptedWriter
from tests.support.text_models import CachedModel, Remote

REVERSED = {
    # Captions of COCO val2017, and what becomes of them.
    "A red fire hydrant on the right side of a road.": "A red fire hydrant on the left side of a road.",
    "A person holding a walkie talkie in their left hand.": "A person holding a walkie talkie in their right hand.",
    "A shorn sheep looks to the left of the picture.": "A shorn sheep looks to the right of the picture.",
    "City bus next to traffic cones in the far right lane of a busy freeway.": (
        "City bus next to traffic cones in the far left lane of a busy freeway."
    ),
    "A kitchen with a microwave above the stove": "A kitchen with a microwave below the stove",
    "A fireplace sitting below a picture mounted to a wall.": "A fireplace sitting above a picture mounted to a wall.",
    "A white sink sitting under a mirror in a bathroom.": "A white sink sitting above a mirror in a bathroom.",
    "A cat sitting on top of a television set with a table beside it": None,
    "An orange cat sitting on top of a computer desk.": "An orange cat sitting underneath a computer desk.",
    "A man standing in front of a few horses on the street.": "A man standing behind a few horses on the street.",
    "People are playing tennis behind a long fence.": "People are playing tennis in front of a long fence.",
    "A KITCHEN ABOVE THE SHOP": "A KITCHEN BELOW THE SHOP",
    "Above the door hangs a clock.": "Below the door hangs a clock.",
}

LET_GO = [
    "A mostly eaten chocolate cake with one slice left.",
    "A piece of cake left on a plate",
    "There is pizza left over from lunch.",
    "A man left the room with a bag.",
    "Somebody left a lap top plugged into the wall on a bench.",
    "a toilet with the toilet seat left up and the sink next to it",
    "A being is doing something as of right now that is splendid.",
    "Several people expressing their right to protest violence",
    "A toilet right next to a shower stall.",
    "A giraffe staring right into the camera",
    "A cat turned right side up on a sofa",
    "The train is on the right track to be early.",
    "Two types of pie on the right and left side of a table.",
    "A toilet from above; flanked by a toilet brush.",
    "A kite flies high above.",
    "The temperature is well below freezing here.",
    "A bridge stretches out over 20 boats.",
    "A house under construction near a lake.",
    "Large black two door refrigerator in an apartment under renovation.",
    "Two people on beach holding surfboards under their arms.",
    "People sit under an umbrella.",
    "A sheep is standing on top of a large rock.",
    "a man sitting at a desk in front of a laptop computer",
    "A clock tower in front of a clear blue sky.",
    "A person holds a cookie in front of the camera.",
    "Two actors behind the scenes of a play.",
    "A man is left behind the bus.",
    "A dog seen from behind a door.",
    "A building with mountains behind.",
    "A cat behind.",
    "A man is right behind a cow on green grass.",
    "A dog behind a car in front of a house.",
    "A cat on a mat.",
    "",
]


@pytest.mark.parametrize("caption", [caption for caption, to in REVERSED.items() if to])
def test_a_relation_is_reversed(caption: str) -> None:
    reversal = reverse_relation(caption)
    assert reversal is not None
    assert reversal.caption == REVERSED[caption]
    assert reversal.relation in RELATIONS


@pytest.mark.parametrize("caption", LET_GO)
def test_captions_without_spatial_relation_are_ignored(caption: str) -> None:
    assert reverse_relation(caption) is None


PIECES = st.sampled_from(
    ["left", "right", "above", "behind", "in front of", "on top of", "the", "a", "under", "dog", ","]
)


@given(st.text() | st.lists(PIECES).map(" ".join))
def test_reversal_changes_only_the_relation(caption: str) -> None:
    reversal = reverse_relation(caption)
    if reversal is not None:
        changed = re.sub(rf"\b{reversal.original}\b", reversal.conflicting, caption, count=1, flags=re.IGNORECASE)
        assert reversal.caption.casefold() == changed.casefold()
        assert reversal.caption != caption
        back = reverse_relation(reversal.caption)
        assert back is None or back.relation == reversal.relation


@pytest.mark.skipif(not COCO.exists(), reason="COCO's captions are not here")
def test_reversible_captions_of_val2017_are_counted() -> None:
    content = json.loads((COCO / "annotations" / "captions_val2017.json").read_text("utf-8"))
    reversals = [reverse_relation(" ".join(item["caption"].split())) for item in content["annotations"]]
    relations = Counter(item.relation for item in reversals if item is not None)
    assert len(reversals) == 25014
    assert relations == {"front-behind": 857, "above-below": 500, "left-right": 25}


@pytest.mark.skipif(not COCO.exists(), reason="COCO's captions are not here")
def test_real_captions_give_spatial_samples_of_each_relation(tmp_path: Path) -> None:
    with ScriptedWriter() as server:
        result = build(COCO, tmp_path / "out", Remote(server.url), "spatial", per_stratum=100)
    samples = [ClashSample.from_row(row) for row in result.rows()]
    relations = Counter(sample.relation for sample in samples)
    assert relations["front-behind"] >= 10
    assert relations["above-below"] >= 10
    checks = {**SPATIAL_CAPTION_CHECKS, **SPATIAL_ANSWER_CHECKS}
    for sample in samples:
        assert sample.change_type == "spatial"
        assert sample.category == ""
        assert first_refusal(checks, draft_of(sample)) is None
        assert (sample.image_only, sample.text_only) == (sample.changed_original, sample.changed_conflicting)
        assert sample.image is not None
        assert result.media_path(sample.image).is_file()
    assert {"spatial-question", "answers-check"} <= {row["reason"].partition(":")[0] for row in skipped(result)}
    assert result.manifest["relations"] == dict(relations)


def test_spatial_build_is_reproducible_and_fills_each_relation(tmp_path: Path) -> None:
    texts = ["A dog behind a fence number {}.", "A lamp above a shelf number {}.", "A cat on the left side of sofa {}."]
    coco = small_coco(tmp_path / "coco", {i: [texts[i % 3].format(i)] for i in range(60)})
    first, second = (
        build(coco, tmp_path / str(i), CachedModel(scripted, shuffle=i), "spatial", per_stratum=4) for i in range(2)
    )
    assert contents(first) == contents(second)
    assert first.manifest["relations"] == dict.fromkeys(RELATIONS, 4)
    assert len({row["image_id"] for row in first.rows()}) == 12


def test_missing_writer_names_the_option(tmp_path: Path) -> None:
    coco = small_coco(tmp_path / "coco", {1: ["A dog behind a fence."]})
    with BuildWriter(tmp_path / "out") as writer, pytest.raises(SpecError, match="--writer MODEL"):
        construct_spatial(coco, writer, BuildOptions())
    with pytest.raises(SpecError, match="--writer MODEL"):
        ConstructionModels.of(BuildOptions())
