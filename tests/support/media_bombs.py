# ruff: noqa: E501
"""Small or well-formed media that ask their readers for much memory or time."""

from __future__ import annotations

import io
import json
import random
import struct
import zipfile
import zlib
from collections.abc import Callable, Iterator

import numpy as np

from benchmarks.vocabulary import Modality
from tests.support.media import cloud, sound, video

Medium = tuple[bytes, str, Modality]


def png(width: int, height: int, kind: int = 6, *chunks: bytes, depth: int = 8, interlaced: bool = False) -> bytes:
    """A whole PNG of one colour; ``kind`` as in its header: 0 grey, 2 RGB, 3 palette, 6 RGBA."""
    channels = {0: 1, 2: 3, 3: 1, 4: 2, 6: 4}[kind]
    packer = zlib.compressobj(9)
    line = bytes(1 + (width * channels * depth + 7) // 8)
    body = b"".join(packer.compress(line) for _ in range(height)) + packer.flush()
    header = struct.pack(">IIBBBBB", width, height, depth, kind, 0, 0, int(interlaced))
    palette = [png_chunk(b"PLTE", bytes(768))] if kind == 3 else []
    parts = [png_chunk(b"IHDR", header), *palette, *chunks, png_chunk(b"IDAT", body), png_chunk(b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(parts)


def png_chunk(name: bytes, body: bytes) -> bytes:
    return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))


def _ifd(count: int, size: int) -> bytes:
    """An image file directory, little-endian, of which every entry names the same ``size`` bytes."""
    entries = b"".join(struct.pack("<HHII", 40000 + n, 7, size, 8) for n in range(count))
    return b"II*\0" + struct.pack("<I", 8 + size) + bytes(size) + struct.pack("<H", count) + entries + bytes(4)


def _picture(kind: str, size: tuple[int, int], mode: str = "RGB", **options: object) -> bytes:
    from PIL import Image

    out = io.BytesIO()
    Image.new(mode, size).save(out, kind, **options)
    return out.getvalue()


def _scans() -> bytes:
    """A progressive JPEG of 16 megapixels and 3,000 scans."""
    data = _picture("JPEG", (4000, 4000), "L", progressive=True)
    last = data.rfind(b"\xff\xda")
    return data[:-2] + data[last:-2] * 3000 + b"\xff\xd9"


def _flac(rate: int = 48_000, seconds: int = 19 * 60, channels: int = 1, kind: str = "FLAC") -> bytes:
    import soundfile

    out = io.BytesIO()
    with soundfile.SoundFile(out, "w", rate, channels, format=kind) as file:
        for _ in range(seconds):
            file.write(np.zeros((rate, channels), np.int16))
    return out.getvalue()


def _slow_wave(rate: int) -> bytes:
    data = bytearray(sound(1.0, 8000))[: 44 + 2 * 1000]
    data[24:28] = rate.to_bytes(4, "little")
    data[4:8], data[40:44] = (len(data) - 8).to_bytes(4, "little"), (len(data) - 44).to_bytes(4, "little")
    return bytes(data)


def _off(size: int) -> bytes:
    return b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n" + b"1 2 3\n" * (size // 6)


def _ascii_stl(size: int) -> bytes:
    face = b"facet normal 0 0 1\nouter loop\nvertex 0 0 0\nvertex 1 0 0\nvertex 0 1 0\nendloop\nendfacet\n"
    return b"solid x\n" + face + b"1 2 3 4 5 6 7 8 \n" * (size // 17) + b"endsolid x\n"


def ascii_ply(vertices: int, faces: int, tail: bytes = b"") -> bytes:
    head = f"ply\nformat ascii 1.0\nelement vertex {vertices}\nproperty float x\nproperty float y\nproperty float z\n"
    head += f"element face {faces}\nproperty list uchar int vertex_indices\nend_header\n"
    return head.encode() + b"0 0 0\n1 0 0\n0 1 0\n" + b"3 0 1 2\n" * min(faces, 1) + tail


def npz(name: str, shape: tuple[int, ...], kind: str, size: int, members: int = 1) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as inside:
        for number in range(members):
            with inside.open(f"{name}{number or ''}.npy", "w", force_zip64=True) as member:
                np.lib.format.write_array_header_1_0(member, {"descr": kind, "fortran_order": False, "shape": shape})
                for _ in range(size >> 20):
                    member.write(bytes(1 << 20))
    return out.getvalue()


def npy(shape: tuple[int, ...], kind: str) -> bytes:
    out = io.BytesIO()
    np.save(out, np.zeros(shape, kind))
    return out.getvalue()


def glb(tree: object, body: bytes = b"") -> bytes:
    text = json.dumps(tree).encode()
    text += b" " * (-len(text) % 4)
    body += bytes(-len(body) % 4)
    chunks = struct.pack("<II", len(text), 0x4E4F534A) + text
    if body:
        chunks += struct.pack("<II", len(body), 0x004E4942) + body
    return struct.pack("<4sII", b"glTF", 2, 12 + len(chunks)) + chunks


def _triangle(**more: object) -> tuple[dict[str, object], bytes]:
    body = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0]], "<f4").tobytes()
    tree: dict[str, object] = {
        "asset": {"version": "2.0"},
        "buffers": [{"byteLength": len(body)}],
        "bufferViews": [{"buffer": 0, "byteLength": len(body)}],
        "accessors": [{"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"}],
        "meshes": [{"primitives": [{"attributes": {"POSITION": 0}}]}],
        "nodes": [{"mesh": 0}],
        "scenes": [{"nodes": [0]}],
        "scene": 0,
    }
    return {**tree, **more}, body


def node_chain(count: int) -> bytes:
    nodes: list[dict[str, object]] = [{"children": [n + 1]} for n in range(count - 1)]
    tree, body = _triangle(nodes=[*nodes, {"mesh": 0}])
    return glb(tree, body)


def textured(width: int, height: int) -> bytes:
    """A triangle with a PNG of one colour as its texture."""
    image = png(width, height, 2)
    tree, body = _triangle()
    uv = np.array([[0, 0], [1, 0], [0, 1]], "<f4").tobytes()
    views = [(0, len(body)), (len(body), len(uv)), (len(body) + len(uv), len(image))]
    tree["buffers"] = [{"byteLength": len(body + uv + image)}]
    tree["bufferViews"] = [{"buffer": 0, "byteOffset": at, "byteLength": size} for at, size in views]
    tree["accessors"] = [
        {"bufferView": 0, "componentType": 5126, "count": 3, "type": "VEC3"},
        {"bufferView": 1, "componentType": 5126, "count": 3, "type": "VEC2"},
    ]
    tree["images"] = [{"bufferView": 2, "mimeType": "image/png"}]
    tree["textures"] = [{"source": 0}]
    tree["materials"] = [{"pbrMetallicRoughness": {"baseColorTexture": {"index": 0}}}]
    tree["meshes"] = [{"primitives": [{"attributes": {"POSITION": 0, "TEXCOORD_0": 1}, "material": 0}]}]
    return glb(tree, body + uv + image)


def _many_frames(size: tuple[int, int], frames: int) -> bytes:
    return video(frames, size=size)


def _binary_stl(faces: int) -> bytes:
    triangle = struct.pack("<12fH", 0, 0, 1, 0, 0, 0, 1, 0, 0, 0, 1, 0, 0)
    return bytes(80) + struct.pack("<I", faces) + triangle * faces


MB = 1 << 20

BOMBS: dict[str, tuple[Callable[[], bytes], str, Modality]] = {
    "FLAC, 19 minutes of silence": (_flac, ".flac", "audio"),
    "FLAC, 19 minutes at 192 kHz": (lambda: _flac(192_000), ".flac", "audio"),
    "FLAC, 8 channels": (lambda: _flac(48_000, 19 * 60, 8), ".flac", "audio"),
    "WAV at 1 Hz": (lambda: _slow_wave(1), ".wav", "audio"),
    "WAV at 1000 Hz": (lambda: _slow_wave(1000), ".wav", "audio"),
    "Ogg, 19 minutes": (lambda: _flac(8000, 19 * 60, 1, "OGG"), ".ogg", "audio"),
    "OFF with a tail of 120 MB": (lambda: _off(120 * MB), ".off", "point_cloud"),
    "ASCII STL of 120 MB": (lambda: _ascii_stl(120 * MB), ".stl", "point_cloud"),
    "ASCII PLY with a tail of 180 MB": (lambda: ascii_ply(3, 1, b"0 0 0\n" * 30_000_000), ".ply", "point_cloud"),
    "ASCII PLY with a tail of 100 MB": (lambda: ascii_ply(3, 1, b"0 0 0\n" * 17_000_000), ".ply", "point_cloud"),
    "ASCII PLY of one line": (lambda: ascii_ply(3, 1, b"1 " * 40_000_000), ".ply", "point_cloud"),
    "ASCII PLY that promises a million": (lambda: ascii_ply(10**6, 5 * 10**5), ".ply", "point_cloud"),
    "OBJ of 120 MB of groups": (lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" + b"g x\n" * (30 * MB), ".obj", "point_cloud"),
    "OBJ of normals": (lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\nf 1 2 3\n" + b"vn 0 0 1\n" * (12 * MB), ".obj", "point_cloud"),
    "OBJ of materials": (lambda: b"v 0 0 0\nv 1 0 0\nv 0 1 0\n" + b"".join(b"usemtl %d\nf 1 2 3\n" % n for n in range(200_000)), ".obj", "point_cloud"),
    "npy of 128 MB": (lambda: npy((10 * MB, 3), "<f4"), ".npy", "point_cloud"),
    "npy of bytes": (lambda: npy((40 * MB, 3), "u1"), ".npy", "point_cloud"),
    "npy, wide": (lambda: npy((3, 10 * MB), "<f4"), ".npy", "point_cloud"),
    "npz of 200 MB": (lambda: npz("arr_0", (200 * MB // 12, 3), "<f4", 200 * MB), ".npz", "point_cloud"),
    "npz of many": (lambda: npz("x", (10 * MB // 12, 3), "<f4", 10 * MB, 24), ".npz", "point_cloud"),
    "npz of 100,000 names": (lambda: npz("x", (0, 3), "<f4", 0, 100_000), ".npz", "point_cloud"),
    "GLB with a chain of 9,000 nodes": (lambda: node_chain(9000), ".glb", "point_cloud"),
    "GLB with a texture of 60 megapixels": (lambda: textured(7740, 7740), ".glb", "point_cloud"),
    "GLB of deep JSON": (lambda: glb([]).replace(b"[]  ", b"[" * 100_000 + b"]" * 100_000), ".glb", "point_cloud"),
    "binary STL of 500,000 faces": (lambda: _binary_stl(500_000), ".stl", "point_cloud"),
    "PNG, RGBA of 64 megapixels": (lambda: png(8000, 8000), ".png", "image"),
    "PNG, RGB of 64 megapixels": (lambda: png(8000, 8000, 2), ".png", "image"),
    "PNG, 16 bits of 60 megapixels": (lambda: png(7700, 7700, 0, depth=16), ".png", "image"),
    "PNG, palette of 64 megapixels with transparency": (lambda: png(8000, 8000, 3, png_chunk(b"tRNS", bytes(9))), ".png", "image"),
    "PNG with an EXIF of 3,000 times 2 MB": (lambda: png(9, 9, 2, png_chunk(b"eXIf", _ifd(3000, 2 * MB))), ".png", "image"),
    "PNG of 300,000 chunks": (lambda: png(9, 9, 2, png_chunk(b"teXt", b"") * 300_000), ".png", "image"),
    "PNG of many texts": (lambda: png(9, 9, 2, *[png_chunk(b"zTXt", b"a\0\0" + zlib.compress(bytes(MB - 9), 9))] * 200), ".png", "image"),
    "JPEG of 3,000 scans": (_scans, ".jpg", "image"),
    "JPEG, CMYK of 60 megapixels": (lambda: _picture("JPEG", (7700, 7700), "CMYK", progressive=True), ".jpg", "image"),
    "WebP of 60 megapixels": (lambda: _picture("WEBP", (7700, 7700), lossless=True), ".webp", "image"),
    "GIF of 64 megapixels": (lambda: _picture("GIF", (8000, 8000), "P"), ".gif", "image"),
    "TIFF of 60 megapixels in one strip": (lambda: _picture("TIFF", (7700, 7700), compression="tiff_deflate"), ".tif", "image"),
    "TIFF of 3,000 tags of 2 MB": (lambda: _ifd(3000, 2 * MB), ".tif", "image"),
    "video of 2,000 large frames": (lambda: _many_frames((1920, 1080), 1200), ".mp4", "video"),
}  # fmt: skip


def valid() -> list[Medium]:
    """A small medium of each kind."""
    shapes: list[Medium] = [
        (cloud(), ".npz", "point_cloud"),
        (npy((50, 3), "<f4") , ".npy", "point_cloud"),
        (_off(0), ".off", "point_cloud"),
        (_ascii_stl(0), ".stl", "point_cloud"),
        (_binary_stl(4), ".stl", "point_cloud"),
        (ascii_ply(3, 1), ".ply", "point_cloud"),
        (b"v 0 0 0\nv 1 0 0\nv 0 1 0\nvn 0 0 1\nf 1//1 2//1 3//1\n", ".obj", "point_cloud"),
        (textured(8, 8), ".glb", "point_cloud"),
        (node_chain(3), ".glb", "point_cloud"),
    ]  # fmt: skip
    sounds: list[Medium] = [
        (sound(0.1, 8000, kind), f".{kind.lower()}", "audio") for kind in ("WAV", "FLAC", "OGG", "MP3")
    ]
    kinds = (
        ("mp4", ".mp4", "mpeg4"),
        ("matroska", ".mkv", "mpeg4"),
        ("avi", ".avi", "mpeg4"),
        ("mp4", ".mp4", "libx264"),
    )
    videos: list[Medium] = [(video(4, kind, codec), suffix, "video") for kind, suffix, codec in kinds]
    images: list[Medium] = [
        (_picture(kind, (40, 30), mode), suffix, "image")
        for kind, suffix, mode in (
            ("PNG", ".png", "RGBA"), ("PNG", ".png", "P"), ("PNG", ".png", "I;16"), ("JPEG", ".jpg", "RGB"), ("JPEG", ".jpg", "CMYK"),
            ("GIF", ".gif", "P"), ("WEBP", ".webp", "RGBA"), ("BMP", ".bmp", "RGB"), ("TIFF", ".tif", "RGB"),
        )
    ]  # fmt: skip
    from PIL import Image

    for kind, suffix in (("PNG", ".png"), ("GIF", ".gif"), ("WEBP", ".webp"), ("TIFF", ".tif")):
        out = io.BytesIO()
        pages = [Image.new("RGB", (20, 20), (n * 60, 0, 0)) for n in range(4)]
        pages[0].save(out, kind, save_all=True, append_images=pages[1:])
        images.append((out.getvalue(), suffix, "image"))
    return [*shapes, *sounds, *videos, *images]


def mutated(count: int, seed: int) -> Iterator[Medium]:
    """``count`` media, each one of :func:`valid` with a few bytes changed, cut, repeated, moved, or replaced by large numbers."""
    chance = random.Random(seed)
    known = valid()
    for number in range(count):
        data, suffix, modality = known[number % len(known)]
        changed = bytearray(data)
        for _ in range(chance.randint(1, 4)):
            at = chance.randrange(len(changed)) if chance.random() < 0.5 else chance.randrange(min(len(changed), 160))
            match chance.randrange(6):
                case 0:
                    changed[at] ^= 1 << chance.randrange(8)
                case 1:
                    changed[at : at + 4] = chance.choice(
                        (b"\xff\xff\xff\x7f", b"\xff\xff\xff\xff", b"\0\0\0\0", b"\x7f\xff\xff\xff")
                    )
                case 2:
                    del changed[at : at + chance.randint(1, 64)]
                case 3:
                    changed[at:at] = changed[at : at + chance.randint(1, 256)] * chance.choice((1, 2, 100))
                case 4:
                    changed[at:at] = chance.randbytes(chance.randint(1, 16))
                case _:
                    changed[at : at + 1] = b"9" * chance.randint(1, 12)
            changed = changed or bytearray(b"x")
        yield bytes(changed), suffix, modality
