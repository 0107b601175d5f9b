import pytest

from adaexplore.evaluate.offline.sizes import Replaced
from adaexplore.evaluate.offline.specialised import made_for_sizes

SIZES = [Replaced("cols", 4096, 64), Replaced("", 128, 16)]
MASKED = "tl.load(x, mask=m)\ntl.store(y, v, m)\n"


@pytest.mark.parametrize(
    ("source", "made"),
    [
        pytest.param(MASKED + "n = x.shape[0]", False, id="sizes from shapes"),
        pytest.param(MASKED + "def f(x): return x * 4096", True, id="a literal"),
        pytest.param(MASKED + "cols = 4096", False, id="a constant that follows"),
        pytest.param(MASKED + "width = 4096", True, id="a constant that does not"),
        pytest.param(MASKED + "def get_inputs(): return [rand(4096)]", False, id="its inputs"),
        pytest.param("tl.load(x)\n", True, id="no mask"),
        pytest.param(MASKED + "tl.load(w)\n", True, id="a load without a mask"),
        pytest.param(MASKED + "tl.store(w, v)\n", True, id="a store without a mask"),
        pytest.param(
            MASKED + "tl.load(w, boundary_check=(0,))\ntl.load(w, m, 0.0)",
            False,
            id="other bounds",
        ),
        pytest.param("v = x.load([0])", True, id="no access with a mask"),
        pytest.param(MASKED + "x = 4097", False, id="another number"),
        pytest.param("def f(:", False, id="no Python"),
    ],
)
def test_literals_and_masks_show_that_a_source_is_specialised(source, made):
    assert made_for_sizes(source, SIZES) is made
