"""Runs and released kernels of the published search (arXiv 2604.16625), read as runs.

Their verdicts and times are theirs: a kernel that they found correct has the status "reported" here
and nothing is claimed for it.
"""

from __future__ import annotations

from adaexplore.store.published.layout import is_published, published_runs
from adaexplore.store.published.run import read_published

__all__ = ["is_published", "published_runs", "read_published"]
