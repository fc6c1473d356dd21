"""Kinds of input that users of document readers reported as misread, each with several members of the family.

They run through the whole product, the command line to the JSON, in one ingest.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from tests.kinds import ciphers, forms, frames, images, layers, odd_objects, sheets, typesetting
from tests.kinds.conftest import Run
from tests.kinds.judging import Cousin, read_output

pytestmark = pytest.mark.slow

Check = Callable[[Cousin], None]


def each(cousins: Iterable[Cousin]) -> pytest.MarkDecorator:
    return pytest.mark.parametrize("cousin", tuple(cousins), ids=lambda cousin: cousin.name)


@each(frames.turned_pages())
def test_a_turned_page_is_read_upright(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(frames.cropped_pages())
def test_nothing_is_read_outside_the_crop_box(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(frames.large_units())
def test_user_units_do_not_shrink_the_page(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(images.wrong_resolutions())
def test_an_unbelievable_resolution_is_not_believed(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(images.deep_samples())
def test_deep_samples_are_scaled_not_clipped(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(layers.stamped_scans())
def test_native_words_on_a_scan_do_not_hide_its_body(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(layers.hidden_layers())
def test_a_layer_that_is_off_is_not_read(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(forms.filled_forms())
def test_what_was_filled_in_is_read(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(ciphers.ciphered_layers())
def test_a_font_that_lies_is_not_believed(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(typesetting.soft_hyphens())
def test_soft_hyphens_leave_no_trace(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(typesetting.columns_drawn_across())
def test_columns_are_read_one_after_the_other(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(typesetting.visual_order())
def test_right_to_left_words_come_in_logical_order(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(sheets.ruled_tables())
def test_a_table_with_spans_keeps_its_cells_or_asks_to_be_seen(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(sheets.stamped_sheets())
def test_a_stamp_over_text_asks_to_be_seen(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(images.white_on_dark())
def test_white_on_dark_is_read(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(sheets.empty_backs())
def test_dirt_on_an_empty_sheet_is_no_text(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(sheets.nearly_empty())
def test_a_few_words_on_an_empty_sheet_are_text(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(images.long_strips())
def test_a_long_strip_loses_nothing(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(layers.watermarks())
def test_a_watermark_stays_out_of_the_sentences(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(odd_objects.worthless_images())
def test_a_worthless_image_costs_no_page(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(odd_objects.portfolios())
def test_the_cover_of_a_portfolio_is_read(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each(odd_objects.layered_scans())
def test_letters_in_a_mask_are_read(cousin: Cousin, check: Check) -> None:
    check(cousin)


@each([cousin for cousin in odd_objects.portfolios() if "files" in cousin.name or "evil" in cousin.name])
def test_embedded_files_are_named_and_not_written(cousin: Cousin, cousins_run: Run) -> None:
    output = read_output(cousins_run.path(f"{cousin.file_name}.json"))
    names = output["attachments"]
    if "evil" in cousin.name:
        assert len(names) == len(odd_objects.EVIL_NAMES)
        assert all(name and name.isprintable() and not set(name) & set("/\\") for name in names)
    else:
        assert names == ["roof plan.pdf", "prices.csv"]
    written = {path.name for path in cousins_run.path("..").rglob("*") if path.is_file()}
    assert not written & {"up and away.csv", "absolute.csv", "roof plan.pdf", "prices.csv", "owned"}


def test_every_cousin_is_taken(cousins_run: Run) -> None:
    assert cousins_run.path("failures.jsonl").read_text() == ""
    assert cousins_run.exit_code == 0
    assert "Traceback" not in cousins_run.stderr
