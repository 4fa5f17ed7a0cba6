# SPDX-License-Identifier: BSD-3-Clause
"""A judge of Kubernetes manifests.

Kinds of Kubernetes: the npm package kubernetes-models, whose types know every field (TypeScript
refuses a field that is not known, and a missing one) and whose schemas check values. The packages
are kept in ~/.cache/tocsin/npm for all trees.

NodeReadinessRule: the rules of its custom resource definition (kubernetes-sigs/
node-readiness-controller v0.5.0) and of the admission webhook there, in own words.
"""

import json
import os
import pathlib
import re
import shutil
import subprocess
import tempfile

import tap

PACKAGES = ("kubernetes-models@4.5.0", "typescript@5.9.3")
CACHE = pathlib.Path(os.environ.get("XDG_CACHE_HOME") or pathlib.Path.home() / ".cache",
                     "tocsin", "npm", "+".join(PACKAGES))
MODELS = {
    "Namespace": "v1", "ConfigMap": "v1", "Secret": "v1", "ServiceAccount": "v1",
    "ResourceQuota": "v1", "DaemonSet": "apps/v1",
    "ClusterRoleBinding": "rbac.authorization.k8s.io/v1",
}
VALIDATE = """
import {{ {kind} as Model }} from "kubernetes-models/{group}/{kind}";
try {{
    new Model({text}).validate();
}} catch (error) {{
    console.log(error.message);
}}
"""
TSC = ("node_modules/.bin/tsc", "--noEmit", "--strict", "--skipLibCheck", "--module", "nodenext",
       "--moduleResolution", "nodenext")


def run(directory, *command):
    return subprocess.run(command, cwd=directory, text=True, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, check=False)


def install():
    """Install the packages once; their directory appears when it is whole."""
    if shutil.which("npm") is None:
        raise tap.Skip("npm is not installed: neither types nor values of manifests are checked")
    if CACHE.exists():
        return
    CACHE.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=CACHE.parent) as place:
        done = run(place, "npm", "install", "--prefix", ".", "--ignore-scripts", "--no-audit",
                   "--no-fund", *PACKAGES)
        if done.returncode != 0:
            raise tap.Skip("neither types nor values of manifests are checked: npm cannot install "
                           f"{PACKAGES}: {done.stdout[-300:]}")
        fresh = pathlib.Path(place).rename(CACHE.parent / f"new-{os.getpid()}")
        pathlib.Path(place).mkdir()  # for the end of this block
        try:
            fresh.rename(CACHE)
        except OSError:  # another test was faster
            shutil.rmtree(fresh)


def complaints(objects):
    """The complaints about each object, in the order of the objects; an empty text if none."""
    install()
    found = ["" for _ in objects]
    with tempfile.TemporaryDirectory(prefix="tocsin-kubernetes-") as place:
        pathlib.Path(place, "node_modules").symlink_to(CACHE / "node_modules")
        names = []
        for number, one in enumerate(objects):
            kind = one["kind"]
            if kind == "NodeReadinessRule":
                found[number] = rule_complaints(one)
                continue
            text = json.dumps(one)
            names.append(f"n{number}.ts")
            pathlib.Path(place, names[-1]).write_text(
                f'import {{ I{kind} }} from "kubernetes-models/{MODELS[kind]}/{kind}";\n'
                f"export const object: I{kind} = {text};\n", encoding="utf-8")
            pathlib.Path(place, f"n{number}.mjs").write_text(
                VALIDATE.format(kind=kind, group=MODELS[kind], text=text), encoding="utf-8")
        for number, text in re.findall(r"^n(\d+)\.ts\S*: (.*)$", run(place, *TSC, *names).stdout,
                                       re.MULTILINE):
            found[int(number)] += text
        imports = "".join(f'await import("./{name[:-3]}.mjs");\nconsole.log("--");\n'
                          for name in names)
        pathlib.Path(place, "all.mjs").write_text(imports, encoding="utf-8")
        values = run(place, "node", "all.mjs").stdout.split("--\n")
        assert len(values) == len(names) + 1, values
        for name, text in zip(names, values):
            found[int(name[1:-3])] += text
    return found


STATUSES = ("True", "False", "Unknown")
MODES = ("bootstrap-only", "continuous")
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# The fields of a rule, each with whether it is required, and a test of its value.
SPEC = {
    "conditions": (True, lambda v: isinstance(v, list) and 0 < len(v) <= 32),
    "enforcementMode": (True, lambda v: v in MODES),
    # The webhook refuses a rule for all nodes.
    "nodeSelector": (True, lambda v: isinstance(v, dict) and any(v.values())),
    "taint": (True, lambda v: isinstance(v, dict)),
    "dryRun": (False, lambda v: isinstance(v, bool)),
    "conditionPolicy": (False, lambda v: v in ("allOf", "anyOf")),
}
CONDITION = {
    "type": (True, lambda v: isinstance(v, str) and 0 < len(v) <= 316),
    "requiredStatus": (True, lambda v: v in STATUSES),
    "defaultStatus": (False, lambda v: v in STATUSES),
}
TAINT = {
    "key": (True, lambda v: isinstance(v, str) and len(v) <= 253 and re.fullmatch(
        r"readiness\.k8s\.io/[A-Za-z0-9]([-A-Za-z0-9_.]{0,61}[A-Za-z0-9])?", v) is not None),
    "effect": (True, lambda v: v in EFFECTS),
    "value": (False, lambda v: isinstance(v, str) and len(v) <= 63),
}


def fields_complaints(where, given, fields):
    missing = [name for name, (needed, _) in fields.items() if needed and name not in given]
    wrong = [name for name, value in given.items()
             if name not in fields or not fields[name][1](value)]
    return "".join(f"{where}: {name} is missing\n" for name in missing) + \
        "".join(f"{where}: {name} is unknown or wrong\n" for name in wrong)


def rule_complaints(rule):
    spec = rule.get("spec", {})
    found = fields_complaints("spec", spec, SPEC)
    if rule["apiVersion"] != "readiness.node.x-k8s.io/v1alpha1":
        found += f"apiVersion {rule['apiVersion']}\n"
    for condition in spec.get("conditions", ()):
        found += fields_complaints("condition", condition, CONDITION)
        if "defaultStatus" in condition and spec.get("enforcementMode") == "bootstrap-only":
            found += "defaultStatus excludes bootstrap-only\n"
    types = [condition.get("type") for condition in spec.get("conditions", ())]
    if len(types) != len(set(types)):
        found += "a condition is given twice\n"
    return found + fields_complaints("taint", spec.get("taint", {}), TAINT)
