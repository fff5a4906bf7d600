"""CrossCheck-Bench's constructions, answered from one source or the options alone: no rule can beat chance."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
from collections import Counter, defaultdict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.build import Build, BuildOptions
from benchmarks.build_audit import audit_build
from benchmarks.crosscheck_bench import CrossCheckBench
from benchmarks.crosscheck_bench.crosscheck_build import build
from benchmarks.crosscheck_bench.crosscheck_prompts import GUESS, without_titles
from benchmarks.crosscheck_bench.crosscheck_sample import CrossCheckSample
from benchmarks.crosscheck_bench.sources.crosscheck_source_row import PRODUCTS, PRODUCTS_FIGURE_8
from benchmarks.vocabulary import Instance, Media, Text
from tests.support.data.product_folder import write_products

SET = Path(__file__).resolve().parents[3] / "assets" / "products"
ALL = 100_000
HOSTILE = (
    '" - Visual reference',
    '" Determine whether',
    " brand?",
    '" with product image <image>',
    "<image>",
    "<option>",
)


def construct(out: Path, folder: Path, source: str = PRODUCTS, **options: Any) -> Build:
    return build([(source, str(folder))], out, BuildOptions(**options))


def read(built: Build, task: str) -> list[CrossCheckSample]:
    return [sample for row in built.rows() if (sample := CrossCheckSample.from_row(row)).task == task]


@pytest.fixture(scope="module")
def builds(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Build]:
    home = tmp_path_factory.mktemp("without-looking")
    folder = write_products(home / "folder", styles=24)
    return {
        source: construct(home / source, folder, source, per_stratum=ALL) for source in (PRODUCTS, PRODUCTS_FIGURE_8)
    }


def _brand(sample: CrossCheckSample) -> str:
    return sample.question.split("Brand_name: ")[1].split()[0]


def _picture(sample: CrossCheckSample) -> str:
    return sample.frames[0].sha256


def _second_picture(sample: CrossCheckSample) -> str:
    return sample.frames[1].sha256


def _title(sample: CrossCheckSample) -> str:
    """Return the title that PD* shows beside a slice, "" where it shows a picture instead."""
    match = re.search(r'Title: "(.*)" Does', sample.question)
    return match[1] if match else ""


def _options(sample: CrossCheckSample) -> tuple[str, ...]:
    return sample.options


SOURCES_ALONE: list[tuple[str, str, Callable[[CrossCheckSample], Hashable]]] = [
    ("SP", "options", _options),
    ("PMO", "options", _options),
    ("SKU", "text", lambda sample: sample.question),
    ("BDC", "brand", _brand),
    ("BDC", "picture", _picture),
    ("LD", "first logo", _picture),
    ("LD", "second logo", _second_picture),
    ("PD*", "title", _title),
]


@pytest.mark.parametrize(("task", "alone"), [item[:2] for item in SOURCES_ALONE])
def test_one_source_says_nothing_about_the_answer(builds: dict[str, Build], task: str, alone: str) -> None:
    """Whoever sees this source only, sees each answer equally often, whatever rule they follow."""
    (key,) = (item[2] for item in SOURCES_ALONE if item[:2] == (task, alone))
    uneven: dict[str, bool] = {}
    for source, built in builds.items():
        answers: defaultdict[Hashable, Counter[str]] = defaultdict(Counter)
        closed = [s for s in read(built, task) if s.closed]
        for sample in closed:
            answers[key(sample)][sample.answer] += 1
        classes = {sample.answer for sample in closed}
        assert len(closed) >= 24
        uneven[source] = any(
            {counts[name] for name in classes} != {counts.total() / len(classes)} for counts in answers.values()
        )
    assert uneven == {PRODUCTS: False, PRODUCTS_FIGURE_8: True}


def test_titles_point_to_each_reading_equally_often(builds: dict[str, Build]) -> None:
    """The title shares words with the reading of its own product, which is right in one of four questions."""

    def overlap(sample: CrossCheckSample) -> float:
        title = sample.question.split("The title of the product is: ")[1].split(" and select")[0].casefold().split()
        shared = [sum(word in title for word in option.casefold().split()) for option in sample.options]
        best = [n for n, count in enumerate(shared) if count == max(shared)]
        return ("ABCD".index(sample.answer) in best) / len(best)

    shares = {}
    for source, built in builds.items():
        rights = [overlap(sample) for sample in read(built, "PMO") if sample.options]
        shares[source] = sum(rights) / len(rights)
    assert shares[PRODUCTS] < 0.3
    assert shares[PRODUCTS_FIGURE_8] > 0.9


def test_wrong_prices_are_prices_of_products(builds: dict[str, Build]) -> None:
    samples = read(builds[PRODUCTS], "SP")
    right = {sample.options["ABCD".index(sample.answer)] for sample in samples}
    assert {option for sample in samples for option in sample.options} == right


@pytest.mark.parametrize("shipped", [True, False])
@pytest.mark.parametrize(("task", "known"), [("SP", lambda s: s.question), ("PMO", _picture)])
def test_no_option_is_offered_more_often_with_what_recurs(
    builds: dict[str, Build], tmp_path: Path, task: str, known: Callable[[CrossCheckSample], str], *, shipped: bool
) -> None:
    """A rule that counts, over all questions, what is offered with this title or picture, has one option in four."""
    built = construct(tmp_path / "build", SET, per_stratum=ALL) if shipped else builds[PRODUCTS]
    questions = [sample for sample in read(built, task) if sample.options]
    offered = Counter((known(sample), option) for sample in questions for option in sample.options)
    share = 0.0
    for sample in questions:
        counts = [offered[known(sample), option] for option in sample.options]
        share += (counts["ABCD".index(sample.answer)] == max(counts)) / counts.count(max(counts))
    assert len(questions) >= 8
    assert share / len(questions) == 0.25


def test_every_title_beside_a_slice_is_that_of_a_product(builds: dict[str, Build]) -> None:
    """A title that a build has nowhere else would be known to be wrong."""
    brands = Counter(s.conflict_type for s in read(builds[PRODUCTS], "PD*") if _title(s))
    assert brands["mismatched brand"] >= 4
    right = {_title(s) for s in read(builds[PRODUCTS], "PD*") if s.answer == "Yes"}
    assert {_title(s) for s in read(builds[PRODUCTS], "PD*")} == right


def test_similar_brands_come_first(tmp_path: Path) -> None:
    folder = write_products(tmp_path / "folder", styles=60)
    logos = read(construct(tmp_path / "build", folder, per_stratum=8), "LD")
    assert Counter(s.conflict_type for s in logos) == {"": 4, "look-alike logo": 4}


@pytest.mark.slow
def test_the_audit_finds_no_rule_that_beats_chance(tmp_path: Path) -> None:
    """The rules of the audit know more than these tests: sizes and order of pictures, and words learned on other products."""
    folder = write_products(tmp_path / "folder", styles=60)
    flagged = {}
    for source in (PRODUCTS, PRODUCTS_FIGURE_8):
        result = audit_build(construct(tmp_path / source, folder, source, per_stratum=160), CrossCheckBench())
        flagged[source] = {task.task for task in result.tasks if task.flagged}
    assert not flagged[PRODUCTS]
    assert {"PMO", "SP", "SKU"} <= flagged[PRODUCTS_FIGURE_8]


# --- conditions without sources -------------------------------------------------------------------


@pytest.fixture(scope="module")
def shipped_instances(tmp_path_factory: pytest.TempPathFactory) -> dict[tuple[str, str], Instance]:
    built = construct(tmp_path_factory.mktemp("shipped") / "build", SET)
    return {(i.group, i.condition): i for i in CrossCheckBench().all_instances(built, "paper")}


def _shown(instance: Instance) -> tuple[str, list[Media]]:
    text = "".join(part.text for part in instance.parts if isinstance(part, Text))
    return text, [part for part in instance.parts if isinstance(part, Media)]


def test_conditions_without_sources_hide_titles_and_pictures(
    shipped_instances: dict[tuple[str, str], Instance],
) -> None:
    titles = [json.loads(line)["title"] for line in (SET / "products.jsonl").read_text("utf-8").splitlines()]
    with_both: set[str] = set()
    for (group, condition), instance in shipped_instances.items():
        text, media = _shown(instance)
        full_text, full_media = _shown(shipped_instances[group, "vanilla"])
        if condition in ("closed-book", "image-only", "options-only"):
            assert not [title for title in titles if title in text]
            assert "Title: " not in text
        if condition == "image-only":
            assert media == full_media
            with_both.add(instance.strata["task"])
        elif condition in CrossCheckBench.without_sources:
            assert not media
        if condition == "text-only":
            assert [t for t in titles if t in text] == [t for t in titles if t in full_text]
        if condition == "options-only":
            assert "No. 1" not in text
        if condition in CrossCheckBench.without_sources:
            assert GUESS in text
    assert with_both == {"BR", "PMP", "PMO", "PD*", "SP", "SKU", "BDC", "BC*", "BI", "PI"}


@given(title=st.text(max_size=20), brand=st.text(max_size=5), end=st.sampled_from(["", *HOSTILE]))
def test_no_title_stays_in_a_question_whatever_it_holds(title: str, brand: str, end: str) -> None:
    """A title may hold the words that follow titles, and a row of a user's own the placeholder of a picture."""
    secret = f"SECRET{title}{end}SECRET"
    questions = {
        "BR": f'Title: "{secret}" - Visual reference: <image> Required output',
        "PMP": f'Image data: <image> Item description: "{secret}" Determine whether it is',
        "SP": f'<image> What is the specific pricing information for this "{secret}" product from {brand} brand? Please',
        "SKU": f'First SKU: Title "{secret}" with product image <image> Second SKU: Title "{secret}" with product image <image>',
        "PI": f"an image of a product: <image> Its title is: {secret} This is a normalized bounding box",
    }
    for task, question in questions.items():
        rest = without_titles(task, question)
        assert rest.count("<image>") == question.count("<image>")
        assert "SECRET" not in rest or "<image>" in secret or "<option>" in secret
        assert without_titles("LD", question) == question


# --- missing answers -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("shape", "kinds", "gone", "answers"),
    [
        ({"logos": 1}, {"LD"}, "LD", set()),
        ({"views": 1}, {"SPU, pairs", "SKU"}, "SPU", set("ABCD")),
    ],
)
def test_an_answer_that_is_missing_is_reported_and_its_questions_left_out(
    tmp_path: Path, shape: dict[str, int], kinds: set[str], gone: str, answers: set[str]
) -> None:
    folder = write_products(tmp_path / "folder", styles=12, **shape)
    built = construct(tmp_path / "build", folder)
    skipped = [json.loads(line) for line in (built.path / "skipped.jsonl").read_text("utf-8").splitlines()]
    reasons = {row["row"]: row["reason"] for row in skipped if "cannot be balanced" in row["reason"]}
    assert set(reasons) == kinds
    assert built.manifest["sources"][PRODUCTS]["skipped"] == {f"{kind} cannot be balanced": 1 for kind in kinds}
    assert {sample.answer for sample in read(built, gone)} == answers
    # In the paper's form they stay, and one answer is right for all of them.
    printed = construct(tmp_path / "printed", folder, PRODUCTS_FIGURE_8)
    assert {sample.answer for sample in read(printed, gone)} == answers | {"No"}


def test_a_folder_of_one_brand_has_no_questions_about_what_brands_sell(tmp_path: Path) -> None:
    folder = write_products(tmp_path / "folder", styles=4)
    built = construct(tmp_path / "build", folder)
    assert not read(built, "BDC")
    assert '"BDC"' in (built.path / "skipped.jsonl").read_text("utf-8")


# --- the paper's construction --------------------------------------------------------------------


def test_figure_8_is_built_as_ever(tmp_path: Path) -> None:
    folder = tmp_path / "set"
    shutil.copytree(SET, folder, ignore=shutil.ignore_patterns("labels", "recipe"))
    built = construct(tmp_path / "build", folder, PRODUCTS_FIGURE_8)
    rows = (built.path / "instances.jsonl").read_bytes().replace(b'"products-figure-8"', b'"products"')
    assert hashlib.sha256(rows).hexdigest() == "7a228a37ea9aaa021b5d3ed0cdfd1fdd901046def07b24cdaee96293b6be037d"
