"""Where a server is, and who asks it."""

from __future__ import annotations

from urllib.parse import urlsplit

from models.errors import SettingsError


def checked_url(url: str) -> str:
    """Without a slash at its end. Raises SettingsError; a password in it is not shown."""
    how = "write it like https://docs.example.org:8321"
    try:
        parts = urlsplit(url.strip())
        _ = parts.port
    except ValueError as error:
        raise SettingsError(f"the server's address is none ({error}); {how}") from error
    if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
        raise SettingsError(f"the server's address is none; {how}")
    if "@" in parts.netloc:
        raise SettingsError("the server's address holds a user; leave it out, and give a key")
    return url.strip().rstrip("/")


def credentials(key: str | None) -> dict[str, str]:
    """The headers that say who asks. Raises SettingsError for a key that is none."""
    if key is None:
        return {}
    if not key.isascii() or not key.isprintable() or " " in key or not key:
        raise SettingsError("the key is none: it is visible ASCII; `doctriage keys create` makes one")
    return {"authorization": f"Bearer {key}"}
