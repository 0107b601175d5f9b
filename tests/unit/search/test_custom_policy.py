"""The policy in the docstring of `adaexplore.search`, run as it stands there."""

import random
import re
import textwrap

import adaexplore.search
from adaexplore.core.settings.config import Config
from adaexplore.search import ROOT_ID, Selection, SourceTraits, Tree


def test_the_documented_policy_expands_the_fastest_kernel():
    [source] = re.findall(
        r"^    class .*?(?=^\S)", adaexplore.search.__doc__, re.DOTALL | re.MULTILINE
    )
    names = {name: getattr(adaexplore.search, name) for name in adaexplore.search.__all__}
    exec(textwrap.dedent(source), names)
    policy, tree = names["Greedy"](Config(p_large=0.0)), Tree()
    assert policy.select(tree, random.Random(0)) == Selection(ROOT_ID, "large")
    for node_id, speedup in enumerate([1.0, 3.0, 2.0], 1):
        tree.add(node_id, ROOT_ID, "large", 0.5, (True, True, speedup, 0.0))
        policy.record(tree, node_id, SourceTraits)
    assert policy.select(tree, random.Random(0)) == Selection(2, "small")
