import pytest
from hypothesis import given
from hypothesis import strategies as st

from adaexplore.core.errors import BadInputError
from adaexplore.problems.overlap import structures

DIGESTS = st.lists(st.integers(0, 2**128 - 1).map(lambda n: f"{n:032x}"), unique=True)


def test_a_task_like_a_benchmark_problem_is_refused(
    synthesis_server, new_validator, written, tmp_path
):
    problem = written(
        "return torch.tanh(self.m(x0)).sum(dim=1)",
        "torch.randn(16, 512)",
        "self.m = nn.Linear(512, 1024)",
    )
    (tmp_path / "level9").mkdir()
    (tmp_path / "level9" / "7_tanh_sum.py").write_text(problem.source)
    known = structures.structures_in(tmp_path, synthesis_server, lambda name, why: None)
    validator = new_validator(benchmarks=known)
    alike = written(
        "h = self.layer(x0)\nh = h.tanh()\nreturn torch.sum(h, 0)",
        "torch.randn(3, 11)",
        "self.layer = nn.Linear(11, 5)",
    )
    other = written(
        "return torch.tanh(self.m(x0)).amax(dim=1)", init="self.m = nn.Linear(7, 9)", name="other"
    )
    assert validator.check(alike).why == "it has the structure of level9/7_tanh_sum.py"
    assert validator.check(other).why == ""


def test_tasks_like_those_of_the_shipped_structures_are_refused(new_validator, written):
    """A linear layer, and a product of two matrices: every benchmark of kernels has them."""
    validator = new_validator(benchmarks=structures.benchmark_structures())
    for body, inputs in (
        ("return x0 @ x1", "torch.randn(5, 7), torch.randn(7, 3)"),
        ("return torch.softmax(x0, dim=1)", "torch.randn(5, 7)"),
        ("return F.gelu(x0)", "torch.randn(5, 7)"),
    ):
        assert validator.check(written(body, inputs)).why == (
            "it has the structure of a benchmark problem"
        )


def test_the_shipped_structures_are_digests_alone():
    assert len(structures.benchmark_structures()) > 190


@given(DIGESTS, st.text("abc \n", max_size=20))
def test_digests_survive_being_written(found, head):
    assert structures.digests(structures.structures_text(found, head)) == sorted(found)


def test_a_line_that_is_no_digest_is_named():
    with pytest.raises(BadInputError, match="line 2: 'relu' is no digest"):
        structures.digests("# head\nrelu\n")


def test_files_without_a_structure_are_told(synthesis_server, tmp_path):
    (tmp_path / "broken.py").write_text("class Model: pass\n")
    told = []
    found = structures.structures_in(
        tmp_path, synthesis_server, lambda name, why: told.append((name, bool(why)))
    )
    assert not found
    assert told == [("broken.py", True)]


def test_a_folder_without_problems_is_bad_input(synthesis_server, tmp_path):
    with pytest.raises(BadInputError, match="no Python files"):
        structures.structures_in(tmp_path, synthesis_server, lambda name, why: None)
