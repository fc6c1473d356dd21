"""Which of all formats is sent."""

from __future__ import annotations

import pytest

from models.errors import FormatNotAcceptable
from workers.api.negotiation import chosen_format

OWN = ("xlsx", "docling")


@pytest.mark.parametrize(
    ("own", "accept", "chosen"),
    [
        (OWN, None, "xlsx"),
        (OWN, "", "xlsx"),
        (OWN, "*/*", "xlsx"),
        (OWN, "application/*", "xlsx"),
        (OWN, "application/json", "docling"),
        (("markdown",), "application/json", "json"),
        (("hocr",), "text/html", "hocr"),
        (("markdown",), "text/html", "html"),
        (("markdown",), "TEXT/HTML; charset=utf-8", "html"),
        (("markdown",), "application/pdf, text/markdown", "markdown"),
        (("markdown",), "application/pdf, text/markdown;q=0.9", "pdf"),
        (("markdown",), "text/markdown;q=0.5, application/pdf;q=0.9", "pdf"),
        (("markdown",), "application/xml, */*", "alto"),
        (("json",), "text/*", "markdown"),
        (("json",), "text/plain, application/pdf", "text"),
        (("json",), "application/pdf, text/plain", "pdf"),
        (("markdown",), "text/*, text/markdown;q=0", "text"),
        (("markdown", "json"), "*/*, text/markdown;q=0.1", "json"),
        (("markdown",), "image/png, text/plain;q=0.2, nonsense", "text"),
        (("markdown",), "text/html;q=much, text/plain", "text"),
        (("no longer known",), "*/*", "markdown"),
    ],
)
def test_accept_is_heard_and_then_the_documents_own(
    own: tuple[str, ...], accept: str | None, chosen: str
) -> None:
    assert chosen_format(own, None, accept).name == chosen


@pytest.mark.parametrize("accept", ["image/png", "text/markdown;q=0", "*/*;q=0", ";", "text"])
def test_what_no_format_is_cannot_be_had(accept: str) -> None:
    with pytest.raises(FormatNotAcceptable, match="accept one of text/markdown, application/json"):
        chosen_format(OWN, None, accept)


def test_a_name_comes_before_accept() -> None:
    assert chosen_format(OWN, "alto", "text/html").name == "alto"
    with pytest.raises(FormatNotAcceptable, match="there is no format 'docx'; name one of markdown, json"):
        chosen_format(OWN, "docx", None)
