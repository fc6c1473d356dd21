"""What a writer of a format is given: a document's header, and its pages one after the other, as in the JSON output."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

Json = Mapping[str, Any]
Pages = Iterable[Json]
