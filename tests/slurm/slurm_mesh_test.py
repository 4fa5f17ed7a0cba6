# SPDX-License-Identifier: BSD-3-Clause
"""`tocsin-perf mesh` under srun of a real Slurm: each task is a process of the mesh.

Usage: slurm_mesh_test.py TOCSIN-PERF"""

import json
import pathlib
import shutil
import subprocess
import sys
import tempfile

import bed
import tap

PERF = sys.argv[1]
NAMES = ["n1", "n2", "n3"]


def srun(slurm, *arguments):
    return slurm.run("srun", "-N3", "-n3", PERF, "mesh", "--iterations", "200", "--device",
                     "soft", "--timeout", "20", *arguments)


def check(done, path):
    assert done.returncode in (0, 1, 3), done
    verified = subprocess.run([PERF, "verify", str(path)], capture_output=True, text=True,
                              check=False)
    assert verified.returncode == 0, verified
    result = json.loads(path.read_text())
    assert result["summary"]["measured"] == 6, result["summary"]
    assert len(result["processes"]) == 3, result["processes"]
    assert done.stdout.count("mesh of 3 processes") == 1, done.stdout


def tasks_meet_by_a_file():
    with tempfile.TemporaryDirectory() as directory:
        path, page = pathlib.Path(directory) / "m.json", pathlib.Path(directory) / "m.html"
        check(srun(slurm, "--rendezvous", f"file:{directory}/place", "--json", str(path), "--html",
                   str(page)), path)
        assert "<h1>Mesh of 3 processes: round trips of read" in page.read_text(), "no page"


def tasks_meet_at_a_host_and_port():
    """As on a cluster whose names resolve: those of this bed do not."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.json"
        check(srun(slurm, "--rendezvous", "127.0.0.1:28731", "--json", str(path)), path)


def tasks_without_a_common_directory_have_the_token_of_the_environment():
    """Each task has a runtime directory of its own, as on a node of its own."""
    with tempfile.TemporaryDirectory() as directory:
        path = pathlib.Path(directory) / "m.json"
        for rank in range(len(NAMES)):
            (pathlib.Path(directory) / str(rank)).mkdir()
        apart = f'XDG_RUNTIME_DIR={directory}/$SLURM_PROCID exec "$0" "$@"'
        words = ["srun", "-N3", "-n3", "sh", "-c", apart, PERF, "mesh", "--iterations", "200",
                 "--device", "soft", "--timeout", "20", "--rendezvous", "127.0.0.1:28732"]
        done = slurm.run(*words, "--json", str(path), "--token-file", "/nonexistent/token")
        assert done.returncode != 0 and "/nonexistent/token" in done.stderr, done
        slurm.environment["TOCSIN_PERF_TOKEN"] = "0123456789abcdef0123456789abcdef"
        try:
            check(slurm.run(*words, "--json", str(path)), path)
        finally:
            del slurm.environment["TOCSIN_PERF_TOKEN"]


def names_that_do_not_resolve_are_told():
    done = srun(slurm)
    assert done.returncode != 0 and "process 0 of the mesh" in done.stderr, done


def run():
    tap.run([(name.__name__.replace("_", " "), name) for name in [
        tasks_meet_by_a_file,
        tasks_meet_at_a_host_and_port,
        tasks_without_a_common_directory_have_the_token_of_the_environment,
        names_that_do_not_resolve_are_told,
    ]])


absent = bed.missing() or ("" if shutil.which("srun") else "no srun here")
if absent:
    print(f"1..0 # SKIP {absent}")
    sys.exit(0)
with bed.Slurm(NAMES) as slurm:
    run()
