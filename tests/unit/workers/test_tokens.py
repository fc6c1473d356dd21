"""Tokens of an issuer: which are taken, and for whom."""

from __future__ import annotations

import base64
import json
import time
from pathlib import Path
from typing import Any, Final

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa
from cryptography.hazmat.primitives.asymmetric.types import PrivateKeyTypes
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat

from models.errors import CostCentreRefused, CredentialsRefused, SettingsError
from pipeline.settings import OidcSettings
from workers.api.tokens import Tokens, is_token

ISSUER: Final = "https://issuer.example/realm"
AUDIENCE: Final = "doctriage"
RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
OTHER_RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=2048)
WEAK_RSA_KEY: Final = rsa.generate_private_key(public_exponent=65537, key_size=1024)
EC_KEY: Final = ec.generate_private_key(ec.SECP256R1())
ED_KEY: Final = ed25519.Ed25519PrivateKey.generate()
SHARED_SECRET: Final = b"s" * 64


def jwk(algorithm: str, key: Any, kid: str) -> dict[str, Any]:
    public = jwt.get_algorithm_by_name(algorithm).to_jwk(key, as_dict=True)
    return {**public, "kid": kid, "use": "sig", "alg": algorithm}


KEYS: Final = {
    "keys": [
        jwk("RS256", RSA_KEY.public_key(), "rsa"),
        jwk("RS256", WEAK_RSA_KEY.public_key(), "weak"),
        jwk("ES256", EC_KEY.public_key(), "ec"),
        jwk("EdDSA", ED_KEY.public_key(), "ed"),
        jwk("HS256", SHARED_SECRET, "shared"),
    ]
}


def claims(**changes: Any) -> dict[str, Any]:
    now_s = int(time.time())
    wanted = {
        "iss": ISSUER,
        "aud": AUDIENCE,
        "sub": "ada",
        "exp": now_s + 60,
        "cost_centre": "harbour/crane",
        "scope": "openid read submit",
        **changes,
    }
    return {name: value for name, value in wanted.items() if value is not None}


def token(
    key: PrivateKeyTypes | bytes | None = RSA_KEY,
    algorithm: str = "RS256",
    kid: str | None = "rsa",
    **changes: Any,
) -> str:
    headers = None if kid is None else {"kid": kid}
    return jwt.encode(claims(**changes), key, algorithm=algorithm, headers=headers)  # type: ignore[arg-type]


@pytest.fixture
def jwks_file(tmp_path: Path) -> Path:
    path = tmp_path / "jwks.json"
    path.write_text(json.dumps(KEYS), encoding="utf-8")
    return path


def tokens(jwks_file: Path, **changes: Any) -> Tokens:
    return Tokens(OidcSettings(issuer=ISSUER, audience=AUDIENCE, jwks_file=jwks_file, **changes))


@pytest.mark.parametrize(
    ("key", "algorithm", "kid"), [(RSA_KEY, "RS256", "rsa"), (EC_KEY, "ES256", "ec"), (ED_KEY, "EdDSA", "ed")]
)
def test_a_sound_token_says_for_whom_and_how_far(
    key: PrivateKeyTypes, algorithm: str, kid: str, jwks_file: Path
) -> None:
    holder = tokens(jwks_file).holder_of(token(key, algorithm, kid))
    assert (holder.subject, holder.cost_centre) == ("ada", "harbour/crane")
    assert holder.scopes >= {"read", "submit"}
    assert "admin" not in holder.scopes


def unsigned() -> str:
    """What a library that takes the header's word for it would let in."""
    parts = ({"alg": "none", "typ": "JWT", "kid": "rsa"}, claims())
    return (
        ".".join(base64.urlsafe_b64encode(json.dumps(part).encode()).decode().rstrip("=") for part in parts)
        + "."
    )


def signed_with_the_public_key_as_a_secret() -> str:
    pem = RSA_KEY.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)
    algorithm = jwt.get_algorithm_by_name("HS256")
    head, body, _ = token().split(".")
    head = base64.urlsafe_b64encode(json.dumps({"alg": "HS256", "kid": "rsa"}).encode()).decode().rstrip("=")
    signature = algorithm.sign(f"{head}.{body}".encode(), pem)
    return f"{head}.{body}.{base64.urlsafe_b64encode(signature).decode().rstrip('=')}"


def changed_body() -> str:
    head, _, signature = token().split(".")
    body = base64.urlsafe_b64encode(json.dumps(claims(cost_centre="attic")).encode()).decode().rstrip("=")
    return f"{head}.{body}.{signature}"


REFUSED: Final = {
    "unsigned": unsigned(),
    "another key": token(OTHER_RSA_KEY),
    "a shared secret": token(SHARED_SECRET, "HS256", "shared"),
    "the public key as a secret": signed_with_the_public_key_as_a_secret(),
    "changed": changed_body(),
    "expired": token(exp=int(time.time()) - 120),
    "not yet": token(nbf=int(time.time()) + 120),
    "another audience": token(aud="another"),
    "another issuer": token(iss="https://another.example"),
    "no expiry": token(exp=None),
    "no audience": token(aud=None),
    "no issuer": token(iss=None),
    "no subject": token(sub=None),
    "an unknown key": token(kid="new"),
    "no key named": token(kid=None),
    "another algorithm than the key's": token(RSA_KEY, "PS256"),
    "nothing like a token": "a.b.c",
}


@pytest.mark.parametrize("text", REFUSED.values(), ids=REFUSED)
def test_all_others_are_refused(text: str, jwks_file: Path) -> None:
    with pytest.raises(CredentialsRefused, match=r"^the token is refused: .+; have a new one issued$"):
        tokens(jwks_file).holder_of(text)


@pytest.mark.filterwarnings("ignore::jwt.warnings.InsecureKeyLengthWarning")
def test_a_weak_key_vouches_for_nobody(jwks_file: Path) -> None:
    with pytest.raises(CredentialsRefused):
        tokens(jwks_file).holder_of(token(WEAK_RSA_KEY, "RS256", "weak"))


@pytest.mark.parametrize("cost_centre", [None, "", "a//b", "a/b/c", 7, ["harbour"]])
def test_a_token_that_names_nobody_who_pays_is_refused(cost_centre: object, jwks_file: Path) -> None:
    with pytest.raises(CostCentreRefused, match="'cost_centre'"):
        tokens(jwks_file).holder_of(token(cost_centre=cost_centre))


@pytest.mark.parametrize(
    ("claim", "scopes"),
    [
        (None, set()),
        ("", set()),
        ("doctriage:read doctriage:submit read", {"read", "submit"}),
        (["doctriage:admin", 7, "doctriage:other"], {"admin", "other"}),
        ({"doctriage:admin": True}, set()),
    ],
)
def test_scopes_are_words_or_a_list_with_the_prefix_that_is_set(
    claim: object, scopes: set[str], jwks_file: Path
) -> None:
    reading = tokens(jwks_file, scope_claim="roles", scope_prefix="doctriage:")
    assert reading.holder_of(token(roles=claim, scope="admin")).scopes == scopes


def test_new_keys_in_the_file_are_known_at_once_and_half_a_file_changes_nothing(jwks_file: Path) -> None:
    reading = tokens(jwks_file)
    one = {"keys": [jwk("RS256", OTHER_RSA_KEY.public_key(), "new")]}
    for text in ("{", json.dumps(one)):
        jwks_file.write_text(text, encoding="utf-8")
        if text == "{":
            reading.holder_of(token())
    assert reading.holder_of(token(OTHER_RSA_KEY, kid="new")).subject == "ada"
    assert reading.holder_of(token(OTHER_RSA_KEY, kid=None)).subject == "ada", "there is but one"
    with pytest.raises(CredentialsRefused):
        reading.holder_of(token())
    jwks_file.unlink()
    assert reading.holder_of(token(OTHER_RSA_KEY, kid="new")).subject == "ada"


@pytest.mark.parametrize("text", ["", "{}", '{"keys": []}', '{"keys": [{"kty": "none"}]}'])
def test_a_file_without_keys_is_refused_at_the_start(text: str, tmp_path: Path) -> None:
    path = tmp_path / "jwks.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"JWKS_FILE.*holds no set of public keys"):
        tokens(path)


def test_keys_of_the_api_are_no_tokens() -> None:
    assert is_token(token())
    assert not is_token("dt_aaaaaaaaaa_" + "b" * 43)
