"""Where the model is and how it is spoken to."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Final
from urllib.parse import urlsplit

from models.errors import SettingsError

NO_KEY = "EMPTY"
"""What is sent where the server wants no key; the protocol has no way to send none."""

NO_THINKING: Final[Mapping[str, object]] = MappingProxyType(
    {"chat_template_kwargs": {"enable_thinking": False}}
)
"""For ``VlmEndpoint.extra_body``: vLLM's way to switch thinking off in models that can think."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """``system`` comes first and never changes, so that the server's prefix cache keeps it. ``user`` gives the
    text after the images from the number of pages they show."""

    system: str
    user: Callable[[int], str]


@dataclass(frozen=True, slots=True, kw_only=True)
class VlmEndpoint:
    """An OpenAI-compatible endpoint. ``base_url`` is the address up to ``/v1``.

    ``answer_timeout_s`` bounds a whole call. ``send_priority`` and ``extra_body`` (fields of the request beyond
    the protocol) are for servers that know them, as vLLM does. Raises SettingsError for an address or a key
    that cannot be sent.
    """

    base_url: str
    model_id: str
    api_key: str = field(default=NO_KEY, repr=False)
    connect_timeout_s: float = 10.0
    answer_timeout_s: float = 300.0
    send_priority: bool = False
    extra_body: Mapping[str, object] = field(default_factory=dict)

    def __post_init__(self) -> None:
        if not _is_address(self.base_url):
            raise SettingsError(f"{self.shown_url}: no address of a VLM; write it as http://host:port/v1")
        if "@" in self.base_url:
            raise SettingsError(f"{self.shown_url}: leave user and password out of it and give the API key")
        if not self.api_key or not all("!" <= sign <= "~" for sign in self.api_key):
            raise SettingsError(
                "the VLM's API key is empty or holds spaces or signs beyond ASCII; look it up"
            )

    @property
    def shown_url(self) -> str:
        """The address as messages show it."""
        return without_secrets(self.base_url).rstrip("/")

    @property
    def too_slow(self) -> str:
        """What to say of a call that ran into the time limit."""
        return (
            f"{self.shown_url}: no answer within {self.answer_timeout_s:g} s; "
            "lower DOCTRIAGE_VLM__CONCURRENCY or raise DOCTRIAGE_VLM__TIMEOUT_S"
        )


def without_secrets(url: str) -> str:
    """Without user, password, query and fragment."""
    scheme, mark, rest = url.partition("#")[0].partition("?")[0].rpartition("://")
    return f"{scheme}{mark}{rest.rpartition('@')[2]}"


def _is_address(url: str) -> bool:
    """Whether a path can be put behind it."""
    if any(sign.isspace() or sign in "?#" for sign in url):
        return False
    try:
        parts = urlsplit(url)
        return parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:
        return False
