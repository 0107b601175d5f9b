"""Record and print steps in the run argv[1] until the process is killed."""

import sys
from pathlib import Path

from stored_runs import sample_node

from adaexplore.store import open_run

with open_run(Path(sys.argv[1])) as run:
    while True:
        node_id = run.store.node_count() + 1
        run.store.record(sample_node(node_id))
        print(node_id, flush=True)
