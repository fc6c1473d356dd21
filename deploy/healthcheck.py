#!/usr/bin/env python3
"""healthcheck.py PORT [PATH]: whether what listens on that port of this machine answers; by default with metrics."""

import sys
import urllib.request

TIMEOUT_S = 5


def main() -> None:
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: healthcheck.py PORT [PATH]")
    port, path = sys.argv[1], sys.argv[2] if len(sys.argv) > 2 else "/metrics"
    address = f"http://127.0.0.1:{port}{path}"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            answer.read(1)
    except OSError as error:
        sys.exit(f"{address}: {error}")


if __name__ == "__main__":
    main()
