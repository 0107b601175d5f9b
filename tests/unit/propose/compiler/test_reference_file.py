"""A candidate's class is made of the user's, wherever that is defined."""

import ast

import pytest

from adaexplore.propose.compiler.graph import UnsupportedError
from adaexplore.propose.compiler.reference import ReferenceFile

FORWARD = (
    "    @decorated\n    def forward(self, hidden, mask: int = None):\n        return hidden\n"
)
INPUTS = "\ndef get_inputs():\n    return []\n"


@pytest.mark.parametrize(
    ("source", "base", "imports"),
    [
        ("from library import Net\nModel = Net", "Model", ["from library import Net"]),
        ("from library import Net as Model", "Model", ["from library import Net as Model"]),
        ("from library import *", "Model", ["from library import *"]),
        (
            "from library import Net\nclass Model(Net):\n    pass",
            "Net",
            ["from library import Net"],
        ),
    ],
)
def test_a_class_from_elsewhere_is_derived_from(source, base, imports):
    file = ReferenceFile(source + INPUTS, FORWARD)
    assert file.forward_parameters() == ["hidden", "mask"]
    support = file.support(set())
    assert support.imports == imports
    [made] = ast.parse(file.model_class("", "return hidden + 1")).body
    assert (made.name, made.bases[0].id) == ("ModelNew", base)
    [forward] = [n for n in made.body if isinstance(n, ast.FunctionDef)]
    assert ast.unparse(forward) == "def forward(self, hidden, mask=None):\n    return hidden + 1"


@pytest.mark.parametrize("inherited", ["", "x = 1", "lambda x: x)", "a = 1\nb = 2"])
def test_a_forward_without_source_is_not_supported(inherited):
    with pytest.raises(UnsupportedError, match="source cannot be found"):
        ReferenceFile("from library import Model" + INPUTS, inherited)
