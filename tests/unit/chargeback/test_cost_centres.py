"""What a cost centre may be called, and who pays where none is named."""

from __future__ import annotations

import pytest

from models.errors import PriceBookInvalid, SettingsError
from pipeline.chargeback.cost_centres import Payer, cost_centre_name, payers
from pipeline.planning.configured import load_plan
from pipeline.settings import ChargebackSettings, Settings, load_settings
from workers.accounts import login_name, open_account

PLAN = load_plan(Settings().vlm)


@pytest.mark.parametrize(
    "name", ["a", "Claims & Co", "Hafen/Fähren", "a/b c", "x" * 200, "é" * 200, "0", "-"]
)
def test_a_name_is_kept_as_it_is_written(name: str) -> None:
    assert cost_centre_name(name) == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        " ",
        "/",
        "a/",
        "/a",
        "a//b",
        "a/b/c",
        " a",
        "a ",
        "a /b",
        "a/ b",
        "a\nb",
        "a\0b",
        "a\tb",
        "x" * 201,
        "\ud800",
    ],
)
def test_what_is_no_name_is_refused_in_one_clear_line(name: str) -> None:
    with pytest.raises(SettingsError, match="is no cost centre; write TEAM or TEAM/PROJECT") as caught:
        cost_centre_name(name)
    assert len(str(caught.value).splitlines()) == 1
    assert len(str(caught.value)) < 240


def test_a_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(SettingsError, match=f"^'{78 * 'x'}… is no cost centre"):
        cost_centre_name(5_000 * "x")


def test_a_project_s_team_pays_with_it() -> None:
    project = Payer(cost_centre="harbour/ferries", submitter="ada", submission_id=3)
    assert project.team == "harbour"
    assert payers("harbour/ferries") == ("harbour", "harbour/ferries")
    assert payers("harbour") == ("harbour",)


def test_the_default_pays_where_none_is_named() -> None:
    assert open_account(None, ChargebackSettings(), PLAN).payer.cost_centre == "default"
    chosen = ChargebackSettings(default_cost_centre="a/b")
    assert open_account(None, chosen, PLAN).payer.cost_centre == "a/b"
    assert open_account("c", chosen, PLAN).payer.cost_centre == "c"


def test_an_empty_default_has_a_run_name_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTRIAGE_CHARGEBACK__DEFAULT_COST_CENTRE", "")
    settings = load_settings().chargeback
    with pytest.raises(SettingsError, match="give --cost-centre"):
        open_account(None, settings, PLAN)
    assert open_account("a", settings, PLAN).payer.cost_centre == "a"


def test_a_default_that_is_no_name_is_refused_at_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("DOCTRIAGE_CHARGEBACK__DEFAULT_COST_CENTRE", "a/b/c")
    with pytest.raises(SettingsError, match=r"chargeback\.default_cost_centre: .* is no cost centre"):
        load_settings()


def test_the_price_book_is_that_of_the_settings() -> None:
    with pytest.raises(PriceBookInvalid, match="gone"):
        open_account("a", ChargebackSettings(price_book_file="gone.toml"), PLAN)


def test_whoever_has_no_login_name_pays_all_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("getpass.getuser", lambda: "ada")
    assert open_account("a", ChargebackSettings(), PLAN).payer.submitter == "ada"

    def nobody() -> str:
        raise KeyError("getpwuid(): uid not found: 4711")

    monkeypatch.setattr("getpass.getuser", nobody)
    assert open_account("a", ChargebackSettings(), PLAN).payer.submitter is None


def test_a_login_name_is_not_as_long_as_the_environment_likes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("LOGNAME", "u" * 3_000)
    assert login_name() == "u" * 100
