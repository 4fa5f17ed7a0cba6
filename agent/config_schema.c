// SPDX-License-Identifier: BSD-3-Clause
// The table of tocsind's settings: name, type, bounds, default and help of each.
#include "config_schema.h"

#include "agent.h"

#include <control/checks.h>
#include <control/join_list.h>
#include <control/spawn.h>
#include <dataplane/device_choice.h>
#include <dataplane/idle.h>
#include <dataplane/soft.h>
#include <lib/cidr.h>
#include <lib/must.h>
#include <lib/netif/tocsin.h>
#include <lib/sockaddr.h>

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SECOND INT64_C(1000000000)
#define KIB INT64_C(1024)
#define MIB (1024 * KIB)

static const char *const profile_choices[] = {"fast", "nccl", NULL};
static const char *const mtu_choices[] = {"auto", "256", "512", "1024", "2048", "4096", NULL};
static const char *const convention_choices[] = {"nagios", "npd", NULL};
static const char *const level_choices[] = {"error", "warn", "info", "debug", NULL};

static int check_name(const char *text, size_t length, struct parse_error *error) {
	for (size_t n = 0; n < length; n++) {
		char c = text[n];

		if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
		    strchr("-_.", c) != NULL)
			continue;
		return parse_fail(
			error, -EINVAL, text, length,
			"has a character other than letters, digits, '-', '_' and '.'"
		);
	}
	return 0;
}

// The port may be missing. The default port is added later, so this check uses 0.
static int check_address(const char *text, size_t length, struct parse_error *error) {
	struct sock_addr addr;

	return length == 0 ? 0 : sock_addr_parse(text, length, 0, error, &addr);
}

static int check_loopback(const char *text, size_t length, struct parse_error *error) {
	struct sock_addr addr;
	int err = length == 0 ? 0 : sock_addr_parse(text, length, 0, error, &addr);

	if (err != 0 || length == 0 || sock_addr_is_loopback(&addr))
		return err;
	return parse_fail(error, -EINVAL, text, length, "is not on loopback");
}

static int check_soft_address(const char *text, size_t length, struct parse_error *error) {
	struct sock_addr addr;

	return length == 0 ? 0 : soft_address_parse(text, length, error, &addr);
}

static int check_wire(const char *text, size_t length, struct parse_error *error) {
	char args[SOFT_WIRE_ARGS_MAX + 1];
	enum soft_wire_kind kind;
	int err;

	if (length == 0)
		return 0;
	err = soft_wire_parse(text, length, error, &kind, args);
	if (err == 0 && kind == SOFT_WIRE_MEMORY)
		return parse_fail(
			error, -EINVAL, text, length,
			"reaches no other process; allowed are udp and dpdk:DEVARGS"
		);
	return err;
}

static int check_faults(const char *text, size_t length, struct parse_error *error) {
	struct soft_faults faults;

	return length == 0 ? 0 : soft_faults_parse(text, length, error, &faults);
}

static int check_interface(const char *text, size_t length, struct parse_error *error) {
	char copy[CONFIG_VALUE_BYTES_MAX + 1];
	struct netif_tocsin_settings settings = {.ifname = {.value = copy, .origin = "it"}};
	struct netif_error reason;
	struct netif_policy policy;

	if (length == 0)
		return 0;
	must(length < sizeof(copy));
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (netif_policy_parse(&settings, &policy, &reason) == 0)
		return 0;
	return parse_fail(
		error, -EINVAL, text, length, "is not a list of interfaces: %s", reason.text
	);
}

static int check_idle(const char *text, size_t length, struct parse_error *error) {
	enum idle_policy policy;
	char word[16];

	snprintf(word, sizeof(word), "%.*s", (int)length, text);
	if (length < sizeof(word) && idle_policy_parse(word, &policy) == 0)
		return 0;
	return parse_fail(
		error, -EINVAL, text, length, "is not one of adaptive, spin, event and window"
	);
}

// Check the syntax only. A missing device is no error: the agent then runs without RDMA and reports
// it.
static int check_target(const char *text, size_t length, struct parse_error *error) {
	struct device_target target;

	return device_target_parse(text, length, error, &target);
}

static int check_network(const char *text, size_t length, struct parse_error *error) {
	struct cidr cidr;

	return cidr_parse(text, length, error, &cidr);
}

// Check that the command starts with an absolute path. PATH is not searched, because it depends on
// the user who started the agent.
static int check_command(const char *text, size_t length, struct parse_error *error) {
	char copy[CHECKS_COMMAND_MAX + 1], *words[SPAWN_ARGUMENTS_MAX + 1];
	const char *why;

	if (length > CHECKS_COMMAND_MAX)
		return 0; // the bounds of the key report this error
	memcpy(copy, text, length);
	copy[length] = '\0';
	if (check_command_split(copy, words, &why) != 0)
		return parse_fail(error, -EINVAL, text, length, "%s", why);
	if (words[0][0] != '/')
		return parse_fail(
			error, -EINVAL, text, length,
			"does not begin with an absolute path, such as /usr/lib/checks/disk"
		);
	return 0;
}

static int check_rate(const char *text, size_t length, struct parse_error *error) {
	uint32_t mbps;

	return length == 0 ? 0 : checks_rate_parse(text, length, error, &mbps);
}

static int check_own_name(const char *text, size_t length, struct parse_error *error) {
	const char *name;

	for (uint32_t n = 0; (name = checks_builtin_name(n)) != NULL; n++) {
		if (strlen(name) == length && memcmp(name, text, length) == 0)
			return 0;
	}
	return parse_fail(error, -EINVAL, text, length, "is not a built-in check");
}

static int check_webhook(const char *text, size_t length, struct parse_error *error) {
	return length == 0 ? 0 : check_command(text, length, error);
}

static int check_path(const char *text, size_t length, struct parse_error *error) {
	if (length == 0 || text[0] == '/')
		return 0;
	return parse_fail(error, -EINVAL, text, length, "is not an absolute path");
}

// clang-format off
static const struct config_key keys[] = {
	{"node", "name", CONFIG_STRING, false, 0, 63, NULL, check_name,
	 "at most 63 letters, digits, '-', '_' and '.'", "",
	 "The name of this node, the key of every table of the cluster. Empty: the host name."},
	{"node", "host", CONFIG_STRING, false, 0, 63, NULL, check_name,
	 "at most 63 letters, digits, '-', '_' and '.'", "",
	 "The machine it runs on: agents of one host are expected to fail together. Empty: the "
	 "machine id and the network namespace. Machines booted from one image may share both: "
	 "tocsin health names them; set it on each."},
	{"node", "state_directory", CONFIG_STRING, false, 0, CONFIG_PATH_MAX, NULL, check_path,
	 "an absolute path", "/var/lib/tocsin",
	 "Where the start counter, the journal of events, members to join through, what is usual "
	 "on "
	 "paths and what checks remember of links are kept. Empty: nowhere; they do not survive a "
	 "restart."},
	{"node", "journal_size", CONFIG_SIZE, false, 64 * KIB, 1024 * MIB, NULL, NULL, NULL, "8MiB",
	 "How much of the disk the journal of events may take."},
	{"node", "device", CONFIG_LIST, false, 1, 16, NULL, check_target,
	 "auto, none, or any of best, nic:NAME, cpu:N, cuda:N and soft between commas", "auto",
	 "The RDMA devices that this node measures with, each a rail: auto is every port that can "
	 "have "
	 "pairs, up to 16, best the best device alone, and either the software device where there "
	 "is "
	 "none, cpu:N and cuda:N the one that is nearest to it, which for cuda:N shows memory of "
	 "that "
	 "GPU to peers ([probe] gpu), soft the software device, none no device at all."},

	{"overlay", "cluster", CONFIG_STRING, false, 1, 63, NULL, check_name,
	 "1 to 63 letters, digits, '-', '_' and '.'", "tocsin",
	 "The name of the cluster. Agents of another one are refused."},
	{"overlay", "join", CONFIG_STRING, true, 0, CONFIG_VALUE_BYTES_MAX, NULL, join_list_check,
	 "addresses, names, hostlists such as node[001-128], and files of these, between commas", "",
	 "Whom to join the cluster through; any of them that can be reached will do, this node "
	 "itself may be among them. What begins with / is a file of such items. Members of "
	 "earlier runs that the state directory remembers are tried, too. Empty: only those; if "
	 "none "
	 "of them is found in half a minute, or none is remembered, this node begins a cluster of "
	 "its own."},
	{"overlay", "expect", CONFIG_STRING, true, 0, CONFIG_VALUE_BYTES_MAX, NULL,
	 config_check_hostlist, "a hostlist such as node[001-128]", "",
	 "The names of the nodes that should be there. One that never came is shown as missing."},
	{"overlay", "listen", CONFIG_STRING, false, 0, 80, NULL, check_address,
	 "an address, its port optional", "",
	 "Where other agents reach this one. Empty: port 28030 of the address that interface "
	 "chooses, or of 127.0.0.1 if there is no key."},
	{"overlay", "advertise", CONFIG_STRING, false, 0, 80, NULL, check_address,
	 "an address, its port optional", "",
	 "The address that others are told, where it differs from listen. Some of them are asked "
	 "to "
	 "connect to it, and this agent has to answer there; while it does not, tocsin health "
	 "warns "
	 "and names who tried, and who answered instead."},
	{"overlay", "interface", CONFIG_STRING, false, 0, 1024, NULL, check_interface,
	 "a list as TOCSIN_SOCKET_IFNAME has it; tocsin ifaces --help", "",
	 "Which interfaces may carry the overlay, where listen is empty. When the address that was "
	 "chosen goes, another one is, and told as a new start of this agent."},
	{"overlay", "profile", CONFIG_ENUM, false, 0, 0, profile_choices, NULL, NULL, "fast",
	 "The timers: fast finds a silent node dead within ten seconds; nccl has the ring and the "
	 "times of NCCL."},
	{"overlay", "key", CONFIG_STRING, false, 0, CONFIG_PATH_MAX, NULL, check_path,
	 "an absolute path", "",
	 "The key file that all nodes of the cluster share, made by tocsin keygen. The file is "
	 "read "
	 "again on SIGHUP; another path waits for a restart, and so does a first key. Empty: no "
	 "key; the agent then speaks on loopback only."},
	{"overlay", "connections", CONFIG_INT, false, 16, 4096, NULL, NULL, NULL, "256",
	 "How many connections to other agents may be open at once."},

	{"device NAME", "port", CONFIG_INT, false, 0, 255, NULL, NULL, NULL, "0",
	 "Which port of the device; 0: the first that is active."},
	{"device NAME", "gid_index", CONFIG_INT, false, -1, 65535, NULL, NULL, NULL, "-1",
	 "Which GID of the port; -1: by type and scope, RoCE v2 and routable ones first."},
	{"device NAME", "mtu", CONFIG_ENUM, false, 0, 0, mtu_choices, NULL, NULL, "auto",
	 "The largest packet in bytes; auto: what the port has. Two ends use the smaller one."},
	{"device NAME", "traffic_class", CONFIG_INT, false, 0, 255, NULL, NULL, NULL, "0",
	 "Of each packet; should be that of the jobs, since it decides which queues are measured."},
	{"device NAME", "service_level", CONFIG_INT, false, 0, 15, NULL, NULL, NULL, "0",
	 "Of InfiniBand; on Ethernet the priority."},
	{"device NAME", "timeout", CONFIG_INT, false, 0, 31, NULL, NULL, NULL, "14",
	 "How long an acknowledgement may take before it is tried again: 4.096 us times 2 to the "
	 "power of this; 0 is for ever."},
	{"device NAME", "retry", CONFIG_INT, false, 0, 7, NULL, NULL, NULL, "6",
	 "How often it is tried again; 7 is for ever with Soft-RoCE."},
	{"device NAME", "rnr_retry", CONFIG_INT, false, 0, 7, NULL, NULL, NULL, "6",
	 "How often a receiver may be not ready; 7 is for ever."},
	{"device NAME", "min_rnr_timer", CONFIG_INT, false, 0, 31, NULL, NULL, NULL, "12",
	 "How long a sender waits for a receiver that is not ready, in the code of InfiniBand; 12 "
	 "is "
	 "0.64 ms, 0 the longest, 655 ms."},
	{"device NAME", "pkey_index", CONFIG_INT, false, -1, 65535, NULL, NULL, NULL, "-1",
	 "Which partition key of the port; -1: the first full membership, else the first."},
	{"device NAME", "wire", CONFIG_STRING, false, 0, SOFT_WIRE_ARGS_MAX, NULL, check_wire,
	 "udp or dpdk:DEVARGS", "",
	 "Of soft0 alone, the software device: what carries its packets, RoCE v2 all of them. "
	 "Empty or "
	 "udp: a socket, port 4791. dpdk:DEVARGS: an Ethernet port of DPDK, as in "
	 "dpdk:net_af_packet0,iface=eth1."},
	{"device NAME", "address", CONFIG_STRING, false, 0, 80, NULL, check_soft_address,
	 "the address of one machine, without a port", "",
	 "Of soft0 alone: the address that it has. Empty: that of [overlay] listen."},
	{"device NAME", "faults", CONFIG_STRING, true, 0, 255, NULL, check_faults,
	 "loss, delay, reorder, dup, corrupt, large, to and seed between commas", "",
	 "Of soft0 alone: what is done to the packets that it sends, for tests of what watches "
	 "them: "
	 "loss=1%,delay=50us+-20us,reorder=2%,dup=0.5%,corrupt=0.1%,seed=7; large=100% loses what "
	 "is "
	 "over 1500 bytes, and with to=192.0.2.7 all others' packets are spared."},

	{"device NAME", "expect_rate", CONFIG_STRING, true, 0, 32, NULL, check_rate,
	 "gigabits a second, such as 200 or 2.5Gb/s", "",
	 "The rate that a port of it must have; a slower one, one that is down, and a device that "
	 "is "
	 "not there fail the node. It need not be one that this node measures with. Empty: a port "
	 "that is slower than it was once is warned of."},

	{"worker", "cores", CONFIG_STRING, false, 0, 1024, NULL, config_check_cpu_set,
	 "processors such as 2,4-7", "",
	 "One polling thread is pinned to each. Empty: one thread, placed by rule (near the "
	 "first RDMA device, never 0 if there is another, and never one that is set aside by "
	 "isolcpus, "
	 "nohz_full or an isolated partition of a cgroup, unless nothing else is allowed or idle = "
	 "spin, which takes such first). cores_why in the log's worker_started says why. What a "
	 "thread uses lies in memory of its processor's NUMA node, if the kernel lets it; "
	 "memory_node in the log's worker_started says where it lies, - if the kernel does not "
	 "tell."},
	{"worker", "pin", CONFIG_BOOL, false, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether polling threads are pinned; no where agents share their processors."},
	{"worker", "idle", CONFIG_LIST, true, 1, AGENT_WORKERS_MAX, NULL, check_idle,
	 "adaptive, spin, event or window, or one of them for each polling thread between commas",
	 "adaptive",
	 "What a polling thread does when nothing is there: adaptive, spin (never rest), event "
	 "(never "
	 "spin), window (yield for a while, then sleep, as Monarch does). The last one is for all "
	 "further threads."},
	{"worker", "window", CONFIG_DURATION, true, 0, 3600 * SECOND, NULL, NULL, NULL, "1ms",
	 "How long a thread with window yields, from the first empty poll of a wait on, before it "
	 "sleeps 1 ms, doubled up to 10 ms. Progress begins a new wait."},
	{"worker", "memory", CONFIG_SIZE, false, 8 * MIB, 65536 * MIB, NULL, NULL, NULL, "16MiB",
	 "What DPDK sets aside. A dpdk wire adds 64 MiB."},
	{"worker", "huge_pages", CONFIG_BOOL, false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether that memory is of huge pages, if there are any."},
	{"worker", "lock_memory", CONFIG_BOOL, false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether all memory is locked, so that no page fault delays a measurement."},

	{"check NAME", "command", CONFIG_STRING, true, 1, CHECKS_COMMAND_MAX, NULL, check_command,
	 "an absolute path and arguments between blanks, which '...', \"...\" and \\ keep", NULL,
	 "The program of a check of this node, and its arguments; there is no shell between. It "
	 "runs "
	 "with the agent's environment, /dev/null as its input, in a process group of its own, "
	 "which "
	 "is killed when the program ends. The first line that it writes is the evidence, "
	 "cut to 80 characters. The reason is Check and NAME in CamelCase."},
	{"check NAME", "user", CONFIG_STRING, true, 0, SPAWN_USER_BYTES_MAX - 1, NULL, check_name,
	 "the name of a user", "",
	 "Whose rights and groups it runs with; HOME, USER and LOGNAME are that user's. Another "
	 "than "
	 "the agent's own needs an agent of root with CAP_SETUID, CAP_SETGID and CAP_KILL, which a "
	 "drop-in of the systemd unit gives (CapabilityBoundingSet=). Empty: the agent's own."},
	{"check NAME", "convention", CONFIG_ENUM, true, 0, 0, convention_choices, NULL, NULL, "nagios",
	 "What its exit status means. nagios: 0 ok, 1 warning, 2 critical; npd, as for "
	 "node-problem-detector: 0 ok, 1 critical. Everything else, a signal and a timeout are "
	 "unknown, which is shown, and neither fails the check nor clears it."},
	{"check NAME", "interval", CONFIG_DURATION, true, SECOND, 86400 * SECOND, NULL, NULL, NULL,
	 "30s", "From one run to the next, give or take a twentieth."},
	{"check NAME", "timeout", CONFIG_DURATION, true, SECOND / 10, 3600 * SECOND, NULL, NULL, NULL,
	 "5s",
	 "How long a run may take, less than interval. Then its processes get SIGTERM, and half a "
	 "second later SIGKILL. One that even that does not end is told with its pid and where in "
	 "the "
	 "kernel it hangs; it is not waited for, and the check is not run again before it has "
	 "ended."},
	{"check NAME", "confirm", CONFIG_INT, true, 1, CHECKS_CONFIRM_MAX, NULL, NULL, NULL, "1",
	 "How many runs in a row must be that bad before the node is said to be."},
	{"check NAME", "clear", CONFIG_INT, true, 1, CHECKS_CONFIRM_MAX, NULL, NULL, NULL, "1",
	 "How many runs in a row must be better before it is taken back."},

	{"probe", "enabled", CONFIG_BOOL, true, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether the pulses of other nodes are read over RDMA all the time. Switched off while "
	 "the "
	 "agent runs, what was learnt of paths is forgotten."},
	{"probe", "interval", CONFIG_DURATION, true, SECOND / 10, 60 * SECOND, NULL, NULL, NULL, "1s",
	 "Between two reads of one neighbour on a ring, after each fourth of which a write comes; "
	 "longer "
	 "where the budget does not suffice."},
	{"probe", "packets", CONFIG_INT, true, 10, 5000, NULL, NULL, NULL, "100",
	 "How many packets a second probes may cause in both directions; never exceeded."},
	{"probe", "bytes", CONFIG_SIZE, true, 16 * KIB, 1024 * MIB, NULL, NULL, NULL, "512KiB",
	 "The same in bytes, with their headers."},
	{"probe", "rotation", CONFIG_BOOL, true, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether the nodes that are no neighbours are probed in turn, with what the budget "
	 "leaves; "
	 "the counter coverage_ns of probe tells how long a round takes."},
	{"probe", "gpu", CONFIG_BOOL, false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether the rail that device = cuda:N chose shows peers 64 KiB of that GPU's memory "
	 "beside "
	 "its pulse, as dmabuf: their reads of it cross PCIe to the GPU. It keeps a CUDA context "
	 "on "
	 "the GPU while the agent runs (some 520 MiB of an H200's memory), so that a reset of the "
	 "GPU "
	 "needs an end of the agent. Of two GPUs next to one rail the first is shown."},

	{"client", "listen", CONFIG_STRING, false, 0, 80, NULL, check_address,
	 "an address, its port optional", "127.0.0.1:28029",
	 "Where clients, NCCL's ncclras among them, may ask what only reads; on loopback only. "
	 "Empty: nowhere."},
	{"client", "socket", CONFIG_STRING, false, 0, 107, NULL, check_path,
	 "an absolute path of at most 107 bytes", "",
	 "The Unix socket of all commands. Empty: tocsind.sock in the runtime directory, which is "
	 "/run/tocsin for root, else $XDG_RUNTIME_DIR/tocsin."},
	{"client", "group", CONFIG_STRING, false, 0, 63, NULL, check_name, "the name of a group", "",
	 "Its members may give commands that change something, as root and the agent's user may."},
	{"client", "connections", CONFIG_INT, false, 1, 4096, NULL, NULL, NULL, "64",
	 "How many clients may be connected at once."},
	{"client", "idle", CONFIG_DURATION, false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "5m",
	 "A client that says nothing for so long is disconnected, unless it monitors."},

	{"job", "enabled", CONFIG_BOOL, false, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether processes of jobs may connect, by libtocsin: their communicators are shown, and "
	 "they "
	 "are told who is gone."},
	{"job", "socket", CONFIG_STRING, false, 0, 107, NULL, check_path,
	 "an absolute path of at most 107 bytes", "",
	 "The Unix socket for jobs, open to every user. Empty: job.sock beside the socket of "
	 "[client] "
	 "if that is tocsind.sock, beside another NAME.sock NAME-job.sock."},
	{"job", "processes", CONFIG_INT, false, 1, 65536, NULL, NULL, NULL, "4096",
	 "How many processes may be registered at once; each may have 127 communicators."},
	{"job", "per_user", CONFIG_INT, false, 1, 65536, NULL, NULL, NULL, "2048",
	 "How many of them one user may have."},
	{"job", "keep", CONFIG_INT, false, 0, 65536, NULL, NULL, NULL, "256",
	 "How many processes that have ended are still shown, with what they had counted."},
	{"job", "keep_for", CONFIG_DURATION, false, SECOND, 604800 * SECOND, NULL, NULL, NULL, "1h",
	 "For how long."},
	{"job", "nccl_ras", CONFIG_STRING, false, 0, 80, NULL, check_loopback,
	 "an address on loopback, its port optional (28028)", "",
	 "Where NCCL's own RAS of a job is asked on which GPU each of its ranks here is, once a "
	 "minute "
	 "while that is not known; 127.0.0.1 is where NCCL 2.28 and later answers if NCCL_RAS_ADDR "
	 "is not "
	 "set. Empty: nobody is asked, since NCCL up to 2.29 may crash when it is asked while a "
	 "communicator is being made."},
	{"job", "waiting", CONFIG_DURATION, false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "10s",
	 "A communicator none of whose ranks moved for so long is shown as waiting, if a rank "
	 "waits in "
	 "an operation; as stuck, if whoever is waited for does not work, or will never come."},
	{"job", "stuck", CONFIG_DURATION, false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "10m",
	 "As stuck after so long, where nobody knows what the one who is waited for does."},
	{"job", "stuck_busy", CONFIG_DURATION, false, SECOND, 604800 * SECOND, NULL, NULL, NULL,
	 "1h", "As stuck after so long, where that one works: checkpoints and compilation take long."},

	{"health", "confirm", CONFIG_DURATION, false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "60s",
	 "How long agent-frozen, mgmt-net-down, device-stuck and check-failed must have held "
	 "before a "
	 "scheduler is advised to drain the node."},
	{"health", "drain_rate", CONFIG_INT, false, 1, 100, NULL, NULL, NULL, "5",
	 "How many percent of the nodes may be drained in ten minutes, one at least. It is one "
	 "count "
	 "for the cluster: of all members the one that grants drains goes by its own."},
	{"health", "drain_out", CONFIG_INT, false, 1, 100, NULL, NULL, NULL, "33",
	 "How many percent of the nodes may be out of service, granted and not healthy again, dead "
	 "or "
	 "unreachable, when one more is drained, one at least; 33 is a third."},
	{"health", "topology", CONFIG_STRING, false, 0, 4096, NULL, NULL, NULL, "",
	 "A file that says which leaf switch each node is at, in lines such as \"leaf1: "
	 "node[001-032]\": bad paths that share one are then blamed on it. Empty: none."},
	{"health", "interval", CONFIG_DURATION, true, SECOND, 3600 * SECOND, NULL, NULL, NULL, "10s",
	 "How often the agent's own checks look: at links, their errors and pauses, drivers, "
	 "ports, its polling "
	 "threads, its memory, the machine's, and the file system of its state directory."},
	{"health", "off", CONFIG_LIST, true, 0, CHECKS_BUILTIN_COUNT, NULL, check_own_name,
	 "link-state, link-rate, link-errors, pauses, drivers, ports, workers, agent-memory, "
	 "memory-pressure, "
	 "state-directory",
	 "", "Which of them do not look."},
	{"health", "memory_limit", CONFIG_SIZE, true, 0, INT64_MAX, NULL, NULL, NULL, "192MiB",
	 "How much memory the agent may hold before it warns of itself; 0: no limit. What DPDK "
	 "sets "
	 "aside counts."},
	{"health", "disk_free", CONFIG_SIZE, true, 0, INT64_MAX, NULL, NULL, NULL, "32MiB",
	 "How much must be free where the state directory is before that is warned of."},
	{"health", "webhook", CONFIG_STRING, false, 0, CHECKS_COMMAND_MAX, NULL, check_webhook,
	 "an absolute path and arguments between blanks, which '...', \"...\" and \\ keep", "",
	 "A program that is run for each verdict that changes, with an object of JSON on its "
	 "standard "
	 "input, one line: node, verdict, was, reason, evidence, advice, confidence, both_planes, "
	 "maint, time, "
	 "cluster, observer, lost. One at a time, in their order; 64 wait, beyond that the oldest "
	 "are "
	 "dropped, and lost says how many were. Every agent that has it runs it: configure it on "
	 "one "
	 "or two. Empty: none."},
	{"health", "webhook_user", CONFIG_STRING, false, 0, SPAWN_USER_BYTES_MAX - 1, NULL, check_name,
	 "the name of a user", "", "Whose rights it runs with, as [check NAME] user."},
	{"health", "webhook_timeout", CONFIG_DURATION, false, SECOND / 10, 600 * SECOND, NULL, NULL,
	 NULL, "10s", "How long that program may take; then its processes are ended."},

	{"http", "listen", CONFIG_STRING, false, 0, 80, NULL, check_address,
	 "an address, its port optional", "127.0.0.1:28031",
	 "Where /metrics, /health and /status.json are served. Empty: nowhere."},
	{"http", "allow", CONFIG_LIST, false, 0, 64, NULL, check_network,
	 "networks such as 10.0.0.0/8 between commas", "",
	 "From where, beside this machine, HTTP may be asked. To be given with an address that is "
	 "not "
	 "loopback; 0.0.0.0/0 and ::/0 are everywhere."},

	{"log", "level", CONFIG_ENUM, true, 0, 0, level_choices, NULL, NULL, "info",
	 "What is logged: this and all that weighs more."},
};
// clang-format on

const struct config_schema agent_config_schema = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.conflict = check_contradictions,
};

const struct config_schema agent_check_schema = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.conflict = check_machine,
};
