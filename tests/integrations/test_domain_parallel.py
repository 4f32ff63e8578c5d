# SPDX-FileCopyrightText: Copyright (c) 2026 The physicsnemo-cano authors.
# SPDX-License-Identifier: Apache-2.0

"""One sample's points over several processes give what one process gives."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

# Bytes of float64; those of the run's model: batch, layers, heads, clusters, head features.
FLOAT, BATCH, LAYERS, HEADS, CLUSTERS, DIM = 8, 2, 2, 2, 3, 4
SUMS = BATCH * HEADS * CLUSTERS * (DIM + 1) * FLOAT
PEAKS = BATCH * HEADS * CLUSTERS * FLOAT


@pytest.fixture(scope="module")
def ranks(tmp_path_factory):
    """What each of four ranks found; see domain_parallel_run."""
    folder = tmp_path_factory.mktemp("ranks")
    launcher = ["-m", "torch.distributed.run", "--standalone", "--nproc_per_node=4"]
    script = Path(__file__).with_name("domain_parallel_run.py")
    done = subprocess.run(
        [sys.executable, *launcher, str(script), str(folder)],
        env=dict(os.environ, OMP_NUM_THREADS="1", PYTHONPATH=str(script.parents[2])),
        capture_output=True,
        text=True,
        timeout=1200,
    )
    assert done.returncode == 0, done.stderr
    return [json.loads((folder / f"{rank}.json").read_text()) for rank in range(4)]


@pytest.mark.parametrize("processes", ["two", "four"])
def test_results_equal_those_of_one_process(ranks, processes):
    for found in ranks:
        cases = found[f"equal on {processes}"]
        assert len(cases) == 18
        for name, differences in cases.items():
            assert differences.pop("largest gradient") > 0.1
            for what, difference in differences.items():
                assert difference < 1e-12, (name, what)


@pytest.mark.parametrize("parallel", ["ddp", "fsdp"])
def test_data_and_domain_parallel_together(ranks, parallel):
    for found in ranks:
        differences = found["both"][parallel]
        assert len(differences) == 34  # parameters
        assert max(differences.values()) < 1e-12


@pytest.mark.parametrize("n", [40, 4000])
def test_traffic_does_not_depend_on_the_number_of_points(ranks, n):
    for found in ranks:
        counted = found["traffic"][f"cloud of {n}"]
        gradients = counted["n_parameters"] * FLOAT
        # Checking and normalising the weights, once: sums of each sample, and one count.
        weights = (2 * BATCH + 1) * FLOAT
        assert counted["forward"] == {"allreduce_": LAYERS * (2 * SUMS + PEAKS) + weights}
        assert counted["backward"] == {"allreduce_": LAYERS * 2 * SUMS + gradients}


@pytest.mark.parametrize("n", [40, 4000])
def test_convolutions_exchange_only_lines_at_the_cuts(ranks, n):
    line = BATCH * 5 * HEADS * DIM * FLOAT  # 5 points across the cut, and the kernel reaches 1
    for rank, found in enumerate(ranks):
        counted = found["traffic"][f"grid of {n} x 5"]
        gradients = counted["n_parameters"] * FLOAT
        lines = LAYERS * line * (1 if rank in (0, 3) else 2)  # an end has one neighbour
        assert counted["forward"] == {
            "allreduce_": LAYERS * (2 * SUMS + PEAKS),
            "alltoall_base_": lines,
        }
        assert counted["backward"] == {
            "allreduce_": LAYERS * 2 * SUMS + gradients,
            "alltoall_base_": lines,
        }


@pytest.mark.parametrize(
    ("case", "message"),
    [
        ("sample without points", "at least one real point a sample; none in [1]"),
        ("negative weight", "finite and not negative"),
        ("not a ShardTensor", "expects mask as a ShardTensor"),
        ("cut elsewhere", "fx along axis 0 into (16, 7)"),
        ("not cut", "expects embedding sharded along its points"),
        ("no points", "at least one point, got (23, 0)"),
        ("broken lines", "whole lines of 6 points, got (31, 17)"),
        ("too thin", "reaches 2 points needs as many on every process"),
        ("sharded blocks", "apply fully_shard to the model alone"),
    ],
)
def test_wrong_calls_are_refused_on_every_rank(ranks, case, message):
    for found in ranks:  # were one to go on alone, it would wait for the others for ever
        assert message in found["refused"][case]
