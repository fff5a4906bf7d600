"""Registry of benchmarks: those of this package, and those that other packages register as ``rashomon.benchmarks``."""

from __future__ import annotations

from benchmarks import plugins
from benchmarks.base import Benchmark
from benchmarks.errors import SpecError, did_you_mean
from benchmarks.plain import DATA_SETS

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


def benchmark_names() -> tuple[str, ...]:
    """Return the names of all benchmarks."""
    return plugins.names(GROUP, BUILT_IN)


def get_benchmark(name: str) -> Benchmark:
    """Return the benchmark called ``name``, imported only now. Raises SpecError with the nearest right name."""
    kind = plugins.load(name, GROUP, BUILT_IN)
    if kind is None:
        raise SpecError(f"there is no benchmark {name!r}; {did_you_mean(name, benchmark_names())}")
    benchmark: Benchmark = kind()
    return benchmark
