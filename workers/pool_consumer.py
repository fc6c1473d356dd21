"""What a worker of the pool leaves out of Celery's own start. Named in the configuration, so imported by Celery."""

from __future__ import annotations

from celery.worker.consumer import Consumer

DELAYED_DELIVERY = "celery.worker.consumer.delayed_delivery:DelayedDelivery"


class TicketConsumer(Consumer):  # type: ignore[misc]
    """Without the twenty-eight queues that Celery declares beside quorum queues, for tasks that are to start later:
    no ticket is."""

    class Blueprint(Consumer.Blueprint):  # type: ignore[misc]
        default_steps = tuple(step for step in Consumer.Blueprint.default_steps if step != DELAYED_DELIVERY)
