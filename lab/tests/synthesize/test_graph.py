import pytest

from adaexplore.problems.overlap.confined import run_confined, structure_of


@pytest.fixture(scope="module")
def traced(synthesis_server, written):
    def traced(*task, **more):
        source = written(*task, **more).source
        return structure_of(synthesis_server, "task", source)

    return traced


@pytest.fixture(scope="module")
def structure(traced):
    return lambda *task, **more: traced(*task, **more)["structure"]


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("return torch.relu(x0) + 1",), ("return F.relu(x0) + 3.5", "torch.randn(64, 3, 9)")),
        (("return x0.sum(0)",), ("return x0.sum(1, keepdim=True).squeeze(1)",)),
        (("return x0 * torch.exp(x0)",), ("return torch.exp(x0).mul(x0)",)),
        (("return torch.tanh(x0)",), ("return torch.tanh(x0.reshape(7, 5))",)),
        (("x0 = x0 + 1\nx0.relu_()\nreturn x0",), ("return torch.relu(x0 + 1)",)),
        (("return x0.sin()",), ("return x0.sin()", "torch.randn(3, 3, dtype=torch.bfloat16)")),
        (("x0.cos()\nreturn x0.sin()",), ("return x0.sin()",)),
        (
            ('return F.pad(x0, (1, 1), mode="circular").sin()',),
            ('return F.pad(x0, (2, 3), mode="circular").sin()',),
        ),
    ],
)
def test_sizes_dtypes_numbers_and_spelling_do_not_count(structure, one, other):
    assert structure(*one) == structure(*other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (("return torch.relu(x0)",), ("return torch.tanh(x0)",)),
        (("return torch.relu(x0).sum(0)",), ("return torch.relu(x0.sum(0))",)),
        (("return x0 * x0",), ("return x0 * x1", "torch.randn(2), torch.randn(2)")),
        (("return x0.cos(), x0.sin()",), ("return x0.sin()",)),
        (("return x0 - torch.exp(x0)",), ("return torch.exp(x0) - x0",)),
        (
            ('return F.pad(x0.cos(), (1, 1), mode="circular")',),
            ('return F.pad(x0.sin(), (1, 1), mode="circular")',),
        ),
        (("return x0.max(0).values",), ("return x0.max(0).indices",)),
        (
            ("return self.m(x0)", "torch.randn(1, 2, 9)", "self.m = nn.Conv1d(2, 2, 3)"),
            ("return self.m(x0)", "torch.randn(1, 2, 9)", "self.m = nn.ConvTranspose1d(2, 2, 3)"),
        ),
    ],
)
def test_what_is_computed_counts(structure, one, other):
    assert structure(*one) != structure(*other)


def test_operations_are_told_in_order(traced):
    found = traced("return torch.relu(x0 @ x0.T).sum()")
    assert found["ops"] == ["permute", "mm", "relu", "sum"]


def test_what_nothing_depends_on_is_named(traced):
    found = traced(
        "return x0 + self.b",
        "torch.randn(3), torch.randn(4)",
        "self.b = nn.Parameter(torch.ones(3))\nself.a = nn.Parameter(torch.ones(3))",
    )
    assert found["unused"] == ["weight a", "input number 2"]


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("return torch.zeros(3) @ x0", "its graph cannot be traced: RuntimeError: "),
        ("return x0[x0 > 0]", "its graph cannot be traced: "),
        ("return x0 * float(x0.sum())", "its graph cannot be traced: "),
        ("return 3", "its graph cannot be traced: TypeError: output is a value of type int"),
        ("import os\nos._exit(3)", "its process died: it exited with code 3"),
    ],
)
def test_a_module_that_cannot_be_traced_says_why_in_a_line(traced, body, why):
    found = traced(body)
    assert why in found["why"]
    assert "\n" not in found["why"]


@pytest.mark.slow
def test_what_does_not_end_is_ended(synthesis_server, written):
    source = written("while True:\n    pass").source
    request = {"name": "endless", "source": source}
    found = run_confined(synthesis_server, "adaexplore.problems.overlap.graph:job", request, 2.0)
    assert found == {"why": "it takes longer than 2 s"}
