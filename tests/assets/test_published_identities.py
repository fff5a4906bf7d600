"""The statements of docs/published.md about the papers' results, derived again from their cells."""

from __future__ import annotations

import json
from collections import Counter
from types import ModuleType

import pytest

from tests.assets.identities import clash, cmc_bench, contra4, crosscheck_bench, mmkc_bench
from tests.assets.identities.base import Check, Claim, Identity, Results, rendered
from tests.assets.identities.page import PAGE, blocks, named, with_blocks
from tests.support.command import ROOT

CONTRA4 = ROOT.parent / "shared" / "data" / "contra4" / "test.json"


def test_page_blocks_match_the_cells() -> None:
    page = PAGE.read_text("utf-8")
    tables = blocks()
    assert sorted(named(page)) == sorted(tables)
    assert with_blocks(page, tables) == page, "python -m tests.assets.identities writes it anew"


@pytest.mark.parametrize(
    ("module", "cell"),
    [
        (cmc_bench, ("Table 3", "Gemma-3n-E2B", "HR")),
        (cmc_bench, ("Table 1", "Entity (MMMU)", "Instances")),
        (clash, ("Table 7", "GPT 5", "Text")),
        (clash, ("Table 11", "mPLUG-Owl-2 / both", "Incorrect")),
        (crosscheck_bench, ("Table 1", "Ovis2-8B", "PI")),
        (crosscheck_bench, ("Table 2", "Overall-A", "SKU drop")),
        (mmkc_bench, ("Table 2", "GPT-4o mini / Inter-Context / OAR", "Avg.")),
        (mmkc_bench, ("Table 6", "InternVL3-8B / Context-Memory / OAR", "LO")),
        (contra4, ("Table 5", "PUF", "3 Modalities / Rand.")),
        (contra4, ("Table 7", "None-Applies / UF", "4 Modalities / Sim.")),
    ],
)
def test_error_of_a_tenth_in_a_cell_is_detected(
    module: ModuleType, cell: tuple[str, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    results: Results = module.R
    before = rendered(module.identities(), module.claims())
    wrong = {**results.cells[cell], "value": round(results.cells[cell]["value"] * 1.1 + 0.02, 4)}
    monkeypatch.setitem(results.cells, cell, wrong)
    after = rendered(module.identities(), module.claims())
    assert _holding(after) < _holding(before)


def _holding(block: str) -> int:
    return int(block.split(" identities; ")[1].split(" ")[0])


def test_bound_on_mpb_matches_the_page() -> None:
    lfm = cmc_bench.Bound(cmc_bench.LFM)
    assert lfm.most(0) == 880 / 2278
    assert lfm.most(23) == 880 / (2278 - 23)
    assert (lfm.needed(), lfm.accurate) == (392, 820)


def test_bound_on_mpb_holds_for_all_counts_of_a_small_case(monkeypatch: pytest.MonkeyPatch) -> None:
    """For any labels that a model gave, its figures printed to the third decimal never exclude its own MPB."""
    monkeypatch.setattr(cmc_bench, "N", 12)
    row = "m / image-correct"
    for image, text, both, wrong, right, shared in ((5, 4, 1, 7, 6, 2), (1, 9, 0, 3, 10, 0), (4, 2, 3, 0, 5, 5)):
        rest = 12 - right - 1  # text-correct: one IMAGE
        first = 12 - image - text - both
        committed = 12 - wrong
        images, texts = image + 1 + committed, text + right - shared
        small = Results("none", half=0.0005)
        small.cells.update(
            {
                ("Section 5.3", row, "IMAGE"): {"value": image},
                ("Section 5.3", row, "TEXT"): {"value": text},
                ("Section 5.3", row, "BOTH"): {"value": both},
                ("Table 3", "m", "Both-Wr"): {"value": round(wrong / 12, 3)},
                ("Table 3", "m", "HR"): {"value": round((first + wrong + rest) / 36, 3)},
                ("Table 3", "m", "Txt-Cor"): {"value": round(right / 12, 3)},
            }
        )
        monkeypatch.setattr(cmc_bench, "R", small)
        assert cmc_bench.Bound("m").most(shared) == pytest.approx(images / (images + texts))


def test_other_sub_type_weights_do_not_reproduce_the_paper() -> None:
    assert mmkc_bench.weighted_by_people_and_logos() == 13
    assert "13 of 36 cells would agree" in PAGE.read_text("utf-8")


@pytest.mark.skipif(not CONTRA4.is_file(), reason="the published test split is not beside the project")
def test_table_2_is_weighted_by_the_published_test_split() -> None:
    rows = json.loads(CONTRA4.read_text("utf-8"))
    groups = {"mc_2": "2 Modalities", "mc_3": "3 Modalities", "mc_4": "4 Modalities"}
    kinds = {"random": "Rand.", "similarity": "Sim."}
    every = Counter((groups[row["q_type"]], kinds[row["selection_type"]]) for row in rows)
    flat = Counter((groups[r["q_type"]], kinds[r["selection_type"]]) for r in rows if "pc" not in r["modalities"])
    assert dict(every) == contra4.SPLIT
    assert {key: flat[key] for key in every} == contra4.WITHOUT_3D
    assert (sum(every.values()), sum(flat.values())) == (2335, 358)


def test_true_and_false_claims_are_distinguished() -> None:
    near, far = Check("a", 0.5, 0.504, 0.005, 0.0005), Check("b", 0.5, 0.52, 0.005, 0.0005, 100, 1)
    block = rendered([Identity("T", "x", [near, far])], [Claim("said", True), Claim("also", False, "not so")])
    assert "2 values follow from others by 1 identities; 1 agree within rounding." in block
    assert "| T | x | 2 | 1 | 0 |" in block
    assert "| b | 50.0 | 52.00 |" in block
    assert "| a |" not in block
    assert "Of 2 statements of the text about its tables, 1 hold." in block
    assert "| also | not so |" in block
    assert Check("c", 0.5, 0.5, 0).exact
