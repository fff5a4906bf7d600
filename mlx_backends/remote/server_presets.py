"""Presets: servers that people run at home, by name, with their default addresses and habits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Preset:
    """A server program. ``pictures`` and ``context`` tell the user how it is given pictures, and room for longer prompts.

    All of them take pictures as base64 data, ``max_tokens`` as the limit of an answer, and a seed.
    """

    title: str
    port: int
    pictures: str
    context: str

    @property
    def url(self) -> str:
        """The URL of its API on this machine."""
        return f"http://127.0.0.1:{self.port}/v1"


PRESETS: Mapping[str, Preset] = {
    # lmstudio.ai/docs/developer/openai-compat. A prompt beyond the context is an error event with status 200.
    "lmstudio": Preset(
        "LM Studio",
        1234,
        "load a model that LM Studio marks with Vision",
        "raise the context length in the model's load settings",
    ),
    # docs.ollama.com/api/openai-compatibility, docs.ollama.com/context-length: 4k below 24 GiB of video memory. The start of a
    # longer prompt is dropped without an error.
    "ollama": Preset(
        "Ollama",
        11434,
        "choose a model that `ollama show MODEL` lists with the capability vision",
        "start it with OLLAMA_CONTEXT_LENGTH=16384",
    ),
    # llama.cpp, tools/server/README.md and docs/multimodal.md. A prompt beyond the context is an error 400.
    "llamacpp": Preset(
        "llama.cpp", 8080, "start llama-server with --mmproj and the model's projector", "start it with a larger -c"
    ),
    # docs.vllm.ai/en/latest/serving/openai_compatible_server. A prompt beyond the context is an error 400.
    "vllm": Preset("vLLM", 8000, "allow images with --limit-mm-per-prompt", "start it with a larger --max-model-len"),
    # docs.sglang.io/docs/basic_usage/openai_api_vision. An aborted request ends with the reason "abort".
    "sglang": Preset("SGLang", 30000, "start it with --enable-multimodal", "start it with a larger --context-length"),
    # mlx_vlm/server/cli.py and openai.py, 0.7.10. A prompt beyond --max-kv-size is an error.
    "mlxvlm": Preset("mlx-vlm's server", 8080, "serve a vision-language model", "start it with a larger --max-kv-size"),
}
