"""What each benchmark needs from elsewhere: which files, under which licence, and what `rashomon build` makes of them."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from app.fetch import hosts, manifest
from app.fetch.hub import Repository, repository
from app.fetch.remote_file import JPEG, Digest, FetchError, RemoteFile, inside
from benchmarks.base import benchmark_names, did_you_mean, get_benchmark
from benchmarks.cmc_bench.constants import HUB_IDS, SUBJECTS
from benchmarks.errors import SpecError

Read = Callable[[RemoteFile], bytes]
"""The bytes of a small file, which must be known to know what else is needed."""

COCO_LICENCE = "COCO's images: Flickr's, each under a licence of its own (COCO's metadata), for research"


@dataclass(frozen=True, slots=True)
class RequiredFiles:
    """The files a benchmark needs, and ``licences``: a line for each part of them, as far as anybody states one."""

    files: tuple[RemoteFile, ...]
    licences: tuple[str, ...]
    revisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """``what`` is fetched, in words; ``by_hand`` what is not and has to be; ``sources`` what to build from, below the folder."""

    benchmark: str
    what: str
    needed: Callable[[Path, Read], RequiredFiles]
    sources: tuple[tuple[str, str], ...]
    by_hand: str = ""

    def pairs(self, folder: Path) -> list[tuple[str, str]]:
        """The sources of a build from ``folder``."""
        return [(name, str(folder / below) if below else str(folder)) for name, below in self.sources]


def recipe(benchmark: str) -> Recipe:
    """What ``benchmark`` needs. Raises SpecError where there is none, or where its data are not published."""
    if benchmark not in benchmark_names():
        raise SpecError(f"there is no benchmark {benchmark!r}; {did_you_mean(benchmark, benchmark_names())}")
    if benchmark in NOT_PUBLISHED:
        raise SpecError(NOT_PUBLISHED[benchmark])
    return RECIPES[benchmark]


def _cmc_bench(folder: Path, read: Read) -> RequiredFiles:
    chartqa = repository(HUB_IDS["chartqa"], "dataset", lambda name: name.startswith(("data/val-", "data/test-")))
    validation = tuple(f"{subject}/validation-" for subject in SUBJECTS)
    mmmu = repository(HUB_IDS["mmmu"], "dataset", lambda name: name.startswith(validation))
    return _of_hub(
        (
            (chartqa, folder / "chartqa", "GPL-3.0 (its repository); charts of Statista, Pew, OWID and OECD"),
            (mmmu, folder / "mmmu", "Apache-2.0 (its repository); images of third parties"),
        )
    )


def _mmkc_bench(folder: Path, read: Read) -> RequiredFiles:
    found = repository("starjyf/MLLMKC-datasets", "dataset", lambda name: not name.startswith("."))
    return _of_hub(((found, folder, "not stated elsewhere"),))


def _clash(folder: Path, read: Read) -> RequiredFiles:
    questions = RemoteFile(
        hosts.github(
            "tpopordanoska/clash",
            "d9609c3178be1ab87151ce3668703f0eb2e7d6a6",
            "data/synthetic_captions_test_filtered.json",
        ),
        folder / "synthetic_captions_test_filtered.json",
        "CLASH's repository",
        747_559,
        Digest("sha256", "24b7979bbadde88f1c3209210e16fab83df323321d30c7643578423b6dd5b071"),
    )
    ids = dict.fromkeys(_integer(sample["image_id"]) for sample in json.loads(read(questions))["samples"])
    images = [_image(folder, "train2017", f"{each:012d}.jpg") for each in ids]
    return RequiredFiles(
        (questions, *images),
        (
            "CLASH's questions: not stated (its repository has no licence); its captions derive from COCO's, CC BY 4.0",
            COCO_LICENCE,
        ),
    )


def _pope(folder: Path, read: Read) -> RequiredFiles:
    def questions(setting: str, size: int, sha256: str) -> RemoteFile:
        name = f"coco_pope_{setting}.json"
        return RemoteFile(
            hosts.github("RUCAIBox/POPE", "3df3ba1b110ecce25696989577fad583b67d4239", f"output/coco/{name}"),
            folder / name,
            "POPE's repository",
            size,
            Digest("sha256", sha256),
        )

    files = (
        questions("random", 368_166, "ac25245170b975a5bdf9080b23fd431dfe6be458bc038259c1f4f09a6bef7994"),
        questions("popular", 370_190, "72c1a8ad45d0c13514f5f22598261df41d3b533854d29682e924db50ed8aa753"),
        questions("adversarial", 370_401, "420b3407db1fa9f1187a805dca41cb7b97fd91504e6c2179706188c107fb8ef8"),
    )
    names = dict.fromkeys(json.loads(line)["image"] for line in read(files[0]).splitlines() if line.strip())
    images = [_image(folder, "val2014", name) for name in names]
    return RequiredFiles((*files, *images), ("POPE's questions: MIT (its repository)", COCO_LICENCE))


def _contra4(folder: Path, read: Read) -> RequiredFiles:
    questions = RemoteFile(
        hosts.github("artemisp/contra4-fork", "8492529137ad096d39022175cfe4c1d550b69fad", "data/final_data/test.json"),
        folder / "test.json",
        "Contra4's repository",
        3_063_841,
        Digest("sha256", "061aef069e1e35cefed6a500f6f52b54d8854ff2c4c5ca483c51331a5da51f4d"),
    )
    scenes = [scene for row in json.loads(read(questions)) for scene in row["examples"]]
    ids = dict.fromkeys(_integer(scene["id"]) for scene in scenes if scene["source"] == "coco_val")
    images = [_image(folder, "val2017", f"{each:012d}.jpg", "coco_val") for each in ids]
    return RequiredFiles(
        (questions, *images), ("Contra4's questions: Apache-2.0 (its repository), for research", COCO_LICENCE)
    )


def _of_hub(parts: Iterable[tuple[Repository, Path, str]]) -> RequiredFiles:
    files: list[RemoteFile] = []
    licences, revisions = [], []
    for found, folder, known in parts:
        if not found.files:
            raise FetchError(f"{found.id} on the Hub has none of the files that are needed; see {found.page}.")
        files += [found.remote(file, inside(folder, file.name)) for file in found.files]
        licences.append(f"{found.id}: {known}; the Hub says {found.licence or 'none'}")
        revisions.append(f"{found.id}@{found.revision}")
    return RequiredFiles(tuple(files), tuple(licences), tuple(revisions))


def _image(folder: Path, part: str, name: str, below: str = "") -> RemoteFile:
    return RemoteFile(
        hosts.coco(part, name), inside(folder / (below or part), name), "COCO's image server", begins=JPEG
    )


def _integer(value: Any) -> int:
    return int(value)


NOT_PUBLISHED = {
    "crosscheck-bench": (
        "CrossCheck-Bench's data are announced and not published, so there is nothing to fetch: construct it from folders of "
        "products (`rashomon build crosscheck-bench --source products=FOLDER`), or give rows of your own "
        "(--source rows=FOLDER; docs/crosscheck-bench.md has the layout)."
    )
}

RECIPES = {
    each.benchmark: each
    for each in (
        Recipe(
            "cmc-bench",
            "ChartQA's validation and test, MMMU's validation of six subjects",
            _cmc_bench,
            (("chartqa", "chartqa"), ("mmmu", "mmmu")),
        ),
        Recipe(
            "clash",
            "CLASH's 1,289 published samples and the 1,281 COCO images they are about",
            _clash,
            (("published", ""),),
        ),
        Recipe("mmkc-bench", "MMKC-Bench's published rows and images", _mmkc_bench, (("published", ""),)),
        Recipe("pope", "POPE's questions and the 500 COCO images they are about", _pope, (("pope", ""),)),
        Recipe(
            "contra4",
            "Contra4's test rows and the COCO images they name",
            _contra4,
            (("published", ""),),
            "sounds (AudioCaps, Clotho), videos (MSR-VTT) and 3D models (PointLLM) are not to be had one by one: get them from "
            "their owners into audiocaps/, clotho/, msrvtt_test/ and pointllm/ beside test.json (docs/contra4.md)",
        ),
    )
}


def to_build(rashomon: str, benchmark: str, folder: Path) -> tuple[str, ...]:
    """What to type, one after the other, to have a build of ``benchmark``: fetching comes first where there is a recipe.

    ``rashomon`` is what its commands begin with; ``folder`` is where they fetch to: what is there is not fetched again.
    """
    build = f"{rashomon} build {benchmark}"
    if benchmark not in RECIPES:
        return (f"{build} --source {get_benchmark(benchmark).sources[0].name}=FOLDER",)
    return (build,) if manifest.state(folder) == "fetched" else (f"{rashomon} data get {benchmark}", build)


def sources_text(pairs: Sequence[tuple[str, str]]) -> str:
    """The sources as they are typed."""
    import shlex

    return " ".join(f"--source {name}={shlex.quote(place)}" for name, place in pairs)
