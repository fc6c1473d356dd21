"""Metrics as Prometheus reads them."""

from __future__ import annotations

import urllib.request
from collections.abc import Mapping
from dataclasses import dataclass

from prometheus_client.metrics_core import Metric
from prometheus_client.parser import text_string_to_metric_families


@dataclass(frozen=True, slots=True)
class Scraped:
    """Families by name, as the text has them."""

    families: Mapping[str, Metric]

    def values(self, sample: str) -> dict[tuple[str, ...], float]:
        """By the values of the labels, in the order of the labels' names."""
        return {
            tuple(value for _, value in sorted(one.labels.items())): one.value
            for family in self.families.values()
            for one in family.samples
            if one.name == sample
        }

    def value(self, sample: str, *labels: str) -> float | None:
        return self.values(sample).get(labels)


def scrape(port: int) -> Scraped:
    opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
    with opener.open(f"http://127.0.0.1:{port}/metrics", timeout=30) as answer:
        text = answer.read().decode("utf-8")
    return Scraped({family.name: family for family in text_string_to_metric_families(text)})
