"""The broker, as the submitter's side and the reconciler reach it. Celery is imported here, when it is needed."""

from __future__ import annotations

from models.errors import SettingsError
from pipeline.settings import Settings
from workers.tickets import Tickets


def pool_tickets(settings: Settings) -> Tickets:
    """Nothing is connected yet. Raises SettingsError where the pool's broker or database is not named."""
    require_pool(settings)
    from workers.celery_app import celery_app
    from workers.celery_tickets import CeleryTickets

    return CeleryTickets(celery_app(settings))


def require_pool_broker(settings: Settings) -> None:
    """Raises SettingsError, and ``BrokerUnavailable`` where the broker does not answer, or not to this user."""
    require_pool(settings)
    from workers.broker import require_broker
    from workers.celery_app import celery_app

    require_broker(celery_app(settings))


def require_pool(settings: Settings) -> None:
    """Raises SettingsError."""
    if settings.pool.broker_url is None:
        raise SettingsError(
            "the pool has no broker; set DOCTRIAGE_POOL__BROKER_URL to redis://host:6379/0 or amqp://user@host//"
        )
    if settings.database_url is None:
        raise SettingsError(
            "the pool needs a database that all its machines reach; set DOCTRIAGE_DATABASE_URL to a PostgreSQL server"
        )
