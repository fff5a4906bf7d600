"""Connection of a run to the cluster that answers it."""

from __future__ import annotations

import secrets
from collections.abc import Collection, Mapping
from importlib.metadata import version

from app.engine.workers.cluster.cluster_backend import ClusterBackend
from app.engine.workers.cluster.cluster_messages import NodeJob
from app.engine.workers.cluster.model_placement import Survey, survey_memory
from mlx_backends.base import EngineInfo, MediaPath
from mlx_backends.engine_registry import describe
from mlx_backends.models.adapter_folder import split_adapter
from mlx_backends.pytorch.torch_names_and_devices import split_name


def connect(
    workers: str,
    job: NodeJob,
    media: MediaPath,
    *,
    recorded: EngineInfo | None = None,
    accept_engine: bool = False,
    allow_open: bool = False,
    avoid: Collection[str] = (),
) -> ClusterBackend:
    """Return the backend of the cluster ``workers``, which has to :meth:`~ClusterBackend.wait` for a node.

    ``recorded`` is the engine of answers that there are already; without any, the first node decides on device and versions.
    Nodes in ``avoid``, which may shrink, are left to others. Raises ModelError if the cluster cannot be used.
    """
    from app.engine.workers.cluster.ray_cluster import RayCluster

    expected = recorded or describe(job.model)
    cluster = RayCluster(workers, (job.model,), allow_open=allow_open)
    return ClusterBackend(
        cluster, media, job, expected, has_answers=recorded is not None, accept_engine=accept_engine, avoid=avoid
    )


def survey(workers: str, needs: Mapping[str, int], *, allow_open: bool = False) -> Survey:
    """Return the memory that the nodes of the cluster ``workers`` have for models, given with the bytes that they need.

    Raises ModelError if the cluster cannot be used.
    """
    from app.engine.workers.cluster.ray_cluster import RayCluster

    cluster = RayCluster(workers, tuple(needs), allow_open=allow_open)
    try:
        return survey_memory(cluster, tuple(needs))
    finally:
        cluster.close()


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
        f"{owner[:120]} on a cluster ({secrets.token_hex(4)})",  # a lock's text is no longer than 200 bytes
        version("rashomon"),
        force,
        max_in_flight,
        kv_bits,
    )
