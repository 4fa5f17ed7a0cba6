#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Spack recipe: it compiles, and its variants and dependencies are those of the Meson build.
Spack itself is not here, so a module of this test stands for it.
"""

import pathlib
import py_compile
import re
import sys
import tempfile
import types

import bare
import tap

RECIPE = bare.ROOT / "packaging/spack/packages/tocsin/package.py"
# Options of developers.
NO_VARIANTS = {"tests", "fuzz"}
# Meson's dependencies -> packages of Spack. The C library has the others.
PACKAGES = {"libxxhash": "xxhash", "inih": "inih", "jansson": "jansson", "libmnl": "libmnl",
            "liburcu-qsbr": "userspace-rcu", "libsodium": "libsodium",
            "libibverbs": "rdma-core", "hwloc": "hwloc", "libmicrohttpd": "libmicrohttpd",
            "zlib": "zlib-api", "libcurl": "curl", "libdpdk": "dpdk", "numa": "numactl"}
OF_C_LIBRARY = {"threads", "dl", "m"}
# Tools, and a library of DPDK that Meson finds by its name in a list.
BUILD_ONLY = {"c", "meson", "ninja", "pkgconfig", "python"}
WITH_DPDK = {"dpdk", "libbsd"}


class Spec:
    """A concrete spec with these variants."""

    def __init__(self, **values):
        self.variants = {name: types.SimpleNamespace(value=value)
                         for name, value in values.items()}

    def satisfies(self, words):
        return self.variants[words[1:]].value == (words[0] == "+")


def recipe():
    """Run the recipe. Return its class, its variants and its dependencies."""
    variants, dependencies = {}, []
    module = types.ModuleType("spack.package")
    module.MesonPackage = object
    module.variant = lambda name, **options: variants.update({name: options})
    module.depends_on = lambda name, **options: dependencies.append((name, options))
    for name in ("license", "version", "conflicts"):
        setattr(module, name, lambda *_, **__: None)
    sys.modules.update({"spack": types.ModuleType("spack"), "spack.package": module})
    names = {}
    exec(compile(RECIPE.read_text(encoding="utf-8"), str(RECIPE), "exec"), names)
    return names["Tocsin"], variants, dependencies


def options_of_meson():
    """name -> (type, choices, default)."""
    text = (bare.ROOT / "meson_options.txt").read_text(encoding="utf-8")
    found = re.findall(r"option\('(\w+)', type: '(\w+)',(?: choices: \[([^]]*)\],)? "
                       r"value: ([^,]+),", text)
    return {name: (kind, tuple(re.findall(r"\w+", choices)), value)
            for name, kind, choices, value in found}


def recipe_compiles():
    with tempfile.TemporaryDirectory(prefix="tocsin-packages-") as place:
        py_compile.compile(str(RECIPE), cfile=f"{place}/compiled", doraise=True)


def variants_are_the_options_of_meson():
    _, variants, _ = recipe()
    options = options_of_meson()
    assert NO_VARIANTS < set(options), options
    assert set(variants) == set(options) - NO_VARIANTS, variants
    for name, variant in variants.items():
        kind, choices, value = options[name]
        assert variant.get("values", ()) == choices, (name, choices)
        assert kind == "combo" or variant["default"] == (value == "true"), (name, value)


def arguments_of_meson_follow_the_variants():
    package, _, _ = recipe()
    instance = package()
    instance.spec = Spec(perf=True, jobs=False, dpdk="static")
    assert instance.meson_args() == ["-Dtests=false", "-Dperf=true", "-Djobs=false",
                                     "-Ddpdk=static"], instance.meson_args()


def dependencies_are_those_of_meson():
    _, _, dependencies = recipe()
    text = "".join(path.read_text(encoding="utf-8")
                   for folder in ("lib", "dataplane", "control", "agent", "perf")
                   for path in (bare.ROOT / folder).rglob("meson.build"))
    wanted = set(re.findall(r"(?:\bdependency|find_library)\('([\w-]+)'", text))
    wanted -= OF_C_LIBRARY | {name for name in wanted if name.startswith("rte_")}
    assert wanted == set(PACKAGES), wanted ^ set(PACKAGES)
    always = {re.split("[@+~]", name)[0] for name, options in dependencies if "when" not in options}
    assert always == set(PACKAGES.values()) - WITH_DPDK | BUILD_ONLY, always
    for condition in ("dpdk=shared", "dpdk=static"):
        assert {name for name, options in dependencies
                if options.get("when") == condition} == WITH_DPDK, dependencies


if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in (
        recipe_compiles,
        variants_are_the_options_of_meson,
        arguments_of_meson_follow_the_variants,
        dependencies_are_those_of_meson)])
