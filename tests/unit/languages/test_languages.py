import ast
from importlib import import_module

import pytest

from adaexplore.core.environment import Environment
from adaexplore.core.problem import LANGUAGES
from adaexplore.languages import DIALECTS, examples_of, notes_of, other_language
from adaexplore.propose.model.prompts import Prompts


def test_every_language_has_a_dialect():
    assert sorted(DIALECTS) == sorted(LANGUAGES)
    assert all(dialect.name == name for name, dialect in DIALECTS.items())


@pytest.mark.parametrize("dialect", DIALECTS.values(), ids=lambda dialect: dialect.name)
class TestEach:
    def test_named_functions_exist(self, dialect):
        named = [*dialect.preload, dialect.lacking, dialect.trial, dialect.capture]
        for module, _, function in (name.partition(":") for name in named if name):
            imported = import_module(module)
            assert not function or callable(getattr(imported, function))

    def test_notes_and_an_example_exist(self, dialect):
        assert notes_of(dialect.name).is_file()
        assert examples_of(dialect.name)[""].is_file()

    def test_the_kernels_of_the_example_are_found_by_name(self, dialect):
        source = Prompts().example(dialect.name, Environment())
        assert bool(dialect.own_kernels(ast.parse(source))) is dialect.on_gpu

    def test_only_gpu_languages_are_compiled_offline_and_only_those_are_interpreted(self, dialect):
        assert dialect.on_gpu or not dialect.offline
        assert dialect.offline or not dialect.interpreted


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


def test_the_names_of_cute_dsl_s_kernels_go_on_with_the_types_of_their_arguments():
    source = """
@cute.kernel
def scale(x): ...

@cute.jit
def launch(x): ...
"""
    assert DIALECTS["cutedsl"].own_kernels(ast.parse(source)) == {"kernel_cutlass_scale_*"}


@pytest.mark.parametrize(
    ("source", "language", "other"),
    [
        ("import triton\nimport triton.language as tl", "gluon", "triton"),
        ("import triton\nimport triton.language as tl", "cutedsl", "triton"),
        ("import cutlass.cute as cute", "triton", "cutedsl"),
        ("    from cutlass import cute", "gluon", "cutedsl"),
        ("from triton.experimental import gluon", "triton", "gluon"),
        ("from triton.experimental.gluon import language as gl", "cutedsl", "gluon"),
        ("import helion", "triton", "helion"),
        ("import triton\nfrom triton.experimental import gluon", "triton", None),
        ("import triton\nfrom triton.experimental import gluon", "gluon", None),
        ("import torch", "gluon", None),
        ("import triton", "triton", None),
        ("import triton", "cuda", None),
        ("# import cutlass is for others", "triton", None),
    ],
)
def test_the_language_of_another_package_is_named(source, language, other):
    assert other_language(source, language) == other
