"""Addresses of clusters, as ``--workers`` and specs name them."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from benchmarks.errors import AddressError, SpecError
from benchmarks.extras import require_extra
from mlx_backends.baseline_engine import WITHOUT_REQUESTS
from mlx_backends.remote import allowed_addresses, is_remote

LOCAL = "ray"
"""The cluster that ``RAY_ADDRESS`` names; without it, a new one on this machine."""

NONE = "none"
"""No cluster: this machine answers."""

_HEAD = re.compile(r"ray://(?P<host>[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,45}\]):(?P<port>[0-9]{1,5})")


def check_workers(text: str, models: Iterable[str], allowed: Sequence[str] = (), *, typed: bool) -> None:
    """Check that ``text`` names a cluster that may answer as ``models``, without connecting to it.

    A cluster runs code on every machine that connects to it. A spec may therefore name one only if the user has allowed it;
    ``typed`` tells that the user named it. Raises SpecError, AddressError, or ExtraMissingError.
    """
    head = head_of(text)
    if text == NONE:
        return
    if text != LOCAL and head is None:
        raise SpecError(
            f"{text!r} does not name a cluster; give ray, ray://HOST:10001, or none for this machine alone."
        )
    for model in models:
        if is_remote(model):
            raise SpecError(
                f"{model} is asked from this machine, which alone has its key; leave --workers out, and set --concurrency."
            )
        if model.startswith(WITHOUT_REQUESTS):
            raise SpecError(f"{model} asks no model, so a cluster has nothing to do; leave --workers out.")
    if not (typed or head is None or text in allowed or allowed_addresses.is_recorded(text)):
        raise AddressError(
            f"the spec names the cluster {text}, which can run code on this machine; add --allow-address {text} if you trust it."
        )
    require_extra("ray", "runs on several machines")


def head_of(workers: str) -> tuple[str, int] | None:
    """Return the host and the port of a cluster's head; None for any other text."""
    head = _HEAD.fullmatch(workers)
    return (head["host"].strip("[]"), int(head["port"])) if head and 0 < int(head["port"]) < 1 << 16 else None
