import ast
from importlib import import_module
from importlib.resources import files

import pytest

from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS

PROMPTS = files("adaexplore.propose.model")


def test_every_language_has_a_dialect():
    assert sorted(DIALECTS) == sorted(LANGUAGES)
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
class TestEach:
    def test_named_functions_exist(self, dialect):
        named = [*dialect.preload, dialect.lacking, dialect.trial]
        for module, _, function in (name.partition(":") for name in named if name):
            assert callable(getattr(import_module(module), function))

    def test_notes_and_an_example_exist(self, dialect):
        assert (PROMPTS / "templates" / f"{dialect.name}.j2").is_file()
        assert (PROMPTS / "examples" / f"{dialect.name}.py.txt").is_file()

    def test_the_kernels_of_the_example_are_found_by_name(self, dialect):
        source = (PROMPTS / "examples" / f"{dialect.name}.py.txt").read_text()
        assert bool(dialect.own_kernels(ast.parse(source))) is dialect.on_gpu

    def test_only_gpu_languages_are_judged_offline(self, dialect):
        assert dialect.on_gpu or not dialect.offline


def test_helions_kernels_have_prefixed_names():
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
