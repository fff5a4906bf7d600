"""Size check of 3D models by their headers, before a parser opens them."""

from __future__ import annotations

import json
import re
from typing import Any

from benchmarks.media.media_limits import MOST_FACES, MOST_LEVELS, MOST_NODES, MOST_POINTS

_PLY_HEADER = 1 << 16
_ELEMENT = re.compile(rb"element\s+(\w+)\s+(\d{1,18})\s")
_STL_HEADER, _STL_FACE = 84, 50
_GLB_JSON = 0x4E4F534A


def exceeds_limits(data: bytes, suffix: str) -> bool:
    """Return whether a PLY, OBJ, OFF, STL or GLB file declares more points, faces or nodes than ``limits`` allow.

    Raises ValueError, or any other exception for hostile bytes, if the header cannot be read.
    """
    if suffix == ".ply":
        return any(count > (MOST_FACES if name == "face" else MOST_POINTS) for name, count in ply_counts(data).items())
    if suffix == ".obj":
        # A polygon with n corners becomes n - 2 triangles.
        faces = [line.count(b" ") - 2 for line in data.splitlines() if line.startswith(b"f ")]
        return data.count(b"\nv ") > MOST_POINTS or sum(faces) > MOST_FACES
    if suffix == ".off":
        words = re.sub(rb"#[^\n]*", b"", data[:4096]).split()
        at = 0 if words[0][-3:] != b"OFF" else 1
        return int(words[at]) > MOST_POINTS or int(words[at + 1]) > MOST_FACES
    if suffix == ".stl":
        declared_faces = int.from_bytes(data[80:_STL_HEADER], "little")
        binary = len(data) == _STL_HEADER + _STL_FACE * declared_faces
        return (declared_faces if binary else data.count(b"endfacet")) > MOST_FACES
    return _glb_exceeds_limits(data)


def ply_counts(data: bytes) -> dict[str, int]:
    """Return the number of elements of a PLY file by name, as its header declares them."""
    header = data[: data.index(b"end_header", 0, _PLY_HEADER)]
    return {name.decode(): int(count) for name, count in _ELEMENT.findall(header)}


def _glb_exceeds_limits(data: bytes) -> bool:
    length = int.from_bytes(data[12:16], "little")
    if int.from_bytes(data[16:20], "little") != _GLB_JSON or 20 + length > len(data):
        raise ValueError("no glTF JSON")
    tree = json.loads(data[20 : 20 + length])
    accessors, meshes, nodes = (tree.get(name, []) for name in ("accessors", "meshes", "nodes"))
    if len(nodes) > MOST_NODES or sum(accessor["count"] for accessor in accessors) > 3 * (MOST_POINTS + MOST_FACES):
        return True
    children = [child for node in nodes for child in node.get("children", ())]
    if len(children) != len(set(children)):
        raise ValueError("its nodes are not a tree")
    if _levels(nodes) > MOST_LEVELS:
        return True
    corners = [sum(_corners(primitive, accessors) for primitive in mesh["primitives"]) for mesh in meshes]
    # Several nodes may instantiate a mesh.
    return bool(sum(corners[node["mesh"]] for node in nodes if "mesh" in node) > 3 * MOST_FACES)


def _levels(nodes: Any) -> int:
    """Return the depth of a tree of nodes."""
    children = {child for node in nodes for child in node.get("children", ())}
    level, count = [n for n in range(len(nodes)) if n not in children], 0
    while level and count <= MOST_LEVELS:
        level, count = [child for n in level for child in nodes[n].get("children", ())], count + 1
    return count


def _corners(primitive: Any, accessors: Any) -> int:
    """Return the number of a primitive's corners, three for each triangle."""
    index = primitive["indices"] if "indices" in primitive else primitive["attributes"]["POSITION"]
    return int(accessors[index]["count"])
