"""Changes to the text of C++ kernels."""

from adaexplore.propose.compiler.cpp_text import fast_exp, reciprocal


def test_fast_exp_touches_vectors_only() -> None:
    text = "auto tmp3 = tmp2.exp();\nauto tmp4 = std::exp(tmp1);"
    assert fast_exp(text) == "auto tmp3 = tmp2.exp_u20();\nauto tmp4 = std::exp(tmp1);"


def test_reciprocal_of_a_broadcast_scalar() -> None:
    text = (
        "auto tmp2 = at::vec::Vectorized<float>(tmp1);\n"
        "auto tmp3 = tmp0 / tmp2;\n"
        "auto tmp4 = tmp0 / tmp3;"
    )
    changed = reciprocal(text).splitlines()
    assert changed[1] == "auto tmp3 = tmp0 * at::vec::Vectorized<float>(1.0f / tmp1);"
    assert changed[2] == "auto tmp4 = tmp0 / tmp3;"


def test_names_mean_something_else_in_another_block() -> None:
    text = "auto tmp2 = at::vec::Vectorized<float>(tmp1);\n}\n{\nauto tmp3 = tmp0 / tmp2;"
    assert reciprocal(text) == text
