import os
import subprocess
import sys

from adaexplore.search import step_rng


def test_steps_and_seeds_have_independent_streams():
    draws = {step_rng(seed, step).random() for seed in range(20) for step in range(20)}
    assert len(draws) == 400
    assert step_rng(1, 23).random() != step_rng(12, 3).random()


def test_the_stream_is_the_same_in_every_process_and_release():
    here = step_rng(7, 3).random()
    # A stored run resumes on another machine years later: the value itself is part of the format.
    assert here == 0.5432193138259338
    program = "from adaexplore.search import step_rng; print(repr(step_rng(7, 3).random()))"
    for hash_seed in ("0", "1"):
        environment = {**os.environ, "PYTHONHASHSEED": hash_seed}
        out = subprocess.run(
            [sys.executable, "-c", program],
            env=environment,
            capture_output=True,
            text=True,
            check=True,
        )
        assert float(out.stdout) == here
