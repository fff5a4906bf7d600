"""Remote engines as one engine: ``openai:MODEL``, ``azure:``, ``anthropic:``, ``gemini:`` and ``endpoint:``."""

from __future__ import annotations

from mlx_backends import remote
from mlx_backends.base import Backend, Engine, EngineInfo, MediaPath
from mlx_backends.options import LoadOptions


class RemoteEngine(Engine):
    """Models behind an API; nothing is sent before a backend is asked."""

    def describe(self, model: str) -> EngineInfo:
        return remote.describe(model)

    def load(self, model: str, media: MediaPath, options: LoadOptions) -> Backend:
        return remote.load(model, media, options.remote)
