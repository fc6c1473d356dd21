"""The one tree of errors. ``code`` is stable and machine-readable; the message says what to do."""

from __future__ import annotations

from functools import partial
from typing import ClassVar

from models.budget import BudgetMonth


class DoctriageError(Exception):
    """Base of everything doctriage raises on purpose. Exit codes and HTTP statuses are mapped in the edges alone."""

    code: ClassVar[str] = "error"
    retryable: ClassVar[bool] = False


class SettingsError(DoctriageError):
    code = "settings_invalid"


class OutputNotWritable(DoctriageError):
    code = "output_not_writable"


class DocumentRejected(DoctriageError):
    """Intake will not take these bytes. Nothing was read; the batch goes on."""

    code = "document_rejected"


class UnsupportedMediaType(DocumentRejected):
    code = "unsupported_media_type"


class EmptyFile(DocumentRejected):
    code = "empty_file"


class DocumentCorrupt(DocumentRejected):
    code = "document_corrupt"


class DocumentEncrypted(DocumentRejected):
    code = "document_encrypted"


class WrongPassword(DocumentEncrypted):
    code = "wrong_password"


class TooManyBytes(DocumentRejected):
    code = "too_many_bytes"


class TooManyPages(DocumentRejected):
    code = "too_many_pages"


class TooManyPixels(DocumentRejected):
    code = "too_many_pixels"


class SourceUnreadable(DocumentRejected):
    """The file could not be opened: missing, no permission, a directory loop, a device."""

    code = "source_unreadable"


class DocumentFailed(DoctriageError):
    """Intake took the document, but not one of its pages could be read."""

    code = "document_failed"


class OutputImpossible(DocumentFailed):
    """The document was read, and one of the files that were asked for cannot be made of it."""

    code = "output_impossible"


class PageFailed(DoctriageError):
    """One page could not be read; its siblings are."""

    code = "page_failed"


class PageNotRendered(PageFailed):
    code = "page_not_rendered"


class PageTimedOut(PageFailed):
    code = "page_timed_out"
    retryable = True


class WorkerCrashed(PageFailed):
    code = "worker_crashed"
    retryable = True


class EngineError(PageFailed):
    """An OCR engine failed on this page."""

    code = "engine_failed"
    retryable = True


class EngineUnavailable(DoctriageError):
    """An engine, a language or a binary is missing; the message says what to install."""

    code = "engine_unavailable"


class AspectRatioTooLarge(DoctriageError):
    """Qwen's processors refuse images whose sides differ by more than 200 to 1."""

    code = "aspect_ratio_too_large"


class StoreUnavailable(DoctriageError):
    """The state folder or its database cannot be used: no permission, disk full, damaged or too new."""

    code = "store_unavailable"


class StoreUnreachable(StoreUnavailable):
    """The database server is away, out of connections or busy: the same may go through later."""

    code = "store_unreachable"
    retryable = True


class BlobMissing(DocumentRejected, PageFailed):
    """Our copy of the document is gone: it cannot be taken in, nor its pages be read."""

    code = "blob_missing"


class BlobDamaged(DocumentRejected, PageFailed):
    """Our copy of the document is not the bytes that it is named for."""

    code = "blob_damaged"


class ResultMissing(DoctriageError):
    """No such output is kept."""

    code = "result_missing"


class ResultExpired(ResultMissing):
    """It was kept for as long as outputs are."""

    code = "result_expired"


class TryAgainLater(DoctriageError):
    """Not now; after ``retry_after_s`` seconds perhaps."""

    code = "try_again_later"
    retryable = True

    def __init__(self, message: str, *, retry_after_s: int) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), retry_after_s=self.retry_after_s), self.args


class PoolBusy(TryAgainLater):
    """The pool takes on no more for now: so much waits already."""

    code = "pool_busy"


class SubmissionNotOpen(DoctriageError):
    """There is no such submission, or it is finished or cancelled, so nothing can be added to it or changed."""

    code = "submission_not_open"


class SubmissionNotFound(SubmissionNotOpen):
    """The pool has none of that number."""

    code = "submission_not_found"

    def __init__(self, submission_id: int) -> None:
        super().__init__(
            f"submission {submission_id}: the pool has none of that number; `doctriage submissions list` shows those "
            "it has"
        )
        self.submission_id = submission_id

    def __reduce__(self) -> tuple[object, ...]:
        return type(self), (self.submission_id,)


class IdempotencyKeyReused(DoctriageError):
    """A request came with the key of another one."""

    code = "idempotency_key_reused"


class BrokerUnavailable(DoctriageError):
    """The pool's broker does not answer, or refuses."""

    code = "broker_unavailable"


class WorkerLost(PageFailed):
    """The worker that had it was lost, again and again."""

    code = "worker_lost"
    retryable = True


class Cancelled(DoctriageError):
    """Its submission was cancelled before it was read."""

    code = "cancelled"


class DocumentInUse(DoctriageError):
    """It cannot be erased while it is being read."""

    code = "document_in_use"


class PageNotFound(DoctriageError):
    """No finished page answers to that name and number."""

    code = "page_not_found"


class VlmError(DoctriageError):
    """A call to the VLM gave no answer. ``retry_after_s`` is what the server asked for, None where it did not.
    ``may_have_cost``: the model may have worked on it, though no usage came back."""

    code = "vlm_error"
    retryable = True
    may_have_cost: ClassVar[bool] = False

    def __init__(self, message: str, *, retry_after_s: float | None = None) -> None:
        super().__init__(message)
        self.retry_after_s = retry_after_s


class VlmUnreachable(VlmError):
    """No connection: refused, no such host, no route."""

    code = "vlm_unreachable"


class VlmConnectionLost(VlmError):
    """The connection ended before the answer was there."""

    code = "vlm_connection_lost"
    may_have_cost = True


class VlmTimedOut(VlmError):
    code = "vlm_timed_out"
    may_have_cost = True


class VlmWaitedOut(VlmError):
    """The page's time to wait was over before a call could be made; ``retry_after_s`` is when to try again."""

    code = "vlm_waited_out"


class VlmRateLimited(VlmError):
    """HTTP 429."""

    code = "vlm_rate_limited"


class VlmOverloaded(VlmError):
    """HTTP 503: loading, draining, or its queue is full."""

    code = "vlm_overloaded"


class VlmServerError(VlmError):
    """Any other HTTP 5xx."""

    code = "vlm_server_error"
    may_have_cost = True


class VlmRequestRefused(VlmError):
    """HTTP 400, 413 or 422: this request will never be taken."""

    code = "vlm_request_refused"
    retryable = False


class VlmUnauthorised(VlmError):
    """HTTP 401 or 403: no request will be taken with this key."""

    code = "vlm_unauthorised"
    retryable = False


class VlmModelNotFound(VlmError):
    """HTTP 404: no such model, or no such path."""

    code = "vlm_model_not_found"
    retryable = False


class VlmBadResponse(VlmError):
    """HTTP 200 with something that is no chat completion."""

    code = "vlm_bad_response"
    may_have_cost = True


class PlanImpossible(DoctriageError):
    """The wishes for the VLM service do not fit together; the message shows the arithmetic."""

    code = "plan_impossible"


class ProfileInvalid(DoctriageError):
    """A model profile cannot be read, or does not match the model's own files."""

    code = "profile_invalid"


class PriceBookInvalid(DoctriageError):
    """A price book cannot be read."""

    code = "price_book_invalid"


class EntryNotReversible(DoctriageError):
    """The ledger has no such entry, or it was reversed before, or is a reversal itself."""

    code = "entry_not_reversible"


class BudgetSpent(DoctriageError):
    """A cost centre's budget has no room; ``budget`` is where it stands. ``fits_once_calls_end``: it has, as soon as
    calls under way cost less than they may."""

    code = "budget_spent"

    def __init__(self, message: str, budget: BudgetMonth, *, fits_once_calls_end: bool = False) -> None:
        super().__init__(message)
        self.budget = budget
        self.fits_once_calls_end = fits_once_calls_end


class BudgetUnusable(DoctriageError):
    """A budget in money, and costs that cannot be held against it."""

    code = "budget_unusable"


class NotAuthenticated(DoctriageError):
    """The request says not who asks."""

    code = "not_authenticated"


class CredentialsRefused(NotAuthenticated):
    """Whoever asks is not who they say, or not any more."""

    code = "credentials_refused"


class ScopeMissing(DoctriageError):
    """Whoever asks may not do this. ``scope`` is what they would need."""

    code = "scope_missing"

    def __init__(self, message: str, *, scope: str) -> None:
        super().__init__(message)
        self.scope = scope

    def __reduce__(self) -> tuple[object, ...]:
        return partial(type(self), scope=self.scope), self.args


class CostCentreRefused(DoctriageError):
    """Whoever asks may not act for this cost centre, or for none."""

    code = "cost_centre_refused"


class PriorityRefused(DoctriageError):
    """Whoever asks may not make this as urgent as that."""

    code = "priority_refused"


class IssuerUnavailable(DoctriageError):
    """The keys that tokens are checked with cannot be had for now."""

    code = "issuer_unavailable"
    retryable = True


class TooManyRequests(TryAgainLater):
    """More than the caller may ask within a minute."""

    code = "too_many_requests"


class TooManyOpenDocuments(TooManyRequests):
    """As many documents of this key are being read as may be."""

    code = "too_many_open_documents"


class ApiKeyNotFound(DoctriageError):
    """No key that holds has this prefix."""

    code = "api_key_not_found"


class CallbackUrlRefused(DoctriageError):
    """No callback is sent to this address."""

    code = "callback_url_refused"


class RequestInvalid(DoctriageError):
    """A request to the API that nobody can make sense of. ``faults`` are pairs of a field and what is wrong with it."""

    code = "request_invalid"

    def __init__(self, message: str, *, faults: tuple[tuple[str, str], ...] = ()) -> None:
        super().__init__(message)
        self.faults = faults


class BodyMalformed(RequestInvalid):
    """The body is not what its headers say, or ends too soon."""

    code = "body_malformed"


class BodyUnsupported(RequestInvalid):
    """The body is in a form that is not taken."""

    code = "body_unsupported"


class UploadTooSlow(DoctriageError):
    """Nothing more came of an upload for too long."""

    code = "upload_too_slow"
    retryable = True


class TooManyAtOnce(TryAgainLater):
    """The server does so much of this at a time and no more."""

    code = "too_many_at_once"


class DocumentNotFound(DoctriageError):
    """The API has no such document, or none that the caller may see."""

    code = "document_not_found"


class DocumentErased(DoctriageError):
    """The document was erased on request."""

    code = "document_erased"


class NotReady(TryAgainLater):
    """The document is still being read."""

    code = "not_ready"


class FormatNotAcceptable(DoctriageError):
    """There is no such format, or none of those that the client accepts."""

    code = "format_not_acceptable"


class ServerUnreachable(DoctriageError):
    """No server of doctriage answers at an address, or the connection to it was lost."""

    code = "server_unreachable"
    retryable = True


class ServerError(DoctriageError):
    """A server failed, or answers with what no client of this version knows. ``status`` is that of HTTP,
    ``problem_code`` what the server calls it, None where it has no name."""

    code = "server_error"

    def __init__(self, message: str, *, status: int, problem_code: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.problem_code = problem_code

    def __reduce__(self) -> tuple[object, ...]:
        made = partial(type(self), status=self.status, problem_code=self.problem_code)
        return made, self.args
