"""multipart/form-data as it arrives: one file, given on in chunks, and a few small fields. python-multipart parses;
this is the only file that imports it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header

from models.errors import BodyMalformed, BodyUnsupported, RequestInvalid, TooManyBytes

FILE: Final = "file"
MOST_PARTS: Final = 24
MOST_FIELD_BYTES: Final = 64 * 1024
"""Of all fields together, without the file."""

HOW: Final = "send multipart/form-data with the document in the field `file`"


def boundary_of(content_type: str | None) -> bytes:
    """Raises BodyUnsupported for a body of another kind."""
    kind, options = parse_options_header(content_type or "")
    boundary = options.get(b"boundary")
    if kind != b"multipart/form-data" or not boundary:
        raise BodyUnsupported(f"the body is {kind.decode('latin-1') or 'of no kind'}; {HOW}")
    return boundary


@dataclass(slots=True)
class FormParser:
    """``feed`` what arrives; ``taken`` gives the file's bytes that came since. Raises BodyMalformed, RequestInvalid,
    and TooManyBytes as soon as the file is larger than it may be."""

    boundary: bytes
    max_file_bytes: int
    fields: dict[str, str] = field(default_factory=dict)
    file_name: str | None = None
    file_bytes: int = 0
    _pending: bytearray = field(default_factory=bytearray)
    _header: bytearray = field(default_factory=bytearray)
    _value: bytearray = field(default_factory=bytearray)
    _headers: dict[bytes, bytes] = field(default_factory=dict)
    _name: str = ""
    _is_file: bool = False
    _text: bytearray = field(default_factory=bytearray)
    _parts: int = 0
    _field_bytes: int = 0
    _has_ended: bool = False
    _parser: MultipartParser | None = None

    def feed(self, chunk: bytes) -> None:
        try:
            if self._parser is None:
                self._parser = self._new_parser()
            self._parser.write(chunk)
        except FormParserError as error:
            raise BodyMalformed(f"the body is no multipart/form-data ({error}); {HOW}") from error

    @property
    def pending_bytes(self) -> int:
        return len(self._pending)

    def taken(self) -> bytearray:
        chunk, self._pending = self._pending, bytearray()
        return chunk

    def end(self) -> None:
        """Nothing more arrives."""
        if not self._has_ended:
            raise BodyMalformed("the body ends before its last boundary; send it again, whole")
        if self.file_name is None:
            raise RequestInvalid(f"there is no document; {HOW}", faults=((FILE, "is missing"),))

    def _new_parser(self) -> MultipartParser:
        return MultipartParser(
            self.boundary,
            {
                "on_part_begin": self._part_begins,
                "on_header_field": self._header_name,
                "on_header_value": self._header_value,
                "on_header_end": self._header_ends,
                "on_headers_finished": self._headers_end,
                "on_part_data": self._part_data,
                "on_part_end": self._part_ends,
                "on_end": self._end,
            },
        )

    def _part_begins(self) -> None:
        self._parts += 1
        if self._parts > MOST_PARTS:
            raise RequestInvalid(f"there are more than {MOST_PARTS} fields; send fewer")
        self._headers.clear()
        self._text.clear()

    def _header_name(self, data: bytes, start: int, end: int) -> None:
        self._header += data[start:end]

    def _header_value(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header_ends(self) -> None:
        self._headers[bytes(self._header).lower()] = bytes(self._value)
        self._header.clear()
        self._value.clear()

    def _headers_end(self) -> None:
        _, options = parse_options_header(self._headers.get(b"content-disposition", b""))
        self._name = options.get(b"name", b"").decode("utf-8", "replace")
        file_name = _file_name(options)
        self._is_file = self._name == FILE
        if not self._is_file and file_name is not None:
            raise RequestInvalid(
                "only one file is taken; send one request for each document",
                faults=((self._name, "is a file"),),
            )
        if self._name in self.fields or (self._is_file and self.file_name is not None):
            raise RequestInvalid("a field comes twice; send it once", faults=((self._name, "comes twice"),))
        if self._is_file:
            self.file_name = file_name or ""

    def _part_data(self, data: bytes, start: int, end: int) -> None:
        if self._is_file:
            self.file_bytes += end - start
            if self.file_bytes > self.max_file_bytes:
                raise too_many_bytes(self.max_file_bytes)
            self._pending += data[start:end]
            return
        self._field_bytes += end - start
        if self._field_bytes > MOST_FIELD_BYTES:
            raise RequestInvalid(f"the fields have more than {MOST_FIELD_BYTES:,} bytes; send less")
        self._text += data[start:end]

    def _part_ends(self) -> None:
        if not self._is_file:
            try:
                self.fields[self._name] = self._text.decode("utf-8")
            except UnicodeDecodeError as error:
                raise RequestInvalid(
                    "a field is no UTF-8; send it so", faults=((self._name, "is no UTF-8"),)
                ) from error

    def _end(self) -> None:
        self._has_ended = True


def too_many_bytes(most: int) -> TooManyBytes:
    return TooManyBytes(
        f"the document has more than {most:,} bytes; split it, or raise DOCTRIAGE_API__MAX_UPLOAD_BYTES"
    )


def _file_name(options: dict[bytes, bytes]) -> str | None:
    """RFC 7578 has no ``filename*`` in forms: names are sent in UTF-8."""
    plain = options.get(b"filename")
    return None if plain is None else plain.decode("utf-8", "replace")
