"""The key of a server that was given none: made once, kept to itself."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from cryptography.fernet import Fernet

from models.errors import StoreUnavailable
from pipeline.settings import Settings
from workers.cluster.sealed_passwords import sealed, unsealed
from workers.local_pool.secret_key import FILE_NAME, with_secret_key


def test_a_key_is_made_once_and_stays(tmp_path: Path) -> None:
    first = with_secret_key(Settings(home=tmp_path)).pool.secret_key
    again = with_secret_key(Settings(home=tmp_path)).pool.secret_key
    assert unsealed(sealed(("open sesame",), first), again) == ("open sesame",)
    assert stat.S_IMODE((tmp_path / FILE_NAME).stat().st_mode) == 0o600
    assert [path.name for path in tmp_path.iterdir()] == [FILE_NAME]


def test_the_settings_own_key_goes_first(tmp_path: Path) -> None:
    settings = Settings(home=tmp_path, pool={"secret_key": Fernet.generate_key().decode()})
    assert with_secret_key(settings) == settings
    assert list(tmp_path.iterdir()) == []


def test_a_home_that_cannot_keep_one_is_named(tmp_path: Path) -> None:
    with pytest.raises(StoreUnavailable, match="DOCTRIAGE_HOME"):
        with_secret_key(Settings(home=tmp_path / "missing"))
