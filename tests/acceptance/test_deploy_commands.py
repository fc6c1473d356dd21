"""Every command line of doctriage below deploy/ is one that doctriage takes, and is given the time that it needs."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import typer.main

from models.pool import Queue
from pipeline.settings import load_settings, setting_variables
from tests.deploy_files import DEPLOY, ROOT, UNITS, new_env, services, unit
from workers.cli import app
from workers.task_limits import BROKER_SLACK_S, longest_task, task_limits

README = (DEPLOY / "README.md").read_text(encoding="utf-8")
SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def command_of(words: Sequence[str]) -> tuple[Any, list[str]]:
    """The command, and what is said to it."""
    command: Any = typer.main.get_command(app)
    left = list(words)
    while hasattr(command, "commands"):
        assert left, f"{words}: which command?"
        name = left.pop(0)
        assert name in command.commands, f"{words}: no command {name}"
        command = command.commands[name]
    return command, left


def require_taken(words: Sequence[str]) -> None:
    """Raises what the command line shows to whoever types this."""
    command, left = command_of(words)
    command.make_context("doctriage", left)


def require_known(words: Sequence[str]) -> None:
    """Of a command that may be told in part: its options are there."""
    command, left = command_of(words)
    known = {option for parameter in command.params for option in parameter.opts}
    assert [word for word in left if word.startswith("--") and word not in known] == []


def commands_in(text: str) -> Iterator[tuple[str, ...]]:
    """What stands after the program's name, in code: up to the end of the line or span, a pipe or a comment."""
    blocks = re.findall(r"```\n(.*?)```", text, re.DOTALL)
    spans = re.findall(r"`([^`\n]+)`", re.sub(r"```\n.*?```", "", text, flags=re.DOTALL))
    for line in (*"".join(blocks).replace("\\\n", " ").splitlines(), *spans):
        words = shlex.split(line, comments=True)
        for place, word in enumerate(words):
            following = words[place + 1 :]
            if word.rpartition("/")[2] == "doctriage" and following and re.fullmatch("[a-z]+", following[0]):
                yield tuple(following)


@pytest.fixture(scope="module")
def all_services(tmp_path_factory: pytest.TempPathFactory) -> Mapping[str, Mapping[str, Any]]:
    return services(tmp_path_factory.mktemp("compose"), new_env())


def unit_command(name: str) -> list[str]:
    """Of a unit, with the values that it has by itself."""
    text = (UNITS / name).read_text(encoding="utf-8")
    values = dict(re.findall(r"(\w+)=(\S+)", " ".join(re.findall(r"^Environment=(.*)$", text, re.MULTILINE))))
    line = unit(UNITS / name)["Service"]["ExecStart"]
    return shlex.split(re.sub(r"\$\{(\w+)\}", lambda match: values[match[1]], line))


@pytest.mark.parametrize("name", ["migrate", "intake", "ocr", "vlm", "beat", "api", "doctriage"])
def test_a_container_starts_a_command_that_there_is(
    name: str, all_services: Mapping[str, Mapping[str, Any]]
) -> None:
    require_taken(all_services[name]["command"])


@pytest.mark.parametrize(
    "name", [path.name for path in sorted(UNITS.glob("*.service")) if "vllm" not in path.name]
)
def test_a_unit_starts_a_command_that_there_is(name: str) -> None:
    program, *words = unit_command(name)
    assert program == "/opt/doctriage/.venv/bin/doctriage"
    require_taken(words)


@pytest.mark.parametrize("words", sorted(set(commands_in(README))), ids=" ".join)
def test_the_readme_names_commands_and_options_that_there_are(words: tuple[str, ...]) -> None:
    require_known(words)


def test_a_command_that_is_none_would_be_found() -> None:
    assert list(commands_in("`doctriage ingets a`\n```\nx | /opt/doctriage read 'b c' # why\n```\n")) == [
        ("read", "b c"),
        ("ingets", "a"),
    ]
    with pytest.raises(AssertionError, match="no command ingets"):
        require_taken(["ingets", "a"])
    with pytest.raises(Exception, match="--jbos"):
        require_taken(["ingest", "a", "--out", "b", "--jbos", "3"])
    with pytest.raises(AssertionError, match="--jbos"):
        require_known(["ingest", "--jbos"])


def test_every_queue_has_a_worker_in_compose_and_among_the_units(
    all_services: Mapping[str, Mapping[str, Any]],
) -> None:
    def served(commands: Sequence[Sequence[str]]) -> list[str]:
        lists = [words[words.index("--queues") + 1] for words in commands if "--queues" in words]
        return sorted(name for names in lists for name in names.split(","))

    every = sorted(map(str, Queue))
    assert served([service.get("command", []) for service in all_services.values()]) == every
    units = [path.name for path in UNITS.glob("*.service")]
    assert served([unit_command(name) for name in units]) == every


def test_a_worker_has_the_time_to_finish_what_it_does(
    all_services: Mapping[str, Mapping[str, Any]],
) -> None:
    limits = task_limits(load_settings())
    stops = {
        "intake": [limits[Queue.INTAKE], limits[Queue.ASSEMBLE]],
        "ocr": [limits[Queue.OCR]],
        "vlm": [limits[Queue.VLM]],
    }
    for name, tasks in stops.items():
        needed_s = max(task.longest_s for task in tasks)
        unit_stop = unit(UNITS / f"doctriage-{name}.service")["Service"]["TimeoutStopSec"]
        for given in (all_services[name]["stop_grace_period"], unit_stop):
            match = re.fullmatch(r"(\d+)(\w+?)(?:0s)?", given)
            assert match is not None
            assert int(match[1]) * SECONDS[match[2]] > needed_s, (name, given)


def test_rabbitmq_waits_longer_than_any_task_takes() -> None:
    """Its configuration is in milliseconds."""
    configuration = (DEPLOY / "broker" / "rabbitmq.conf").read_text(encoding="utf-8")
    (waits_ms,) = re.findall(r"^consumer_timeout = (\d+)$", configuration, re.MULTILINE)
    assert int(waits_ms) / 1000 > longest_task(load_settings()).longest_s + BROKER_SLACK_S


def test_the_readme_names_settings_and_files_that_there_are() -> None:
    named = set(re.findall(r"DOCTRIAGE_\w+", README))
    assert len(named) > 8
    assert named - set(setting_variables()) == set()
    links = [link for link in re.findall(r"\]\(([^)#]+)[^)]*\)", README) if "://" not in link]
    assert [link for link in links if not (DEPLOY / link).exists()] == []
    anchors = {
        re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")
        for heading in re.findall(r"^#+ (.*)$", README, re.M)
    }
    assert set(re.findall(r"\]\(#([^)]+)\)", README)) <= anchors
    files = re.findall(
        r"(?:^| )((?:drop-ins|broker|deploy)/[\w./-]*\w|[\w.-]+\.sysusers\.conf|example[\w-]*\.env)", README
    )
    places = (ROOT, DEPLOY, UNITS)
    assert [name for name in files if not any((place / name).exists() for place in places)] == []


def test_the_readme_names_services_that_there_are(all_services: Mapping[str, Mapping[str, Any]]) -> None:
    """The first word after Compose's own command and its options; `run` takes one, the others end with them."""
    lines = re.findall(
        r"docker compose (?:build|up|stop|logs|run|exec)\b[^\n`#<>]*", README.replace("\\\n", " ")
    )
    with_value = {"-v", "--user", "--build-arg", "--scale"}
    named = []
    for line in lines:
        words = shlex.split(line)[3:]
        plain = [word for before, word in zip(["", *words], words, strict=False)
                 if not word.startswith("-") and before not in with_value]  # fmt: skip
        named += plain[:1] if shlex.split(line)[2] in ("run", "exec") else plain
    assert {"ocr", "migrate", "doctriage", "postgresql"} <= set(named)
    assert [name for name in named if name not in all_services] == []


def test_no_address_of_a_registry_or_a_machine_stands_in_a_file() -> None:
    allowed = r"example\.org|127\.0\.0\.1|10\.0\.0\.5|localhost|host|redis|rabbitmq|postgresql|vllm|gpu"
    for path in sorted(file for file in DEPLOY.rglob("*") if file.is_file() and file.name != ".env"):
        for host in re.findall(
            r"\b(?:https?|amqps?|rediss?|postgresql)://(?:[^@\s/]*@)?([\w.-]+)", _text(path)
        ):
            assert re.search(rf"(?:^|\.)(?:{allowed})$", host), (path.name, host)


def _text(path: Path) -> str:
    return path.read_text(encoding="utf-8")
