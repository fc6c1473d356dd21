"""A worker of the pool that reads nothing: it claims pages and sources like any other, settles them, and may end
without a word in the middle of it.

``python -m tests.fakes.pool_racer HOME DATABASE_URL CLAIMS`` ends so after CLAIMS claims of pages, where that is not 0;
else when every submission is finished. An empty address is the file in the home. It begins when HOME has a file ``go``,
and says that it could by a file of its own in HOME/ready.
"""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from pydantic import SecretStr

from models.pool import SubmissionState
from pipeline.store import connect_store
from tests.unit.store.pool_parts import Pool
from workers.owner import current_owner

POLL_S = 0.05


def main() -> None:
    home, url, most_claims = sys.argv[1:]
    store = connect_store(Path(home), SecretStr(url) if url else None)
    pool, owner, claims = Pool(store), current_owner(), 0
    (Path(home) / "ready" / str(os.getpid())).touch()
    while not (Path(home) / "go").exists():
        time.sleep(POLL_S)
    while store.pool.submissions(limit=1, state=SubmissionState.OPEN):
        work = pool.claim(owner, max_pages=2)
        if work is not None:
            claims += 1
            if claims == int(most_claims):
                os._exit(1)
            pool.finish(work, owner)
        elif pool.write(owner) is None:
            time.sleep(POLL_S)
    store.close()


if __name__ == "__main__":
    main()
