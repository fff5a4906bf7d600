"""Recipes for the data of each benchmark: files, licences, and sources for `rashomon build`."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from app.fetch import fetched_files_record
from benchmarks.cmc_bench.cmc_constants import HUB_IDS, SUBJECTS
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.fetch.hub_repository import Repository, repository
from benchmarks.fetch.remote_file import JPEG, Digest, FetchError, RemoteFile, path_inside
from benchmarks.plain import DATA_SETS
from benchmarks.plain.plain_data_set import SOURCE, PlainDataSet
from benchmarks.registry import benchmark_names, get_benchmark
from benchmarks.source_licences import LICENCES

Read = Callable[[RemoteFile], bytes]
"""A function that returns the bytes of a small file, which lists the other files."""


@dataclass(frozen=True, slots=True)
class RequiredFiles:
    """The files a benchmark needs, with a line on the licence of each part."""

    files: tuple[RemoteFile, ...]
    licences: tuple[str, ...]
    revisions: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Recipe:
    """The data of a benchmark: ``what`` describes it and ``sources`` are the build's sources, by folder.

    ``manual_steps`` says how to get data that cannot be fetched. Before a server is asked, ``known_bytes`` of its
    size are known, and ``unknown_size`` is a phrase on the rest; ``origin`` names the servers.
    """

    benchmark: str
    what: str
    needed: Callable[[Path, Read], RequiredFiles]
    sources: tuple[tuple[str, str], ...]
    manual_steps: str = ""
    known_bytes: int = 0
    unknown_size: str = "files whose size only the Hub knows"
    origin: str = "the Hub"

    def pairs(self, folder: Path) -> list[tuple[str, str]]:
        """Return the sources of a build from ``folder``."""
        return [(name, str(folder / below) if below else str(folder)) for name, below in self.sources]

    @property
    def licences(self) -> tuple[str, ...]:
        """The licences of its parts, as far as Rashomon knows them."""
        known = {name: LICENCES[self.benchmark][name] for name, _ in self.sources}
        if len(known) > 1:
            return tuple(f"{name}: {licence.text}" for name, licence in known.items())
        return tuple(term for licence in known.values() for term in licence.terms)


def get_recipe(benchmark: str) -> Recipe:
    """Return the recipe of ``benchmark``. Raises SpecError for an unknown benchmark or unpublished data."""
    if benchmark not in benchmark_names():
        raise SpecError(f"there is no benchmark {benchmark!r}; {did_you_mean(benchmark, benchmark_names())}")
    if benchmark in NOT_FETCHED:
        raise SpecError(NOT_FETCHED[benchmark])
    if benchmark not in RECIPES:
        raise SpecError(f"Rashomon does not know where the data of {benchmark} is; ask those who made the benchmark.")
    return RECIPES[benchmark]


def _cmc_bench(folder: Path, read: Read) -> RequiredFiles:
    chartqa = repository(HUB_IDS["chartqa"], "dataset", lambda name: name.startswith(("data/val-", "data/test-")))
    validation = tuple(f"{subject}/validation-" for subject in SUBJECTS)
    mmmu = repository(HUB_IDS["mmmu"], "dataset", lambda name: name.startswith(validation))
    return _of_hub(
        (
            (chartqa, folder / "chartqa", LICENCES["cmc-bench"]["chartqa"].text),
            (mmmu, folder / "mmmu", LICENCES["cmc-bench"]["mmmu"].text),
        )
    )


def _mmkc_bench(folder: Path, read: Read) -> RequiredFiles:
    published = repository("starjyf/MLLMKC-datasets", "dataset", lambda name: not name.startswith("."))
    return _of_hub(((published, folder, LICENCES["mmkc-bench"]["published"].text),))


def _clash(folder: Path, read: Read) -> RequiredFiles:
    questions = RemoteFile(
        github(
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
    images = [_image(folder, "train2017", f"{image:012d}.jpg") for image in ids]
    return RequiredFiles((questions, *images), LICENCES["clash"]["published"].terms)


def _pope(folder: Path, read: Read) -> RequiredFiles:
    def questions(setting: str, size: int, sha256: str) -> RemoteFile:
        name = f"coco_pope_{setting}.json"
        return RemoteFile(
            github("RUCAIBox/POPE", "3df3ba1b110ecce25696989577fad583b67d4239", f"output/coco/{name}"),
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
    return RequiredFiles((*files, *images), LICENCES["pope"]["pope"].terms)


def _contra4(folder: Path, read: Read) -> RequiredFiles:
    questions = RemoteFile(
        github("artemisp/contra4-fork", "8492529137ad096d39022175cfe4c1d550b69fad", "data/final_data/test.json"),
        folder / "test.json",
        "Contra4's repository",
        3_063_841,
        Digest("sha256", "061aef069e1e35cefed6a500f6f52b54d8854ff2c4c5ca483c51331a5da51f4d"),
    )
    scenes = [scene for row in json.loads(read(questions)) for scene in row["examples"]]
    ids = dict.fromkeys(_integer(scene["id"]) for scene in scenes if scene["source"] == "coco_val")
    images = [_image(folder, "val2017", f"{image:012d}.jpg", "coco_val") for image in ids]
    return RequiredFiles((questions, *images), LICENCES["contra4"]["published"].terms)


def _okvqa(folder: Path, read: Read) -> RequiredFiles:
    copy = repository("lmms-lab/OK-VQA", "dataset", lambda name: name.startswith("data/val2014-"))
    return _of_hub(((copy, folder, LICENCES["okvqa"]["okvqa"].text),))


def _gqa(folder: Path, read: Read) -> RequiredFiles:
    parts = ("testdev_balanced_instructions/", "testdev_balanced_images/")
    copy = repository("lmms-lab/GQA", "dataset", lambda name: name.startswith(parts))
    return _of_hub(((copy, folder, LICENCES["gqa"]["gqa"].text),))


def _plain(data_set: PlainDataSet, folder: Path, read: Read) -> RequiredFiles:
    files = repository(data_set.hub_id, "dataset", lambda name: name.startswith(data_set.hub_files))
    return _of_hub(((files, folder, LICENCES[data_set.name][SOURCE].text),))


def _plain_data_sets(*, on_hub: bool) -> Iterator[PlainDataSet]:
    for name in DATA_SETS:
        data_set = get_benchmark(name)
        if isinstance(data_set, PlainDataSet) and bool(data_set.hub_id) == on_hub:
            yield data_set


def _of_hub(parts: Iterable[tuple[Repository, Path, str]]) -> RequiredFiles:
    files: list[RemoteFile] = []
    licences, revisions = [], []
    for repo, folder, known in parts:
        if not repo.files:
            raise FetchError(f"{repo.id} on the Hub has none of the needed files; see {repo.page}.")
        files += [repo.remote(file, path_inside(folder, file.name)) for file in repo.files]
        licences.append(f"{repo.id}: {known}; the Hub says {repo.licence or 'none'}")
        revisions.append(f"{repo.id}@{repo.revision}")
    return RequiredFiles(tuple(files), tuple(licences), tuple(revisions))


def _image(folder: Path, part: str, name: str, below: str = "") -> RemoteFile:
    return RemoteFile(coco(part, name), path_inside(folder / (below or part), name), "COCO's image server", begins=JPEG)


def _integer(value: Any) -> int:
    return int(value)


NOT_FETCHED = {
    "crosscheck-bench": (
        "CrossCheck-Bench's data is announced but not published, so there is nothing to fetch. Build it from folders of "
        "products (`rashomon build crosscheck-bench --source products=FOLDER`) or from your own rows "
        "(--source rows=FOLDER; docs/crosscheck-bench.md has the layout)."
    ),
    "retrieval": (
        "retrieval is built from a log of your own pipeline, so there is nothing to fetch: `rashomon build retrieval --from FILE "
        "--reader MODEL` (docs/natural-conflicts.md has the layout)."
    ),
    "k-passages": (
        "k-passages is made from a build of cmc-bench, so there is nothing to fetch: `rashomon passages cmc-bench` "
        "(docs/k-passages.md)."
    ),
    **{
        data_set.name: f"Rashomon does not fetch the data of {data_set.name}: {data_set.amount}. Get them yourself, then "
        f"`rashomon build {data_set.name} --source {SOURCE}=FILE` (docs/plain-data-sets.md)."
        for data_set in _plain_data_sets(on_hub=False)
    },
}


def _coco_images(count: str) -> str:
    """Return a phrase on the size of ``count`` images; COCO's 40,504 of 2014 and 5,000 of 2017 have 6.6 and 0.8 GB."""
    return f"{count} COCO images of about 160 kB each"


RECIPES = {
    entry.benchmark: entry
    for entry in (
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
            known_bytes=747_559,
            unknown_size=_coco_images("1,281"),
            origin="CLASH's repository and COCO's image server",
        ),
        Recipe("mmkc-bench", "MMKC-Bench's published rows and images", _mmkc_bench, (("published", ""),)),
        Recipe(
            "pope",
            "POPE's questions and the 500 COCO images they are about",
            _pope,
            (("pope", ""),),
            known_bytes=1_108_759,
            unknown_size=_coco_images("500"),
            origin="POPE's repository and COCO's image server",
        ),
        Recipe(
            "okvqa",
            "OK-VQA's 5,046 validation questions with their COCO images",
            _okvqa,
            (("okvqa", ""),),
            known_bytes=800_000_000,
            unknown_size="",
        ),
        Recipe(
            "gqa",
            "GQA's 12,578 balanced test-dev questions and their images",
            _gqa,
            (("gqa", ""),),
            known_bytes=70_000_000,
            unknown_size="",
        ),
        Recipe(
            "contra4",
            "Contra4's test rows and the COCO images they name",
            _contra4,
            (("published", ""),),
            "sounds (AudioCaps, Clotho), videos (MSR-VTT) and 3D models (PointLLM) cannot be fetched individually; get them from "
            "their owners and put them in audiocaps/, clotho/, msrvtt_test/ and pointllm/ next to test.json (docs/contra4.md)",
            known_bytes=3_063_841,
            unknown_size=_coco_images("1,572"),
            origin="Contra4's repository and COCO's image server",
        ),
        *(
            Recipe(data_set.name, data_set.amount, partial(_plain, data_set), ((SOURCE, ""),))
            for data_set in _plain_data_sets(on_hub=True)
        ),
    )
}


def build_commands(rashomon: str, benchmark: str, folder: Path) -> tuple[str, ...]:
    """Return the commands that build ``benchmark``, in order; the first one fetches its data if there is a recipe.

    ``rashomon`` is how the commands begin. ``folder`` is the folder of the data; complete data is not fetched again.
    """
    build = f"{rashomon} build {benchmark}"
    if benchmark not in RECIPES:
        return (f"{build} --source {get_benchmark(benchmark).sources[0].name}=FOLDER",)
    return (
        (build,)
        if fetched_files_record.fetch_state(folder) == "fetched"
        else (f"{rashomon} data get {benchmark}", build)
    )


def source_options(pairs: Sequence[tuple[str, str]]) -> str:
    """Return the sources as command-line options."""
    import shlex

    return " ".join(f"--source {name}={shlex.quote(place)}" for name, place in pairs)


MIRROR = "RASHOMON_MIRROR"
"""The environment variable of a mirror: https://HOST/PATH is then fetched from MIRROR/HOST/PATH."""

COCO = "https://s3.amazonaws.com/images.cocodataset.org"
"""COCO's bucket. images.cocodataset.org is the same bucket, but with a certificate for another name."""

GITHUB = "https://raw.githubusercontent.com"


def coco(folder: str, name: str) -> str:
    """Return the address of a COCO image, such as ``000000000034.jpg`` in ``train2017``."""
    return _address(f"{COCO}/{folder}/{name}")


def github(repository: str, commit: str, path: str) -> str:
    """Return the address of a file in a GitHub repository at ``commit``."""
    return _address(f"{GITHUB}/{repository}/{commit}/{path}")


def _address(url: str) -> str:
    mirror = os.environ.get(MIRROR)
    return f"{mirror.rstrip('/')}/{url.removeprefix('https://')}" if mirror else url
