"""Several servers of one model: each call goes to the least busy one, and those of a dead or wrong server to the others."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from benchmarks.vocabulary import Request
from mlx_backends.remote.api_provider import Provider, Reply
from mlx_backends.remote.remote_errors import CallError, PermanentError, TransientError

_log = logging.getLogger("rashomon.remote")

FIRST_PAUSE_S, MAX_PAUSE_S = 1.0, 60.0
"""The seconds in which a server that failed is passed over, at first and after many failures."""


@dataclass(eq=False)
class _Server:
    provider: Provider
    calls: int = 0
    failures: int = 0
    paused_until: float = 0.0
    problem: str = ""
    """The reason why it is not used any more."""


class SeveralServers:
    """Providers of one model at several addresses, as one. Thread-safe.

    A server that fails transiently is passed over for a while, as long as there is another one. A call that reached no server is
    made again elsewhere at once. So is one that a server refuses because of the key, the address or the model's name; if another
    server answers it, the first is used no more.
    """

    def __init__(self, providers: Sequence[Provider], clock: Callable[[], float] = time.monotonic) -> None:
        self._servers = [_Server(provider) for provider in providers]
        self._clock = clock
        self._lock = threading.Lock()

    @property
    def refused(self) -> frozenset[str]:
        """Return the parameters that any of the servers is known to refuse."""
        return frozenset().union(*(server.provider.refused for server in self._servers))

    @property
    def remarks(self) -> list[str]:
        """Return a sentence on each server that is not used any more."""
        return [
            f"{server.provider.address} was not used: {server.problem}." for server in self._servers if server.problem
        ]

    def left_out(self, request: Request, refused: frozenset[str]) -> frozenset[str]:
        """Return the parameters of a request that are not sent to servers that refuse ``refused``."""
        return self._servers[0].provider.left_out(request, refused)

    def call(self, request: Request, timeout: float, refused: frozenset[str]) -> Reply:
        """Make one call, as :meth:`Provider.call`; raise that nothing was reached only if no server was."""
        tried: list[_Server] = []
        refusals: dict[_Server, PermanentError] = {}
        last: CallError | None = None
        while (server := self._choose(tried)) is not None:
            tried.append(server)
            try:
                reply = server.provider.call(request, timeout, refused)
            except TransientError as error:
                self._pause(server)
                if not error.unreached:
                    raise
                last = error
            except PermanentError as error:
                if not error.misdirected:
                    raise
                last = refusals[server] = error
            else:
                server.failures, server.paused_until = 0, 0.0
                self._put_aside(refusals)
                return reply
            finally:
                with self._lock:
                    server.calls -= 1
        assert last is not None, "one server is always in use"
        raise last

    def close(self) -> None:
        """Close the connections."""
        for server in self._servers:
            server.provider.close()

    def _choose(self, tried: Sequence[_Server]) -> _Server | None:
        """Return the least busy server that is in use and was not ``tried``; None if there is none."""
        with self._lock:
            now = self._clock()
            server = min(
                (server for server in self._servers if not server.problem and server not in tried),
                key=lambda server: (max(0.0, server.paused_until - now), server.calls),
                default=None,
            )
            if server is not None:
                server.calls += 1
            return server

    def _put_aside(self, refusals: Mapping[_Server, PermanentError]) -> None:
        """Use servers no more that refused what another one answered; the last one in use stays."""
        with self._lock:
            for server, error in refusals.items():
                if not server.problem and sum(not other.problem for other in self._servers) > 1:
                    server.problem = str(error).rstrip(".")
                    _log.warning("%s is not used any more: %s.", server.provider.address, server.problem)

    def _pause(self, server: _Server) -> None:
        with self._lock:
            server.failures += 1
            pause = min(MAX_PAUSE_S, FIRST_PAUSE_S * 2.0 ** min(server.failures - 1, 20))
            server.paused_until = self._clock() + pause
