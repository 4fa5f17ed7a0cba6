# SPDX-License-Identifier: BSD-3-Clause
"""Spack recipe of Tocsin. UNTESTED: no Spack has built it. A test of this tree compiles the recipe,
and compares its variants and dependencies with those of the Meson build."""

from spack.package import *

try:
    # Spack 1.0 and later.
    from spack_repo.builtin.build_systems.meson import MesonPackage
except ImportError:
    # Earlier versions have the class in spack.package.
    pass


class Tocsin(MesonPackage):
    """Agent that finds failed and slow nodes of an RDMA cluster, its client, the library for jobs
    and a latency laboratory."""

    license("BSD-3-Clause")

    # No release is published: `spack develop` or `spack dev-build` builds a copy of the tree.
    version("develop")

    variant("perf", default=True, description="Build the latency laboratory tocsin-perf")
    variant("jobs", default=True,
            description="Build libtocsin and the libraries for unchanged MPI and NCCL jobs")
    # Meson's default is shared. A driver of DPDK for memif has to be an archive, and Spack's dpdk
    # may lack the archive.
    variant("dpdk", default="off", values=("shared", "static", "off"), multi=False,
            description="How DPDK is linked; off: no dpdk wire, no DPDK telemetry")

    depends_on("c", type="build")
    depends_on("meson@1.0.0:", type="build")
    depends_on("ninja", type="build")
    depends_on("pkgconfig", type="build")
    depends_on("python@3:", type="build")
    depends_on("curl", type=("build", "run"))  # headers; the client loads the library
    depends_on("hwloc")
    depends_on("inih")
    depends_on("jansson")
    depends_on("libmicrohttpd")
    depends_on("libmnl")
    depends_on("libsodium")
    depends_on("numactl")
    depends_on("rdma-core@34:")
    depends_on("userspace-rcu")
    depends_on("xxhash")
    depends_on("zlib-api")
    depends_on("dpdk", when="dpdk=shared")
    depends_on("dpdk", when="dpdk=static")
    depends_on("libbsd", when="dpdk=shared")
    depends_on("libbsd", when="dpdk=static")

    conflicts("platform=darwin", msg="Tocsin runs on Linux only")
    conflicts("platform=windows", msg="Tocsin runs on Linux only")

    def meson_args(self):
        return [
            "-Dtests=false",
            f"-Dperf={'true' if self.spec.satisfies('+perf') else 'false'}",
            f"-Djobs={'true' if self.spec.satisfies('+jobs') else 'false'}",
            f"-Ddpdk={self.spec.variants['dpdk'].value}",
        ]
