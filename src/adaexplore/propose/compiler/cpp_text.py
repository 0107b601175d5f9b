"""Changes to the text of Inductor's C++ kernels that its options do not offer."""

from __future__ import annotations

import re


def fast_exp(source: str) -> str:
    """Use vector exponentials within 2 units in the last place, as eager's own softmax does."""
    return re.sub(r"(\btmp\d+)\.exp\(\)", r"\1.exp_u20()", source)


def reciprocal(source: str) -> str:
    """Replace division by a value that all lanes share by a product with its reciprocal.

    The scalar's reciprocal moves out of the loop; the result is off by at most one more rounding.
    """
    broadcast = re.compile(r"auto (tmp\d+) = at::vec::Vectorized<float>\((tmp\d+)\);")
    lines = source.splitlines()
    scalars: dict[str, str] = {}
    for index, line in enumerate(lines):
        if found := broadcast.search(line):
            scalars[found[1]] = found[2]
        elif "{" in line:
            scalars.clear()  # another block: names are reused
        elif (found := re.search(r"auto (tmp\d+) = (tmp\d+) / (tmp\d+);", line)) and (
            scalar := scalars.get(found[3])
        ):
            product = f"{found[2]} * at::vec::Vectorized<float>(1.0f / {scalar})"
            lines[index] = line.replace(f"{found[2]} / {found[3]}", product)
    return "\n".join(lines)
