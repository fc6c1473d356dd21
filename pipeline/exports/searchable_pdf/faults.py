"""What pypdf raises on broken bytes, beyond its own errors."""

from __future__ import annotations

import struct
import zlib
from typing import Final

from pypdf.errors import DependencyError, DeprecationError, PyPdfError

PARSER_FAULTS: Final = (
    PyPdfError,
    DependencyError,
    DeprecationError,
    OSError,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    ArithmeticError,
    AttributeError,
    AssertionError,
    RuntimeError,
    MemoryError,
    struct.error,
    zlib.error,
)
