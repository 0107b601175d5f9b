import math

import numpy as np
import pytest

from adaexplore.evaluate.offline import libdevice


@pytest.mark.parametrize(
    ("symbol", "arguments", "value"),
    [
        ("__nv_tanhf", [0.5], math.tanh(0.5)),
        ("__nv_tanh", [0.5], math.tanh(0.5)),
        ("__nv_fast_expf", [1.0], math.e),
        ("__nv_erff", [0.3], math.erf(0.3)),
        ("__nv_fabsf", [-2.0], 2.0),
        ("__nv_fadd_rn", [1.0, 2.0], 3.0),
        ("__nv_frsqrt_rn", [4.0], 0.5),
        ("__nv_rsqrtf", [4.0], 0.5),
        ("__nv_fmaf", [2.0, 3.0, 4.0], 10.0),
        ("__nv_roundf", [-2.5], -3.0),
        ("__nv_isnand", [math.nan], 1.0),
        ("__nv_normcdff", [0.0], 0.5),
    ],
)
def test_a_symbol_names_its_function(symbol, arguments, value):
    function = libdevice.function(symbol)
    assert function is not None
    assert function(*(np.array([a]) for a in arguments))[0] == pytest.approx(value)


def test_an_unknown_symbol_has_no_function():
    assert libdevice.function("__nv_cyl_bessel_i0f") is None
