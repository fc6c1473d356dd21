#!/usr/bin/env python3
"""healthcheck.py PORT: whether the worker that shows its metrics on that port of this machine answers."""

import sys
import urllib.request

TIMEOUT_S = 5


def main() -> None:
    if len(sys.argv) != 2:
        sys.exit("usage: healthcheck.py PORT")
    address = f"http://127.0.0.1:{sys.argv[1]}/metrics"
    try:
        with urllib.request.urlopen(address, timeout=TIMEOUT_S) as answer:
            answer.read(1)
    except OSError as error:
        sys.exit(f"{address}: {error}")


if __name__ == "__main__":
    main()
