"""The preparations of a fork server for C++ are kept for the next server."""

import json
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import json, sys, time
from pathlib import Path
from torch._inductor import cpu_vec_isa
from adaexplore.evaluate.kernels.build.warm import warm_cpp_compiler

probes = []
check_build = cpu_vec_isa.VecISA.check_build
cpu_vec_isa.VecISA.check_build = lambda *args: probes.append(args[1]) or check_build(*args)
folder = warm_cpp_compiler(Path(sys.argv[1]))
headers = {str(path): path.stat().st_mtime_ns for path in folder.rglob("*.gch")}
probed = probes.count(cpu_vec_isa.VecISA._avx_code)
print(json.dumps([str(cpu_vec_isa.pick_vec_isa()), probed, headers]))
"""


@pytest.mark.slow
def test_a_second_server_neither_probes_nor_precompiles(tmp_path):
    first, second = (_warm(tmp_path, tmp_path / name) for name in ("first", "second"))
    assert first[1] > 0
    assert second[1] == 0
    assert second[0] == first[0]
    assert len(first[2]) == 1
    assert second[2] == first[2]


def _warm(home: Path, caches: Path) -> list:
    command = [sys.executable, "-c", PROGRAM, str(home)]
    environment = {"TORCHINDUCTOR_CACHE_DIR": str(caches), "PATH": "/usr/bin:/bin"}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)
