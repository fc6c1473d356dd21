"""deploy/compose.yaml: valid, whole, closed to the outside, and without a secret of its own."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml

from pipeline.settings import load_settings, setting_variables
from tests.deploy_files import COMPOSE, DEPLOY, SECRET, assignments, compose, new_env, services

REQUIRED = ("POSTGRES_PASSWORD", "DOCTRIAGE_DATABASE_URL", "DOCTRIAGE_POOL__BROKER_URL")
VARIABLE = re.compile(r"(?<!\$)\$\{(\w+)(?::?([-?])([^}]*))?\}")
WORKERS = ("intake", "ocr", "vlm")
ONE_SHOT = ("migrate", "doctriage")
WITHOUT_A_CHECK = ("flower", *ONE_SHOT)


@pytest.fixture(scope="module")
def env() -> str:
    return new_env()


@pytest.fixture(scope="module")
def all_services(env: str, tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    return services(tmp_path_factory.mktemp("compose"), env)


@pytest.mark.parametrize("broker", ["redis", "rabbitmq"])
def test_a_new_env_starts_the_broker_it_names_and_every_worker(broker: str, tmp_path: Path) -> None:
    env = new_env(broker)
    started = set(compose(tmp_path, "config", "--services", env=env).stdout.split())
    assert {"postgresql", broker, "migrate", "intake", "ocr", "beat", "api"} <= started
    values = assignments(env)
    assert values["COMPOSE_PROFILES"] == broker
    assert f"@{broker}:" in values["DOCTRIAGE_POOL__BROKER_URL"]
    assert values["POSTGRES_PASSWORD"] in values["DOCTRIAGE_DATABASE_URL"]
    assert values[f"{broker.upper()}_PASSWORD"] in values["DOCTRIAGE_POOL__BROKER_URL"]


@pytest.mark.parametrize("name", REQUIRED)
def test_compose_refuses_to_start_without_a_secret(name: str, env: str, tmp_path: Path) -> None:
    without = re.sub(rf"^{name}=.*$", f"{name}=", env, flags=re.MULTILINE)
    answer = compose(tmp_path, "config", env=without)
    assert answer.returncode != 0
    assert f"set {name} in .env" in answer.stderr


def test_the_example_itself_starts_nothing(tmp_path: Path) -> None:
    answer = compose(tmp_path, "config", env=(DEPLOY / "example.env").read_text(encoding="utf-8"))
    assert answer.returncode != 0


def test_two_new_envs_share_no_secret() -> None:
    first, second = assignments(new_env()), assignments(new_env())
    secret = [name for name in first if SECRET.search(name) and first[name] and "BLOBS" not in name]
    assert len(secret) == 8
    assert [name for name in secret if first[name] == second[name]] == []


def test_another_broker_is_refused() -> None:
    answer = subprocess.run([DEPLOY / "new_env.sh", "kafka"], capture_output=True, text=True, check=False)
    assert (answer.returncode, answer.stdout) == (2, "")
    assert "redis|rabbitmq" in answer.stderr


def test_the_example_env_holds_no_secret() -> None:
    values = assignments((DEPLOY / "example.env").read_text(encoding="utf-8"))
    assert [name for name, value in values.items() if SECRET.search(name) and value] == []


def test_no_secret_has_a_default_or_stands_in_the_file() -> None:
    text = COMPOSE.read_text(encoding="utf-8")
    defaults = {match[1]: match[3] for match in VARIABLE.finditer(text) if match[2] == "-"}
    assert [name for name, value in defaults.items() if SECRET.search(name) and value] == []
    for name, service in yaml.safe_load(text)["services"].items():
        environment = service.get("environment", {})
        given = environment.items() if isinstance(environment, dict) else ()
        plain = [key for key, value in given if SECRET.search(key) and not VARIABLE.search(str(value))]
        assert plain == [], name
    assert re.findall(r"://[^/\s$]*:[^/\s$]+@", text) == []


def test_every_variable_of_the_file_is_in_the_example_or_has_a_default() -> None:
    shown = assignments((DEPLOY / "example.env").read_text(encoding="utf-8"))
    used = {match[1]: match[2] for match in VARIABLE.finditer(COMPOSE.read_text(encoding="utf-8"))}
    assert [name for name, kind in used.items() if name not in shown and kind != "-"] == []
    ours = [name for name in shown if not name.startswith(("DOCTRIAGE_", "COMPOSE_"))]
    passed_on = ["REDIS_PASSWORD"]
    assert [name for name in ours if name not in used and name not in passed_on] == []


def test_every_setting_of_the_example_is_one_and_has_a_value_that_is_taken(
    env: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    shown = {name: value for name, value in assignments(env).items() if name.startswith("DOCTRIAGE_")}
    assert set(shown) <= set(setting_variables())
    for name, value in shown.items():
        if value:
            monkeypatch.setenv(name, value)
    settings = load_settings()
    assert settings.database_url is not None
    assert settings.pool.broker_url is not None


def test_the_settings_that_compose_gives_are_taken(
    all_services: Mapping[str, Mapping[str, Any]], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in all_services["ocr"]["environment"].items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    assert (settings.home, settings.blobs.url) == (Path("/var/lib/doctriage"), "file:///blobs")


def test_ports_answer_on_this_machine_alone(all_services: Mapping[str, Mapping[str, Any]]) -> None:
    published = [port for service in all_services.values() for port in service.get("ports", ())]
    assert len(published) >= 5
    assert [port for port in published if not str(port).startswith("127.0.0.1:")] == []


def test_every_service_is_limited_checked_and_restarted(
    all_services: Mapping[str, Mapping[str, Any]],
) -> None:
    for name, service in all_services.items():
        assert service["mem_limit"], name
        assert service["logging"]["options"]["max-size"], name
        assert "no-new-privileges:true" in service["security_opt"], name
        assert service["restart"] in (["no", "on-failure"] if name in ONE_SHOT else ["unless-stopped"]), name
        is_checked = service.get("healthcheck", {"test": ["NONE"]})["test"] != ["NONE"]
        assert is_checked is (name not in WITHOUT_A_CHECK), name


def test_only_what_must_write_to_its_root_may(all_services: Mapping[str, Mapping[str, Any]]) -> None:
    assert {name for name, service in all_services.items() if not service.get("read_only")} == {
        "rabbitmq",
        "vllm",
    }


def test_workers_share_blobs_and_nothing_else(all_services: Mapping[str, Mapping[str, Any]]) -> None:
    for name in (*WORKERS, "beat", "api", *ONE_SHOT):
        volumes = all_services[name]["volumes"]
        assert [volume for volume in volumes if volume.startswith("blobs:")] == ["blobs:/blobs:rw"], name
        assert "/var/lib/doctriage" in volumes, name
        assert "hostname" not in all_services[name], name
