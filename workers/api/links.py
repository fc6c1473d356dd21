"""What can be asked with what an answer says, as OpenAPI has it: by the names of the routes."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

OF_ONE: Final = (
    "get_document",
    "delete_document",
    "get_result",
    "list_pages",
    "follow_document",
    "list_callbacks",
    "get_document_cost",
)
OF_A_PAGE: Final = (
    "get_page",
    "get_image",
    "get_overlay",
    "get_page_html",
    "get_review",
    "put_review",
    "delete_review",
)


def _links(operations: tuple[str, ...], parameters: Mapping[str, str]) -> dict[str, Any]:
    return {name: {"operationId": name, "parameters": dict(parameters)} for name in operations}


OF_A_NEW_DOCUMENT: Final = _links(OF_ONE, {"upload_id": "$response.body#/id"})
"""Its pages are not known yet."""

OF_A_DOCUMENT: Final = {
    **OF_A_NEW_DOCUMENT,
    **_links(OF_A_PAGE, {"upload_id": "$response.body#/id", "page_number": "1"}),
}
OF_A_LIST: Final = {
    **_links(OF_ONE, {"upload_id": "$response.body#/documents/0/id"}),
    **_links(("list_documents",), {"cursor": "$response.body#/next_cursor"}),
}
OF_PAGES: Final = _links(
    OF_A_PAGE,
    {"upload_id": "$request.path.upload_id", "page_number": "$response.body#/pages/0/page_number"},
)
OF_PAGES_TO_REVIEW: Final = {
    **_links(
        OF_A_PAGE,
        {"upload_id": "$response.body#/pages/0/id", "page_number": "$response.body#/pages/0/page_number"},
    ),
    **_links(("list_pages_to_review",), {"cursor": "$response.body#/next_cursor"}),
}
