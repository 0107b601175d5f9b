"""Makes the packs of `run.sh` from clones of the public repositories, on a machine without a GPU.

    python lab/benchmarks/gpu/prepare.py --repos REPOS --packs PACKS            # all
    python lab/benchmarks/gpu/prepare.py --repos REPOS --packs PACKS record confusion

REPOS holds clones as OWNER/NAME, bare ones too. Each pack takes the commit that `_COMMITS` names,
so the same clones give the same packs. `wheels`, `ray` and `flashinfer` ask the index by pip.
README.md has what each pack is for, and the rules by which answers are drawn.
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from adaexplore.problems import benchmark_named
from adaexplore.run import summary_of
from adaexplore.store import read_run

_HERE = Path(__file__).resolve().parent
_ROOT = _HERE.parents[2]
_COMMITS = {
    "BonnieW05/KernelBenchX": "fd41922",
    "Laurawly/kernelagent-artifacts": "14ed07a",
    "ScalingIntelligence/KernelBench": "423217d",
    "StigLidu/AdaExplore": "c36637c",
    "deepreinforce-ai/CUDA-L1": "51e8356",
    "flashinfer-ai/flashinfer-bench": "40e6ca78",
    "hkust-nlp/KernelGYM": "3a84417",
    "kaiming-cheng/kernelagent-optimization-artifacts": "56cf918",
    "pavanyellow/KernelBenchFiltered": "67a4e2b",
    "sekstini/CUDA-L1": "69eb9e3",
    "thunlp/TritonBench": "603e28a",
    "yenhao-huang/KernelBench": "62472a6",
}
_WITH_DATASET = "6569a4d6^"  # the last commit of flashinfer-bench that has its dataset
_FLASHINFER = "0.1.2"
_FLASHINFER_NEEDS = ("apache-tvm-ffi", "docstring-parser", "pyyaml", "safetensors")
_OF_MODELS = ("anyio", "genai-prices", "mcp", "pydantic-ai")
_TEST_NEEDS = ("hypothesis", "pytest", "pytest-timeout", "pytest-xdist", "starlette", "uvicorn")
_UNUSED_OF_RAY = (
    *("air", "dashboard/client", "data", "jars", "llm", "rllib", "serve", "train", "tune"),
    "workflow",
)
_TIMER = '''"""A stand-in for the timer: this copy of flashinfer-bench times nothing."""


def bench_gpu_time_with_cupti(*args, **kwargs):
    raise NotImplementedError("flashinfer is a stand-in here")
'''
_TASKS, _FILES = 50, 4
_TRITON_DATA = (
    *("EVAL", "performance_metrics", "data/TritonBench_T_v1", "data/TritonBench_T_v1.jsonl"),
    *("data/TritonBench_T_comp_alpac_v1.json", "data/TritonBench_T_simp_alpac_v1.json"),
)
_TRITON_G_DATA = (
    *("EVAL", "performance_metrics", "data/TritonBench_G_v1", "data/TritonBench_G_v1.json"),
    *("data/TritonBench_G_comp_alpac_v1.json", "data/TritonBench_G_simp_alpac_v1.json"),
)
_TRITON_ANSWERS = ("LLM_generated/Bench_T_general_purpose", "LLM_generated/Bench_T_coder_specific")
_TRITON_G_ANSWERS = ("LLM_generated/Bench_G_general_purpose",)


class Packing:
    """A folder in which packs are made, one after the other."""

    def __init__(self, repos: Path, packs: Path, python: str, work: Path) -> None:
        self.packs = packs
        self._repos = repos
        self._python = python
        self._work = work

    def take(self, repo: str, into: str, *paths: str, commit: str = "") -> Path:
        """Copy a repository, or some paths of it, as it is at its commit."""
        target = self._work / into
        target.mkdir(parents=True, exist_ok=True)
        clone = self._repos / repo
        if not clone.is_dir():
            sys.exit(f"{clone} is not there: git clone https://github.com/{repo} {clone}")
        commit = commit or _COMMITS[repo]
        archive = ["git", "-C", str(clone), "archive", commit, "--", *paths]
        with subprocess.Popen(archive, stdout=subprocess.PIPE) as git:
            subprocess.run(["tar", "-x", "-C", target], stdin=git.stdout, check=True)
        if git.returncode:
            sys.exit(f"{clone} lacks {' '.join(paths) or 'its tree'} of {commit}: git fetch")
        return target

    def collect(self, name: str, *options: str, precision: str = "tf32") -> None:
        """Pack the folder that `adaexplore bench` makes; paths are relative to the work folder."""
        classes = ("--precision", precision, "--or-looser", "--seed", "0")
        lanes = ("--device", "cuda:0", "--parallel", "6")
        command = ["bench", *options, *classes, *lanes, "--collect-only", "--run", name]
        self._adaexplore(*command)
        self.pack(name)

    def pack(self, name: str, suffix: str = ".tgz") -> None:
        """Write the folder of this name as PACKS/NAME.tgz, or with another suffix of tar's."""
        steady = ("--sort=name", "--owner=0", "--group=0", "--numeric-owner")
        archive = self.packs / f"{name}{suffix}"
        subprocess.run(["tar", "-caf", archive, *steady, "-C", self._work / name, "."], check=True)
        print(f"{name}: {archive.stat().st_size:,} bytes", flush=True)

    def download(self, into: Path, *requirements: str, alone: bool = False) -> None:
        """Bring wheels for the Python of the GPU's machine; `alone` without what they need."""
        pip = [sys.executable, "-m", "pip", "download", "-q", "--only-binary=:all:"]
        pip += ["--python-version", self._python, "-d", str(into), *requirements]
        subprocess.run([*pip, *(["--no-deps"] if alone else [])], check=True)

    def install(self, into: str, *requirements: str) -> Path:
        """Install packages for the Python of the GPU's machine, and return their folder."""
        target = self._work / into
        pip = [sys.executable, "-m", "pip", "install", "-q", "--only-binary=:all:", "--no-compile"]
        pip += ["--python-version", self._python, "--target", str(target), *requirements]
        subprocess.run(pip, check=True)
        return target

    def _adaexplore(self, *arguments: str) -> None:
        subprocess.run([sys.executable, "-m", "adaexplore", *arguments], cwd=self._work, check=True)


def main() -> None:
    """Make the packs that are asked for."""
    options = _options()
    unknown = set(options.names) - set(_PACKS)
    if unknown:
        sys.exit(f"no such pack: {', '.join(sorted(unknown))}; known: {', '.join(_PACKS)}")
    packs = options.packs.resolve()
    packs.mkdir(parents=True, exist_ok=True)
    for name in options.names or _PACKS:
        with TemporaryDirectory() as work:
            _PACKS[name](Packing(options.repos.resolve(), packs, options.python, Path(work)))


def drawn(
    tasks: Sequence[str],
    answered: Mapping[str, Sequence[str]],
    *,
    files: int = _FILES,
    seed: int = 0,
) -> list[tuple[str, str]]:
    """Draw 50 tasks, then for each some of the files that answer it, from one generator."""
    generator = random.Random(seed)
    return [
        (task, file)
        for task in generator.sample(sorted(tasks), min(_TASKS, len(tasks)))
        for some in [sorted(answered.get(task, ()))]
        for file in generator.sample(some, min(files, len(some)))
    ]


def _tritonbench(packing: Packing) -> None:
    clone = packing.take("thunlp/TritonBench", "TritonBench", *_TRITON_DATA, *_TRITON_ANSWERS)
    _answers_of_tritonbench(packing, clone, "tritonbench-t", "tritonbench", _FILES)


def _tritonbench_g(packing: Packing) -> None:
    clone = packing.take("thunlp/TritonBench", "TritonBench", *_TRITON_G_DATA, *_TRITON_G_ANSWERS)
    _answers_of_tritonbench(packing, clone, "tritonbench-g", "tritonbench-g", 1)


def _answers_of_tritonbench(
    packing: Packing, clone: Path, name: str, pack: str, files: int
) -> None:
    benchmark = benchmark_named(name)
    tasks = {task.key for task in benchmark.tasks(clone)}
    places: dict[str, dict[str, int]] = {}
    for answer in benchmark.answers(clone / "LLM_generated", clone):
        file, _, line = answer.place.rpartition("#")
        if answer.key in tasks and not answer.unreadable:
            places.setdefault(answer.key, {})[file] = int(line)
    lines: dict[str, list[str]] = {}
    answered = {task: list(some) for task, some in places.items()}
    for task, file in drawn(list(tasks), answered, files=files):
        text = (clone / "LLM_generated" / file).read_text(encoding="utf-8-sig")
        lines.setdefault(file, []).append(text.splitlines()[places[task][file] - 1])
    options = [name, "--data", "TritonBench"]
    for file, some in sorted(lines.items(), key=lambda item: Path(item[0]).name):
        stem = Path(file).stem.removeprefix("output_")
        (clone.parent / f"{stem}.jsonl").write_text("\n".join(some) + "\n", encoding="utf-8")
        options += ["--answers", f"{stem}={stem}.jsonl"]
    packing.collect(pack, *options)


def _kernelbenchx(packing: Packing) -> None:
    clone = packing.take("BonnieW05/KernelBenchX", "KernelBenchX").name
    for name, answers, sample in (
        ("kernelbenchx", f"gold={clone}/data/kernelbenchx", "30"),
        ("kernelbenchx-corpus", f"corpus={clone}/data/kbx_corpus", "40"),
    ):
        given = ("--data", clone, "--answers", answers, "--sample", sample)
        packing.collect(name, "kernelbenchx", *given)


def _flashinfer(packing: Packing) -> None:
    repo = "flashinfer-ai/flashinfer-bench"
    packing.take(repo, "flashinfer", "flashinfer_trace", commit=_WITH_DATASET)
    folder = packing.take(repo, "flashinfer/main", "flashinfer_bench").parent
    (folder / "main" / "flashinfer").mkdir()
    (folder / "main" / "flashinfer" / "__init__.py").touch()
    (folder / "main" / "flashinfer" / "testing.py").write_text(_TIMER, encoding="utf-8")
    packing.download(folder, f"flashinfer-bench=={_FLASHINFER}", alone=True)
    [wheel] = folder.glob("*.whl")
    shutil.unpack_archive(wheel, folder / "release", "zip")
    wheel.unlink()
    packing.pack("flashinfer")


def _record(packing: Packing) -> None:
    released = _released(packing)
    packing.take("kaiming-cheng/kernelagent-optimization-artifacts", "kernelagent-opt")
    packing.take("deepreinforce-ai/CUDA-L1", "cuda-l1", "optimized_cuda_code/h100.json")
    metr = ("best_agent_solutions", "tasks")
    work = packing.take("pavanyellow/KernelBenchFiltered", "metr", *metr).parent
    _our_winners(work / "ours")
    folders = {
        "kernelagent": released.pop("kernelagent"),
        "kernelagent-optimised": "kernelagent-opt",
        **released,
        "cuda-l1": "cuda-l1/optimized_cuda_code",
        "metr": "metr",
        "ours": "ours",
    }
    levels = [each for level in "1235" for each in ("--level", level)]
    given = ("--data", "KernelBench", "--sample", "30")
    packing.collect("record", "kernelbench", *given, *levels, *_answers(folders))


def _released(packing: Packing) -> dict[str, str]:
    """Take the kernels that others released for today's problems; return their folders by name."""
    packing.take("ScalingIntelligence/KernelBench", "KernelBench", "KernelBench")
    packing.take("Laurawly/kernelagent-artifacts", "kernelagent")
    runs = "runs/ralph_codex_cuda_all"
    packing.take("yenhao-huang/KernelBench", "gpt", runs)
    packing.take("StigLidu/AdaExplore", "adaexplore", "results")
    return {
        "kernelagent": "kernelagent",
        "gpt-5.5": f"gpt/{runs}",
        "adaexplore-2604": "adaexplore/results",
    }


def _answers(folders: Mapping[str, str]) -> list[str]:
    return [each for item in folders.items() for each in ("--answers", "=".join(item))]


def _released_sixty(packing: Packing) -> None:
    """Pack the released kernels for the record's problems, those of each class apart."""
    answers = _answers(_released(packing))
    order = tomllib.loads((_ROOT / "docs/results/record-sixty.toml").read_text(encoding="utf-8"))
    for table in order["problem"]:
        if "benchmark" in table:
            chosen = [each for some in table["problems"] for each in ("--problems", some)]
            given = ("--data", "KernelBench", *chosen, *answers)
            name, precision = f"released-{table['precision']}", table["precision"]
            packing.collect(name, "kernelbench", *given, precision=precision)


def _our_winners(folder: Path) -> None:
    """Write the winner of each problem: that of the run whose interval begins highest."""
    best: dict[tuple[str, str], tuple[float, str]] = {}
    for file in sorted((_ROOT / "tests" / "replay").glob("h200_*.json.xz")):
        _, level, number, _ = file.name.split("_")
        with read_run(file) as run:
            summary = summary_of(run.store, file)
        timing, row = summary.headline.timing, summary.best
        if timing is None or row is None:
            continue
        found = (timing.speedup_ci[0], row.node.candidate.source)
        best[level, number] = max(best.get((level, number), found), found)
    for (level, number), (_, source) in best.items():
        file = folder / f"level{level.removeprefix('l')}" / f"{number}.py"
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source, encoding="utf-8")


def _audited(packing: Packing, into: str) -> Path:
    """Take the cheats of the withdrawn CUDA-L1 release that the audit names."""
    audit = json.loads((_ROOT / "docs/results/cuda-l1-audit.json").read_text(encoding="utf-8"))
    folder = f"unpacked/{audit['folder']}"
    files = ("custom_code.py", "ref_code.py")
    paths = [f"{folder}/{key}/{file}" for key in audit["cheats"] for file in files]
    return packing.take("sekstini/CUDA-L1", into, *paths) / folder


def _withdrawn(packing: Packing) -> None:
    folder = _audited(packing, "audited")
    folder.rename(folder.parents[2] / "cheats")
    packing.collect(
        "withdrawn", "kernelbench", "--answers", "cuda-l1: a stream that nothing joins=cheats"
    )


def _confusion(packing: Packing) -> None:
    released = ("results/saved_kernels/kernelbench", "datasets/KernelBench")
    packing.take("StigLidu/AdaExplore", "confusion/AdaExplore", *released)
    packing.take("ScalingIntelligence/KernelBench", "confusion/KernelBench", "src/kernelbench")
    packing.take("hkust-nlp/KernelGYM", "confusion/KernelGYM", "kernelgym")
    _audited(packing, "confusion/CUDA-L1")
    packing.pack("confusion")


def _searches(packing: Packing) -> None:
    repo = "flashinfer-ai/flashinfer-bench"
    packing.take(repo, "searches/data", "flashinfer_trace", commit=_WITH_DATASET)
    used = ("EVAL", "data/kernelbenchx", "data/kernelbenchx_v1.json", "metrics", "utils")
    packing.take("BonnieW05/KernelBenchX", "searches/data/KernelBenchX", *used)
    packing.take("thunlp/TritonBench", "searches/data/TritonBench", *_TRITON_DATA)
    packing.pack("searches")


def _study(packing: Packing) -> None:
    packing.take("ScalingIntelligence/KernelBench", "study/data/KernelBench", "KernelBench")
    packing.pack("study")


def _sixty(packing: Packing) -> None:
    """Take the record's problems, its order, and the replies that were given ahead."""
    kernelbench = "ScalingIntelligence/KernelBench"
    data = packing.take(kernelbench, "sixty/data/KernelBench", "KernelBench").parent
    shutil.copytree(_ROOT / "examples" / "bf16", data / "bf16")
    shutil.copy(_ROOT / "docs/results/record-sixty.toml", data.parent / "order.toml")
    ahead = data.parent / "ahead"
    shutil.unpack_archive(_ROOT / "docs/results/record-sixty/ahead.tgz", ahead, filter="data")
    replies = data.parent / "replies"
    replies.mkdir()
    (ahead / "now/replies/searches").rename(replies / "sixty")
    shutil.rmtree(ahead)
    packing.pack("sixty")


def _ray(packing: Packing) -> None:
    """Install Ray and what judging needs, without parts that judge nothing and without symbols."""
    project = _project()
    needs = [need for need in project["dependencies"] if not need.startswith(_OF_MODELS)]
    site = packing.install("ray", *needs, *project["optional-dependencies"]["ray"])
    for part in _UNUSED_OF_RAY:
        shutil.rmtree(site / "ray" / part)
    core = site / "ray" / "core" / "src" / "ray"
    large = (site / "ray" / "_raylet.so", core / "gcs" / "gcs_server", core / "raylet" / "raylet")
    subprocess.run(["strip", "--strip-unneeded", *large], check=True)
    for folder in site.glob("numpy*"):
        shutil.rmtree(folder)  # the GPU's machine has the NumPy that fits its torch
    packing.pack("ray", ".txz")


def _wheels(packing: Packing) -> None:
    """Bring what adaexplore, its tests and flashinfer-bench need beside torch, Triton and NumPy."""
    folder = packing.packs / "wheels"
    packing.download(folder, *_project()["dependencies"], *_TEST_NEEDS)
    packing.download(folder, *_FLASHINFER_NEEDS, alone=True)
    for wheel in folder.glob("numpy-*.whl"):
        wheel.unlink()  # the GPU's machine has the NumPy that fits its torch


def _project() -> dict[str, Any]:
    """Return what `pyproject.toml` says of the project."""
    text = (_ROOT / "pyproject.toml").read_text(encoding="utf-8")
    project: dict[str, Any] = tomllib.loads(text)["project"]
    return project


_PACKS: Mapping[str, Callable[[Packing], None]] = {
    "wheels": _wheels,
    "ray": _ray,
    "tritonbench": _tritonbench,
    "tritonbench-g": _tritonbench_g,
    "kernelbenchx": _kernelbenchx,
    "flashinfer": _flashinfer,
    "record": _record,
    "confusion": _confusion,
    "withdrawn": _withdrawn,
    "searches": _searches,
    "study": _study,
    "sixty": _sixty,
    "released": _released_sixty,
}


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(_PACKS))
    parser.add_argument("--repos", type=Path, required=True, help="clones, as OWNER/NAME")
    parser.add_argument("--packs", type=Path, required=True, help="where the packs go")
    version = ".".join(map(str, sys.version_info[:2]))
    parser.add_argument("--python", default=version, help="version on the GPU's machine")
    return parser.parse_args()


if __name__ == "__main__":
    main()
