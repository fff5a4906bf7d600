"""Workers on several machines: a Backend that spreads a run's requests over the nodes of a cluster.

:mod:`cluster_backend` is the driver's side, which gives requests to the workers of a :mod:`worker_pool`, :mod:`node_worker` what
runs on each node, and :mod:`ray_cluster` and :mod:`ray_connection` the only modules that know Ray.
"""
