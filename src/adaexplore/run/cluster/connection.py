"""The way into a Ray cluster: the address, the kind of device, the actors."""

from __future__ import annotations

import logging
import os
import socket
import threading
from importlib import import_module
from importlib.util import find_spec
from typing import Any

from adaexplore.core.errors import BadInputError, NoClusterError
from adaexplore.core.problem import Problem
from adaexplore.core.settings.config import Config
from adaexplore.core.version import __version__
from adaexplore.run.cluster.device import Device, JudgingOrder
from adaexplore.run.cluster.fleet import Fleet
from adaexplore.run.cluster.known_times import KnownTimes
from adaexplore.run.cluster.remote import RayDevice, result_of
from adaexplore.sandbox.walls.limits import STRANGERS

_NAMESPACE = "adaexplore"
_KIND = "accelerator_type:"
_KIND_SHARE = 0.001  # of the resource that only marks the nodes of a kind
_CONNECT_S = 5.0
_ANSWER_S = 5.0
_AGAIN_S = 1.0
_AT_ONCE = 16
"""Calls at once in an actor: at most four judge, the others are jobs and ends."""


def connect(address: str) -> Any:
    """Return the module `ray`, connected to the cluster at an address, or `auto`.

    Raises `BadInputError` where Ray is not installed, `NoClusterError` where no cluster answers.
    """
    if find_spec("ray") is None:
        raise BadInputError(f"--ray {address}: Ray is not installed; pip install 'adaexplore[ray]'")
    ray: Any = import_module("ray")
    if ray.is_initialized():
        return ray
    _try_port(address)
    try:
        ray.init(
            address=address,
            namespace=_NAMESPACE,
            log_to_driver=False,
            logging_level=logging.CRITICAL,
        )
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        refused = "InvalidAuthToken" in f"{error} {error.__cause__}"
        why = "the token is missing or wrong" if refused else str(error)
        raise _no_cluster(address, why) from error
    _quiet()
    return ray


def device_in(address: str, asked: str | None) -> str:
    """Return the name that a device of the cluster has for itself: "cpu" or "cuda:0".

    Raises `BadInputError` for one GPU by its number, and for GPUs where the cluster has none.
    """
    if asked == "cpu":
        return asked
    if asked not in (None, "cuda", "cuda:0"):
        raise BadInputError(f"--device {asked}: the cluster chooses with --ray; write cpu or cuda")
    gpus = connect(address).cluster_resources().get("GPU", 0)
    if asked and not gpus:
        raise BadInputError(f"--device {asked}: the Ray cluster at {address} has no GPU")
    return "cuda:0" if gpus else "cpu"


class Cluster:
    """Makes devices of one kind in a cluster, for a search that begins with an order."""

    def __init__(self, config: Config, order: JudgingOrder) -> None:
        self.address = config.ray
        self._ray = connect(config.ray)
        self._gone = threading.Event()
        self._order = order
        on_gpu = order.problem["device"] != "cpu"
        needs: dict[str, Any] = {"num_cpus": 1, "num_gpus": int(on_gpu)}
        kind = config.ray_kind or (self._largest_kind() if on_gpu else "")
        if kind:
            needs["resources"] = {f"{_KIND}{kind}": _KIND_SHARE}
        self._actors = self._ray.remote(Device).options(
            **needs, max_concurrency=_AT_ONCE, scheduling_strategy="SPREAD"
        )
        self._times = (
            self._ray.remote(KnownTimes)
            .options(
                name=f"canary-times-{__version__}",
                get_if_exists=True,
                lifetime="detached",
                num_cpus=0,
                max_restarts=-1,
            )
            .remote()
        )

    def make(self) -> RayDevice:
        """Ask for a device; Ray places it where there is room, as soon as there is."""
        return RayDevice(self._ray, self._actors.remote(), self._order, self._gone)

    def longest_us(self, kind: str, device: str, time_us: float) -> float:
        """Note a time of the canary in the cluster; return the longest that it may take."""
        while True:
            noted = self._times.note.remote(kind, device, time_us)
            try:
                longest: float = result_of(self._ray, noted, self._gone)
            except self._ray.exceptions.RayError:  # it is lost; Ray starts it elsewhere
                self._gone.wait(_AGAIN_S)
            else:
                return longest

    def answers(self) -> bool:
        """Return True where the head answers, and is the head that this process joined."""
        try:
            _worker().global_worker.gcs_client.internal_kv_get(b"adaexplore", None, _ANSWER_S)
        except self._ray.exceptions.RayError:
            return False
        return True

    def leave(self) -> None:
        """End all calls that wait for the cluster; they raise `DeviceLostError`."""
        self._gone.set()

    def _largest_kind(self) -> str:
        """Return the kind of GPU that the cluster has most of, empty where kinds have no names."""
        gpus: dict[str, float] = {}
        for node in self._ray.nodes():
            has = node["Resources"] if node["Alive"] else {}
            for name in has:
                if name.startswith(_KIND):
                    kind = name.removeprefix(_KIND)
                    gpus[kind] = gpus.get(kind, 0.0) + has.get("GPU", 0.0)
        return max(gpus, key=lambda kind: gpus[kind], default="")


def order_of(problem: Problem, config: Config) -> JudgingOrder:
    """Return the order to judge candidates of a problem on devices of a cluster."""
    return JudgingOrder(
        problem.to_json(),
        config.timeout_s,
        int(config.memory_gb * 2**30),
        strangers=STRANGERS in os.environ,
    )


def open_fleet(problem: Problem, config: Config) -> Fleet:
    """Return the devices for the problems of this process; `problem` is the first.

    Raises `BadInputError` as `connect` does.
    """
    return Fleet(Cluster(config, order_of(problem, config)), config.ray_patience_s)


def _quiet() -> None:
    """Keep Ray from printing what became of nodes and actors between our own lines, or JSON."""
    _worker().print_to_stdstream = lambda *_, **__: None


def _worker() -> Any:
    """Return the module of Ray with what it has no public name for."""
    return import_module("ray._private.worker")


def _try_port(address: str) -> None:
    """Raise `NoClusterError` where nobody listens: Ray itself tries for half a minute."""
    host, _, port = address.rpartition(":")
    if not port.isdigit():
        return
    try:
        socket.create_connection((host, int(port)), _CONNECT_S).close()
    except OSError as error:
        raise _no_cluster(address, error.strerror or str(error)) from error


def _no_cluster(address: str, why: str) -> NoClusterError:
    line = (why.strip().splitlines() or [""])[-1]
    return NoClusterError(
        f"--ray {address}: no Ray cluster to join ({line}); start a node on this machine with "
        "`ray start`, and give the token of the cluster (docs/clusters.md)"
    )
