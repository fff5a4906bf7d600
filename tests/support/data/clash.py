"""Small CLASH sources that the tests write."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tests.support.data.small import write_lines, write_picture

ROOT = Path(__file__).resolve().parents[3]
SHARED = ROOT.parent / "shared"
CLASH_DATA = SHARED / "data" / "clash"
OFFICIAL = CLASH_DATA / "official"
TEST_FILE = OFFICIAL / "synthetic_captions_test_filtered.json"
MULTIPLE_CHOICE = OFFICIAL / "multiple_choice__gemini-2.5-flash-lite_predictions.json"
OPEN_ENDED = OFFICIAL / "open_ended__llm_as_judge__internvl_chatv1.5_predictions.json"
PAPER = SHARED / "papers" / "clash.txt"


def published_row(number: Any = 1, **more: Any) -> dict[str, Any]:
    """A row of the published layout."""
    return {
        "image_id": number,
        "original_caption": f"A white cat on couch {number}. ",
        "conflicting_caption": f"A black cat on couch {number}.",
        "question": "What color is the cat?",
        "change_type": "attribute",
        "answers": {"image_only": "White", "text_only": "Black", "irrelevant_but_plausible": "Orange"},
        "changed_words": {"original": "white", "conflicting": "black"},
        "category": "colors",
        **more,
    }


def published_folder(folder: Path, rows: Sequence[Any]) -> Path:
    """The published layout, with a picture for each of the rows' image ids."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / TEST_FILE.name).write_text(json.dumps({"metadata": {}, "samples": list(rows)}), "utf-8")
    for row in rows:
        number = row.get("image_id") if isinstance(row, dict) else None
        if type(number) is int and 0 <= number < 10**12:
            write_picture(folder / "train2017" / f"{number:012d}.jpg", number, "JPEG")
    return folder


def finetune_files(folder: Path, filtered: int, merged: int, pictures: int = 20) -> dict[str, int]:
    """The authors' two fine-tuning files, the second with further samples; of twelve of these, eight are faulty.

    Return how many of the further samples each check would remove; "" are those of no fault, "unusable" those without a question
    or an image.
    """
    kinds: dict[str, dict[str, Any]] = {
        "": {},
        "one-change": {"conflicting_caption": "A white cat. "},
        "distinct-answers": {
            "answers": {"image_only": "White", "text_only": "white", "irrelevant_but_plausible": "Red"}
        },
        "original-word": {"changed_words": None},
        "distractor": {"answers": {"image_only": "White", "text_only": "Black"}},
        "unusable": {"question": ""},
        "no image": {"image_id": pictures + 1},
    }
    order = ["", "", "", "", "one-change", "distinct-answers", "original-word", "distractor", "distractor", "unusable"]
    order += ["no image", "original-word"]
    rows, counts = [], dict.fromkeys(kinds, 0)
    for number in range(merged):
        kind = order[number % len(order)] if number >= filtered else ""
        counts[kind] += number >= filtered
        row = published_row(number % pictures, original_caption=f"A white cat on couch {number}. ")
        row |= {"conflicting_caption": f"A black cat on couch {number}.", **kinds[kind]}
        if kind == "one-change":
            row["conflicting_caption"] = row["original_caption"].upper()
        del row["category"]
        rows.append(row)
    folder.mkdir(parents=True, exist_ok=True)
    for name, count in (("filtered_data_finetune.json", filtered), ("merged_data_finetune.json", merged)):
        metadata = {"num_samples": count, "source_annotations": "captions_train2017.json"}
        (folder / name).write_text(json.dumps({"metadata": metadata, "samples": rows[:count]}), "utf-8")
    for number in range(pictures):
        write_picture(folder / "train2017" / f"{number:012d}.jpg", number, "JPEG")
    return counts


def own_sample(number: int = 1, **more: Any) -> dict[str, Any]:
    """A row of the user's own, with Sample's fields."""
    return {
        "image": f"{number}.png",
        "image_id": f"mine {number}",
        "original_caption": "A dog left of a chair.",
        "conflicting_caption": "A dog right of a chair.",
        "question": f"On which side of chair {number} is the dog?",
        "change_type": "spatial",
        "relation": "left-right",
        "image_only": "left",
        "text_only": "right",
        "distractor": "on top",
        "changed_original": "left",
        "changed_conflicting": "right",
        **more,
    }


def own_folder(folder: Path, rows: Sequence[dict[str, Any]], pictures: int = 3) -> Path:
    """Rows of the user's own and some pictures."""
    for number in range(1, pictures + 1):
        write_picture(folder / f"{number}.png", number)
    write_lines(folder / "rows.jsonl", rows)
    return folder
