"""Measurements of the product: ``make bench``, or ``python -m benchmarks --help``."""
