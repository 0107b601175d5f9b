"""A model that always has an answer, and what a run kept of it."""

import re

from adaexplore.store import read_run

LOCAL = "openai-compatible:local"
MODULE = """Clamped.

```python
import torch
from torch import nn


class ModelNew(nn.Module):
    def forward(self, x):
        times = {times}
        for _ in range(times):
            out = x.clamp(min=0) + 1
        return out
```
"""
PATCH = """Fewer.

<<<<<<< OLD
        times = {old}
=======
        times = {new}
>>>>>>> NEW
"""


def answer_by(numbers):
    """A model that patches where it may and writes a module where it must."""

    def answer(messages):
        asked = messages[-1]["text"]
        times = re.findall(r"times = (\d+)", asked)
        if "<<<<<<< OLD" in asked and times:
            return PATCH.format(old=times[-1], new=next(numbers))
        return MODULE.format(times=next(numbers))

    return answer


def kept(path):
    """A run's record, its steps, and the calls made for them."""
    with read_run(path) as run:
        return run.store.run(), run.store.nodes(), run.store.calls()
