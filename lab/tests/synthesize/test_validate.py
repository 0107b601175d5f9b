import pytest

from adaexplore.problems.overlap.confined import structure_of
from adaexplore_lab.synthesize.grammar import grow


@pytest.fixture
def validator(new_validator):
    return new_validator()


def test_a_task_that_means_something_is_kept(validator, written):
    found = validator.check(written("return torch.softmax(x0 @ x0.T, -1)"))
    assert found.why == ""
    assert found.task.ops == ("permute", "mm", "_softmax")
    assert found.structure
    assert found.wall_s > 0


def test_the_grammars_own_names_of_operations_stay(validator):
    task = grow(3)
    assert validator.check(task).task.ops == task.ops


LAYER = "self.m = nn.Linear(7, 7)"
REFUSED = {
    "input-insensitive": ("return torch.ones_like(x0) + 1e-12 * x0", {}),
    "nothing can be verified": ("return torch.exp(1000 * x0.abs())", {}),
    "not finite": ("return torch.tan(x0) - float('inf')", {}),
    "NaN": ("return torch.sqrt(-x0.abs() - 1)", {}),
    "weight-insensitive": ("return x0 + 1e-9 * self.m(x0)", {"init": LAYER}),
    "does not depend on weight m.bias": ("return x0 @ self.m.weight", {"init": LAYER}),
    "does not depend on input number 2": (
        "return x0.exp()",
        {"inputs": "torch.randn(5), torch.randn(5)"},
    ),
    "differs between two runs": ("return x0 + torch.randn_like(x0)", {}),
    "changes its inputs in place": ("return x0.mul_(2)", {}),
    "computes nothing": ("return x0", {}),
    "a constant would pass": ("return x0[:0] + 1", {}),
    "get_inputs() raised": ("return x0", {"inputs": "torch.randn(5, 7)[9, 9, 9]"}),
    "memory": ("return x0.sum() + torch.ones(1 << 33).cumsum(0)", {}),
}


@pytest.mark.parametrize("why", REFUSED)
def test_what_teaches_nothing_is_refused_in_a_line(validator, written, why):
    body, more = REFUSED[why]
    found = validator.check(written(body, **more))
    assert why in found.why
    assert "\n" not in found.why


def test_a_structure_is_kept_once(validator, written):
    first = written("return torch.relu(x0) * 2", name="first")
    again = written("return torch.relu(x0) * 3", "torch.randn(31, 2)", name="again")
    assert validator.check(first).why == ""
    assert validator.check(again).why == "it has the structure of first"


def test_a_task_that_was_refused_does_not_keep_its_structure(validator, written):
    assert validator.check(written("return torch.exp(1000 * x0.abs())")).why
    assert validator.check(written("return torch.exp(0.1 * x0.abs())")).why == ""


def test_what_lies_in_the_folder_counts_as_known(synthesis_server, new_validator, written):
    task = written("return torch.sin(x0)")
    structure = structure_of(synthesis_server, "sin", task.source)["structure"]
    validator = new_validator(known={structure: "old"})
    assert validator.check(task).why == "it has the structure of old"


def test_labels_that_do_not_matter_here_are_kept(validator, written):
    found = validator.check(
        written("return self.m(x0).sum(dim=1)", init="self.m = nn.Linear(7, 9)")
    )
    assert found.why == ""
    assert list(found.labels) == ["collapsible"]
