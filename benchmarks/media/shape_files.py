"""3D models: point clouds (npy, npz, ply) and meshes (ply, obj, off, stl, glb), read as points, faces and colours."""

from __future__ import annotations

import io
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from benchmarks.errors import MediaError
from benchmarks.extras import require_extra
from benchmarks.media.decoder_faults import refusing_bytes
from benchmarks.media.media_decoder import run_decoder
from benchmarks.media.media_limits import (
    LARGEST_IMAGE,
    LARGEST_SHAPE,
    MOST_ARRAYS,
    MOST_FACES,
    MOST_LEVELS,
    MOST_NODES,
    MOST_POINTS,
)
from benchmarks.media.mesh_header import exceeds_limits, ply_counts

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from PIL.Image import Image as PILImage

NAME = "the 3D model"
NO_MODEL = "is not an NPY, NPZ, PLY, OBJ, OFF, STL or GLB model; convert it to one of them"
TOO_LARGE = (
    f"has more than {MOST_POINTS:,} points or {MOST_FACES:,} faces, "
    f"{MOST_NODES:,} nodes or {MOST_LEVELS} levels of them; simplify it"
)
TOO_LONG = f"is larger than {LARGEST_SHAPE // 1024**2} MiB; simplify it"
NO_POINTS = "holds no points; replace the file"
NOT_NUMBERS = "has coordinates that are no numbers, or are beyond all bounds; replace the file"
DAMAGED = "is truncated or damaged, or of an unknown layout; replace the file"

_MAGIC = {b"\x93NUMPY": ".npy", b"PK\x03\x04": ".npz", b"glTF": ".glb", b"ply": ".ply"}
_NO_MAGIC = (".obj", ".off", ".stl")
_UP_IS_Z = (".npy", ".npz", ".stl")
_LARGEST_COORDINATE = 1e30
_POSITIONS = ("arr_0", "points", "xyz", "coords", "coord", "pos")
_COLOURS = ("rgb", "colors", "colours", "color")
_CHANNELS = ("R", "G", "B")


@dataclass(frozen=True, eq=False)
class Shape:
    """A 3D model. ``points`` has shape (n, 3), float64, with y up and z towards the viewer of its front.

    ``faces`` are triangles as indices of shape (m, 3); None for a point cloud. ``colours`` are RGB, uint8, of shape (m, 3)
    for faces or (n, 3) for a cloud's points; None if the file has none.
    """

    points: NDArray[np.float64]
    faces: NDArray[np.int64] | None = None
    colours: NDArray[np.uint8] | None = None


def shape_suffix(data: bytes, suffix: str) -> str | None:
    """Return the suffix of the 3D format whose signature ``data`` has, or ``suffix`` if that format has no signature."""
    signature = next((name for magic, name in _MAGIC.items() if data.startswith(magic)), None)
    return signature or (
        suffix if suffix in _NO_MAGIC and b"\0" not in data[: 0 if suffix == ".stl" else 4096] else None
    )


def load_views(data: bytes, suffix: str, names: Sequence[str]) -> tuple[list[PILImage], int, int | None]:
    """Return the named views of a model (see ``render``) and its numbers of points and faces. Raises MediaError."""
    from PIL import Image

    _check_file(data, suffix)
    counts: dict[str, Any] = {}
    views: list[PILImage] = []
    for fields, payload in run_decoder("shape-views", NAME, data, suffix=suffix, names=list(names)):
        if payload:
            side = math.isqrt(len(payload) // 3)
            views.append(Image.frombytes("RGB", (side, side), payload))
        else:
            counts = fields
    return views, int(counts["points"]), None if counts["faces"] is None else int(counts["faces"])


def _check_size(data: bytes) -> None:
    if len(data) > LARGEST_SHAPE:
        raise MediaError(NAME, TOO_LONG)


def _check_file(data: bytes, suffix: str) -> None:
    if suffix not in (".npy", ".npz"):  # numpy alone reads these
        require_extra("shapes", "3D models")
    _check_size(data)


def decode_shape(data: bytes, suffix: str) -> Shape:
    """Return the model in ``data``, a file that ends in ``suffix``; only a process with limits may call this.

    Arrays are read without pickles: (n, 3) positions or (n, 6) with colours (PointLLM), in an npz under any of the usual
    names, with colours in another array or as R, G and B (Point-E). Nothing outside the file is read. The up axis is z in
    STL, NPY and NPZ files, y in the others. Raises MediaError for a file of another kind, a damaged file, no points,
    coordinates that are not finite, and a model beyond a limit.
    """
    kind = shape_suffix(data, suffix.lower())
    if kind is None:
        raise MediaError(NAME, NO_MODEL)
    with refusing_bytes(NAME, DAMAGED):
        if kind in (".npy", ".npz"):
            shape = _cloud(_arrays(data, kind))
        elif exceeds_limits(data, kind):
            raise MediaError(NAME, TOO_LARGE)
        else:
            shape = _parsed(data, kind)
            if kind == ".ply" and ply_counts(data).get("face", 0) > (0 if shape.faces is None else len(shape.faces)):
                raise MediaError(NAME, DAMAGED)  # the parser silently drops missing faces
    return _checked(shape, up_is_z=kind in _UP_IS_Z)


def _checked(shape: Shape, *, up_is_z: bool) -> Shape:
    """Return the shape with y up. Raises MediaError if it is empty, invalid or too large."""
    points, faces = shape.points, shape.faces
    if not len(points) or (faces is not None and not len(faces)):
        raise MediaError(NAME, NO_POINTS)
    if len(points) > MOST_POINTS or (faces is not None and len(faces) > MOST_FACES):
        raise MediaError(NAME, TOO_LARGE)
    if not np.isfinite(points).all() or np.abs(points).max() > _LARGEST_COORDINATE:
        raise MediaError(NAME, NOT_NUMBERS)
    if faces is not None and (faces.min() < 0 or faces.max() >= len(points)):
        raise MediaError(NAME, DAMAGED)
    if up_is_z:
        points = np.stack([points[:, 0], points[:, 2], -points[:, 1]], 1)
    return Shape(points, faces, shape.colours)


def _arrays(data: bytes, kind: str) -> dict[str, NDArray[Any]]:
    if kind == ".npy":
        return {_POSITIONS[0]: _array(data)}
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        members = archive.infolist()
        if len(members) > MOST_ARRAYS or sum(member.file_size for member in members) > LARGEST_SHAPE:
            raise MediaError(NAME, TOO_LARGE)
        # No more is unpacked than the archive declares, since it may declare anything.
        return {member.filename.removesuffix(".npy"): _array(_unpacked(archive, member)) for member in members}


def _unpacked(archive: zipfile.ZipFile, member: zipfile.ZipInfo) -> bytes:
    with archive.open(member) as stream:
        return stream.read(member.file_size)


def _array(data: bytes) -> NDArray[Any]:
    """Return an NPY file's array. Raises MediaError if its header declares more data than the file has."""
    stream = io.BytesIO(data)
    version = np.lib.format.read_magic(stream)
    read_header = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
    shape, _, dtype = read_header(stream)
    if int(np.prod([int(n) for n in shape], dtype=object)) * dtype.itemsize > len(data):
        raise MediaError(NAME, DAMAGED)
    stream.seek(0)
    array: NDArray[Any] = np.load(stream, allow_pickle=False)
    return array


def _cloud(arrays: dict[str, NDArray[Any]]) -> Shape:
    """Return the point cloud in the arrays of a file."""
    positions = next((arrays[name] for name in _POSITIONS if name in arrays), None)
    if positions is None or positions.ndim != 2 or positions.shape[1] not in (3, 4, 6, 7):
        raise MediaError(NAME, DAMAGED)
    points = positions[:, :3].astype(np.float64)
    colours = next((arrays[name] for name in _COLOURS if name in arrays), None)
    if positions.shape[1] >= 6:
        colours = positions[:, 3:6]
    elif colours is None and all(name in arrays for name in _CHANNELS):
        colours = np.stack([arrays[name] for name in _CHANNELS], 1)
    if colours is None or colours.shape != points.shape:
        return Shape(points)
    return Shape(points, None, _bytes(colours))


def _bytes(colours: NDArray[Any]) -> NDArray[np.uint8]:
    """Return colours in [0, 1] or [0, 255] as bytes."""
    finite = np.nan_to_num(colours.astype(np.float64), posinf=0.0, neginf=0.0)
    return np.clip(finite if finite.max(initial=0) > 1 else finite * 255, 0, 255).astype(np.uint8)


def _parsed(data: bytes, kind: str) -> Shape:
    """Return all meshes of a file as one, or all of its point clouds if it has no mesh."""
    import trimesh

    # Parsed from memory and without a resolver, so that it cannot read other files.
    scene: Any = trimesh.load_scene(io.BytesIO(data), file_type=kind[1:], process=False)
    points: list[NDArray[np.float64]] = []
    faces: list[NDArray[np.int64]] = []
    colours: list[NDArray[np.uint8] | None] = []
    clouds: list[tuple[NDArray[np.float64], NDArray[np.uint8] | None]] = []
    offset = 0
    for name in scene.graph.nodes_geometry:  # in the order of the file, since names may be random
        transform, key = scene.graph[name]
        geometry = scene.geometry[key]
        moved = _moved(np.asarray(geometry.vertices, np.float64), np.asarray(transform, np.float64))
        if len(getattr(geometry, "faces", ())):
            points.append(moved)
            faces.append(np.asarray(geometry.faces, np.int64) + offset)
            colours.append(_face_colours(geometry))
            offset += len(moved)
        else:
            rgb = getattr(geometry, "colors", None)
            clouds.append((moved, None if rgb is None or len(rgb) != len(moved) else _bytes(np.asarray(rgb)[:, :3])))
    if not faces:
        if not clouds:
            return Shape(np.zeros((0, 3)))
        cloud_colours = [rgb for _, rgb in clouds if rgb is not None]
        merged_points = np.concatenate([positions for positions, _ in clouds])
        return Shape(merged_points, None, np.concatenate(cloud_colours) if len(cloud_colours) == len(clouds) else None)
    coloured = any(rgb is not None for rgb in colours)
    filled = [np.full((len(f), 3), 200, np.uint8) if c is None else c for f, c in zip(faces, colours, strict=True)]
    return Shape(np.concatenate(points), np.concatenate(faces), np.concatenate(filled) if coloured else None)


def _moved(points: NDArray[np.float64], by: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return points transformed by a homogeneous matrix, shape (4, 4)."""
    # Term by term, since the rounding of a matrix product differs between machines.
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    return np.stack([x * by[i, 0] + y * by[i, 1] + z * by[i, 2] + by[i, 3] for i in range(3)], 1)


def _face_colours(mesh: Any) -> NDArray[np.uint8] | None:
    """Return a mesh's colours by face, shape (faces, 3); None if it has none or its texture is refused."""
    visual = mesh.visual
    if visual.kind is None:
        return None
    if visual.kind == "texture":
        material = visual.material
        image = getattr(material, "baseColorTexture", None) or getattr(material, "image", None)
        # The image is not decoded yet: only these formats may be, and none that is too large.
        if image is not None and not (
            image.format in ("PNG", "JPEG", "WEBP") and image.width * image.height <= LARGEST_IMAGE
        ):
            return None
        corners = np.atleast_2d(np.asarray(visual.to_color().vertex_colors))[:, :3].astype(np.int64)
        if corners.shape[:1] != (len(mesh.vertices),):  # one colour for all vertices, without texture coordinates
            return np.broadcast_to(corners[:1], (len(mesh.faces), 3)).astype(np.uint8)
        mean: NDArray[np.uint8] = (corners[np.asarray(mesh.faces)].sum(1) // 3).astype(np.uint8)
        return mean
    face_colours: NDArray[np.uint8] = np.asarray(visual.face_colors)[:, :3].astype(np.uint8)
    return face_colours if len(face_colours) == len(mesh.faces) else None
