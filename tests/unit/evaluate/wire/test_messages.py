"""Messages survive JSON; a malformed reply is noticed, whatever a candidate's process sends."""

import json
import math

import pytest

from adaexplore.core import codec
from adaexplore.core.problem import Access
from adaexplore.evaluate.wire import kernel_messages as kernels
from adaexplore.evaluate.wire import messages as wire
from adaexplore.evaluate.wire import offline_messages as offline

OUTPUT = {
    "path": "output",
    "class_name": "Tensor",
    "shape": [2, 3],
    "strides": [3, 1],
    "dtype": "float32",
    "device": "cpu",
}
KERNEL = {"name": "k", "launches": 2, "time_us": 1.5, "launch": None}
WORK = {"memory_bytes": 8.0, "cache_bytes": 8.0, "flops": {"fp32": 2.0}}
PROFILE = kernels.ProfileCalls("cpu", ())
CAPTURE = offline.Capture("", "fp32")


@pytest.mark.parametrize(
    "request_",
    [
        wire.RunOn(3),
        wire.Time(128, 2),
        wire.TakeTurnstile(),
        wire.Rest(),
        wire.Load("x = 1", "cpu", 0, "train", "fp32", Access(reads=("/a",)), ""),
        wire.TakeInputs("", (wire.TensorHandle("cpu", (2,), (1,), "float32", elements=2),)),
        offline.Begin("sm_90", "cpu", 7.5),
    ],
    ids=lambda request: type(request).__name__,
)
def test_a_request_survives_the_wire(request_):
    assert wire.decode(json.loads(json.dumps(wire.encode(request_)))) == request_


@pytest.mark.parametrize("data", [{}, {"op": "Nonsense"}, {"op": "RunOn"}, {"op": "RunOn", "x": 1}])
def test_an_unknown_request_is_refused(data):
    with pytest.raises(codec.MalformedError):
        wire.decode(data)


def test_a_reply_is_read_into_its_class():
    [out] = wire.read_reply(wire.RunOn(0), {"outputs": [OUTPUT]}).outputs
    assert (out.shape, out.strides) == ((2, 3), (3, 1))
    assert wire.read_reply(wire.Time(0, 2), {"times_us": [1.5, 2]}).times_us == (1.5, 2.0)
    profile = wire.read_reply(
        kernels.ProfileCalls("cpu", (0,)), {"calls": 1, "kernels": [KERNEL], "triton": []}
    )
    assert profile.kernels == (kernels.ProfiledKernel("k", 2, 1.5, None),)
    captured = offline.CapturedWork((offline.KernelWork(8.0, 8.0, {"fp32": 2.0}),), ())
    assert wire.read_reply(CAPTURE, {"works": [WORK], "launched": []}) == captured


@pytest.mark.parametrize(
    ("request_", "reply"),
    [
        (wire.Rest(), {"more": 1}),
        (wire.Rest(), ["nothing"]),
        (wire.RunOn(0), {}),
        (wire.RunOn(0), {"outputs": {}}),
        (wire.RunOn(0), {"outputs": [OUTPUT | {"shape": [2.0, 3]}]}),
        (wire.RunOn(0), {"outputs": [OUTPUT | {"shape": [True, 3]}]}),
        (wire.RunOn(0), {"outputs": [OUTPUT | {"dtype": None}]}),
        (wire.RunOn(0), {"outputs": [{k: v for k, v in OUTPUT.items() if k != "device"}]}),
        (wire.Time(0, 2), {"times_us": [1.0]}),
        (wire.Time(0, 2), {"times_us": [1.0, 0.0]}),
        (wire.Time(0, 2), {"times_us": [1.0, 1e-310]}),
        (wire.Time(0, 2), {"times_us": [1.0, math.nan]}),
        (wire.Time(0, 2), {"times_us": [1.0, math.inf]}),
        (wire.Time(0, 2), {"times_us": [1.0, 1e308]}),
        (wire.Time(0, 2), {"times_us": [1.0, "1"]}),
        (wire.Time(0, 2), {"times_us": [1.0, True]}),
        (wire.Time(0, 2), {"times_us": [1.0, -1.0]}),
        (wire.RunOn(0), {"outputs": [OUTPUT | {"strides": [10**30, 1]}]}),
        (PROFILE, {"calls": 10**400, "kernels": [], "triton": []}),
        (PROFILE, {"calls": 1, "kernels": [KERNEL | {"launches": 10**400}], "triton": []}),
        (wire.Time(0, 2), {"times_us": [1.0, 10**400]}),
        (wire.Time(0, 2), {"times_us": [1.0, 2.0], "outputs": []}),
        (kernels.ListLaunched(), {"kernels": [{"name": "k", "code": 1, "instructions": []}]}),
        (kernels.ProfileCalls("cpu", ()), {"calls": 1, "kernels": "mine", "triton": []}),
        (CAPTURE, {"works": [WORK | {"memory_bytes": math.nan}], "launched": []}),
        (CAPTURE, {"works": [WORK | {"flops": {"fp32": -1.0}}], "launched": []}),
        (CAPTURE, {"works": [WORK | {"programs": 0}], "launched": []}),
        (CAPTURE, {"works": [], "launched": [{"kernel": "k", "grid": [1]}]}),
    ],
)
def test_a_malformed_reply_is_refused(request_, reply):
    with pytest.raises(codec.MalformedError):
        wire.read_reply(request_, reply)


def test_a_text_that_no_file_takes_is_mended():
    raised = {"type": "E", "message": "no \ud800", "types": ["\udfff"]}
    found = codec.read(wire.RaisedReply, json.loads(json.dumps({"raised": raised}))).raised
    assert (found.message, found.types) == ("no ?", ("?",))


@pytest.mark.parametrize("places", ["nonsense", [None], [{"line": "1"}], [{"line": 1, "file": ""}]])
def test_a_malformed_exception_is_refused(places):
    raised = {"type": "E", "message": "no", "places": places}
    with pytest.raises(codec.MalformedError):
        codec.read(wire.RaisedReply, {"raised": raised})
