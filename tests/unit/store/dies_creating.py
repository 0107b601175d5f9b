"""Create the run argv[1] in the database argv[2] by argv[3], and die when argv[4] is called."""

import os
import signal
import sys
from dataclasses import replace
from pathlib import Path

from stored_runs import sample_run

from adaexplore.store import create_run, make_run

path, url, how, when = Path(sys.argv[1]), *sys.argv[2:]
run = sample_run()
run = replace(run, config=run.config.model_copy(update={"store": url}))
calls = {"write_text": Path.write_text, "rename": Path.rename}


def die(*_, **__) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def die_afterwards(*words, **named) -> None:
    calls[when](*words, **named)
    die()


setattr(Path, when.removeprefix("before "), die if when.startswith("before ") else die_afterwards)
{"create": create_run, "make": make_run}[how](path, run)
