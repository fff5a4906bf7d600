"""Types of models that mlx-vlm has, read from its files without importing it, and those that are refused."""

from __future__ import annotations

import ast
import difflib
import re
from collections.abc import Mapping
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from mlx_backends.models.weight_files import tensor_shapes, weight_files

REFUSED: Mapping[str, str] = {
    "ernie4_5_moe_vl": "mlx-vlm computes its images with the experts for texts instead of those trained for images",
    "granite_vision": "mlx-vlm shows it only the first image of a prompt and leaves out the text between images",
    "molmo": "mlx-vlm puts its image before the whole prompt, and makes several prompts of several images",
    "molmo2": "mlx-vlm lets an image's tokens see only those before them, and the model was trained to see all of them",
    "moondream2": "mlx-vlm takes its tokenizer from moondream/starmie-v1, another repository, and fetches it while loading",
    "moondream3": "mlx-vlm puts its one image before the whole prompt, in the place of tokens that also begin a text",
    "phi4mm": "mlx-vlm shows it an image without the tiles and their separators that the model was trained with",
    "youtu_vl": "its processor is code of its own, which is not run, and mlx-vlm and transformers have none",
}
"""Types that mlx-vlm has and that are not run, each with the reason."""

_WITHOUT_ANSWERS: Mapping[str, tuple[str, ...]] = {
    "it marks regions of images": ("sam3", "sam3_1", "sapiens2"),
    "it reconstructs bodies or objects": ("sam3d_body", "sam3d_objects"),
    "it detects objects or the layout of a page": ("rfdetr", "rt_detr_v2", "yolo11", "pp_doclayout_v3"),
    "it estimates depth": ("moge3", "video_depth_anything"),
    "it encodes texts or images": ("bert", "modernbert", "xlm_roberta", "dinov2", "siglip", "lfm2_encoder"),
    "it embeds texts or images": (
        *("colidefics3", "colqwen2_5", "embedding_gemma2", "gemma3_embedding", "lfm2_colbert", "lfm2_embedding"),
        *("llama_bidirec", "llama_nemotron_vl_embedding", "ministral3_embedding", "qwen3_embedding"),
        "qwen3_vl_embedding",
    ),
    "it labels or extracts": ("openai_privacy_filter", "gliner2_5", "clef", "d1", "d1_omni", "decider2", "laya"),
    "it converses in speech": ("nemotron_voicechat",),
    "it draws images or videos": (
        *("bonsai", "ernie_image", "flux2", "flux3", "ideogram4", "llada_image", "mage_flow", "ming_image"),
        *("minimax_h3", "moss_image", "qwen_image", "z_image"),
    ),
}
"""Types of mlx-vlm 0.7.10 that answer no prompt with a text, by what they do instead."""

WITHOUT_ANSWERS: Mapping[str, str] = {kind: what for what, kinds in _WITHOUT_ANSWERS.items() for kind in kinds}
"""The work of each type that answers no prompt."""


def family(config: Mapping[str, Any]) -> str:
    """Return mlx-vlm's name of the type that a ``config.json`` declares; empty for none."""
    declared = config.get("model_type")
    name = declared.lower() if isinstance(declared, str) else ""
    known = _known()
    return name if known is None else known[1].get(name, name)


_WITHOUT_HEAD: Mapping[str, str] = {
    "ForSequenceClassification": "scores texts",
    "ForTokenClassification": "labels words",
    "ForQuestionAnswering": "marks words of a passage",
    "ForMultipleChoice": "scores candidates",
    "ForMaskedLM": "fills gaps in texts",
    "ForRewardModel": "scores texts",
    "ForRewardModeling": "scores texts",
    "ForImageClassification": "labels images",
    "ForEmbedding": "embeds texts or images",
    "ForTextEncoding": "embeds texts",
    "ForRetrieval": "embeds texts or images",
}
"""Ends of the names of architectures that have no output layer for texts, and what their models do."""

_EMBEDDER = ("modules.json", "config_sentence_transformers.json")
"""Files that sentence-transformers writes into the folder of a model that embeds texts; the second one from 2020 on."""


def folder_refusal(path: Path, config: Mapping[str, Any]) -> str | None:
    """Return why the model in the folder ``path`` is not run, a sentence without its subject; None where it is.

    An embedder or a classifier may be of the type of a model that answers prompts: its files and its architecture tell.
    """
    if (reason := refusal(config)) is not None:
        return reason
    if any((path / name).is_file() for name in _EMBEDDER):
        return (
            "holds settings of sentence-transformers, so it embeds texts and answers no prompts. Choose another model."
        )
    names = config.get("architectures")
    for name in map(str, names if isinstance(names, list) else ()):
        what = next((what for end, what in _WITHOUT_HEAD.items() if name.endswith(end)), None)
        if what is None and re.search(r"(?<!LMHead)(?<!Chat)(?<!GLM)Model$", name) and _is_bare(path):
            what = "has no output layer"
        if what is not None:
            return f"has the architecture {name[:80]!r}, which {what} and answers no prompts. Choose another model."
    return None


def _is_bare(path: Path) -> bool:
    """Return whether the weights are named as in a model without an output layer, which has no "model." before its parts."""
    return any("embed_tokens.weight" in tensor_shapes(file) for file in weight_files(path))


def refusal(config: Mapping[str, Any]) -> str | None:
    """Return why models of the declared type are not run, a sentence without its subject; None where they are."""
    kind, declared = family(config), config.get("model_type")
    if kind in REFUSED:
        return f"is of type {declared!r}, which is refused: {REFUSED[kind]}. Choose another model."
    if kind in WITHOUT_ANSWERS:
        return f"is of type {declared!r}, which answers no prompts: {WITHOUT_ANSWERS[kind]}. Choose another model."
    return None


def folder_problem(path: Path, config: Mapping[str, Any], *, is_vision_language: bool) -> str | None:
    """Return why the model in the folder ``path`` cannot be run, by its type and its files; see :func:`folder_refusal`."""
    return folder_refusal(path, config) or (type_problem if is_vision_language else text_type_problem)(config)


def type_problem(config: Mapping[str, Any]) -> str | None:
    """Return why a vision-language model with this ``config.json`` cannot be run through mlx-vlm, by its type alone.

    None where nothing speaks against it. Without mlx-vlm, only types that it would refuse have a reason.
    """
    if (known := _known()) is None:
        return refusal(config)
    declared, kind, types = config.get("model_type"), family(config), known[0]
    if (reason := refusal(config)) is not None:
        return reason
    if kind in types:
        return None
    if not isinstance(declared, str) or not declared:
        return _WITHOUT_TYPE
    near_types = difflib.get_close_matches(kind, sorted(types), n=1, cutoff=0.5)
    nearest = f"the nearest type that it knows is {near_types[0]!r}; " if near_types else ""
    return (
        f"is of type {declared!r}, which this version of mlx-vlm does not know; "
        f"{nearest}update mlx-vlm or choose another model."
    )


def text_type_problem(config: Mapping[str, Any]) -> str | None:
    """Return why a text-only model with this ``config.json`` cannot be run through mlx-lm, by its type alone; None if it can."""
    declared, package = config.get("model_type"), find_spec("mlx_lm")
    if not isinstance(declared, str) or not declared:
        return _WITHOUT_TYPE
    if package is None or package.origin is None:
        return None
    root = Path(package.origin).parent
    kind = _aliases(root / "utils.py").get(declared, declared)
    if re.fullmatch(r"[\w-]+", kind) and (root / "models" / f"{kind}.py").is_file():
        return None
    return (
        f"is a text-only model of type {declared!r}, which this version of mlx-lm does not know; "
        "update mlx-lm or choose another model."
    )


_WITHOUT_TYPE = (
    "has no model_type in its config.json, which says how to run it; fetch the model again, or choose another."
)


@cache
def _aliases(file: Path) -> Mapping[str, str]:
    """Return the other names of types in the ``utils.py`` of mlx-vlm or mlx-lm."""
    for statement in ast.parse(file.read_text("utf-8")).body:
        if isinstance(statement, ast.Assign) and ast.unparse(statement.targets[0]) == "MODEL_REMAPPING":
            aliases: dict[str, str] = ast.literal_eval(statement.value)
            return aliases
    return {}


@cache
def _known() -> tuple[frozenset[str], Mapping[str, str]] | None:
    """Return the types that mlx-vlm has, and its other names for some."""
    package = find_spec("mlx_vlm")
    if package is None or package.origin is None:
        return None
    root = Path(package.origin).parent
    types = frozenset(
        file.parent.name
        for file in (root / "models").glob("*/__init__.py")
        if re.search(r"\bModel\b", file.read_text("utf-8"))  # others hold parts, or pipelines that draw
    )
    aliases = _aliases(root / "utils.py")
    return types, {name: kind for name, kind in aliases.items() if re.fullmatch(r"\w+", kind)}
