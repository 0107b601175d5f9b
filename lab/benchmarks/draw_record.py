"""Draws the problems of the record: twenty of each level of KernelBench, none used before.

    python lab/benchmarks/draw_record.py KernelBench -o docs/results/record-sixty.toml

KernelBench is a checkout of github.com/ScalingIntelligence/KernelBench at 423217d. A problem counts
as used if a file of docs/results names it, apart from those that judge kernels of others, if an
order of lab/benchmarks/gpu asks for it, or if it is in `NAMED`. Writes a campaign's file.
"""

from __future__ import annotations

import argparse
import random
import re
import tomllib
from collections.abc import Mapping
from pathlib import Path

_ROOT = Path(__file__).resolve().parents[2]
SEED = 21
DRAWN, STRICT = 20, 7  # of a level; of these in fp32
NAMED = {2: {26, 61, 82}, 3: {15, 20, 29, 30, 39, 46}}
"""Problems that were timed by hand before: their times are known, whatever results say."""
_OF_OTHERS = {
    *("record.md", "released.md", "h200-released.jsonl", "sm90-released.jsonl", "confusion.json"),
    *("confusion.md", "cuda-l1-audit.json", "h200-rejudged.json", "record-sixty.md"),
    "record-sixty.toml",
}
_TEXT = {".md", ".json", ".jsonl", ".log", ".toml"}
_LEAST_CHARS = 25  # of a name that a table cuts off
_HEAD = """\
# The record: {drawn} problems of each level of KernelBench under seed {seed}, and ten modules
# in bf16. record-sixty.md has the rule.
proposer = "manual"
language = "triton"
parallel = 8
turn_steps = 2      # prompts that wait at once, for each problem
steps = 10
reviser = false     # one exchange for each answer
p_strategy = 0.0
p_contrast = 0.0
"""


def main() -> None:
    """Draw, print what was used before, and write the campaign's file."""
    parser = argparse.ArgumentParser(description=str(__doc__).splitlines()[0])
    parser.add_argument("kernelbench", type=Path)
    parser.add_argument("-o", "--output", type=Path, required=True)
    options = parser.parse_args()
    names = {level: _names(options.kernelbench, level) for level in (1, 2, 3)}
    used = used_before(names, _texts(), _ordered())
    for level, numbers in used.items():
        print(f"level {level}, used before, {len(numbers)}: {', '.join(map(str, sorted(numbers)))}")
    drawn = draw(names, used)
    options.output.write_text(written(drawn), encoding="utf-8")
    for level, chosen in drawn.items():
        print(f"level {level}: fp32 {_joined(chosen[:STRICT])}; tf32 {_joined(chosen[STRICT:])}")


def draw(
    names: Mapping[int, Mapping[int, str]], used: Mapping[int, set[int]], *, seed: int = SEED
) -> dict[int, list[int]]:
    """Draw problems of each level from one generator; the first `STRICT` are judged in fp32."""
    generator = random.Random(seed)
    return {
        level: generator.sample(sorted(set(names[level]) - used.get(level, set())), DRAWN)
        for level in sorted(names)
    }


def used_before(
    names: Mapping[int, Mapping[int, str]],
    texts: str,
    ordered: Mapping[int, set[int]],
) -> dict[int, set[int]]:
    """Return the numbers of the problems that results name, orders ask for, or `NAMED` has."""
    return {
        level: {
            number
            for number, name in of_level.items()
            if number in ordered.get(level, ())
            or number in NAMED.get(level, ())
            or _is_named(texts, level, number, name)
        }
        for level, of_level in names.items()
    }


def written(drawn: Mapping[int, list[int]]) -> str:
    """Return the text of the campaign's file."""
    parts = [_HEAD.format(drawn=DRAWN, seed=SEED)]
    for precision, chosen in (("fp32", slice(STRICT)), ("tf32", slice(STRICT, None))):
        numbers = [f'"{level} {_joined(found[chosen])}"' for level, found in drawn.items()]
        parts.append(
            '[[problem]]\nbenchmark = "kernelbench"\ndata = "data/KernelBench"\n'
            f'precision = "{precision}"\nproblems = [{", ".join(numbers)}]\n'
        )
    own = sorted(file.name for file in (_ROOT / "examples" / "bf16").glob("*.py"))
    parts += [f'[[problem]]\nfile = "data/bf16/{name}"\nprecision = "half"\n' for name in own]
    return "\n".join(parts)


def _joined(numbers: list[int]) -> str:
    return ",".join(map(str, sorted(numbers)))


def _is_named(texts: str, level: int, number: int, name: str) -> bool:
    cut = name[:_LEAST_CHARS] if len(name) > _LEAST_CHARS else name
    return cut in texts or re.search(rf"\b{level}/{number}_", texts) is not None


def _names(checkout: Path, level: int) -> dict[int, str]:
    files = (checkout / "KernelBench" / f"level{level}").glob("*.py")
    return {int(file.stem.partition("_")[0]): file.stem for file in files}


def _texts() -> str:
    files = sorted((_ROOT / "docs" / "results").rglob("*"))
    chosen = [f for f in files if f.suffix in _TEXT and f.name not in _OF_OTHERS]
    return "\n".join(file.read_text(encoding="utf-8") for file in chosen)


def _ordered() -> dict[int, set[int]]:
    """Return the problems of KernelBench that the orders of searches on a GPU ask for."""
    found: dict[int, set[int]] = {}
    for file in (_ROOT / "lab" / "benchmarks" / "gpu").glob("*.toml"):
        for problem in tomllib.loads(file.read_text(encoding="utf-8"))["problem"]:
            if problem.get("benchmark") == "kernelbench":
                for text in problem["problems"]:
                    level, _, numbers = text.partition(" ")
                    found.setdefault(int(level), set()).update(map(int, numbers.split(",")))
    return found


if __name__ == "__main__":
    main()
