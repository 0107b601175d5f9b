from importlib.metadata import PackageNotFoundError

import pytest

from adaexplore.languages.cutedsl import capture, host

LOWERED = """
    %8 = llvm.mlir.constant(256 : i32) : i32
    %10 = llvm.mlir.constant(4000 : i64) : i64
    %11 = llvm.mlir.constant(70000 : i64) : i64
    %18 = llvm.getelementptr %12[0, 2] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32)>
    llvm.store %10, %18 : i64, !llvm.ptr
    %19 = llvm.getelementptr %12[0, 0, 0] : (!llvm.ptr) -> !llvm.ptr, !llvm.struct<(array<3 x i32>, array<3 x i32>, i64, ptr, ptr, i32)>
"""  # noqa: E501 - as the compiler prints it


@pytest.fixture
def installed(monkeypatch):
    """A function that says which packages are installed."""

    def installed(*packages):
        def version(package):
            if package not in packages:
                raise PackageNotFoundError(package)
            return "9.9"

        monkeypatch.setattr(host, "version", version)

    return installed


@pytest.mark.parametrize(
    ("packages", "told"),
    [
        (("nvidia-cutlass-dsl", "apache-tvm-ffi"), None),
        (
            ("nvidia-cutlass-dsl",),
            "apache-tvm-ffi is not installed; pip install apache-tvm-ffi",
        ),
        (
            (),
            "nvidia-cutlass-dsl and apache-tvm-ffi are not installed; pip install "
            "nvidia-cutlass-dsl apache-tvm-ffi",
        ),
    ],
)
def test_missing_packages_are_named_with_their_remedy(installed, packages, told):
    installed(*packages)
    assert host.lacking() == told


def test_a_failing_trial_is_reported_in_one_line(installed, tmp_path, monkeypatch):
    installed("nvidia-cutlass-dsl", "apache-tvm-ffi")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(host, "_TRIAL", "raise ImportError('no library\\nand more')")
    told = host.try_compiling({"compute_capability": "9.0"})["unusable"]
    assert told == "CuTe DSL 9.9 does not compile for sm_90: ImportError: no library"


@pytest.mark.skipif(bool(host.lacking()), reason=host.lacking() or "")
@pytest.mark.parametrize("capability", ["9.0", "8.0", ""])
def test_a_working_compiler_reports_its_version(tmp_path, monkeypatch, capability):
    monkeypatch.chdir(tmp_path)
    told = host.try_compiling({"compute_capability": capability})
    assert told["unusable"] == ""
    assert told["versions"]["cutedsl"].split(".")[0].isdigit()


def test_hopper_and_its_successors_have_instructions_of_their_own():
    assert [host.architecture(f"sm_{n}") for n in (80, 90, 100)] == ["sm_80", "sm_90a", "sm_100a"]


@pytest.mark.parametrize(
    ("lowered", "taken"),
    [
        (LOWERED, 4000),
        (LOWERED + LOWERED.replace("%18", "%28").replace("store %10", "store %11"), 70000),
        (LOWERED.replace("store %10", "store %arg2"), 0),
        ("", 0),
    ],
    ids=["one launch", "the larger of two", "by an argument", "none"],
)
def test_the_shared_memory_of_launches_is_read_from_the_lowered_code(lowered, taken):
    assert capture.launch_bytes(lowered) == taken
