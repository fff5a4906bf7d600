"""Lines on the nodes of the cluster that answers a run."""

from __future__ import annotations

from collections.abc import Sequence

from app.store.store_types import NodeStatus

_SHOWN = 8
"""The most nodes that are listed."""


def node_lines(nodes: Sequence[NodeStatus]) -> list[str]:
    """Return a line for each node, those that answer last; of many nodes only the first, and the number of the others."""
    ordered = sorted(nodes, key=lambda node: node.state == "ready")
    lines = [node_line(node) for node in ordered[:_SHOWN]]
    more = ordered[_SHOWN:]
    if more:
        speed = sum(node.per_second or 0 for node in more)
        lines.append(f"{len(more)} more nodes: {sum(node.answers for node in more):,} answers, {speed:.3g} answers/s")
    return lines


def node_line(node: NodeStatus) -> str:
    """Describe a node: its answers, errors, speed and memory; or why it does not answer."""
    facts = [f"{node.answers:,} answers"] if node.answers or node.state == "ready" else []
    if node.errors:
        facts.append(f"{node.errors:,} error{'s' * (node.errors != 1)}")
    if node.per_second is not None:
        facts.append(f"{node.per_second:.3g} answers/s")
    if node.peak_memory:
        limit = f" of {node.memory / 1e9:.1f}" if node.memory else ""
        facts.append(f"{node.peak_memory / 1e9:.2f}{limit} GB peak")
    elif node.memory:
        facts.append(f"{node.memory / 1e9:.1f} GB of memory")
    state = [] if node.state == "ready" else [node.state]
    note = f" ({node.note})" if node.note else ""
    name = f"{node.name} as judge {node.judge}" if node.judge else node.name
    return f"{name}: {', '.join([*state, *facts])}{note}"
