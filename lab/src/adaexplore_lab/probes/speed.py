"""Speed: pairs that are both right, of which one is expected to be faster on a Hopper GPU.

Whether it is, and by how much, is for a measurement to say. Sizes are such that a call takes some
10 to 300 microseconds there, and the two differ in what the statement is about.
"""

from __future__ import annotations

from adaexplore_lab.probes.base import Probe
from adaexplore_lab.probes.speed_blocks import BLOCKS
from adaexplore_lab.probes.speed_host import HOST
from adaexplore_lab.probes.speed_matmul import MATMULS
from adaexplore_lab.probes.speed_rows import ROWS

SPEED: tuple[Probe, ...] = (*MATMULS, *ROWS, *BLOCKS, *HOST)
