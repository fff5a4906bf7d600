"""Registry of benchmarks: those of this package, and those that other packages register as ``rashomon.benchmarks``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from benchmarks.base import Benchmark, DataSource
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.plain import DATA_SETS
from benchmarks.plugins.find_plugins import Registry

GROUP = "rashomon.benchmarks"
"""The group of entry points: name to a class that derives from :class:`benchmarks.base.Benchmark`."""

BUILT_IN = {
    "cmc-bench": "benchmarks.cmc_bench:CMCBench",
    "clash": "benchmarks.clash:Clash",
    "mmkc-bench": "benchmarks.mmkc_bench:MMKCBench",
    "pope": "benchmarks.pope:Pope",
    "okvqa": "benchmarks.vqa:Okvqa",
    "gqa": "benchmarks.vqa:Gqa",
    "crosscheck-bench": "benchmarks.crosscheck_bench:CrossCheckBench",
    "contra4": "benchmarks.contra4:Contra4",
    "retrieval": "benchmarks.retrieval:Retrieval",
    "k-passages": "benchmarks.k_passages:KPassages",
    **DATA_SETS,
}


_LISTED: Mapping[str, type] = {
    **dict.fromkeys(("title", "paper", "stratum", "paper_rows", "in_plain_words", "rows_source"), str),
    **dict.fromkeys(("conditions", "labels", "judges", "sources"), Sequence),
    **dict.fromkeys(("prompt_sets", "answer_formats", "without_sources", "tasks", "capabilities"), Mapping),
}
"""The attributes that lists of benchmarks show, with their types."""


def _accept(name: str, benchmark: Any) -> Benchmark:
    """Return a plugin's benchmark. Raises SpecError if it is none, or lacks what lists of benchmarks show."""
    kind = type(benchmark).__name__
    if not isinstance(benchmark, Benchmark):
        raise SpecError(f"{kind} does not derive from benchmarks.base.Benchmark")
    if benchmark.name != name:
        raise SpecError(f"{kind}.name is {benchmark.name!r}, not the name of its entry point")
    for attribute, needed in _LISTED.items():
        value = getattr(benchmark, attribute, None)
        if not isinstance(value, needed) or (needed is Sequence and isinstance(value, str)):
            raise SpecError(f"{kind}.{attribute} is no {needed.__name__}")
    if not all(isinstance(source, DataSource) for source in benchmark.sources):
        raise SpecError(f"{kind}.sources are no DataSource")
    _ = benchmark.rubric  # a property, whose error would end a list
    return benchmark


REGISTRY: Registry[Benchmark] = Registry(GROUP, BUILT_IN, _accept)


def benchmark_names() -> tuple[str, ...]:
    """Return the names of all benchmarks, also of those whose package is broken."""
    return REGISTRY.names()


def working_benchmarks() -> Iterator[Benchmark]:
    """Yield every benchmark that can be used."""
    return REGISTRY.working()


def get_benchmark(name: str) -> Benchmark:
    """Return the benchmark called ``name``, imported only now.

    Raises SpecError with the nearest right name, or with the reason why its package cannot be used.
    """
    benchmark = REGISTRY.get(name)
    if benchmark is None:
        raise SpecError(f"there is no benchmark {name!r}; {did_you_mean(name, benchmark_names())}")
    return benchmark
