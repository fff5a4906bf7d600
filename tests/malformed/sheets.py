"""Malformed tables: CSV, TSV, workbooks, JSON, Parquet and YAML, and the pictures that they name or hold."""

from __future__ import annotations

import base64
import json
import os
import random
import struct
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.malformed.case import SEED, Case, Make, cases
from tests.support.workbooks import Cell, Sheet, ods_cell, write_ods, write_xlsx

_HEAD = ["image", "question", "answer"]
_ROW = ["0.png", "What is the value of kale?", "43"]
_TEXT = ",".join(_HEAD) + "\n" + ",".join(_ROW) + "\n"
_MEGABYTE = 1 << 20


def _csv(*rows: str) -> bytes:
    return "\n".join([",".join(_HEAD), *rows, ""]).encode()


_CSV: dict[str, bytes] = {
    "csv empty": b"",
    "csv header only": b"image,question,answer\n",
    "csv UTF-16 without its end": _TEXT.encode("utf-16")[:-1],
    "csv UTF-32": _TEXT.encode("utf-32"),
    "csv NUL": _csv("0.png,What\0?,43"),
    "csv mixed encodings": _csv("0.png,Wie viel \u00e9\u00e9\u00e9?,43").replace(b"43", b"\xe9\xff"),
    "csv quote open": _csv('0.png,"What is kale?,43', *["1.png,x,4"] * 20_000),
    "csv quotes only": b'"' * 2_000_000,
    "csv bars of 100,000": b"|".join([b"a"] * 100_000) + b"\n",
    "csv header twice": b"image,question,answer,Answer \n0.png,a?,4,5\n",
    "csv header of escapes": b"\x1b[2J,\xe2\x80\xae,[bold]\n1,2,3\n",
    "csv cell of 50 MB": _csv("0.png," + "a" * (50 * _MEGABYTE) + ",43"),
    "csv quoted cell of 50 MB": _csv('0.png,"' + "a\n" * (25 * _MEGABYTE) + '",43'),
    "csv row of 5 million cells": _csv("," * 5_000_000),
    "csv 500,000 blank lines": b"\n" * 500_000,
    "csv carriage returns": _TEXT.replace("\n", "\r").encode() * 2,
    "csv markup": _csv("[link=file:///etc/passwd]0.png[/link],\x1b]0;owned\x07What?,43"),
    "csv equal rows": _csv(*[",".join(_ROW)] * 12_000),
    "csv contradicting rows": _csv(*(f"0.png,What is the value of kale?,{n}" for n in range(1, 8_000))),
    "csv formulas": _csv('=HYPERLINK("http://x"),=1+1,@SUM(A1)', "+1,-2,\uff1d3"),
    "csv image outside": _csv("../../../etc/passwd,What is kale?,43", "/dev/zero,What is rye?,4"),
    "csv image of 5,000 letters": _csv("a" * 5_000 + ".png,What is kale?,43"),
    "csv image address": _csv("http://127.0.0.1:9/x.png,What is kale?,43"),
    "csv image file address": _csv("file:///etc/shadow,What is kale?,43"),
    "csv damaged base64": _csv(f"data:image/png;base64,{'A' * 99}!,What is kale?,43"),
    "csv base64 of text": _csv(f"data:image/png;base64,{base64.b64encode(b'<svg/>' * 99).decode()},What is kale?,43"),
    "csv options of 100,000": b"image,question,answer,options\n0.png,a?,b,"
    + b"|".join(b"x%d" % n for n in range(100_000)),
    "csv answer nested": _csv(f'0.png,What is kale?,"{"[" * 20_000}"'),
    "csv answer of 5,000 digits": _csv(f"0.png,What is kale?,{'9' * 5_000}"),
    "csv answer infinite": _csv("0.png,What is kale?,1e400", "1.png,What is kale?,nan"),
    "csv is a workbook": b"PK\x03\x04" + bytes(500),
    "csv random": random.Random(SEED).randbytes(200_000),
    "tsv of commas": _TEXT.encode(),
    "tsv quote": b'image\tquestion\tanswer\n0.png\t"What\t43\n',
}


def _json(value: Any) -> bytes:
    return json.dumps(value).encode()


_FIELDS = dict(zip(_HEAD, _ROW, strict=True))

_JSON: dict[str, bytes] = {
    "jsonl empty": b"",
    "jsonl null": b"null\n" * 10,
    "jsonl lists": b"[1,2]\n" * 10,
    "jsonl nested": b'{"image":' + b"[" * 100_000 + b"]" * 100_000 + b"}\n",
    "jsonl line of 50 MB": b'{"image":"' + b"a" * (50 * _MEGABYTE) + b'"}\n',
    "jsonl surrogate": b'{"image":"0.png","question":"\\ud800?","answer":"43"}\n',
    "jsonl NaN": b'{"image":"0.png","question":"What is kale?","answer":NaN}\n',
    "jsonl key twice": b'{"image":"0.png","image":"1.png","question":"a?","answer":"4"}\n',
    "jsonl huge number": b'{"image":"0.png","question":"What is kale?","answer":' + b"9" * 20_000 + b"}\n",
    "jsonl 20,000 keys": _json({**_FIELDS, **{f"k{n}": n for n in range(20_000)}}),
    "jsonl odd types": _json({"image": {"bytes": {"path": 3}}, "question": ["a"], "answer": {"b": {}}}),
    "jsonl image list": _json({**_FIELDS, "image": ["0.png"] * 50_000}),
    "json unfinished": _json([_FIELDS] * 9)[:-5],
    "json number": b"3",
    "json by column": _json({"image": ["0.png"], "question": ["a?"], "answer": ["4"]}),
    "json two lists": _json({"a": [_FIELDS], "b": [_FIELDS]}),
    "json 100,000 braces": b"{" * 100_000,
    "json UTF-16": json.dumps([_FIELDS]).encode("utf-16")[:-3],
    "yaml aliases": b"a: &a [x,x,x,x,x,x,x,x,x]\nb: &b [*a,*a,*a,*a,*a,*a]\ntests: [*b,*b,*b,*b]\n",
    "yaml nested": b"tests: " + b"[" * 50_000,
    "yaml tag": b"tests: [!!python/object/apply:os.system ['touch owned']]\n",
}


def _zip(path: Path, **parts: bytes) -> None:
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in parts.items():
            archive.writestr(name.replace("__", "/"), data)


def _sheet(path: Path, rows: str, more: str = "") -> None:
    """Write a workbook whose sheet's XML is ``rows``."""
    write_xlsx(path, {"S": Sheet([_HEAD])}, shared=False)
    _replace(path, "xl/worksheets/sheet1.xml", _worksheet(rows, more))


def _worksheet(rows: str, more: str = "") -> bytes:
    space = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{space}"><sheetData>{rows}</sheetData>{more}</worksheet>'.encode()


def _replace(path: Path, part: str, data: bytes) -> None:
    """Replace a part of a zip archive."""
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, old in (parts | {part: data}).items():
            archive.writestr(name, data if name == part else old)


def _unpacks(path: Path, part: str, start: bytes, piece: bytes, times: int, end: bytes) -> None:
    """Write a workbook with a part that is ``piece`` many times, without holding it in memory."""
    write_xlsx(path, {"S": Sheet([_HEAD, _ROW])})
    with zipfile.ZipFile(path) as archive:
        parts = {name: archive.read(name) for name in archive.namelist() if name != part}
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=1) as archive:
        for name, data in parts.items():
            archive.writestr(name, data)
        with archive.open(part, "w") as stream:
            for data in (start, *[piece] * times, end):
                stream.write(data)


def _cells(*values: str, row: int = 1, column: str = "A") -> str:
    columns = "ABCDEFGH"
    return (
        f'<row r="{row}">'
        + "".join(
            f'<c r="{columns[n] if column == "A" else column}{row}" t="inlineStr"><is><t>{value}</t></is></c>'
            for n, value in enumerate(values)
        )
        + "</row>"
    )


def _sparse(path: Path) -> None:
    _sheet(path, _cells(*_HEAD) + _cells(*_ROW, row=2) + _cells("x", row=1_048_576))


def _far_corner(path: Path) -> None:
    _sheet(path, _cells(*_HEAD) + _cells(*_ROW, row=2) + _cells("x", row=1_048_576, column="XFD"))


def _beyond(path: Path) -> None:
    _sheet(path, _cells(*_HEAD) + _cells("x", row=4_294_967_295))


def _cut(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, _ROW])})
    path.write_bytes(path.read_bytes()[:-200])


def _entities(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, _ROW])})
    text = '<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa">' + "".join(
        f'<!ENTITY {after} "{"&" + before + ";" * 1}{("&" + before + ";") * 9}">'
        for before, after in zip("abcdefgh", "bcdefghi", strict=True)
    )
    _replace(path, "xl/sharedStrings.xml", f"{text}]><sst><si><t>&i;</t></si></sst>".encode())


def _external(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, ["0.png", "What is kale?", Cell("43", formula="[1]Other!A1")]])})
    text = b'<!DOCTYPE x [<!ENTITY e SYSTEM "file:///etc/passwd">]><sst><si><t>&e;</t></si></sst>'
    _replace(path, "xl/sharedStrings.xml", text)


def _relation(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, _ROW])})
    with zipfile.ZipFile(path) as archive:
        links = archive.read("xl/_rels/workbook.xml.rels")
    _replace(path, "xl/_rels/workbook.xml.rels", links.replace(b"worksheets/sheet1.xml", b"../../../../etc/passwd"))


def _bomb(path: Path) -> None:
    start, end = _worksheet(_cells(*_HEAD) + _cells(*_ROW, row=2) + "|").split(b"|")
    _unpacks(path, "xl/worksheets/sheet1.xml", start, b" " * _MEGABYTE, 900, end)


def _strings_bomb(path: Path) -> None:
    _unpacks(path, "xl/sharedStrings.xml", b"<sst>", b"<si><t>a</t></si>" * 30_000, 1_000, b"</sst>")


def _merged(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, _ROW], merged=["A2:C1048576", "A1:XFD1", "A2:A2", "B9:A1"])})


def _large_cell(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, ["0.png", "a" * (50 * _MEGABYTE), "43"]])}, shared=False)


def _wide(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([[f"c{n}" for n in range(16_384)], ["x"] * 16_384])})


def _dates(path: Path) -> None:
    values = (1e308, -1.0, 2958466.0, 0.0, 60.0)
    write_xlsx(
        path, {"S": Sheet([_HEAD, *(["0.png", f"When was {n}?", Cell(v, "yyyy-mm-dd")] for n, v in enumerate(values))])}
    )


def _format(path: Path) -> None:
    write_xlsx(path, {"S": Sheet([_HEAD, ["0.png", "What is kale?", Cell(43.0, "[" * 250)]])})


def _sheets(path: Path) -> None:
    write_xlsx(path, {f"S{n}": Sheet([]) for n in range(3_000)})


def _names(path: Path) -> None:
    write_xlsx(path, {"\x1b"[:0] + "[bold]S[/bold]": Sheet([["image", "question", "answer", "answer"], [*_ROW, "5"]])})


def _ods_repeated(path: Path) -> None:
    row = "".join(ods_cell(text) for text in _ROW)
    head = [ods_cell(text) for text in _HEAD]
    write_ods(path, {"S": [head, f'<table:table-row table:number-rows-repeated="2000000000">{row}</table:table-row>']})


def _ods_wide(path: Path) -> None:
    write_ods(
        path, {"S": [[ods_cell(text) for text in _HEAD], [ods_cell("a", table_number_columns_repeated="999999999")]]}
    )


def _ods_numbers(path: Path) -> None:
    write_ods(
        path,
        {"S": [[ods_cell("a", table_number_columns_repeated="-5")], [ods_cell("a", table_number_rows_spanned="x")]]},
    )


def _ods_nested(path: Path) -> None:
    write_ods(path, {"S": ["<text:p>" * 200_000 + "</text:p>" * 200_000]})


def _parquet(path: Path, rows: Any) -> None:
    import pyarrow
    from pyarrow import parquet

    parquet.write_table(pyarrow.table(rows), path)


def _parquet_cut(path: Path) -> None:
    _parquet(path, {name: [text] * 100 for name, text in _FIELDS.items()})
    path.write_bytes(path.read_bytes()[:-9] + b"PAR1")


def _parquet_flipped(path: Path) -> None:
    _parquet(path, {name: [text] * 100 for name, text in _FIELDS.items()})
    data = bytearray(path.read_bytes())
    for place in random.Random(SEED).sample(range(4, len(data) - 8), 60):
        data[place] ^= 0xFF
    path.write_bytes(data)


def _parquet_bomb(path: Path) -> None:
    _parquet(path, {"image": ["0.png"], "question": ["a" * (200 * _MEGABYTE)], "answer": ["43"]})


def _parquet_names(path: Path) -> None:
    _parquet(path, {"image": ["0.png"], "Answer": ["4"], "answer ": ["5"], "question": ["a?"]})


def _parquet_rows(path: Path) -> None:
    import pyarrow

    _parquet(path, {"image": pyarrow.nulls(20_000_000)})


def _picture(width: int, height: int, data: bytes) -> bytes:
    """Return a PNG that declares a size, with any data."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", head) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


_PICTURES: dict[str, Callable[[], bytes]] = {
    "picture claims 100,000 pixels a side": lambda: _picture(100_000, 100_000, zlib.compress(b"")),
    "picture claims less than it holds": lambda: _picture(1, 1, zlib.compress(bytes(300 * _MEGABYTE), 1)),
    "picture claims more than it holds": lambda: _picture(8_000, 8_000, zlib.compress(bytes(100))),
    "picture of no width": lambda: _picture(0, 10, zlib.compress(b"")),
    "picture is a page": lambda: b"<!DOCTYPE html><script>alert(1)</script>",
    "picture is empty": lambda: b"",
    "picture is SVG": lambda: b'<svg xmlns="http://www.w3.org/2000/svg"><image href="file:///etc/passwd"/></svg>',
    "picture TIFF of loops": lambda: b"II*\0\x08\0\0\0\x01\0\0\x01\x03\0\x01\0\0\0\x01\0\0\0\x08\0\0\0",
    "picture GIF without end": lambda: (
        b"GIF89a\xff\xff\xff\xff\xf7\0\0" + bytes(768) + b",\0\0\0\0\xff\xff\xff\xff\0\x08" + b"\xff" * 9_000
    ),
}

_FILES: dict[str, tuple[str, Callable[[Path], object]]] = {
    "xlsx no zip": ("xlsx", lambda path: path.write_bytes(b"PK nothing")),
    "xlsx cut": ("xlsx", _cut),
    "xlsx empty archive": ("xlsx", lambda path: _zip(path)),
    "xlsx without a workbook": ("xlsx", lambda path: _zip(path, a__b=b"x")),
    "xlsx cell in row 1,048,576": ("xlsx", _sparse),
    "xlsx cell in the far corner": ("xlsx", _far_corner),
    "xlsx cell beyond the last row": ("xlsx", _beyond),
    "xlsx entities": ("xlsx", _entities),
    "xlsx external entity": ("xlsx", _external),
    "xlsx sheet outside": ("xlsx", _relation),
    "xlsx of 900 MB": ("xlsx", _bomb),
    "xlsx of 30 million strings": ("xlsx", _strings_bomb),
    "xlsx merged everywhere": ("xlsx", _merged),
    "xlsx cell of 50 MB": ("xlsx", _large_cell),
    "xlsx 16,384 columns": ("xlsx", _wide),
    "xlsx odd dates": ("xlsx", _dates),
    "xlsx odd format": ("xlsx", _format),
    "xlsx 3,000 empty sheets": ("xlsx", _sheets),
    "xlsx names twice": ("xlsx", _names),
    "xlsx is OLE": ("xlsx", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(4_000))),
    "ods row repeated": ("ods", _ods_repeated),
    "ods columns repeated": ("ods", _ods_wide),
    "ods odd numbers": ("ods", _ods_numbers),
    "ods nested": ("ods", _ods_nested),
    "parquet no parquet": ("parquet", lambda path: path.write_bytes(b"PAR1" + bytes(99) + b"PAR1")),
    "parquet cut": ("parquet", _parquet_cut),
    "parquet flipped": ("parquet", _parquet_flipped),
    "parquet text of 200 MB": ("parquet", _parquet_bomb),
    "parquet names twice": ("parquet", _parquet_names),
    "parquet 20 million rows": ("parquet", _parquet_rows),
    "csv FIFO": ("csv", lambda path: os.mkfifo(path)),
    "csv device": ("csv", lambda path: path.symlink_to("/dev/zero")),
    "csv folder": ("csv", lambda path: path.mkdir()),
    "xls old": ("xls", lambda path: path.write_bytes(b"\xd0\xcf\x11\xe0" + bytes(99))),
    "no ending": ("", lambda path: path.write_text(_TEXT)),
}


def _make(name: str) -> Make:
    def make(home: Path) -> list[str]:
        kind, write = _FILES.get(name, (name.partition(" ")[0], None))
        if name in _PICTURES:
            kind = "csv"
            (home / "odd.png").write_bytes(_PICTURES[name]())
        table = home / f"table.{kind}".rstrip(".")
        if write is not None:
            write(table)
        else:
            odd = _csv("odd.png,What is the value of kale?,43")
            table.write_bytes(odd if name in _PICTURES else (_CSV | _JSON)[name])
        return ["build", "cmc-bench", "--from", table.name, "--check"]

    return make


NAMES = (*_CSV, *_JSON, *_FILES, *_PICTURES)

_EXPECTED = r"""
csv empty | 2 | table.csv is empty; its first row names the columns
csv header only | 2 | there are no rows in table.csv; write one below its header for each pi
csv UTF-16 without its end | 2 | table.csv is damaged UTF-16; save it again as CSV UTF-8
csv UTF-32 | 2 | table.csv contains NUL characters, so it is not text; save it as CSV U
csv NUL | 2 | table.csv contains NUL characters, so it is not text; save it as CSV U
csv mixed encodings | 1 | the line is not whole text: part of it is UTF-8 and part is
csv quote open | 0 |
csv quotes only | 2 | table.csv is empty; its first row names the columns
csv bars of 100,000 | 2 | table.csv has two columns called 'a'; rename one
csv header twice | 2 | table.csv has two columns called 'answer'; rename one
csv header of escapes | 2 | table.csv has no column image, question, answer; it has \x1b[2j, \u202
csv cell of 50 MB | 1 | the line is longer than 16 MiB
csv quoted cell of 50 MB | 2 | table.csv has no column question, answer; it has image. Give each row
csv row of 5 million cells | 1 | a cell of the row has more than 4,194,304 characters
csv 500,000 blank lines | 2 | table.csv is empty; its first row names the columns
csv carriage returns | 0 |
csv markup | 1 | the image is an address of the network
csv equal rows | 0 |
csv contradicting rows | 1 | another row contradicts it
csv formulas | 1 | the image is an address of the network
csv image outside | 1 | no row of table.csv can be used; repair the rows as listed
csv image of 5,000 letters | 1 | no row of table.csv can be used; repair the rows as listed
csv image address | 1 | no row of table.csv can be used; repair the rows as listed
csv image file address | 1 | no row of table.csv can be used; repair the rows as listed
csv damaged base64 | 1 | no row of table.csv can be used; repair the rows as listed
csv base64 of text | 1 | no row of table.csv can be used; repair the rows as listed
csv options of 100,000 | 0 |
csv answer nested | 1 | no row of table.csv can be used; repair the rows as listed
csv answer of 5,000 digits | 1 | no row of table.csv can be used; repair the rows as listed
csv answer infinite | 1 | no row of table.csv can be used; repair the rows as listed
csv is a workbook | 2 | table.csv is a workbook, not text; save it .xlsx or .ods
csv random | 2 | table.csv contains NUL characters, so it is not text; save it as CSV U
tsv of commas | 0 |
tsv quote | 1 | no row of table.tsv can be used; repair the rows as listed
jsonl empty | 2 | there are no rows in table.jsonl; write one below its header for each
jsonl null | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl lists | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl nested | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl line of 50 MB | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl surrogate | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl NaN | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl key twice | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl huge number | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl 20,000 keys | 0 |
jsonl odd types | 1 | no row of table.jsonl can be used; repair the rows as listed
jsonl image list | 1 | no row of table.jsonl can be used; repair the rows as listed
json unfinished | 2 | table.json holds no rows in JSON; save it as a list of objects, or as
json number | 1 | no row of table.json can be used; repair the rows as listed
json by column | 2 | table.json holds lists or columns, not a JSON object a row; pandas wri
json two lists | 2 | table.json holds several lists of rows ('a', 'b'); save one of them as
json 100,000 braces | 2 | table.json holds no rows in JSON; save it as a list of objects, or as
json UTF-16 | 2 | table.json holds no rows in JSON; save it as a list of objects, or as
yaml aliases | 2 | table.yaml refers to parts of itself (*name); write them out, or save
yaml nested | 2 | table.yaml nests more than 100 lists or objects; write it flatter
yaml tag | 1 | no row of table.yaml can be used; repair the rows as listed
xlsx no zip | 2 | table.xlsx is not a whole workbook (BadZipFile); save it again as .xls
xlsx cut | 2 | table.xlsx is not a whole workbook (BadZipFile); save it again as .xls
xlsx empty archive | 2 | table.xlsx is not a whole workbook (CalamineError); save it again as
xlsx without a workbook | 2 | table.xlsx is not a whole workbook (CalamineError); save it again as
xlsx cell in row 1,048,576 | 0 |
xlsx cell in the far corner | 2 | needs more than
xlsx cell beyond the last row | 2 | needs more than
xlsx entities | 2 | table.xlsx is not a whole workbook (CalamineError); save it again as
xlsx external entity | 2 | table.xlsx is not a whole workbook (CalamineError); save it again as
xlsx sheet outside | 2 | table.xlsx is not a whole workbook (WorksheetNotFound); save it again
xlsx of 900 MB | 2 | needs more than
xlsx of 30 million strings | 2 | needs more than
xlsx merged everywhere | 0 |
xlsx cell of 50 MB | 1 | no row of table.xlsx can be used; repair the rows as listed
xlsx 16,384 columns | 2 | table.xlsx has no column image, question, answer; it has c0, c1, c2, c
xlsx odd dates | 0 | rows can be used
xlsx odd format | 1 | no row of table.xlsx can be used; repair the rows as listed
xlsx 3,000 empty sheets | 2 | has more than 500 sheets
xlsx names twice | 2 | table.xlsx has two columns called 'answer'; rename one
xlsx is OLE | 2 | table.xlsx is a workbook of the old kind; save it as .xlsx from your s
ods columns repeated | 1 | no row of table.ods can be used; repair the rows as listed
ods odd numbers | 2 | table.ods is not a whole workbook (CalamineError); save it again as .x
ods nested | 2 | table.ods has no visible sheet with rows; its first row names the colu
parquet no parquet | 2 | table.parquet is not a whole parquet file (OSError); download it again
parquet cut | 2 | table.parquet is not a whole parquet file (ArrowInvalid); download it
parquet flipped | 2 | table.parquet is not a whole parquet file (OSError); download it again
parquet text of 200 MB | 2 | needs more than
parquet names twice | 2 | table.parquet has two columns called 'answer'; rename one
parquet 20 million rows | 2 | table.parquet has more than 10,000,000 rows; save it as smaller files
csv FIFO | 2 | is not a regular file
csv device | 2 | is not a regular file
csv folder | 2 | /table.csv is a folder; name the table in it, such as
xls old | 2 | table.xls is a workbook of another kind; save it as .xlsx from your sp
no ending | 2 | table is no table; give one that ends in .csv, .tsv, .xlsx
picture claims 100,000 pixels a side | 1 | no row of table.csv can be used; repair the rows as listed
picture claims less than it holds | 0 |
picture claims more than it holds | 1 | no row of table.csv can be used; repair the rows as listed
picture of no width | 1 | no row of table.csv can be used; repair the rows as listed
picture is a page | 1 | no row of table.csv can be used; repair the rows as listed
picture is empty | 1 | no row of table.csv can be used; repair the rows as listed
picture is SVG | 1 | no row of table.csv can be used; repair the rows as listed
picture TIFF of loops | 1 | no row of table.csv can be used; repair the rows as listed
picture GIF without end | 1 | no row of table.csv can be used; repair the rows as listed
ods row repeated | 2 | delete the equal rows
"""


def all_cases() -> list[Case]:
    """Return the cases with what a user gets for each."""
    return cases(_make, _EXPECTED)
