#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""Where the messages of tocsin-perf lie: on a GPU, whose memory is played, and on NUMA nodes.

    perf_memory_test.py TOCSIN-PERF FAKE-CUDA
"""

import os
import pathlib
import sys
import tempfile

import tap
from lab_ends import Server, check_width, measure, run

PLACE = tempfile.TemporaryDirectory()
NODES = pathlib.Path("/sys/devices/system/node")


def with_cuda(**more):
    libraries = os.path.join(PLACE.name, "libraries")
    os.makedirs(libraries, exist_ok=True)
    if not os.path.exists(f"{libraries}/libcuda.so.1"):
        os.symlink(sys.argv[2], f"{libraries}/libcuda.so.1")
    # Its leaks are judged where it is tested; a library that is opened late has no sanitizer.
    return {"LD_LIBRARY_PATH": libraries,
            "ASAN_OPTIONS": "verify_asan_link_order=0:detect_leaks=0", **more}


def refused(said, *arguments, at_server=(), environment=None):
    """Of both ends, which say so."""
    environment = environment or {}
    with Server("lat", *at_server, **environment) as server:
        done = server.client("--iterations", "20", *arguments, **environment)
        status, err = server.end()
    assert (done.returncode, status) == (4, 4), (done, status, err)
    assert said in done.stderr and said in err, (said, done.stderr, err)


def messages_of_a_gpu_are_measured_by_every_operation_that_can():
    for operation in ["read", "send", "write-imm", "cas"]:
        done, result = measure("lat", "--op", operation, "--memory", "gpu", "--iterations", "100",
                               **with_cuda())
        assert result["environment"]["client"]["memory"] == "GPU 0", result["environment"]
        assert result["environment"]["server"]["memory"] == "host", result["environment"]
        assert "memory: GPU 0 on the client, host on the server" in done.stdout, done.stdout
        check_width(done.stdout)


def a_server_has_its_own_place():
    with Server("lat", "--memory", "gpu:0", **with_cuda()) as server:
        done = server.client("--op", "send", "--iterations", "100", **with_cuda())
        assert server.end() == (0, ""), done
    assert done.returncode == 0, done
    assert "memory: host on the client, GPU 0 on the server" in done.stdout, done


def bandwidth_goes_to_a_gpu():
    _, result = measure("bw", "--op", "write", "--memory", "gpu", "--size", "4KiB",
                        "--iterations", "500", **with_cuda())
    assert result["results"][0]["complete"]


def a_write_whose_answer_no_processor_sees_is_refused():
    refused("use --op write-imm", "--op", "write", "--memory", "gpu", environment=with_cuda())
    refused("use --op write-imm", "--op", "write", at_server=("--memory", "gpu"),
            environment=with_cuda())


def what_is_not_there_is_named():
    nowhere = {"LD_LIBRARY_PATH": PLACE.name}
    if not any(pathlib.Path("/usr/lib").rglob("libcuda.so.1")):
        refused("no libcuda: libcuda.so.1 cannot be loaded", "--memory", "gpu",
                environment=nowhere)
    refused("has no GPU 7", "--memory", "gpu:7", environment=with_cuda())
    refused("has no NUMA node 1023", "--memory", "numa:1023")
    refused("no memory of GPU 0", "--memory", "gpu",
            environment=with_cuda(FAKE_CUDA_ALLOCATE="2"))


def a_node_of_this_machine_gives_its_memory():
    if not (NODES / "node0").exists():
        raise tap.Skip("no NUMA nodes")
    with Server("lat") as server:
        done = server.client("--memory", "numa:0", "--iterations", "50")
        server.end()
    if done.returncode == 4 and "does not report the NUMA node" in done.stderr:
        raise tap.Skip("the kernel does not say where memory lies")
    assert done.returncode == 0 and "memory: NUMA node 0 on the client" in done.stdout, done


def places_that_are_none_are_refused_at_once():
    for place in ["", "tape", "gpu:", "gpu:x", "gpu:1024", "numa", "numa:-1", "host:0"]:
        done = run("lat", "--memory", place, "h")
        assert done.returncode == 2 and "--memory" in done.stderr, (place, done)
    done = run("mesh", "--local", "2", "--memory", "gpu")
    assert done.returncode == 2 and "--memory: cannot be used with mesh" in done.stderr, done


tap.run([(name.__name__.replace("_", " "), name) for name in [
    messages_of_a_gpu_are_measured_by_every_operation_that_can,
    a_server_has_its_own_place,
    bandwidth_goes_to_a_gpu,
    a_write_whose_answer_no_processor_sees_is_refused,
    what_is_not_there_is_named,
    a_node_of_this_machine_gives_its_memory,
    places_that_are_none_are_refused_at_once,
]])
