"""The HTTP API: ``doctriage serve``. Only this package imports FastAPI; what it does is done by the parts it reuses."""
