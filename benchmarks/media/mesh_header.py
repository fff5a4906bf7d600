"""How large a 3D model is, read from its header, before a parser is let near it."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.media.limits import MOST_FACES, MOST_LEVELS, MOST_NODES, MOST_POINTS

_PLY_HEADER = 1 << 16
_ELEMENT = re.compile(rb"element\s+(\w+)\s+(\d{1,18})\s")
_STL_HEADER, _STL_FACE = 84, 50
_GLB_JSON = 0x4E4F534A


def too_large(data: bytes, suffix: str) -> bool:
    """Whether a PLY, OBJ, OFF, STL or GLB file says that it has more points, faces or nodes than ``limits`` allow.

    Raises ValueError, or whatever comes of hostile bytes, where its header cannot be read.
    """
    if suffix == ".ply":
        return any(count > (MOST_FACES if name == "face" else MOST_POINTS) for name, count in ply_counts(data).items())
    if suffix == ".obj":
        # A polygon becomes as many triangles as it has corners, less two.
        faces = [line.count(b" ") - 2 for line in data.splitlines() if line.startswith(b"f ")]
        return data.count(b"\nv ") > MOST_POINTS or sum(faces) > MOST_FACES
    if suffix == ".off":
        words = re.sub(rb"#[^\n]*", b"", data[:4096]).split()
        at = 0 if words[0][-3:] != b"OFF" else 1
        return int(words[at]) > MOST_POINTS or int(words[at + 1]) > MOST_FACES
    if suffix == ".stl":
        faces_said = int.from_bytes(data[80:_STL_HEADER], "little")
        binary = len(data) == _STL_HEADER + _STL_FACE * faces_said
        return (faces_said if binary else data.count(b"endfacet")) > MOST_FACES
    return _glb(data)


def ply_counts(data: bytes) -> dict[str, int]:
    """The elements of a PLY file by name, as its header counts them."""
    header = data[: data.index(b"end_header", 0, _PLY_HEADER)]
    return {name.decode(): int(count) for name, count in _ELEMENT.findall(header)}


def _glb(data: bytes) -> bool:
    length = int.from_bytes(data[12:16], "little")
    if int.from_bytes(data[16:20], "little") != _GLB_JSON or 20 + length > len(data):
        raise ValueError("no glTF JSON")
    tree = json.loads(data[20 : 20 + length])
    accessors, meshes, nodes = (tree.get(name, []) for name in ("accessors", "meshes", "nodes"))
    if len(nodes) > MOST_NODES or sum(each["count"] for each in accessors) > 3 * (MOST_POINTS + MOST_FACES):
        return True
    children = [child for node in nodes for child in node.get("children", ())]
    if len(children) != len(set(children)):
        raise ValueError("its nodes are no tree")
    if _levels(nodes) > MOST_LEVELS:
        return True
    corners = [sum(_corners(each, accessors) for each in mesh["primitives"]) for mesh in meshes]
    # A mesh may be shown by several nodes.
    return bool(sum(corners[node["mesh"]] for node in nodes if "mesh" in node) > 3 * MOST_FACES)


def _levels(nodes: Any) -> int:
    """Return how many nodes stand above each other at most; each has one parent."""
    below = {child for node in nodes for child in node.get("children", ())}
    level, count = [n for n in range(len(nodes)) if n not in below], 0
    while level and count <= MOST_LEVELS:
        level, count = [child for n in level for child in nodes[n].get("children", ())], count + 1
    return count


def _corners(primitive: Any, accessors: Any) -> int:
    where = primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]
    return int(accessors[where]["count"])
