"""Several servers of one model: each call goes to the least busy one, and those of a dead server to the others."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from benchmarks.vocabulary import Request
from mlx_backends.remote.provider import Provider, Reply, TransientError

FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
"""The seconds in which a server that failed is passed over, at first and after many failures."""


@dataclass(eq=False)
class _Server:
    provider: Provider
    calls: int = 0
    failures: int = 0
    paused_until: float = 0.0


class SeveralServers:
    """Providers of one model at several addresses, as one. Thread-safe.

    A server that fails transiently is passed over for a while, as long as there is another one. A call that reached no server is
    made again elsewhere at once.
    """

    def __init__(self, providers: Sequence[Provider], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [_Server(provider) for provider in providers]
        self._clock = clock
        self._lock = threading.Lock()

    @property
    def refused(self) -> frozenset[str]:
        """Return the parameters that any of the servers is known to refuse."""
        return frozenset().union(*(server.provider.refused for server in self._servers))

    def left_out(self, request: Request, refused: frozenset[str]) -> frozenset[str]:
        """Return the parameters of a request that are not sent to servers that refuse ``refused``."""
        return self._servers[0].provider.left_out(request, refused)

    def call(self, request: Request, timeout: float, refused: frozenset[str]) -> Reply:
        """Make one call, as :meth:`Provider.call`; raise that nothing was reached only if no server was."""
        tried: list[_Server] = []
        while True:
            server = self._choose(tried)
            tried.append(server)
            try:
                reply = server.provider.call(request, timeout, refused)
            except TransientError as error:
                self._pause(server)
                if not error.unreached or len(tried) == len(self._servers):
                    raise
            else:
                server.failures, server.paused_until = 0, 0.0
                return reply
            finally:
                with self._lock:
                    server.calls -= 1

    def close(self) -> None:
        """Close the connections."""
        for server in self._servers:
            server.provider.close()

    def _choose(self, tried: Sequence[_Server]) -> _Server:
        with self._lock:
            now = self._clock()
            untried = [server for server in self._servers if server not in tried]
            server = min(untried, key=lambda server: (max(0.0, server.paused_until - now), server.calls))
            server.calls += 1
            return server

    def _pause(self, server: _Server) -> None:
        with self._lock:
            server.failures += 1
            pause = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(server.failures - 1, 20))
            server.paused_until = self._clock() + pause
