"""Media that a run shares with the nodes of its cluster: each once, as long as it is among the last ones."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Sequence
from typing import Any

from app.engine.workers.cluster.cluster_interface import Cluster
from app.engine.workers.cluster.cluster_messages import MediaReferences, media_of
from benchmarks.errors import RashomonError
from benchmarks.media import read_media
from benchmarks.vocabulary import Request
from mlx_backends.base import MediaPath

MEDIA_BYTES = 64 << 20
"""The most bytes of media that are shared with the nodes beyond those that they hold."""


class SharedMedia:
    """References to media in ``cluster``, which are read through ``media``."""

    def __init__(self, cluster: Cluster, media: MediaPath) -> None:
        self._cluster = cluster
        self._media = media
        self._shared: OrderedDict[str, tuple[Any, int]] = OrderedDict()
        self._bytes = 0

    def of(self, requests: Sequence[Request]) -> MediaReferences:
        """Return references to the media of ``requests``. Raises ModelError if the cluster takes no more."""
        references: dict[str, Any] = {}
        for medium in (medium for request in requests for medium in media_of(request)):
            if medium.name not in self._shared:
                try:
                    data = read_media(self._media(medium), medium)
                except (RashomonError, OSError):  # which becomes the error of this request
                    continue
                self._shared[medium.name] = self._cluster.put(data), len(data)
                self._bytes += len(data)
            self._shared.move_to_end(medium.name)
            references[medium.name] = self._shared[medium.name][0]
            while self._bytes > MEDIA_BYTES and len(self._shared) > len(references):
                _, (_, size) = self._shared.popitem(last=False)
                self._bytes -= size
        return references
