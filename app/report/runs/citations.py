"""Citations of a run: the tool, the benchmark, its sources and its engine as BibTeX, and the licences of data and models.

Only stored facts are given: what the papers state (``assets/bibliography.bib``), and what is on the card of a model.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from app.fetch.fetched_files_record import read_manifest as read_fetched
from app.store.run_facts import LICENCE_KEY
from app.store.run_store import RunStore
from app.store.workspace import Workspace
from app.system.project_paths import ASSETS
from app.system.version import rashomon_version
from app.text.text_escaping import clean
from benchmarks.build import read_manifest
from benchmarks.errors import RashomonError
from benchmarks.source_licences import source_licences
from judges.judge_registry import judge_names
from mlx_backends.baseline_engine import split_baseline
from mlx_backends.imported_engine import IMPORTED
from mlx_backends.models.model_licence import stated_licence
from mlx_backends.person_engine import PERSON
from mlx_backends.policy_engine import PREFIX as POLICY
from mlx_backends.portable_model_names import without_folders
from mlx_backends.pytorch.torch_names_and_devices import split_name
from mlx_backends.remote import is_remote

BIBLIOGRAPHY = ASSETS / "bibliography.bib"

_COCO = "lin2014microsoft"
_CMC_BENCH = "catapang-cmc-bench"
_PAPERS: Mapping[str, str] = {
    "cmc-bench": _CMC_BENCH,
    "clash": "popordanoska-clash",
    "mmkc-bench": "jia2025benchmarking",
    "crosscheck-bench": "tian-crosscheck-bench",
    "contra4": "contra4",
    "pope": "li2023evaluating",
    "okvqa": "marino2019ok",
    "gqa": "hudson2019gqa",
    "retrieval": _CMC_BENCH,
    "k-passages": _CMC_BENCH,
}
_SOURCES: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("cmc-bench", "chartqa"): ("masry2022chartqa",),
    ("cmc-bench", "mmmu"): ("yue2024mmmu",),
    ("clash", "published"): (_COCO,),
    ("clash", "sugar-crepe"): (_COCO,),
    ("clash", "coco"): (_COCO,),
    ("clash", "spatial"): (_COCO,),
    ("contra4", "published"): (_COCO, "drossos2020clotho", "kim2019audiocaps", "xu2016msrvtt", "xu2023pointllm"),
    ("pope", "pope"): (_COCO,),
    ("okvqa", "okvqa"): (_COCO,),
}
_ENGINES: Mapping[str, str] = {"mlx-vlm": "canuma2024mlxvlm"}


@dataclass(frozen=True, slots=True)
class Citations:
    """BibTeX entries by key, licences by data source and by model, and a sentence on everything that is not stored."""

    entries: Mapping[str, str]
    data: Mapping[str, str]
    models: Mapping[str, str]
    unknown: tuple[str, ...]

    def bibtex(self) -> str:
        """Return a BibTeX file, with the licences as comments."""
        comments = [f"data {name}: {terms}" for name, terms in self.data.items()]
        comments += [f"model {name}: {licence}" for name, licence in self.models.items()]
        # BibTeX knows no comments: between entries, an at sign begins one, also after a percent sign.
        lines = [f"% {clean(line).replace('@', ' (at) ')}" for line in (*comments, *self.unknown)]
        return "\n\n".join([*self.entries.values(), "\n".join(lines)]).rstrip() + "\n"


def tool_entry() -> str:
    """Return the BibTeX entry of this tool; ``CITATION.cff`` has the same facts."""
    fields = {
        "title": "{Rashomon}: what a vision-language model does when its sources disagree",
        "author": "{The Rashomon authors}",
        "version": rashomon_version(),
        "year": "2026",
        "note": "MIT licence",
    }
    return "@software{rashomon,\n" + "".join(f"  {name} = {{{text}}},\n" for name, text in fields.items()) + "}"


@cache
def bibliography() -> dict[str, str]:
    """Return the stored BibTeX entries by key."""
    text = BIBLIOGRAPHY.read_text("utf-8")
    return {match[1]: match[0] for match in re.finditer(r"^@\w+\{([\w-]+),\n.*?^\}", text, re.DOTALL | re.MULTILINE)}


def cite(workspace: Workspace, folders: Iterable[Path]) -> Citations:
    """Return the citations of the runs in ``folders``, each once."""
    keys: dict[str, None] = {}
    data: dict[str, str] = {}
    models: dict[str, str] = {}
    unknown: dict[str, None] = {}
    for folder in folders:
        with RunStore.read(folder) as store:
            spec, build = store.meta("spec"), workspace.build_of(store)
            engines = [str(engine.get("engine")) for engine in store.engines()]
            stored_licence = str(store.meta(LICENCE_KEY, "") or "")
        benchmark = str(spec["benchmark"])
        if benchmark in _PAPERS:
            keys[_PAPERS[benchmark]] = None
        else:
            unknown[f"no bibliographic data are stored of the benchmark {benchmark}"] = None
        manifest = {"benchmark": benchmark}
        with suppress(OSError, ValueError, RashomonError):
            manifest = read_manifest(build)
        for source, licence in source_licences(manifest).items():
            data[f"{benchmark}/{source}"] = licence.text
            keys |= dict.fromkeys(_SOURCES.get((benchmark, source), ()))
        if (fetched := read_fetched(workspace.source_folder(benchmark))) is not None:
            data[f"{benchmark}, as fetched"] = "; ".join(fetched.licences)
        keys |= dict.fromkeys(_ENGINES[engine] for engine in engines if engine in _ENGINES)
        answering, *judging = (str(spec["model"]), *map(str, spec["judge"]))
        for model in (answering, *judging):
            if terms := _licence(model, stored_licence if model == answering else ""):
                models.setdefault(without_folders(model), terms)
    stored = bibliography()
    entries = {"rashomon": tool_entry(), **{key: stored[key] for key in keys}}
    return Citations(entries, data, models, tuple(unknown))


def _licence(model: str, stored: str) -> str:
    """Return the licence of a model that answered or judged, by default the one stored with its run; "" for what is no model."""
    name = split_baseline(model)[1]
    if name.startswith((POLICY, IMPORTED, PERSON)) or name.partition("@")[0] in judge_names():
        return ""
    if is_remote(name):
        return "a remote service, whose terms are its provider's"
    _, weights, _ = split_name(name)
    licence = stored or stated_licence(weights)
    return f"{licence} (its card)" if licence else "not stored here; see its card on the Hub"
