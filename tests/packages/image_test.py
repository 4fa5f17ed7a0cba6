#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The container image of this tree: its configuration, and its root file system by chroot."""

import json
import pathlib
import shutil
import tempfile

import bare
import tap

# The agent as a container engine starts it: with the user, environment and words of the image.
AGENT = """
{environment} setpriv --reuid {user[uid]} --regid {user[gid]} --clear-groups {words} 2>/tmp/log &
until tocsin health >/dev/null 2>&1 || ! kill -0 $! 2>/dev/null; do sleep 0.1; done
tocsin status || {{ cat /tmp/log >&2; exit 1; }}
kill $!
wait
"""
IMAGE = []


def image():
    """The unpacked image: a directory with config.json and rootfs; made once."""
    if not IMAGE:
        bare.need_root()
        directory = bare.built("image", bare.built("deb"))
        place = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-packages-"))
        IMAGE.append(place)
        bare.run("umoci", "unpack", "--image", f"{directory}/tocsin:{bare.version()}",
                 place / "bundle")
    return IMAGE[0] / "bundle"


def run(script):
    return bare.package_function("in_root", image() / "rootfs", script, network=False)


def layout_has_one_image_of_this_version():
    directory = bare.built("image", bare.built("deb")) / "tocsin"
    index = json.loads((directory / "index.json").read_text(encoding="utf-8"))
    names = [entry["annotations"]["org.opencontainers.image.ref.name"]
             for entry in index["manifests"]]
    assert names == [bare.version()], names


def programs_of_the_image_print_the_version():
    version = bare.version()
    printed = run("tocsind --version; tocsin --version")
    assert printed == f"tocsind {version}\ntocsin {version}\n", printed


def configuration_of_the_image_is_sound():
    printed = run("tocsind --check-config")
    assert "the configuration is sound" in printed, printed


def agent_starts_as_an_engine_starts_it_and_answers():
    process = json.loads((image() / "config.json").read_text(encoding="utf-8"))["process"]
    assert process["user"]["uid"] != 0, process
    assert process["args"] == ["/usr/sbin/tocsind", "--foreground"], process
    variables = [word for word in process["env"] if word.startswith("RUNTIME_DIRECTORY=")]
    printed = run(AGENT.format(user=process["user"], words=" ".join(process["args"]),
                               environment=" ".join(variables)))
    assert "1 of 1 agents answer" in printed, printed


def image_has_neither_package_lists_nor_a_key():
    root = image() / "rootfs"
    for path in ("packages", "etc/resolv.conf", "etc/tocsin/tocsin.key"):
        assert not (root / path).exists(), path
    for path in ("var/lib/apt/lists", "var/cache/apt", "run/tocsin", "var/lib/tocsin"):
        assert not any((root / path).iterdir()), path


if __name__ == "__main__":
    try:
        tap.run([(test.__name__.replace("_", " "), test) for test in (
            layout_has_one_image_of_this_version,
            image_has_neither_package_lists_nor_a_key,
            programs_of_the_image_print_the_version,
            configuration_of_the_image_is_sound,
            agent_starts_as_an_engine_starts_it_and_answers)])
    finally:
        for made in IMAGE:
            shutil.rmtree(made)
