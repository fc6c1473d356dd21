"""Settings come from the environment and the command line, and an unknown one stops the program at start."""

from __future__ import annotations

from pathlib import Path

import pytest

from models.errors import SettingsError
from pipeline.settings import load_settings, setting_variables


@pytest.fixture(autouse=True)
def _no_settings_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in setting_variables():
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "name", ["DOCTRIAGE_BOGUS", "DOCTRIAGE_READ__BOGUS", "doctriage_bogus", "DOCTRIAGE_"]
)
def test_an_unknown_variable_is_refused_with_the_known_ones(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(SettingsError, match=rf"^{name} is no setting.*DOCTRIAGE_READ__ENGINE"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("DOCTRIAGE_JOBS", "DOCTRIAGE_EXECUTOR__JOBS"),
        ("DOCTRIAGE_READ_ENGINE", "DOCTRIAGE_READ__ENGINE"),
        ("DOCTRIAGE_REED__ENGINE", "DOCTRIAGE_READ__ENGINE"),
    ],
)
def test_a_near_miss_names_the_variable_meant(name: str, meant: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(name, "1")
    with pytest.raises(SettingsError, match=rf"did you mean {meant}\?"):
        load_settings()


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("DOCTRIAGE_READ__ENGINE", "abbyy", "read.engine: .*tesseract.*paddleocr"),
        ("DOCTRIAGE_READ__LANGUAGES", "--psm", "read.languages"),
        ("DOCTRIAGE_READ__LANGUAGES", "", "read.languages"),
        ("DOCTRIAGE_RASTERISE__DPI", "12", "rasterise.dpi"),
        ("DOCTRIAGE_VLM__CONCURRENCY", "0", "greater than or equal to 1"),
        ("DOCTRIAGE_VLM__WAIT_S", "-1", "greater than or equal to 0"),
        ("DOCTRIAGE_READ", "{", "^settings: DOCTRIAGE_READ: this is no JSON: "),
        ("DOCTRIAGE_POOL__WEIGHTS", "{finance: 2}", "^settings: DOCTRIAGE_POOL__WEIGHTS: this is no JSON: "),
        ("DOCTRIAGE_HOME", "", "home: .*empty"),
        ("DOCTRIAGE_HOME", "~no-such-user/x", "home: .*no-such-user/x.*in full"),
        (
            "DOCTRIAGE_DATABASE_URL",
            "",
            "^settings: database_url: write it as postgresql://user:password@host:port/name",
        ),
        ("DOCTRIAGE_DATABASE_URL", "sqlite:///state", "database_url: .*leave it out"),
        ("DOCTRIAGE_DATABASE_URL", "postgresql://user@host", "database_url: .*/name"),
        ("DOCTRIAGE_DATABASE_URL", "postgresql://user@host:many/name", "database_url"),
        ("DOCTRIAGE_EXECUTOR__MEMORY_LIMIT_BYTES", str(2**63), "executor.memory_limit_bytes"),
        ("DOCTRIAGE_EXECUTOR__MEMORY_LIMIT_BYTES", "1" + "0" * 5_000, "executor.memory_limit_bytes"),
        ("DOCTRIAGE_EXECUTOR__MEMORY_LIMIT_BYTES", "-1", "executor.memory_limit_bytes"),
        ("DOCTRIAGE_EXECUTOR__PAGE_TIMEOUT_S", "1e300", "executor.page_timeout_s"),
        ("DOCTRIAGE_POOL__WEIGHTS", '{"legal": 1e-300}', r"pool\.weights\.legal: .*0\.001"),
        ("DOCTRIAGE_API__CALLBACK_NETWORKS", "10.0.0.1/8", "api.callback_networks"),
        ("DOCTRIAGE_API__CALLBACK_NETWORKS", "10.0.0.0/8;fd00::/8", "api.callback_networks"),
        ("DOCTRIAGE_API__OIDC__ISSUER", "https://id.example", "api.oidc: .*audience.*set all three"),
        ("DOCTRIAGE_API__OIDC__JWKS_URL", "http://id.example/keys", "api.oidc.jwks_url: .*https"),
        ("DOCTRIAGE_API__REQUESTS_PER_MIN", "0", "api.requests_per_min"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(
    name: str, value: str, message: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(name, value)
    with pytest.raises(SettingsError, match=message):
        load_settings()


@pytest.mark.parametrize("password", ["p@ss", "p#ss", "p/ss", "p?ss@", "p:s@s"])
def test_a_password_that_is_spelled_wrongly_is_refused_and_not_shown(
    password: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTRIAGE_DATABASE_URL", f"postgresql://user:{password}@host/name")
    with pytest.raises(SettingsError, match="%40") as refused:
        load_settings()
    assert password not in str(refused.value)


@pytest.mark.parametrize(
    "url",
    [
        "postgresql://user:p%40ss@host:5432/name",
        "postgres://user@host/name",
        "postgresql:///name?host=/run/postgresql",
        "postgresql://[::1]:5433/name?sslmode=require",
    ],
)
def test_a_database_is_named_by_a_url_that_stays_secret(url: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTRIAGE_DATABASE_URL", url)
    settings = load_settings()
    assert settings.database_url is not None
    assert settings.database_url.get_secret_value() == url
    assert url not in f"{settings!r} {settings.model_dump(mode='json')}"


def test_a_secret_of_callbacks_that_is_too_short_is_refused_and_not_shown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCTRIAGE_API__CALLBACK_SECRET", "a-short-word")
    with pytest.raises(SettingsError, match=r"api\.callback_secret: .*32") as refused:
        load_settings()
    assert "a-short-word" not in str(refused.value)


@pytest.mark.parametrize(
    "keys", ["https://id.example/keys", "http://localhost:8080/keys", "http://[::1]/keys"]
)
def test_the_keys_of_an_issuer_come_from_one_place(keys: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in (("ISSUER", "https://id.example"), ("AUDIENCE", "doctriage"), ("JWKS_URL", keys)):
        monkeypatch.setenv(f"DOCTRIAGE_API__OIDC__{name}", value)
    assert load_settings().api.oidc.is_configured
    monkeypatch.setenv("DOCTRIAGE_API__OIDC__JWKS_FILE", "keys.json")
    with pytest.raises(SettingsError, match="leave one out"):
        load_settings()


def test_networks_of_callbacks_stand_with_commas_in_between(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTRIAGE_API__CALLBACK_NETWORKS", "10.1.0.0/16, fd00::/8")
    assert [str(one) for one in load_settings().api.callback_networks] == ["10.1.0.0/16", "fd00::/8"]


def test_no_listed_variable_is_called_unknown(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "DOCTRIAGE_VLM__PLAN_FILE" in setting_variables()
    for name in setting_variables():
        with monkeypatch.context() as environment:
            environment.setenv(name, "12")
            try:
                load_settings()
            except SettingsError as fault:
                assert "is no setting" not in str(fault)  # noqa: PT017 — a good value raises nothing


def test_the_command_line_wins_over_the_environment_setting_by_setting(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("DOCTRIAGE_READ__ENGINE", "paddleocr")
    monkeypatch.setenv("DOCTRIAGE_READ__LANGUAGES", "deu")
    monkeypatch.setenv("DOCTRIAGE_HOME", "state")
    settings = load_settings({"read": {"languages": "eng+fra"}})
    assert settings.read.engine == "paddleocr"
    assert settings.read.languages == ("eng", "fra")
    assert settings.home == Path("state")


@pytest.mark.parametrize("spelling", ["eng+deu", "eng,deu"])
def test_languages_are_spelled_as_tesseract_spells_them(
    spelling: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("DOCTRIAGE_READ__LANGUAGES", spelling)
    assert load_settings().read.languages == ("eng", "deu")
