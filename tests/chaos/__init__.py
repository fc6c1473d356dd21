"""A whole pool under fire: real Redis, PostgreSQL, Celery workers and readers, and everything breaks. `make chaos`."""
