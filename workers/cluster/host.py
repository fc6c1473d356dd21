"""What a process of the pool holds from its first piece of work to its last."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Final, TypeVar

import structlog

from models.errors import StoreUnavailable
from pipeline.blobs import BlobStore
from pipeline.chargeback.entries import Account, Payer
from pipeline.fingerprint import Fingerprint, reading_fingerprint
from pipeline.settings import Settings
from pipeline.store import SubmissionTerms, connect_store
from workers.cluster.deployment import Deployment
from workers.cluster.heartbeat import Heartbeat
from workers.cluster.pace import Pace
from workers.cluster.purged_copies import PurgedCopies
from workers.cluster.sealed_passwords import unsealed
from workers.cluster.turn import IMPOSSIBLE
from workers.cluster.wishes import Wishes
from workers.owner import current_owner

if TYPE_CHECKING:
    from pipeline.page_pipeline import Engines

ENGINES_KEPT: Final = 2
"""Sets of engines, one for each engine and languages that were wished for; one takes up to 1.5 GB."""

ASK_EVERY_S: Final = 2.0
"""How often a database that is away is asked to take back what a process holds."""

Answer = TypeVar("Answer")

log = structlog.get_logger()


class Host:
    """``is_stopping`` says that the process is to end after the page that it is at, ``pace`` how many pages it takes at
    a time."""

    def __init__(self, deployment: Deployment, *, is_stopping: Callable[[], bool]) -> None:
        settings = deployment.settings
        self.deployment = deployment
        self.is_stopping = is_stopping
        self.owner = current_owner()
        self.lease_s = settings.pool.lease_s
        self.pace = Pace(settings.pool.pages_per_claim)
        self.store = connect_store(settings.home, settings.database_url)
        self.blobs = BlobStore(settings.home, settings.blobs, owner=self.owner)
        self._purged_copies = PurgedCopies(self.store, self.blobs)
        self._purged_copies.start()
        self._engines: OrderedDict[str, Engines] = OrderedDict()
        self._heartbeat = Heartbeat(self.store.pool, self.owner, lease_s=self.lease_s)
        self._heartbeat.start()

    def close(self) -> None:
        self._heartbeat.stop()
        self._purged_copies.stop()
        self.store.close()

    @contextmanager
    def turn(self) -> Iterator[None]:
        """For a process with one piece of work at a time, around it from its claim on. Whatever breaks it off, an
        answer to the claim that was lost among it, what the process holds goes back."""
        with self.broken_off(self._uncharged, self._charged):
            yield

    @contextmanager
    def broken_off(self, give_back: Callable[[], object], lose: Callable[[], object]) -> Iterator[None]:
        """Around work: what breaks it off gives it back. What nobody has foreseen counts as a lost worker, so that no
        document is tried for ever."""
        try:
            yield
        except BaseException as error:
            is_foreseen = isinstance(error, IMPOSSIBLE) or not isinstance(error, Exception)
            self.given_back(give_back if is_foreseen else lose)
            raise

    def _uncharged(self) -> None:
        self.store.pool.give_back(self.owner)

    def _charged(self) -> None:
        self.store.pool.reclaim(
            lambda owner: owner != self.owner,
            max_losses=self.deployment.settings.pool.max_losses,
            price_book=self.deployment.price_book,
        )

    def given_back(self, give_back: Callable[[], Answer]) -> Answer:
        """Waits for a database that is away: what a process holds is nobody else's for as long as it lives. Raises
        ``StoreUnavailable`` where the process is to end before."""
        while True:
            try:
                return give_back()
            except StoreUnavailable as error:
                if self.is_stopping():
                    raise
                log.warning("waiting_to_give_back", owner=self.owner, code=error.code, reason=str(error))
                time.sleep(ASK_EVERY_S)

    def settings_of(self, terms: SubmissionTerms) -> Settings:
        return Wishes.from_json(terms.wishes).settings(self.deployment.settings)

    def account_of(self, terms: SubmissionTerms) -> Account:
        payer = Payer(
            cost_centre=terms.cost_centre, submitter=terms.submitter, submission_id=terms.submission_id
        )
        return self.deployment.account(payer)

    def passwords_of(self, terms: SubmissionTerms) -> tuple[str, ...]:
        return unsealed(terms.sealed_passwords, self.deployment.settings.pool.secret_key)

    def engines(self, settings: Settings) -> Engines:
        """Raises ``EngineUnavailable``."""
        wished = settings.read.model_dump_json()
        if wished not in self._engines:
            while len(self._engines) >= ENGINES_KEPT:
                self._engines.popitem(last=False)
            self._engines[wished] = self.deployment.build_engines(settings)
        self._engines.move_to_end(wished)
        return self._engines[wished]

    def fingerprint(self, settings: Settings, cost_centre: str) -> Fingerprint:
        deployment = self.deployment
        return reading_fingerprint(
            settings,
            self.engines(settings).versions,
            deployment.policy.digest,
            deployment.plan,
            cost_centre,
        )
