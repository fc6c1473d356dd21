"""The published schema says what the server does, and the server does nothing else: Schemathesis asks a running one."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Sequence
from io import BytesIO
from pathlib import Path
from typing import Final

import pytest

from tests.keyed_server import KeyedServer, keyed_server

pytestmark = pytest.mark.slow

HERE: Final = Path(__file__).parent
SCHEMATHESIS: Final = Path(sys.executable).with_name("st")
RULED_TABLE: Final = Path(__file__).parents[3] / "samples" / "ruled_table.pdf"
CUT_OFF: Final = b"%PDF-1.4\n1 0 obj\n"

EXAMPLES: Final = os.environ.get("SCHEMATHESIS_EXAMPLES", "10")
"""For each operation, in the phases that draw them."""

UNBOUNDED: Final = "10000"

WHOLE: Final = (
    "%PDF-1.4\n"
    "1 0 obj<</Type/Catalog/Pages 2 0 R>>endobj\n"
    "2 0 obj<</Type/Pages/Kids[3 0 R]/Count 1>>endobj\n"
    "3 0 obj<</Type/Page/Parent 2 0 R/MediaBox[0 0 300 200]/Contents 4 0 R"
    "/Resources<</Font<</F 5 0 R>>>>>>endobj\n"
    "4 0 obj<</Length 52>>stream\nBT /F 18 Tf 20 100 Td (A short page of a text) Tj ET\nendstream endobj\n"
    "5 0 obj<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>endobj\n"
    "trailer<</Size 6/Root 1 0 R>>\n%%EOF\n"
)


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[KeyedServer]:
    limits = ("REQUESTS_PER_MIN", "FAILED_LOGINS_PER_MIN", "MAX_OPEN_DOCUMENTS")
    with keyed_server(
        tmp_path_factory.mktemp("served"),
        DOCTRIAGE_API__CALLBACK_SECRET="k" * 32,
        **{f"DOCTRIAGE_API__{name}": UNBOUNDED for name in limits},
    ) as running:
        yield running


@pytest.mark.parametrize(
    ("scopes", "phases"),
    [(("admin",), "examples,coverage,fuzzing,stateful"), (("read", "submit"), "fuzzing,stateful")],
    ids=["admin", "no admin"],
)
def test_the_schema_is_exact(
    served: KeyedServer, scopes: tuple[str, ...], phases: str, tmp_path: Path
) -> None:
    configuration = write_configuration(served, tmp_path)
    before = accepted(served)
    asked = subprocess.run(
        [
            *(SCHEMATHESIS, "--config-file", configuration, "run", f"{served.url}/v1/openapi.json"),
            *("--header", f"Authorization: Bearer {served.new_key(scopes=scopes, max_priority=5)}"),
            *("--phases", phases, "--max-examples", EXAMPLES, "--no-color"),
        ],
        cwd=tmp_path,
        env={
            **{name: value for name, value in os.environ.items() if not name.startswith("HYPOTHESIS_")},
            "SCHEMATHESIS_HOOKS": str(HERE / "schemathesis_hooks.py"),
        },
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=None if "SCHEMATHESIS_EXAMPLES" in os.environ else 500,
    )
    assert asked.returncode == 0, asked.stdout + asked.stderr
    assert accepted(served) > before, "whatever was sent was refused before its form was looked at"
    log = served.server.process.log.read_text("utf-8")
    assert '"request_failed"' not in log, log[-4_000:]


def write_configuration(served: KeyedServer, folder: Path) -> Path:
    """With what a server has that is asked: a document with a table, one that failed, and one that may be erased."""
    with served.client() as client:
        table = client.submit(RULED_TABLE, outputs=("markdown", "json", "pdf", "docling")).id
        cut_off = client.submit(BytesIO(CUT_OFF), name="cut_off.pdf").id
        erasable = client.submit(BytesIO(WHOLE.encode()), name="whole.pdf").id
        ends = [client.wait(one).state for one in (table, cut_off, erasable)]
    assert ends == ["finished", "failed", "finished"]
    write_dictionary(folder / "documents.dict", (table, cut_off))
    write_dictionary(folder / "erasable.dict", (erasable,))
    write_dictionary(folder / "files.dict", (WHOLE,))
    return Path(shutil.copy(HERE / "schemathesis.toml", folder))


def write_dictionary(path: Path, entries: Sequence[str]) -> None:
    """As libFuzzer has it: a text in quotes a line."""
    lines = (entry.replace("\\", r"\\").replace('"', r"\"").replace("\n", r"\n") for entry in entries)
    path.write_text("".join(f'"{line}"\n' for line in lines), "utf-8")


def accepted(served: KeyedServer) -> int:
    return len(served.server.rows("SELECT 1 FROM uploads"))
