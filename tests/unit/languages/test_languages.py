import ast
from importlib import import_module
from importlib.resources import files

import pytest

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS

PROMPTS = files("adaexplore.propose.model")


def test_every_language_that_can_be_asked_for_is_described():
    assert sorted(DIALECTS) == sorted(LANGUAGES)
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
class TestEach:
    def test_what_it_names_exists(self, dialect):
        named = [*dialect.preload, dialect.lacking, dialect.trial]
        for module, _, function in (name.partition(":") for name in named if name):
            assert callable(getattr(import_module(module), function))

    def test_it_has_notes_and_an_example(self, dialect):
        assert (PROMPTS / "templates" / f"{dialect.name}.j2").is_file()
        assert (PROMPTS / "examples" / f"{dialect.name}.py.txt").is_file()

    def test_the_examples_kernels_are_known_by_name(self, dialect):
        source = (PROMPTS / "examples" / f"{dialect.name}.py.txt").read_text()
        assert bool(dialect.own_kernels(ast.parse(source))) is dialect.on_gpu

    def test_what_is_judged_without_a_gpu_is_for_gpus(self, dialect):
        assert dialect.on_gpu or not dialect.offline


def test_helions_kernels_are_launched_under_names_of_their_own():
    source = """
@helion.kernel(config=helion.Config(block_sizes=[32]))
def scale(x): ...

@helion.jit
def shift(x): ...

@kernel
def bare(x): ...

def no_kernel(x): ...
"""
    names = DIALECTS["helion"].own_kernels(ast.parse(source))
    assert names == {"_helion_scale", "_helion_shift", "_helion_bare"}
