"""The public names of `adaexplore`, used as a program outside the package would use them."""

import asyncio
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

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
        self.confirmed = []

    def prepare(self):
        from adaexplore.core.verdict.facts import ReferenceFacts

        return ReferenceFacts(baselines_us={"eager": 20.0})

    def evaluate(self, candidate, parent=None, *, again=False):
        self.judged.append(candidate.source)
        self.confirmed += [candidate.source] if again else []
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

    def test_a_single_verdict_is_against_every_baseline_as_a_confirmation_is(self, own, problem):
        candidate = adaexplore.Candidate("class ModelNew: ...", "cpp")
        adaexplore.evaluate(problem, candidate, evaluator=own["evaluator"], device="cpu")
        assert own["evaluator"].confirmed == [candidate.source]

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


class Renaming:
    """Proposes the reference itself under the candidate's name."""

    def begin(self, context):
        yield from ()
        source = context.problem.source.replace("class Model(", "class ModelNew(")
        candidate = adaexplore.Candidate(source, context.problem.language)
        return adaexplore.Proposal(candidate, "renaming", "the same")

    def close(self):
        pass


def branching():
    """A module that goes on by the values of its input."""
    import torch
    from torch import nn

    class Branching(nn.Module):
        def __init__(self):
            super().__init__()
            self.up, self.down = nn.Linear(8, 16), nn.Linear(16, 8)
            self.down.weight = nn.Parameter(torch.randn(8, 16))

        def forward(self, x):
            return self.down(self.up(x)) if x.sum() > 0 else x

    return Branching().eval()


class TestModules:
    @pytest.fixture
    def module(self):
        import torch
        from torch import nn

        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 4)).eval()

    @pytest.fixture
    def run(self, own, module):
        import torch

        own |= {"proposer": Renaming(), "steps": 1}
        del own["device"]
        return adaexplore.optimize(module, (torch.randn(5, 8),), **own)

    def test_the_winner_takes_the_place_of_the_module(self, run, module):
        import torch

        unseen = torch.randn(5, 8)
        torch.testing.assert_close(run.best_module()(unseen), module(unseen))
        with torch.no_grad():
            module[0].weight.mul_(2)
        torch.testing.assert_close(run.best_module()(unseen), module(unseen))
        again = adaexplore.Run(run.path).best_module(module, (unseen,))
        torch.testing.assert_close(again(unseen), module(unseen))

    def test_a_module_without_a_graph_is_captured_by_its_sources(self, own):
        import torch

        module = branching()
        own |= {"proposer": Renaming(), "steps": 1, "language": "cpp"}
        del own["device"]
        run = adaexplore.optimize(module, (torch.randn(5, 8),), **own)
        assert "captured by its sources" in run.problem.source
        for unseen in (torch.rand(5, 8), -torch.rand(5, 8)):
            torch.testing.assert_close(run.best_module()(unseen), module(unseen))

    def test_a_run_from_its_folder_needs_the_module(self, run):
        with pytest.raises(adaexplore.BadInputError, match=r"best_module\(module, inputs\)"):
            adaexplore.Run(run.path).best_module()

    def test_training_mode_is_noticed(self, own, module):
        import torch

        del own["device"]
        inputs = [(torch.randn(5, 8),), (torch.randn(3, 8),)]
        events = adaexplore.explore(module.train(), inputs=inputs, **own)
        notices = [event.text for event in events if isinstance(event, adaexplore.Notice)]
        assert any("training mode" in text for text in notices)
        assert len(adaexplore.Run(own["run"]).problem.workloads) == 2

    def test_options_that_are_the_module_s_own(self, own, module):
        with pytest.raises(adaexplore.BadInputError, match=r"module.to\(device\)"):
            adaexplore.optimize(module, (1,), **own)

    def test_the_winner_of_a_file_is_a_module_too(self, own, problem):
        import torch

        own |= {"proposer": Renaming(), "steps": 1}
        fast = adaexplore.optimize(problem, **own).best_module()
        x = torch.randn(64, 64)
        torch.testing.assert_close(fast(x), torch.relu(x) + 1)
        with pytest.raises(RuntimeError, match="computes no gradients"):
            fast(x.requires_grad_())


INTERRUPTED = """
import sys, time
sys.path.insert(0, {tests!r})
import adaexplore
import test_front_door
from test_front_door import Judge

class Counting(test_front_door.Counting):
    def begin(self, context):
        if context.history:
            time.sleep(600)
        return (yield from super().begin(context))

def tell(event):
    print(type(event).__name__, flush=True)

adaexplore.optimize({problem!r}, run={run!r}, steps=3, device="cpu",
                    evaluator=Judge(), proposer=Counting(), listener=tell)
"""

UNGUARDED = """
import adaexplore

run = adaexplore.optimize({problem!r}, run={run!r}, steps=1, device="cpu", confirm=False)
print(run)
print(run.best_module())
"""


class TestScripts:
    def test_ctrl_c_leaves_a_run_that_resumes(self, own, problem, tmp_path):
        tests = str(Path(__file__).parent)
        source = INTERRUPTED.format(tests=tests, problem=str(problem), run=str(own["run"]))
        script = tmp_path / "script.py"
        script.write_text(source)
        process = subprocess.Popen(
            [sys.executable, script],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            # A shell's background job ignores it, and so would this one.
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
        )
        for line in process.stdout:
            if line == "Recorded\n":
                break
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=60)
        assert process.returncode != 0
        assert f"the run goes on with: adaexplore.Run({str(own['run'])!r}).resume()" in errors
        run = adaexplore.Run(own["run"])
        assert len(run.nodes) == 1
        objects = {"evaluator": Judge(), "proposer": own["proposer"]}
        assert len(run.resume(**objects).nodes) == 3

    @pytest.mark.slow
    def test_a_script_without_a_main_guard(self, problem, tmp_path):
        """The compiler proposes and the package's own evaluator judges, in processes."""
        script = tmp_path / "script.py"
        script.write_text(UNGUARDED.format(problem=str(problem), run=str(tmp_path / "run")))
        done = subprocess.run([sys.executable, script], capture_output=True, text=True)
        assert done.returncode == 0, done.stderr
        assert done.stdout.count("Run(") == 1  # nothing imports the script a second time
        assert "ModelNew" in done.stdout
        assert adaexplore.Run(tmp_path / "run").verdict.status == "passed"


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
