"""The public names of `adaexplore`, used as a program outside the package would use them."""

import asyncio
import subprocess
import sys
import textwrap

import pytest

import adaexplore

PROBLEM = """
import torch

class Model(torch.nn.Module):
    def forward(self, x):
        return torch.relu(x) + 1

def get_inputs():
    return [torch.randn(64, 64)]
"""


@pytest.fixture
def problem(tmp_path):
    path = tmp_path / "relu.py"
    path.write_text(PROBLEM)
    return path


class Judge:
    """An evaluator that measures nothing: the longer the source, the faster the kernel."""

    def __init__(self):
        self.judged = []

    def prepare(self):
        from adaexplore.core.facts import ReferenceFacts

        return ReferenceFacts(baselines_us={"eager": 20.0})

    def evaluate(self, candidate, parent=None, *, again=False):
        self.judged.append(candidate.source)
        speedup = 1.0 + len(candidate.source) / 1000
        interval = (speedup - 0.01, speedup + 0.01)
        timing = adaexplore.Timing(
            10.0, (9.9, 10.1), {"eager": 20.0}, speedup, interval, speedup, 9
        )
        return adaexplore.Passed("fp32", 1e-7, timing)

    def close(self):
        raise AssertionError("the caller closes an evaluator of its own")


class Counting:
    """A proposer without a model: every source has one more line."""

    def begin(self, context):
        yield from ()
        source = "class ModelNew: pass\n" + "# faster\n" * (1 + len(context.history))
        return adaexplore.Proposal(
            adaexplore.Candidate(source, context.problem.language), "counting", "one more line"
        )

    def close(self):
        raise AssertionError("the caller closes a proposer of its own")


@pytest.fixture
def own(tmp_path, problem):
    """Keywords of a search that starts no process."""
    return {
        "evaluator": Judge(),
        "proposer": Counting(),
        "device": "cpu",
        "run": tmp_path / "run",
        "steps": 3,
    }


def test_the_import_loads_nothing_heavy():
    program = """
        import sys, adaexplore
        heavy = {"torch", "pydantic", "sqlalchemy", "rich", "jinja2"} & sys.modules.keys()
        import adaexplore.evaluate.judge  # the package of the same name hides no function
        assert callable(adaexplore.evaluate) and set(dir(adaexplore)) >= {"optimize", "Run"}
        sys.exit(", ".join(heavy) or 0)
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_every_public_name_is_there():
    assert all(getattr(adaexplore, name) is not None for name in adaexplore.__all__)
    with pytest.raises(AttributeError, match="no attribute 'optimise'"):
        adaexplore.optimise  # noqa: B018


class TestObjects:
    def test_a_run_by_an_own_evaluator_and_proposer(self, own, problem):
        run = adaexplore.optimize(problem, **own)
        assert [node.proposal.origin for node in run.nodes] == ["counting"] * 3
        assert run.best.id == 3
        assert run.best_source == max(own["evaluator"].judged, key=len)
        assert run.speedup == run.verdict.timing.speedup > 1
        assert run.speedup_ci == pytest.approx((run.speedup - 0.01, run.speedup + 0.01))
        assert run.problem.name == "relu"
        assert run.report_path.is_file()
        assert "1.0" in run._repr_html_()

    def test_events_come_in_order(self, own, problem):
        events = list(adaexplore.explore(problem, **own, recheck=False, confirm=False))
        step = ["StepBegun", "Evaluating", "Recorded"]
        names = [type(event).__name__ for event in events]
        assert names == ["Opened", "Prepared", *step * 3, "Finished"]
        assert [e.node.id for e in events if isinstance(e, adaexplore.Recorded)] == [1, 2, 3]
        assert events[-1].path == own["run"]

    def test_a_listener_hears_what_it_overrides(self, own, problem):
        class Bests(adaexplore.Listener):
            found = ()

            def recorded(self, node, *, best):
                self.found += (node.id,) if best else ()

        bests = Bests()
        adaexplore.optimize(problem, listener=bests, **own)
        assert bests.found == (1, 2, 3)

    def test_a_function_is_a_model(self, own, problem):
        prompts = []

        def answer(prompt):
            prompts.append(prompt)
            return f"```python\nclass ModelNew: pass\n# {len(prompts)}\n```"

        own |= {"proposer": None, "model": answer}
        run = adaexplore.optimize(problem, **own)
        assert {node.proposal.origin for node in run.nodes} == {"answer"}
        assert "torch.relu(x) + 1" in prompts[0].messages[-1].text
        assert len(run.nodes) == 3

    def test_a_model_that_answers_no_text_is_bad_input(self, own, problem):
        own |= {"proposer": None, "model": lambda prompt: 42}
        with pytest.raises(adaexplore.BadInputError, match="returned int"):
            adaexplore.optimize(problem, **own)

    def test_a_policy_chooses_every_place(self, own, problem):
        class Chain:
            """Every step grows from the last."""

            def __init__(self):
                self.last = 0

            def select(self, tree, rng):
                return adaexplore.Selection(self.last, "small" if self.last else "large")

            def record(self, tree, node_id, traits):
                self.last = node_id

        run = adaexplore.optimize(problem, policy=Chain(), **own)
        assert [node.parent_id for node in run.nodes] == [0, 1, 2]
        run.resume(steps=5)
        assert [node.parent_id for node in run.nodes] == [0, 1, 2, 3, 4]


class TestStopping:
    def test_a_closed_generator_leaves_a_run_that_resumes(self, own, problem):
        events = adaexplore.explore(problem, **own)
        for event in events:
            if isinstance(event, adaexplore.Recorded):
                break
        events.close()
        run = adaexplore.Run(own["run"])
        assert len(run.nodes) == 1
        run.resume(evaluator=own["evaluator"], proposer=own["proposer"])
        assert len(run.nodes) == 3

    def test_without_its_objects_a_run_names_the_way_on(self, own, problem):
        adaexplore.optimize(problem, **own)
        with pytest.raises(adaexplore.BadInputError, match="was a Python object"):
            adaexplore.Run(own["run"]).resume(steps=5)

    def test_it_runs_inside_a_running_event_loop(self, own, problem):
        async def cell():
            return adaexplore.optimize(problem, **own)

        assert len(asyncio.run(cell()).nodes) == 3


class TestBadInput:
    @pytest.mark.parametrize(
        ("change", "message"),
        [
            ({"step": 3}, "did you mean steps"),
            ({"steps": 0}, "steps=0"),
            ({"model": 3.5}, "give the name of a model"),
            ({"inputs": (1,)}, "example inputs go with a module"),
            ({"device": "cuda:77"}, "no such GPU"),
        ],
    )
    def test_is_one_line_before_anything_starts(self, own, problem, change, message):
        with pytest.raises(adaexplore.BadInputError, match=message):
            adaexplore.optimize(problem, **own | change)
        assert not own["run"].exists()

    def test_a_thing_that_is_no_problem(self, own):
        with pytest.raises(adaexplore.BadInputError, match="a dict is no problem"):
            adaexplore.optimize({}, **own)
