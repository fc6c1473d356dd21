"""Tokens of an OpenID Connect issuer, taken in the place of a key. PyJWT is imported here alone."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final, Protocol

import jwt

from models.errors import CostCentreRefused, CredentialsRefused, IssuerUnavailable, SettingsError
from pipeline.chargeback.cost_centres import cost_centre_name
from pipeline.settings import OidcSettings

ALGORITHMS: Final = (
    *("RS256", "RS384", "RS512", "PS256", "PS384", "PS512"),
    *("ES256", "ES384", "ES512", "EdDSA"),
)
"""Whoever can check such a signature cannot make one. So ``none`` is refused, and a public key that is taken for the
secret of an HMAC."""

CLAIMS_NEEDED: Final = ("exp", "iss", "aud", "sub")
CLOCK_LEEWAY_S: Final = 30
KEYS_KEPT_S: Final = 300
UNKNOWN_KEY_PAUSE_S: Final = 30
"""Between two looks at the issuer for a key that its set had not."""
ISSUER_ANSWERS_WITHIN_S: Final = 5

PARTS_OF_A_TOKEN: Final = 3


@dataclass(frozen=True, slots=True, kw_only=True)
class TokenHolder:
    """``scopes`` are those words of the claim that the API knows; there may be none."""

    subject: str
    cost_centre: str
    scopes: frozenset[str]


class IssuerKeys(Protocol):
    def key_of(self, token: str) -> jwt.PyJWK: ...


class Tokens:
    """Safe to use from many threads. Raises SettingsError where the file of keys cannot be used."""

    def __init__(self, settings: OidcSettings) -> None:
        self._settings = settings
        self._keys: IssuerKeys = (
            KeysAtUrl(settings.jwks_url or "")
            if settings.jwks_file is None
            else KeysInFile(settings.jwks_file)
        )
        self._jwt = jwt.PyJWT({"enforce_minimum_key_length": True})

    def holder_of(self, token: str) -> TokenHolder:
        """Raises ``CredentialsRefused``, ``CostCentreRefused`` for a token that names none, and ``IssuerUnavailable``
        where the keys to check it with cannot be had."""
        try:
            claims = self._jwt.decode(
                token,
                self._keys.key_of(token),
                algorithms=ALGORITHMS,
                audience=self._settings.audience,
                issuer=self._settings.issuer,
                leeway=CLOCK_LEEWAY_S,
                options={"require": list(CLAIMS_NEEDED)},
            )
        except jwt.PyJWKClientConnectionError as error:
            raise IssuerUnavailable(
                "the issuer's keys cannot be had, so no token can be checked; try again later, or use a key"
            ) from error
        except jwt.PyJWTError as error:
            raise CredentialsRefused(f"the token is refused: {error}; have a new one issued") from error
        return TokenHolder(
            subject=str(claims["sub"]),
            cost_centre=self._cost_centre(claims),
            scopes=self._scopes(claims.get(self._settings.scope_claim)),
        )

    def _cost_centre(self, claims: dict[str, Any]) -> str:
        name, claim = self._settings.cost_centre_claim, claims.get(self._settings.cost_centre_claim)
        if not isinstance(claim, str):
            raise CostCentreRefused(
                f"the token has no claim {name!r} that is a text, so nobody is named who pays; have the issuer add it"
            )
        try:
            return cost_centre_name(claim)
        except SettingsError as error:
            raise CostCentreRefused(f"the token's claim {name!r}: {error}") from error

    def _scopes(self, claim: object) -> frozenset[str]:
        words = claim.split() if isinstance(claim, str) else claim if isinstance(claim, list) else ()
        prefix = self._settings.scope_prefix
        return frozenset(
            word.removeprefix(prefix) for word in words if isinstance(word, str) and word.startswith(prefix)
        )


class KeysAtUrl:
    """Fetched when they are needed, and kept for a while; one that is not among them is looked for again, not too
    often. Redirects are not followed."""

    def __init__(self, url: str) -> None:
        self._client = jwt.PyJWKClient(
            url,
            lifespan=KEYS_KEPT_S,
            timeout=ISSUER_ANSWERS_WITHIN_S,
            cooldown_duration=UNKNOWN_KEY_PAUSE_S,
        )

    def key_of(self, token: str) -> jwt.PyJWK:
        return self._client.get_signing_key_from_jwt(token)


class KeysInFile:
    """Read again when the file is another one."""

    def __init__(self, path: Path) -> None:
        self._path = path
        try:
            self._keys, self._mtime_ns = self._read(), path.stat().st_mtime_ns
        except (OSError, ValueError, jwt.PyJWTError) as error:
            raise SettingsError(
                f"DOCTRIAGE_API__OIDC__JWKS_FILE: {path} holds no set of public keys ({error}); write there what the "
                "issuer shows as its JWKS"
            ) from error

    def key_of(self, token: str) -> jwt.PyJWK:
        """A token that names no key is checked with the only one."""
        wanted = jwt.get_unverified_header(token).get("kid")
        keys = self._current()
        if wanted is None and len(keys) == 1:
            return keys[0]
        for key in keys:
            if wanted is not None and key.key_id == wanted:
                return key
        raise jwt.InvalidKeyError("no key of the issuer has the name that the token gives")

    def _current(self) -> list[jwt.PyJWK]:
        """What was there before, where the file is gone or half written."""
        try:
            mtime_ns = self._path.stat().st_mtime_ns
            if mtime_ns != self._mtime_ns:
                self._keys, self._mtime_ns = self._read(), mtime_ns
        except (OSError, ValueError, jwt.PyJWTError):
            pass
        return self._keys

    def _read(self) -> list[jwt.PyJWK]:
        return jwt.PyJWKSet.from_json(self._path.read_text(encoding="utf-8")).keys


def is_token(text: str) -> bool:
    """Whether it is spelled as one; what it says is not looked at."""
    return text.count(".") == PARTS_OF_A_TOKEN - 1
