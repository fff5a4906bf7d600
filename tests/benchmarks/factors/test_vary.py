"""Varied builds: every cell repeats an example with its siblings, and only what a factor names changes."""

from __future__ import annotations

import hashlib
import io
import json
from collections import Counter
from pathlib import Path

import pytest
from PIL import Image

from benchmarks.build import Build
from benchmarks.errors import AnotherBuildError, NothingUsableError, RashomonError, SourceError, SpecError
from benchmarks.factors.decisive_regions import Regions
from benchmarks.factors.factor_build import Variation, VaryOptions
from benchmarks.factors.factor_design import Design
from benchmarks.factors.factor_instances import instances_of
from benchmarks.factors.factor_levels import parse_factors
from benchmarks.instance_sampling import select
from benchmarks.prompt_template import find_template
from benchmarks.registry import get_benchmark
from benchmarks.varied_names import MANIFEST_KEY, example_of
from benchmarks.vocabulary import Instance, Media, Text
from tests.support.demo import HeldOutSet


def varied(
    source: HeldOutSet,
    out: Path,
    *factors: str,
    limit: int | None = 3,
    cells: int | None = None,
    conditions: tuple[str, ...] = (),
    regions: Regions | None = None,
) -> tuple[Build, list[Instance]]:
    """Return a varied build and its instances."""
    benchmark = get_benchmark(source.benchmark)
    design = Design.of(parse_factors(factors), cells=cells, conditions=conditions)
    variation = Variation(benchmark, source.build, design, VaryOptions(limit, 0, regions or Regions()))
    size = variation.size()
    build = variation.build(out)
    instances = list(instances_of(benchmark, build, next(iter(benchmark.prompt_sets))))
    assert len(instances) == size.instances == build.manifest[MANIFEST_KEY]["instances"]
    assert build.manifest[MANIFEST_KEY]["distinct inputs"] <= size.calls
    return build, instances


def text_of(instance: Instance) -> str:
    return "".join(part.text if isinstance(part, Text) else "<image>" for part in instance.parts)


def image_of(instance: Instance) -> Media:
    return next(part for part in instance.parts if isinstance(part, Media))


def test_a_value_that_may_be_the_right_one_rounded_is_no_level(charts: HeldOutSet, tmp_path: Path) -> None:
    with pytest.raises(NothingUsableError, match=r"may be the right one"):
        varied(charts, tmp_path / "out", "distance=built,0.001")


def test_a_prompt_file_fixes_the_order_of_image_and_text(charts: HeldOutSet, tmp_path: Path) -> None:
    benchmark, template = get_benchmark(charts.benchmark), find_template("read-then-compare", {})
    ordered, _ = varied(charts, tmp_path / "ordered", "order=image-first,text-first")
    with pytest.raises(SpecError):
        next(instances_of(benchmark, ordered, template))
    blurred, instances = varied(charts, tmp_path / "blurred", "blur=0,2")
    assert len(list(instances_of(benchmark, blurred, template))) == len(instances)


def test_every_cell_has_every_example_with_its_siblings(charts: HeldOutSet, tmp_path: Path) -> None:
    build, instances = varied(charts, tmp_path / "out", "blur=0,2", "text-source=none,forum post")
    cells = Counter((example_of(i.group), i.strata["blur"], i.strata["text-source"]) for i in instances)
    assert len(cells) == 3 * 4
    assert set(cells.values()) == {8}
    assert len({i.id for i in instances}) == len(instances) == 96
    assert len({i.group for i in instances}) == 12
    # What no factor changes is one input: a text alone under blur, an image alone under a stated source.
    assert build.manifest[MANIFEST_KEY]["distinct inputs"] == 3 * (4 * 4 + 2 * 2 + 2 * 2)
    base = {i.id: i for i in charts.instances}
    for instance in instances:
        if instance.strata["blur"] == "0" and instance.strata["text-source"] == "none":
            original = base[example_of(instance.id)]
            assert instance.parts == original.parts
            assert instance.references == original.references


def test_images_are_stored_once_and_are_what_the_level_says(charts: HeldOutSet, tmp_path: Path) -> None:
    build, instances = varied(charts, tmp_path / "out", "resolution=1,0.5", "jpeg=none,20", conditions=("image-only",))
    media = {part for instance in instances for part in instance.parts if isinstance(part, Media)}
    assert build.manifest["media"] == len(media) == len(list((build.path / "media").iterdir()))
    for instance in instances:
        medium = image_of(instance)
        data = build.media_path(medium).read_bytes()
        assert hashlib.sha256(data).hexdigest() == medium.sha256
        image = Image.open(io.BytesIO(data))
        assert image.size == ((96, 96) if instance.strata["resolution"] == "1" else (48, 48))
        assert image.format == ("JPEG" if instance.strata["jpeg"] == "20" else "PNG")


def test_texts_change_in_their_own_place(charts: HeldOutSet, tmp_path: Path) -> None:
    factors = (
        "text-source=none,an official report",
        "image-source=none,a scan",
        "length=0,40",
        "order=image-first,text-first",
    )
    _, instances = varied(charts, tmp_path / "out", *factors, limit=1, conditions=("image-correct",))
    plain = next(
        text_of(i)
        for i in instances
        if all(i.strata[n] in ("none", "0", "image-first") for n in ("text-source", "image-source", "length", "order"))
    )
    for instance in instances:
        text, strata = text_of(instance), instance.strata
        assert ("[source: an official report]" in text) == (strata["text-source"] != "none")
        assert ("[source: a scan] <image>" in text) == (strata["image-source"] != "none")
        assert (len(text.split()) > len(plain.split()) + 30) == (strata["length"] == "40")
        assert (text.index("Retrieved text") < text.index("<image>")) == (strata["order"] == "text-first")
        assert text.startswith(plain[: plain.index("Retrieved")])
        assert text.endswith("Answer the query using the provided evidence.")


def test_the_wrong_value_moves_and_its_reference_with_it(charts: HeldOutSet, tmp_path: Path) -> None:
    _, instances = varied(charts, tmp_path / "out", "distance=built,0.1,1", limit=None)
    truths = {i.group: i.references["text"][0] for i in instances if i.condition == "aligned"}
    checked = 0
    for instance in instances:
        if instance.strata["distance"] != "built" and instance.condition in ("image-correct", "both-wrong"):
            truth, value = float(truths[instance.group]), float(instance.references["text"][0])
            ratio = 1 + float(instance.strata["distance"])
            nearest = min((truth * ratio, truth / ratio), key=lambda exact: abs(exact - value))
            assert value == pytest.approx(nearest, rel=0.06, abs=1)  # a whole number, and not the picture's
            assert instance.references["text"][0] in text_of(instance)
            checked += 1
        if instance.condition in ("aligned", "text-correct"):
            assert instance.references["text"][0] == truths[instance.group]
    assert checked == 144 * 2 * 2


def test_regions_are_known_by_their_image(charts: HeldOutSet, tmp_path: Path) -> None:
    digests = {image_of(i).sha256 for i in charts.instances if i.condition == "image-only"}
    file = tmp_path / "regions.jsonl"
    file.write_text("\n".join(json.dumps({"image": name, "box": [10, 10, 50, 30]}) for name in sorted(digests)))
    build, instances = varied(
        charts, tmp_path / "out", "crop=none,region", conditions=("image-only",), regions=Regions.read(file)
    )
    sizes = {i.strata["crop"]: Image.open(build.media_path(image_of(i))).size for i in instances}
    assert sizes == {"none": (96, 96), "region": (40, 20)}
    with pytest.raises(SourceError):  # no region
        varied(charts, tmp_path / "other", "cover=0,1")
    file.write_text("\n".join(json.dumps({"image": name, "box": [10, 10, 97, 30]}) for name in sorted(digests)))
    with pytest.raises(SourceError):  # outside
        varied(charts, tmp_path / "other", "cover=0,1", regions=Regions.read(file))
    assert not (tmp_path / "other").exists()
    for line in (
        "[]",
        "{}",
        '{"image": "gone.png", "box": [1, 2, 3, 4]}',
        '{"image": "%s", "box": [1, 2]}' % ("0" * 64),
        "{",
    ):
        file.write_text(line)
        with pytest.raises(RashomonError):
            Regions.read(file)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "factors"),
    [
        ("scenes", ("blur=0,1", "text-source=none,a stranger", "order=image-first,text-first")),
        ("logos", ("resolution=1,0.5", "text-date=none,1990")),
    ],
)
def test_other_benchmarks_vary_too(
    name: str, factors: tuple[str, ...], request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    source: HeldOutSet = request.getfixturevalue(name)
    _, instances = varied(source, tmp_path / "out", *factors, limit=4)
    for factor in parse_factors(factors):
        by_level: dict[str, set[object]] = {}
        for instance in instances:
            by_level.setdefault(instance.strata[factor.name], set()).add(instance.parts)
        first, *others = by_level.values()
        assert all(other - first for other in others), factor.name


def test_a_limit_draws_examples_with_all_their_cells(charts: HeldOutSet, tmp_path: Path) -> None:
    _, instances = varied(charts, tmp_path / "out", "blur=0,1,2", limit=6)
    drawn = list(select(instances, stratify_by="type", seed=3, limit=2))
    assert len({example_of(i.group) for i in drawn}) == 2
    assert len(drawn) == 2 * 3 * 8


def test_what_does_not_fit_is_refused(charts: HeldOutSet, scenes: HeldOutSet, tmp_path: Path) -> None:
    build, _ = varied(charts, tmp_path / "out", "blur=0,1", limit=1)
    with pytest.raises(AnotherBuildError):
        varied(charts, tmp_path / "out", "blur=0,2", limit=1)
    benchmark = get_benchmark("cmc-bench")
    with pytest.raises(SpecError):  # varied already
        Variation(benchmark, build, Design.of(parse_factors(["blur=0,1"])), VaryOptions())
    with pytest.raises(SpecError):  # the factor changes nothing
        varied(charts, tmp_path / "new", "blur=0,1", conditions=("text-only",))
    with pytest.raises(SpecError):
        varied(charts, tmp_path / "new", "blur=0,1", conditions=("aligned", "alined"))
    with pytest.raises(NothingUsableError):
        varied(scenes, tmp_path / "new", "distance=built,1")
    assert not (tmp_path / "new").exists()
