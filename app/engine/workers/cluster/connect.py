"""Connection of a run to the cluster that answers it."""

from __future__ import annotations

import secrets
from collections.abc import Callable
from importlib.metadata import version

from app.engine.workers.cluster.backend import ClusterBackend
from app.engine.workers.cluster.messages import NodeJob
from mlx_backends.base import MediaPath
from mlx_backends.models.adapters import split_adapter
from mlx_backends.pytorch.spec import split_name
from mlx_backends.registry import describe


def connect(
    workers: str,
    job: NodeJob,
    media: MediaPath,
    *,
    accept_engine: bool = False,
    allow_open: bool = False,
    stop: Callable[[], bool] = lambda: False,
) -> ClusterBackend | None:
    """Return the backend of the cluster ``workers``, once one of its nodes has loaded the model; None if ``stop`` comes first.

    Raises ModelError if the cluster cannot be used, or none of its nodes can load the model.
    """
    from app.engine.workers.cluster.ray_cluster import RayCluster

    expected = describe(job.model)
    cluster = RayCluster(workers, job.model, allow_open=allow_open)
    backend = ClusterBackend(cluster, media, job, expected, accept_engine=accept_engine)
    try:
        if backend.wait(stop):
            return backend
    except BaseException:
        backend.close()
        raise
    backend.close()
    return None


def node_job(
    model: str, owner: str, *, force: bool = False, max_in_flight: int | None = None, kv_bits: int | None = None
) -> NodeJob:
    """Return the job of nodes that answer as ``model`` for ``owner``, such as "run NAME".

    Raises ModelError if the model is not on this machine.
    """
    info = describe(model)
    base, adapter = split_adapter(split_name(model)[1])
    return NodeJob(
        model,
        base,
        info.weights,
        (adapter, info.adapter) if adapter is not None and info.adapter is not None else None,
        info.model,
        f"{owner} on a cluster ({secrets.token_hex(4)})",
        version("rashomon"),
        force,
        max_in_flight,
        kv_bits,
    )
