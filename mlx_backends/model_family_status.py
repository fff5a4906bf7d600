"""Status of a model's family: proven by the matrix of tiny models, tried on this machine, or never tried."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any, Literal

from mlx_backends.models.model_types import family
from mlx_backends.stored_checks import StoredCheck, read_checks

PROVEN_WITH: Mapping[str, str] = {"mlx-vlm": "0.7.10", "transformers": "5.23.0"}
"""The versions that the matrix was measured with."""

PROVEN = frozenset(
    (
        *("aya_vision", "gemma4_unified", "kimi_vl", "llava_next", "mllama", "qwen3_5_moe"),
        *(
            "deepseek_vl_v2",
            "fastvlm",
            "gemma3",
            "gemma3n",
            "gemma4",
            "glm4v",
            "granite4_vision",
            "idefics3",
            "internvl",
        ),
        *("internvl_chat", "lfm2_vl", "llava", "llava_onevision", "minicpmv4_6", "mistral3", "paligemma", "phi3_v"),
        *("pixtral", "qwen2_5_vl", "qwen2_vl", "qwen3_5", "qwen3_vl", "qwen3_vl_moe", "smolvlm"),
        *("glm4v_moe", "hunyuan_vl", "llama4", "minicpmo", "minicpmv4_7", "paddleocr_vl", "zaya1_vl"),
    )
)
"""The families of the matrix; ``tests/mlx_backends/test_model_family_status.py`` compares the two."""

Status = Literal["proven", "tried", "never tried"]


@dataclass(frozen=True, slots=True)
class FamilyStatus:
    """The status of the ``family`` of a vision-language model; ``detail`` says what it rests on, a phrase for users."""

    family: str
    status: Status
    detail: str

    is_current: bool = True
    """False where other versions are installed than those that the family was proven with."""

    def __str__(self) -> str:
        return f"family {self.family!r:.60}: {self.status} ({self.detail})"

    @property
    def remark(self) -> str:
        """A sentence for the readers of a run's results; empty for a family that is proven with the installed versions."""
        if self.status == "proven" and self.is_current:
            return ""
        return f"Status of the model's {self}."


def family_status(config: Mapping[str, Any], model: str) -> FamilyStatus:
    """Return the status of the family of a vision-language model, from its ``config.json`` and its name.

    "tried" needs a stored check of this model on this machine, with the library's installed version.
    """
    kind = family(config)
    proven_with = " and ".join(f"{library} {number}" for library, number in PROVEN_WITH.items())
    others = [library for library, number in PROVEN_WITH.items() if _installed(library) not in (number, None)]
    if kind in PROVEN:
        now = ", ".join(f"{library} {_installed(library)}" for library in others)
        installed = f"; installed: {now}" if now else ""
        return FamilyStatus(kind, "proven", f"tiny models with {proven_with}{installed}", not others)
    checks = {check.check for check in read_checks() if check.model == model and _holds_here(check)}
    if checks:
        return FamilyStatus(kind, "tried", f"passed checks on this machine: {', '.join(sorted(checks))}")
    return FamilyStatus(kind, "never tried", "no test covers it, and no check on this machine the model")


def _holds_here(check: StoredCheck) -> bool:
    versions = check.depends_on.get("versions")
    is_current = isinstance(versions, Mapping) and versions.get("mlx-vlm") == _installed("mlx-vlm")
    return is_current and check.is_of_this_machine


@cache
def _installed(library: str) -> str | None:
    try:
        return version(library)
    except PackageNotFoundError:
        return None
