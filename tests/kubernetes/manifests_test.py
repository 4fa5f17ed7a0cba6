#!/usr/bin/python3
# SPDX-License-Identifier: BSD-3-Clause
"""The Kubernetes manifests: accepted by the types and schemas of Kubernetes, consistent with the
program, and run as a kubelet would run them.

    manifests_test.py SOURCE-ROOT BUILD-ROOT

Two pods are started from the DaemonSet on two nodes, which are namespaces with a cable between
them. Their arguments, environment, volumes, capabilities and probes are those of the manifest.
"""

import copy
import json
import os
import pathlib
import re
import shutil
import signal
import subprocess
import sys
import tempfile

import cluster as clusters
import patience
import schemas
import tap

try:
    import yaml
except ImportError:
    print("1..0 # SKIP python3-yaml is not installed")
    sys.exit(0)

ROOT, BUILD = (pathlib.Path(word).resolve() for word in sys.argv[1:3])
PROGRAMS = BUILD / "agent"
DEPLOY, FEEDS = ROOT / "agent/deploy/kubernetes", ROOT / "agent/feeds/kubernetes"
FILES = {path.name: list(yaml.safe_load_all(path.read_text(encoding="utf-8")))
         for path in (PROGRAMS / "tocsin.yaml", DEPLOY / "secret.yaml.example",
                      DEPLOY / "node-problem-detector.yaml", DEPLOY / "node-readiness-rule.yaml")}
OBJECTS = [one for objects in FILES.values() for one in objects]
SCRIPT = pathlib.Path(__file__).with_name("pod.sh")
FAILING_CHECK = """
[check broken]
command = /bin/sh -c 'echo broken; exit 2'
interval = 1s
timeout = 900ms
"""
ADDRESSES = ("192.0.2.1", "192.0.2.2")  # the first two of the ConfigMap's join


def manifest(file, kind):
    return next(one for one in FILES[file] if one["kind"] == kind)


AGENT = manifest("tocsin.yaml", "DaemonSet")["spec"]["template"]["spec"]
DETECTOR = manifest("node-problem-detector.yaml", "DaemonSet")["spec"]["template"]["spec"]
RULE = manifest("node-readiness-rule.yaml", "NodeReadinessRule")
CONFIG = manifest("tocsin.yaml", "ConfigMap")["data"]


def changed(one, path, value):
    """A copy of an object with the field at this path set, or removed if the value is None."""
    other = copy.deepcopy(one)
    *parents, last = path
    place = other
    for key in parents:
        place = place[key]
    if value is None:
        del place[last]
    else:
        place[last] = value
    return other


POD = ("spec", "template", "spec")
CONTAINER = (*POD, "containers", 0)
BROKEN = (
    ("Namespace", ("metadata", "Labels"), {"a": "b"}),
    ("ConfigMap", ("data", "tocsin.conf"), 7),
    ("ResourceQuota", ("spec", "scopeSelector", "matchExpressions", 0, "operator"), "Is"),
    ("Secret", ("stringdata",), {"tocsin.key": "x"}),
    ("ServiceAccount", ("automountServiceAccountToken",), "no"),
    ("ClusterRoleBinding", ("roleRef",), None),
    ("DaemonSet", ("spec", "selector"), None),
    ("DaemonSet", (*POD, "hostNetwrok"), True),
    ("DaemonSet", (*CONTAINER, "livenessProbe"), {"httpGet": {"path": "/health"}}),
    ("DaemonSet", (*CONTAINER, "readinessProbe"), {"tcpSocket": {"port": 1}, "periodSeconds": 1.5}),
    ("DaemonSet", (*CONTAINER, "env"), [{"name": "A", "valueFrom": {"fieldRef": "spec.nodeName"}}]),
    ("NodeReadinessRule", ("apiVersion",), "readiness.k8s.io/v1"),
    ("NodeReadinessRule", ("spec", "dryrun"), True),
    ("NodeReadinessRule", ("spec", "taint", "key"), "tocsin/drain"),
    ("NodeReadinessRule", ("spec", "conditions", 0, "requiredStatus"), False),
    ("NodeReadinessRule", ("spec", "nodeSelector"), {}),
)


def manifests_are_accepted_and_broken_ones_are_refused():
    broken = [changed(next(one for one in OBJECTS if one["kind"] == kind), path, value)
              for kind, path, value in BROKEN]
    found = schemas.complaints(OBJECTS + broken)
    sound, refused = found[:len(OBJECTS)], found[len(OBJECTS):]
    assert not any(sound), [text for text in sound if text]
    assert {kind for kind, _, _ in BROKEN} == {one["kind"] for one in OBJECTS}
    accepted = [case for case, text in zip(BROKEN, refused) if not text]
    assert not accepted, accepted
    for (kind, path, _), text in zip(BROKEN, refused):
        tap.comment(f"{kind} {'.'.join(map(str, path))}: {text.strip()[:100]}")


def containers_have_least_privileges():
    for pod, capabilities in ((AGENT, ["IPC_LOCK"]), (DETECTOR, None)):
        (container,) = pod["containers"]
        context = container["securityContext"]
        assert context["capabilities"]["drop"] == ["ALL"], context
        assert context["capabilities"].get("add") == capabilities, context
        assert not context["privileged"] and not context["allowPrivilegeEscalation"], context
        assert context["readOnlyRootFilesystem"], context
        assert not pod.get("hostPID") and not pod.get("hostIPC") and pod["hostNetwork"], pod
        hosts = {volume["hostPath"]["path"] for volume in pod["volumes"] if "hostPath" in volume}
        assert hosts <= {"/var/lib/tocsin", "/run/tocsin", "/run/tocsin-npd"}, hosts
    assert AGENT["automountServiceAccountToken"] is False


def nothing_acts_by_default_and_the_taint_has_one_owner():
    assert re.search(r"^\[health\]\n(#.*\n)*act = no$", CONFIG["tocsin.conf"], re.MULTILINE), CONFIG
    assert RULE["spec"]["dryRun"] is True and RULE["spec"]["taint"]["effect"] == "NoSchedule"
    # A node is tainted only if somebody labelled it for that: Kubernetes sets no such label.
    assert RULE["spec"]["nodeSelector"] == {"matchLabels": {"tocsin-drain": "taint"}}
    (condition,) = RULE["spec"]["conditions"]
    plugin = json.loads((FEEDS / "tocsin-health.json").read_text(encoding="utf-8"))
    assert condition["type"] in {one["type"] for one in plugin["conditions"]}, condition
    key = RULE["spec"]["taint"]["key"]
    setters = [path for path in ROOT.joinpath("agent").rglob("*") if path.is_file()
               and key in path.read_text(encoding="utf-8", errors="replace")]
    assert setters == [DEPLOY / "node-readiness-rule.yaml"], setters
    page = (ROOT / "docs/kubernetes.md").read_text(encoding="utf-8")
    assert re.search(rf"^\| `{re.escape(key)}` \|.*node readiness controller", page, re.MULTILINE)


def the_namespace_has_a_quota_for_the_priority_of_its_pods():
    (term,) = manifest("tocsin.yaml", "ResourceQuota")["spec"]["scopeSelector"]["matchExpressions"]
    assert term == {"scopeName": "PriorityClass", "operator": "In",
                    "values": [AGENT["priorityClassName"]]}, term


def files_that_kubectl_applies_from_the_folder_have_no_key():
    assert manifest("secret.yaml.example", "Secret")["metadata"]["name"] == "tocsin-key"
    kinds = {one["kind"] for name, objects in FILES.items() for one in objects
             if pathlib.Path(name).suffix in (".yaml", ".yml", ".json")}
    assert "Secret" not in kinds and "DaemonSet" in kinds, kinds
    assert {path.name for path in DEPLOY.iterdir()} - {"tocsin.yaml.in"} == \
        set(FILES) - {"tocsin.yaml"}


def volumes_of(pod, place, secrets, configs):
    """What the kubelet makes of the volumes of a pod: lines SOURCE PATH ro|rw."""
    lines = []
    for mount in pod["containers"][0]["volumeMounts"]:
        volume = next(one for one in pod["volumes"] if one["name"] == mount["name"])
        source = pathlib.Path(place, mount["name"])
        source.mkdir(parents=True)
        if "hostPath" not in volume:
            project(source, volume, secrets, configs)
        lines.append(f"{source} {mount['mountPath']} {'ro' if mount.get('readOnly') else 'rw'}\n")
    return "".join(lines)


def project(source, volume, secrets, configs):
    """Files of ConfigMaps and Secrets as the kubelet lays them out: behind links, which it
    replaces as a whole, in a directory that is writable and sticky."""
    source.chmod(0o1777)
    inside = source / "..2026_11_30_00_00_00.1"
    inside.mkdir()
    (source / "..data").symlink_to(inside.name)
    parts = volume["projected"]["sources"] if "projected" in volume else [volume]
    for part in parts:
        kind = "secret" if "secret" in part else "configMap"
        data = (secrets if kind == "secret" else configs)[part[kind]["name"]]
        items = part[kind].get("items", [{"key": key, "path": key} for key in data])
        for item in items:
            file = inside / item["path"]
            file.parent.mkdir(exist_ok=True)
            file.write_text(data[item["key"]], encoding="utf-8")
            file.chmod(item.get("mode", 0o644))
            top = item["path"].split("/", maxsplit=1)[0]
            if not (source / top).is_symlink():
                (source / top).symlink_to(f"..data/{top}")


class Pod:
    """A container of a pod on a node of its own."""

    def __init__(self, pod, node, address, secrets, configs):
        (self.container,) = pod["containers"]
        self.place = pathlib.Path(tempfile.mkdtemp(prefix="tocsin-kubernetes-"))
        facts = {"spec.nodeName": node, "status.hostIP": address}
        self.environment = {
            one["name"]: one.get("value") or facts[one["valueFrom"]["fieldRef"]["fieldPath"]]
            for one in self.container.get("env", ())}
        (self.place / "root").mkdir()
        (self.place / "volumes").write_text(
            volumes_of(pod, self.place / "volume", secrets, configs), encoding="utf-8")
        self.log = self.place / "log"
        self.process = None

    def start(self, *command):
        """Start the container. Its command waits until its node has an address."""
        words = command or [*self.container["command"], *self.container.get("args", ())]
        words = [re.sub(r"\$\((\w+)\)", lambda name: self.environment[name[1]], word)
                 for word in words]
        context = self.container["securityContext"]
        added = [f"+{name.lower()}" for name in context["capabilities"].get("add", ())]
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        with open(self.log, "wb") as log:
            self.process = subprocess.Popen(
                ["unshare", "--mount", "--net", str(SCRIPT), str(self.place / "root"),
                 str(PROGRAMS), str(self.place / "volumes"), "env", "-i",
                 f"PATH={PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin", *environment,
                 "setpriv", "--no-new-privs", "--bounding-set", ",".join(["-all", *added]),
                 *words], stdin=subprocess.PIPE, stdout=log, stderr=log)

    def inside(self, *command):
        """Run a command in the container, as `kubectl exec` does."""
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        return subprocess.run(
            ["nsenter", "--target", str(self.process.pid), "--mount", "--net", "--root", "--wd",
             "env", "-i", f"PATH={PROGRAMS}:/usr/sbin:/usr/bin:/sbin:/bin", *environment,
             *command], text=True, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, timeout=patience.HANG_SECONDS, check=False)

    def ip(self, *words):
        """Change the network of this node, once there is one."""
        path = f"/proc/{self.process.pid}/ns/net"
        clusters.wait_until("a network namespace", lambda: os.readlink(path) !=
                            os.readlink("/proc/self/ns/net"))
        subprocess.run(["nsenter", f"--net={path}", "ip", *words], check=True,
                       stdout=subprocess.DEVNULL)

    def go(self):
        self.process.stdin.write(b"\n")
        self.process.stdin.close()

    def probe(self, name):
        """Whether a probe succeeds, as the kubelet of this node would find."""
        probe = self.container[name]
        if "exec" in probe:
            return self.inside(*probe["exec"]["command"]).returncode == 0
        get = probe["httpGet"]
        script = "import sys, urllib.request\nurllib.request.urlopen(sys.argv[1], timeout=5)"
        url = f"http://{get['host']}:{get['port']}{get['path']}"
        return self.inside("/usr/bin/python3", "-c", script, url).returncode == 0

    def __enter__(self):
        return self

    def __exit__(self, *_):
        if self.process is not None and self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()
        shutil.rmtree(self.place)


def key():
    return subprocess.run([PROGRAMS / "tocsin", "keygen", "--output", "-"], text=True, check=True,
                          stdout=subprocess.PIPE).stdout


def agent_pod(number, text, config=CONFIG["tocsin.conf"]):
    return Pod(AGENT, f"node{number}.example", ADDRESSES[number - 1],
               {"tocsin-key": {"tocsin.key": text}}, {"tocsin": {"tocsin.conf": config}})


def connect(pods):
    """Join the nodes of both pods by a cable, and give them their addresses."""
    first, second = pods
    second.ip("link", "show")  # its namespace exists now
    first.ip("link", "add", "eth0", "type", "veth", "peer", "name", "eth0", "netns",
             str(second.process.pid))
    for pod, address in zip(pods, ADDRESSES):
        pod.ip("address", "add", f"{address}/24", "dev", "eth0")
        pod.ip("link", "set", "eth0", "up")


def need_root():
    if os.geteuid() != 0:
        raise tap.Skip("pods of one's own need root")


def configuration_is_accepted_with_a_key_only():
    need_root()
    secret = manifest("secret.yaml.example", "Secret")["stringData"]["tocsin.key"]
    words = [*AGENT["containers"][0]["command"], *AGENT["containers"][0]["args"], "--check-config"]
    for text, status, said in ((key(), 0, "the configuration is sound"),
                               (secret, 2, "tocsin.key")):
        with agent_pod(1, text) as pod:
            pod.start(*words)
            pod.ip("address", "add", f"{ADDRESSES[0]}/24", "dev", "lo")
            pod.go()
            got = pod.process.wait(patience.HANG_SECONDS)
            output = pod.log.read_text(encoding="utf-8")
            assert got == status and said in output, (got, output)
            tap.comment(output)


def pods_join_and_their_probes_follow_the_agent_and_not_its_node():
    need_root()
    text = key()
    # Without the minute for which a fault has to last.
    config = CONFIG["tocsin.conf"].replace("act = no\n", "act = no\nconfirm = 1s\n")
    with agent_pod(1, text, config) as first, \
            agent_pod(2, text, config + FAILING_CHECK) as second:
        pods = (first, second)
        for pod in pods:
            pod.start()
        connect(pods)
        for pod in pods:
            pod.go()
        try:
            check_pods(first, second)
        except BaseException:
            for pod in pods:
                tap.comment(pod.log.read_text(encoding="utf-8")[-3000:])
            raise


def wait_until(what, function):
    clusters.wait_until(what, function, pause=0.3)


def check_pods(first, second):
    for pod in (first, second):
        wait_until("readiness", lambda pod=pod: pod.probe("readinessProbe"))
        wait_until("two agents", lambda pod=pod: "2 of 2 agents answer" in
                   pod.inside("tocsin", "status").stdout)
        assert pod.probe("livenessProbe")
        listens = pod.inside("ss", "-Hltn").stdout
        for port in pod.container["ports"]:
            address = port.get("hostIP", pod.environment["HOST_IP"])
            assert f" {address}:{port['containerPort']} " in listens, (port, listens)
        assert f"host={pod.environment['NODE_NAME']} " in pod.log.read_text(encoding="utf-8")
        assert (pod.place / "volume/run/tocsind.sock").is_socket()
        assert (pod.place / "volume/state/start").is_file()
    names = {row["node"] for row in json.loads(
        first.inside("tocsin", "peers", "--json").stdout)["peers"]}
    assert names == {"node1.example", "node2.example"}, names

    # A node that would be drained keeps its pod: it is neither restarted nor unready.
    check = ["/bin/bash", str(FEEDS / "tocsin-node-check")]
    wait_until("a drain that is held back", lambda: "would be drained" in
               second.inside(*check, "npd").stdout)
    assert second.inside(*check, "npd").returncode == 1
    assert second.probe("livenessProbe") and second.probe("readinessProbe")
    # An agent that only observes gives no advice, and releases a drain from before.
    assert second.inside(*check, "drain").returncode == 2
    (second.place / "volume/run/held").write_text("1\n", encoding="ascii")
    hold = ("env", "TOCSIN_HOLD=/run/tocsin/held", *check, "hold")
    assert second.inside(*hold).returncode == 0
    assert (second.place / "volume/run/held").read_text(encoding="ascii") == "0\n"

    # A node whose peers are gone keeps its pod, and an agent that hangs is restarted.
    second.process.send_signal(signal.SIGSTOP)
    assert not second.probe("livenessProbe")
    second.process.send_signal(signal.SIGKILL)
    wait_until("the loss of node2", lambda: " healthy" not in
               first.inside("tocsin", "health", "--line", "node2.example").stdout)
    assert first.probe("livenessProbe") and first.probe("readinessProbe")
    first.process.send_signal(signal.SIGTERM)
    assert first.process.wait(patience.HANG_SECONDS) == 0


def detector_finds_its_plugin_and_keeps_the_last_advice():
    need_root()
    (container,) = DETECTOR["containers"]
    files = {name: (FEEDS / name).read_text(encoding="utf-8")
             for name in ("tocsin-health.json", "tocsin-node-check")}
    config = next(word.split("=", 1)[1] for word in container["args"]
                  if word.startswith("--config.custom-plugin-monitor="))
    rules = json.loads(files["tocsin-health.json"])["rules"]
    with Pod(DETECTOR, "node1.example", ADDRESSES[0], {}, {"tocsin-npd": files}) as pod:
        pod.start("sleep", "inf")
        pod.go()
        clusters.wait_until("the container", lambda: pod.inside("cat", config).returncode == 0)
        assert json.loads(pod.inside("cat", config).stdout)["rules"] == rules
        # No agent runs here.
        for rule, status in zip(rules, (0, 2)):
            done = pod.inside(rule["path"], *rule["args"])
            assert (done.returncode, done.stdout[:7]) == (status, "unknown"), (rule, done)
        (pod.place / "volume/hold/drain").write_text("1\n", encoding="utf-8")
        done = pod.inside(rules[0]["path"], *rules[0]["args"])
        assert done.returncode == 1, done


if __name__ == "__main__":
    tap.run([(test.__name__.replace("_", " "), test) for test in (
        manifests_are_accepted_and_broken_ones_are_refused,
        containers_have_least_privileges,
        nothing_acts_by_default_and_the_taint_has_one_owner,
        the_namespace_has_a_quota_for_the_priority_of_its_pods,
        files_that_kubectl_applies_from_the_folder_have_no_key,
        configuration_is_accepted_with_a_key_only,
        pods_join_and_their_probes_follow_the_agent_and_not_its_node,
        detector_finds_its_plugin_and_keeps_the_last_advice,
    )])
