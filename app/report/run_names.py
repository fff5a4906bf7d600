"""Short names of runs for people: ``qwen3-vl-4b 4bit · cmc · paper``."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterable
from functools import lru_cache
from typing import Any

from app.store.workspace import RunSummary
from mlx_backends.models.adapters import adapter_name, split_adapter
from mlx_backends.pytorch.spec import split_name

SEPARATOR = " · "
_MOST_CHARACTERS = 80
_VARIANT = r"instruct|it|mlx|gguf"
_FORMAT = r"(?:mx|nv)?(?:fp|bf|int|q)\d+|\d+-?bits?|awq|gptq"
_VARIANTS = re.compile(rf"(?:[-_.](?:{_VARIANT}))+$")
_VARIANTS_AND_FORMATS = re.compile(rf"(?:[-_.](?:{_VARIANT}|{_FORMAT}))+$")
_BITS = re.compile(r"[\d./]+-?bits?|[a-z]+\d+", re.IGNORECASE)


def short_model(model: str, quantisation: str = "") -> str:
    """Return a model's name without its owner or folder, ``-Instruct``, and the format that ``quantisation`` says."""
    prefix, base, options = split_name(model)
    base, adapter = split_adapter(base)
    name = (prefix + base + options).rstrip("/").rpartition("/")[2].removeprefix("policy:").lower()
    name = (_VARIANTS_AND_FORMATS if quantisation else _VARIANTS).sub("", name) or name
    return name if adapter is None else f"{name}+{adapter_name(adapter)}"


def short_quantisation(quantisation: str) -> str:
    """Return a quantisation without its group size: ``4bit``, ``4/6bit``, ``bf16``."""
    match = _BITS.search(quantisation)
    return match[0].replace("-", "").lower() if match else quantisation


def short_benchmark(benchmark: str) -> str:
    """Return a benchmark's name without ``-bench``."""
    return benchmark.removesuffix("-bench")


def automatic_name(run: RunSummary) -> str:
    """Return a name made of the run's model, quantisation, benchmark and prompt set; the folder's name for a damaged run."""
    if run.problem is not None:
        return run.name
    model, benchmark, prompts = (str(run.spec.get(key, "")) for key in ("model", "benchmark", "prompt_set"))
    return _joined(model, run.quantisation, benchmark, prompts)


@lru_cache(8192)
def _joined(model: str, quantisation: str, benchmark: str, prompts: str) -> str:
    parts = (
        f"{short_model(model, quantisation)} {short_quantisation(quantisation)}".strip(),
        short_benchmark(benchmark),
        prompts,
    )
    return SEPARATOR.join(part for part in parts if part)[:_MOST_CHARACTERS]


def is_named(run: RunSummary) -> bool:
    """Return whether somebody named the run: by a title, in its spec, or by renaming its folder."""
    if run.title or run.problem is not None:
        return True
    begin, end = f"{run.spec.get('benchmark')}-", f"-{run.spec.get('prompt_set')}-"
    derived = run.name.startswith(begin) and run.name[:-8].endswith(end)
    return not (derived and all(digit in "0123456789abcdef" for digit in run.name[-8:]))


def display_names(runs: Iterable[RunSummary]) -> dict[str, str]:
    """Return the names to display, by the names of the runs' folders.

    A run that somebody named is displayed by that name, any other by its automatic one. Where several runs would have the same
    automatic name, it continues with the settings that are not the usual ones, and, if that is not enough, with the last
    characters of the folder's name, which depend on all settings and the data.
    """
    names: dict[str, str] = {}
    automatic: defaultdict[str, list[RunSummary]] = defaultdict(list)
    for run in runs:
        if is_named(run):
            names[run.name] = run.title or run.name
        else:
            automatic[automatic_name(run)].append(run)
    for name, namesakes in automatic.items():
        if len(namesakes) == 1:
            names[namesakes[0].name] = name
            continue
        longer = {run.name: SEPARATOR.join([name, *_unusual(run.spec)]) for run in namesakes}
        counts = Counter(longer.values())
        names |= {
            folder: text if counts[text] == 1 else f"{text}{SEPARATOR}{folder[-8:-4]}"
            for folder, text in longer.items()
        }
    return names


def _unusual(spec: dict[str, Any]) -> list[str]:
    """Return the settings of a run that differ from what a run has by default, in a word each."""
    facts = {
        "limit": "n={}",
        "seed": "seed {}",
        "kv_bits": "kv {}bit",
    }
    words = [text.format(spec[key]) for key, text in facts.items() if spec.get(key)]
    words += ["exact"] * bool(spec.get("exact")) + ["likelihood"] * (spec.get("score") == "likelihood")
    words += [str(spec["protocol"])] if "protocol" in spec else []
    return [word[:17] for word in words]
