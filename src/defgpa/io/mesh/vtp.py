"""VTP, VTK's polygons in XML: arrays as text, as base64, or as bytes appended after the XML.

All encodings VTK writes are read, also compressed with zlib, LZMA or LZ4 (which needs lz4);
written is inline base64 in double precision, which every version of ParaView reads.
"""

from __future__ import annotations

import base64
import lzma
import re
import zlib
from collections.abc import Callable, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.sax.saxutils import quoteattr

import numpy as np

from defgpa.arrays import Array, RawArray
from defgpa.errors import FormatError, import_extra
from defgpa.io.atomic import write_text
from defgpa.io.files import make_format_error, read_bytes, translate_errors
from defgpa.io.limits import LZMA_MEMORY, Budget
from defgpa.io.mesh.mesh import Colours, Mesh, Polygons, as_colours, as_indices, build_mesh
from defgpa.io.text.lines import parse_numbers_fast
from defgpa.io.xml import parse_xml

_KINDS = (  # in small letters, NumPy calls them the same
    *("Int8", "Int16", "Int32", "Int64", "UInt8", "UInt16", "UInt32", "UInt64"),
    *("Float32", "Float64"),
)
_APPENDED = re.compile(rb"<AppendedData[^>]*?encoding\s*=\s*[\"'](\w+)[\"'][^>]*>\s*_")


def read_vtp(path: Path) -> Mesh:
    """Read the polygons of a VTP file."""
    with translate_errors(path, "VTK PolyData file"):
        file = _File(path)
        pieces = file.root.findall("./PolyData/Piece")
        filled = [piece for piece in pieces if piece.get("NumberOfPoints", "0") != "0"]
        if not filled:
            raise make_format_error(path, "a Piece of PolyData with points", "none")
        return _join_pieces([file.build_mesh_of_piece(piece) for piece in filled])


def write_vtp(path: Path, mesh: Mesh) -> None:
    """Write arrays as inline base64; scalar fields and colours are point data."""
    offsets = 3 * np.arange(1, len(mesh.faces) + 1)
    point_data = [_format_data_array(name, values) for name, values in mesh.scalars.items()]
    if mesh.colours is not None:
        point_data.append(_format_data_array("colours", mesh.colours))
    lines = [
        '<?xml version="1.0"?>',
        '<VTKFile type="PolyData" version="1.0" byte_order="LittleEndian" header_type="UInt64">',
        "<PolyData>",
        f'<Piece NumberOfPoints="{len(mesh.vertices)}" NumberOfVerts="0" NumberOfLines="0" '
        f'NumberOfStrips="0" NumberOfPolys="{len(mesh.faces)}">',
        "<PointData>",
        *point_data,
        "</PointData>",
        "<Points>",
        _format_data_array("Points", mesh.vertices),
        "</Points>",
        "<Polys>",
        _format_data_array("connectivity", mesh.faces.ravel().astype("i8")),
        _format_data_array("offsets", offsets.astype("i8")),
        "</Polys>",
        "</Piece>",
        "</PolyData>",
        "</VTKFile>",
    ]
    write_text(path, "\n".join(lines) + "\n")


def read_vtp_space(path: Path) -> str | None:
    """Read ``LPS`` or ``RAS``, as 3D Slicer puts it among the field data."""
    with translate_errors(path, "VTK PolyData file"):
        file = _File(path)
        element = file.root.find("./PolyData/FieldData/Array[@Name='SPACE'][@type='String']")
        words = b"" if element is None else file.read_letters(element)
    return next((space for space in ("LPS", "RAS") if space.encode() in words), None)


def _format_data_array(name: str, values: RawArray) -> str:
    kinds = {"f8": "Float64", "i8": "Int64", "u1": "UInt8"}
    data = values.astype(values.dtype.newbyteorder("<"))
    packed = base64.b64encode(np.array(data.nbytes, dtype="<u8").tobytes() + data.tobytes())
    components = values.shape[1] if values.ndim == 2 else 1
    return (
        f'<DataArray type="{kinds[values.dtype.str[1:]]}" Name={quoteattr(name)} '
        f'NumberOfComponents="{components}" format="binary">{packed.decode()}</DataArray>'
    )


def _join_pieces(pieces: Sequence[Mesh]) -> Mesh:
    """Join the pieces one after another, with the fields that all of them have."""
    before = np.cumsum([0, *(len(piece.vertices) for piece in pieces)])
    coloured = [piece.colours for piece in pieces if piece.colours is not None]
    shared = [n for n in pieces[0].scalars if all(n in piece.scalars for piece in pieces)]
    return Mesh(
        np.concatenate([piece.vertices for piece in pieces]),
        np.concatenate([piece.faces + n for piece, n in zip(pieces, before, strict=False)]),
        np.concatenate(coloured) if len(coloured) == len(pieces) else None,
        {n: np.concatenate([piece.scalars[n] for piece in pieces]) for n in shared},
    )


class _File:
    """A VTP file: its XML, with methods that decode Piece and DataArray elements."""

    def __init__(self, path: Path) -> None:
        self._path = path
        xml, self._appended, self._appended_encoding = _split_appended(read_bytes(path))
        self.root = parse_xml(path, xml, "a VTKFile of type PolyData")
        if self.root.tag != "VTKFile" or self.root.get("type") != "PolyData":
            raise make_format_error(
                path, "a VTKFile of type PolyData", self.root.get("type", self.root.tag)
            )
        self._order = ">" if self.root.get("byte_order") == "BigEndian" else "<"
        is_wide = self.root.get("header_type") == "UInt64"
        self._word = np.dtype(self._order + ("u8" if is_wide else "u4"))
        self._budget = Budget(path)

    def build_mesh_of_piece(self, piece: ElementTree.Element) -> Mesh:
        """Build the triangles of one Piece, with its scalars and first colours."""
        points = self._read_values(self._find_element(piece, "./Points/DataArray")).reshape(-1, 3)
        announced = self._parse_whole(piece.get("NumberOfPoints", str(len(points))))
        if announced != len(points):
            raise make_format_error(self._path, f"{announced} points in a Piece", f"{len(points)}")
        faces = []
        for kind, cut in (
            ("Polys", Polygons.split_into_fans),
            ("Strips", Polygons.split_into_strips),
        ):
            cells = piece.find(kind)
            if cells is not None and piece.get(f"NumberOf{kind}", "") != "0":
                faces.append(cut(self._read_polygons(cells)))
        scalars: dict[str, Array] = {}
        colours: Colours | None = None
        for element in piece.findall("./PointData/DataArray"):
            components = self._parse_whole(element.get("NumberOfComponents", "1"))
            if element.get("type") not in _KINDS:  # bits
                continue
            if components == 1:
                scalars[element.get("Name", "")] = self._read_values(element)
            elif components in (3, 4) and element.get("type") == "UInt8" and colours is None:
                colours = as_colours(self._read_values(element).reshape(-1, components) / 255)
        return build_mesh(self._path, points, faces, colours, scalars)

    def _read_polygons(self, cells: ElementTree.Element) -> Polygons:
        """Read polygons, given by their corners and by the end of each of them."""
        corners, ends = (
            as_indices(self._read_values(self._find_element(cells, f"./DataArray[@Name='{name}']")))
            for name in ("connectivity", "offsets")
        )
        lengths = np.diff(ends, prepend=0)
        if (lengths < 0).any() or (len(ends) and ends[-1] > len(corners)):
            raise make_format_error(
                self._path, "offsets that rise to the number of corners", "others"
            )
        return Polygons(lengths, corners)

    def _find_element(self, parent: ElementTree.Element, query: str) -> ElementTree.Element:
        element = parent.find(query)
        if element is None:
            raise make_format_error(self._path, f"an element {query.removeprefix('./')}", "none")
        return element

    def _parse_whole(self, word: str) -> int:
        """Parse an integer by the rules of XML, which are stricter than Python's."""
        if not (word.isascii() and word.strip().isdigit() and len(word) < 20):
            raise make_format_error(self._path, "a whole number", word)
        return int(word)

    def _read_values(self, element: ElementTree.Element) -> Array:
        """Read the numbers of one DataArray."""
        kind = element.get("type", "")
        if kind not in _KINDS:
            raise make_format_error(self._path, "a type of numbers", kind)
        if element.get("format", "ascii") == "ascii":
            words = (element.text or "").split()
            values = parse_numbers_fast(words)
            if len(values) < len(words):
                raise make_format_error(
                    self._path, "numbers", next(w for w in words if not parse_numbers_fast([w]))
                )
            return np.array(values, dtype=np.float64)
        dtype = self._order + np.dtype(kind.lower()).str[1:]
        return np.frombuffer(self._decode_element(element), dtype).astype(np.float64)

    def read_letters(self, element: ElementTree.Element) -> bytes:
        """Read the words of one Array, each ended by 0; as text they are codes of letters."""
        if element.get("format", "ascii") == "ascii":
            return bytes(self._parse_whole(word) for word in (element.text or "").split())
        return self._decode_element(element)

    def _decode_element(self, element: ElementTree.Element) -> bytes:
        encoding = element.get("format")
        if encoding == "appended":
            source = self._appended[self._parse_whole(element.get("offset", "0")) :]
            encoding = self._appended_encoding
        else:
            source = (element.text or "").strip().encode("ascii")
        return self._decode_bytes(_take_raw if encoding == "raw" else _take_base64, source)

    def _decode_bytes(
        self, take: Callable[[bytes, int], tuple[bytes, bytes]], source: bytes
    ) -> bytes:
        """Decode data behind a header: the number of bytes, or the sizes of packed blocks."""
        compressor = self.root.get("compressor")
        if compressor is None:
            return self._decode_plain(take, source)
        (n_blocks,) = self._parse_words(take(source, self._word.itemsize)[0])
        if n_blocks == 0:
            return b""
        if n_blocks > len(source):
            raise make_format_error(self._path, f"{n_blocks} blocks", f"{len(source)} bytes")
        header, data = take(source, (3 + n_blocks) * self._word.itemsize)
        _, block_size, last, *packed = self._parse_words(header)
        blocks, _ = take(data, sum(packed))
        sizes = [block_size] * (n_blocks - bool(last)) + [last] * bool(last)
        self._budget.spend(8 * sum(sizes), "what it packs")  # bytes, too, become doubles
        parts, at = [], 0
        for length, size in zip(packed, sizes, strict=True):
            block = _decompress_block(self._path, compressor, blocks[at : at + length], size)
            if len(block) != size:
                raise make_format_error(
                    self._path, f"a block of {size} bytes", f"{len(block)} bytes"
                )
            parts.append(block)
            at += length
        return b"".join(parts)

    def _decode_plain(
        self, take: Callable[[bytes, int], tuple[bytes, bytes]], source: bytes
    ) -> bytes:
        header, data = take(source, self._word.itemsize)
        (n_bytes,) = self._parse_words(header)
        padded = source[: len(source) - len(data)].endswith(b"=")
        if take is _take_base64 and not padded:
            header_and_data, _ = take(source, len(header) + n_bytes)  # header and data in one piece
            return header_and_data[len(header) :]
        return take(data, n_bytes)[0]

    def _parse_words(self, data: bytes) -> list[int]:
        return [int(word) for word in np.frombuffer(data, dtype=self._word)]


def _split_appended(data: bytes) -> tuple[bytes, bytes, str]:
    """Split the XML from the bytes appended to it, and return their encoding."""
    match = _APPENDED.search(data)
    if match is None:
        return data, b"", "raw"
    end = data.rfind(b"</AppendedData>")
    appended = data[match.end() : end if end >= match.end() else len(data)]
    return data[: match.start()] + b"</VTKFile>", appended, match[1].decode().lower()


def _take_raw(source: bytes, count: int) -> tuple[bytes, bytes]:
    """Split data into the first ``count`` bytes and the remaining ones."""
    if count > len(source):
        raise ValueError(f"expected {count} bytes of data; found {len(source)}")
    return source[:count], source[count:]


def _take_base64(source: bytes, count: int) -> tuple[bytes, bytes]:
    """Decode ``count`` bytes of base64, and return them with the text that follows."""
    length = 4 * -(-count // 3)
    if length > len(source):
        raise ValueError(f"expected {count} bytes of data; found fewer")
    return base64.b64decode(source[:length])[:count], source[length:]


def _decompress_block(path: Path, compressor: str, block: bytes, size: int) -> bytes:
    """Decompress one block to at most the size that the file states."""
    if compressor == "vtkZLibDataCompressor":
        return zlib.decompressobj().decompress(block, size + 1)
    if compressor == "vtkLZMADataCompressor":
        return lzma.LZMADecompressor(memlimit=LZMA_MEMORY).decompress(block, size + 1)
    if compressor == "vtkLZ4DataCompressor":
        advice = (
            f'{path} is compressed with LZ4, which needs lz4: pip install "defgpa[mesh]". '
            "Or save it in ParaView with ZLib."
        )
        return bytes(import_extra("lz4.block", advice).decompress(block, uncompressed_size=size))
    raise FormatError(
        f"{path} is compressed with {compressor}. Save it in ParaView with ZLib, or without."
    )


def looks_like_vtp(head: bytes) -> bool:
    """Return whether a file starts as a VTP file does."""
    return b"<VTKFile" in head and b"PolyData" in head
