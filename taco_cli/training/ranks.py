"""Data-parallel training: one process per device, each running the same code.

Under torchrun or SLURM the processes are there already. Otherwise :func:`launch` starts them, so that a sweep is not
started over in every one of them, and stop signals reach all.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist
from lightning.fabric.plugins.environments import (
    ClusterEnvironment,
    SLURMEnvironment,
    TorchElasticEnvironment,
)

from taco_cli.signals import Interrupted, StopRequest, handled

_PATIENCE = timedelta(hours=12)  # the others wait while the first rank prepares the corpus


@dataclass(frozen=True)
class Ranks:
    """This process among those that train together."""

    rank: int = 0
    world_size: int = 1
    local_world_size: int = 1
    environment: ClusterEnvironment | None = None

    @property
    def first(self) -> bool:
        """Whether this process writes the run's files."""
        return self.rank == 0

    def wait(self) -> None:
        """Wait for all ranks."""
        if self.world_size > 1:
            dist.barrier()

    def from_first(self, value: Any) -> Any:
        """Return the first rank's value on every rank."""
        if self.world_size == 1:
            return value
        values = [value]
        dist.broadcast_object_list(values)
        return values[0]


@contextmanager
def joined(device_type: str) -> Iterator[Ranks]:
    """Join the processes that torchrun, SLURM or :func:`launch` started, for as long as the block runs."""
    environment = _environment()
    if environment is None:
        yield Ranks()
        return
    if device_type == "cuda":
        torch.cuda.set_device(environment.local_rank())
    dist.init_process_group(
        "nccl" if device_type == "cuda" else "gloo",
        init_method=f"tcp://{environment.main_address}:{environment.main_port}",
        rank=environment.global_rank(),
        world_size=environment.world_size(),
        timeout=_PATIENCE,
    )
    try:
        yield Ranks(environment.global_rank(), environment.world_size(), _local_world_size(), environment)
    finally:
        if dist.is_initialized():
            dist.destroy_process_group()


def to_be_launched(devices: int) -> bool:
    """Whether this process has to start the ranks itself."""
    return devices > 1 and _environment() is None


def launch(devices: int, job: Callable[..., Any], arguments: tuple[Any, ...], request: StopRequest) -> None:
    """Run ``job(*arguments)`` in one process per device and wait; pass SIGTERM and SIGUSR1 on to them.

    Raises:
        RuntimeError: a rank failed; the others are ended.
    """
    with request.noting():
        # fork would copy threads' locks in whatever state they are in
        processes = torch.multiprocessing.start_processes(
            _rank, args=(devices, _free_port(), job, arguments), nprocs=devices, join=False, start_method="spawn"
        )
        assert processes is not None
        passed_on = False
        while not processes.join(timeout=0.5):
            # a Ctrl-C reaches the ranks by itself, and a second one would end them at once
            if request.number not in (None, signal.SIGINT) and not passed_on:
                passed_on = True
                for process in processes.processes:
                    os.kill(process.pid, request.number)


def _rank(index: int, devices: int, port: int, job: Callable[..., Any], arguments: tuple[Any, ...]) -> None:
    # what torchrun would say
    os.environ.update(
        MASTER_ADDR="127.0.0.1",
        MASTER_PORT=str(port),
        RANK=str(index),
        LOCAL_RANK=str(index),
        GROUP_RANK="0",
        WORLD_SIZE=str(devices),
        LOCAL_WORLD_SIZE=str(devices),
        TORCHELASTIC_RUN_ID="taco",
    )
    # An interruption is in the manifest, and the launching process knows the signal.
    with handled() as request, suppress(Interrupted):
        job(*arguments, request)


def _environment() -> ClusterEnvironment | None:
    if TorchElasticEnvironment.detect():
        return TorchElasticEnvironment()
    if SLURMEnvironment.detect() and int(os.environ["SLURM_NTASKS"]) > 1:
        return SLURMEnvironment(auto_requeue=False)
    return None


def _local_world_size() -> int:
    if "LOCAL_WORLD_SIZE" in os.environ:
        return int(os.environ["LOCAL_WORLD_SIZE"])
    return int(os.environ["SLURM_NTASKS"]) // int(os.environ.get("SLURM_NNODES", "1"))


def _free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])
