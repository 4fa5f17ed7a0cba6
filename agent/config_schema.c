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
	return length == 0 ? 0 : check_command_validate(text, length, error);
}

static int check_path(const char *text, size_t length, struct parse_error *error) {
	if (length == 0 || text[0] == '/')
		return 0;
	return parse_fail(error, -EINVAL, text, length, "is not an absolute path");
}

// clang-format off
// Section, name, type and offset of a key. The member of a duration or a size ends with the unit.
// NOLINTBEGIN(bugprone-macro-parentheses): section.member is a path of members
#define KEY(section, key, type, member) \
	#section, #key, CONFIG_AT(type, struct agent_settings, section.member)
// NOLINTEND(bugprone-macro-parentheses)
#define BOOL(section, key) KEY(section, key, BOOL, key)
#define INT(section, key) KEY(section, key, INT, key)
#define DURATION(section, key) KEY(section, key, DURATION, key##_ns)
#define SIZE(section, key) KEY(section, key, SIZE, key##_bytes)
#define STRING(section, key) KEY(section, key, STRING, key)
#define ENUM(section, key) KEY(section, key, ENUM, key)
#define LIST(section, key) KEY(section, key, LIST, key)
#define NAMED(section, key, type, member) \
	#section " NAME", #key, CONFIG_AT(type, struct section##_section, member)

static const struct config_key keys[] = {
	{STRING(node, name), false, 0, 63, NULL, check_name,
	 "at most 63 letters, digits, '-', '_' and '.'", "",
	 "Name of this node, unique in the cluster; it is the key of all tables. Empty: the host "
	 "name."},
	{STRING(node, host), false, 0, 63, NULL, check_name,
	 "at most 63 letters, digits, '-', '_' and '.'", "",
	 "Machine that the agent runs on; agents of one host are expected to fail together. "
	 "Empty: the machine id and the network namespace. Machines booted from one image may "
	 "have both in common: tocsin health names them; set this key on each."},
	{STRING(node, state_directory), false, 0, CONFIG_PATH_MAX, NULL, check_path,
	 "an absolute path", "/var/lib/tocsin",
	 "Directory of the start counter, the journal of events, the members to join through, "
	 "the baselines of paths and the memory of link checks. Empty: none of these survives a "
	 "restart."},
	{SIZE(node, journal_size), false, 64 * KIB, 1024 * MIB, NULL, NULL, NULL, "8MiB",
	 "Disk space that the journal of events may use."},
	{LIST(node, device), false, 1, 16, NULL, check_target,
	 "auto, none, or any of best, nic:NAME, cpu:N, cuda:N and soft between commas", "auto",
	 "RDMA devices that this node measures with; each is a rail. auto: every port that can "
	 "have pairs, up to 16. best: the best device only. Both use the software device if "
	 "there is no other. cpu:N and cuda:N: the device nearest to the NUMA node or to the "
	 "GPU; with cuda:N peers may read memory of that GPU ([probe] gpu). soft: the software "
	 "device. none: no device."},

	{STRING(overlay, cluster), false, 1, 63, NULL, check_name,
	 "1 to 63 letters, digits, '-', '_' and '.'", "tocsin",
	 "Name of the cluster. Agents with another name are refused."},
	{STRING(overlay, join), true, 0, CONFIG_VALUE_BYTES_MAX, NULL, join_list_check,
	 "addresses, names, hostlists such as node[001-128], and files of these, between commas", "",
	 "Members to join the cluster through. One that can be reached suffices, and this node "
	 "itself may be in the list. An item that begins with / is a file of such items. Members "
	 "that the state directory remembers from earlier runs are tried, too. Empty: only "
	 "remembered members; if there is none, or none is found in half a minute, this node "
	 "founds a cluster of its own."},
	{STRING(overlay, expect), true, 0, CONFIG_VALUE_BYTES_MAX, NULL,
	 config_check_hostlist, "a hostlist such as node[001-128]", "",
	 "Names of the nodes that should be members. A node that never came is shown as missing."},
	{STRING(overlay, listen), false, 0, 80, NULL, check_address,
	 "an address, its port optional", "",
	 "Address on which other agents reach this one. Empty: port 28030 of the address that "
	 "interface chooses, or of 127.0.0.1 if there is no key."},
	{STRING(overlay, advertise), false, 0, 80, NULL, check_address,
	 "an address, its port optional", "",
	 "Address that is announced to other agents, if it differs from listen. Some of them are "
	 "asked to connect to it. While this agent does not answer there, tocsin health warns, "
	 "and names the agents that tried and any agent that answered instead."},
	{STRING(overlay, interface), false, 0, 1024, NULL, check_interface,
	 "a list as TOCSIN_SOCKET_IFNAME has it; tocsin ifaces --help", "",
	 "Interfaces that may carry the overlay, if listen is empty. If the chosen address "
	 "disappears, another one is chosen, and announced as a new start of this agent."},
	{ENUM(overlay, profile), false, 0, 0, profile_choices, NULL, NULL, "fast",
	 "Timers. fast: a silent node is found dead within ten seconds. nccl: the ring and the "
	 "timers of NCCL."},
	{STRING(overlay, key), false, 0, CONFIG_PATH_MAX, NULL, check_path, "an absolute path", "",
	 "Key file that all nodes of the cluster share, made by tocsin keygen. SIGHUP reads the "
	 "file again; another path, or a first key, needs a restart. Empty: no key; the agent "
	 "then uses loopback only."},
	{INT(overlay, connections), false, 16, 4096, NULL, NULL, NULL, "256",
	 "Maximum number of open connections to other agents."},

	{NAMED(device, port, INT, port), false, 0, 255, NULL, NULL, NULL, "0",
	 "Port of the device; 0: the first active one."},
	{NAMED(device, gid_index, INT, gid_index), false, -1, 65535, NULL, NULL, NULL, "-1",
	 "GID of the port; -1: chosen by type and scope, RoCE v2 and routable ones first."},
	{NAMED(device, mtu, ENUM, mtu), false, 0, 0, mtu_choices, NULL, NULL, "auto",
	 "Largest packet in bytes; auto: that of the port. Two ends use the smaller one."},
	{NAMED(device, traffic_class, INT, traffic_class), false, 0, 255, NULL, NULL, NULL, "0",
	 "Traffic class of each packet. It decides which queues are measured, so it should be "
	 "that of the jobs."},
	{NAMED(device, service_level, INT, service_level), false, 0, 15, NULL, NULL, NULL, "0",
	 "Service level of InfiniBand; on Ethernet the priority."},
	{NAMED(device, timeout, INT, timeout), false, 0, 31, NULL, NULL, NULL, "14",
	 "Time without an acknowledgement until a packet is sent again: 4.096 us times 2 to the "
	 "power of this value; 0 means for ever."},
	{NAMED(device, retry, INT, retry), false, 0, 7, NULL, NULL, NULL, "6",
	 "Number of such retries; with Soft-RoCE 7 means for ever."},
	{NAMED(device, rnr_retry, INT, rnr_retry), false, 0, 7, NULL, NULL, NULL, "6",
	 "Number of retries if the receiver is not ready; 7 means for ever."},
	{NAMED(device, min_rnr_timer, INT, min_rnr_timer), false, 0, 31, NULL, NULL, NULL, "12",
	 "Time that a sender waits for a receiver that is not ready, in the code of InfiniBand; "
	 "12 is 0.64 ms, 0 is the longest, 655 ms."},
	{NAMED(device, pkey_index, INT, pkey_index), false, -1, 65535, NULL, NULL, NULL, "-1",
	 "Partition key of the port; -1: the first with full membership, else the first."},
	{NAMED(device, wire, STRING, wire), false, 0, SOFT_WIRE_ARGS_MAX, NULL, check_wire,
	 "udp or dpdk:DEVARGS", "",
	 "For soft0, the software device, only: what carries its RoCE v2 packets. Empty or udp: "
	 "a socket on port 4791. dpdk:DEVARGS: an Ethernet port of DPDK, such as "
	 "dpdk:net_af_packet0,iface=eth1."},
	{NAMED(device, address, STRING, address), false, 0, 80, NULL, check_soft_address,
	 "the address of one machine, without a port", "",
	 "For soft0 only: the address of the device. Empty: that of [overlay] listen."},
	{NAMED(device, faults, STRING, faults), true, 0, 255, NULL, check_faults,
	 "loss, delay, reorder, dup, corrupt, large, to and seed between commas", "",
	 "For soft0 only: faults of the packets that it sends, to test what watches them: "
	 "loss=1%,delay=50us+-20us,reorder=2%,dup=0.5%,corrupt=0.1%,seed=7. large=100% loses "
	 "packets over 1500 bytes; to=192.0.2.7 spares packets to other addresses."},

	{NAMED(device, expect_rate, STRING, expect_rate), true, 0, 32, NULL, check_rate,
	 "gigabits a second, such as 200 or 2.5Gb/s", "",
	 "Rate that a port of the device must have. A slower port, a port that is down, and a "
	 "missing device fail the node, also if this node does not measure with the device. "
	 "Empty: a port that is slower than it once was causes a warning."},

	{STRING(worker, cores), false, 0, 1024, NULL, config_check_cpu_set,
	 "processors such as 2,4-7", "",
	 "One polling thread is pinned to each of these processors. Empty: one thread, placed by "
	 "rule: near the first RDMA device, not on processor 0 if there is another, and not on "
	 "one that isolcpus, nohz_full or an isolated partition of a cgroup sets aside, unless "
	 "no other is allowed or idle = spin, which prefers such processors. cores_why in the "
	 "log event worker_started gives the reason. A thread's memory lies on the NUMA node of "
	 "its processor, if the kernel permits; memory_node in worker_started says where, - if "
	 "the kernel does not report it."},
	{BOOL(worker, pin), false, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether polling threads are pinned; set no if agents share their processors."},
	{LIST(worker, idle), true, 1, AGENT_WORKERS_MAX, NULL, check_idle,
	 "adaptive, spin, event or window, or one of them for each polling thread between commas",
	 "adaptive",
	 "What a polling thread does when there is no work: adaptive, spin (never sleep), event "
	 "(never spin), window (yield for a while, then sleep, as Monarch does). The last word "
	 "applies to all further threads."},
	{DURATION(worker, window), true, 0, 3600 * SECOND, NULL, NULL, NULL, "1ms",
	 "How long a thread with idle = window yields, from the first empty poll of a wait, "
	 "before it sleeps for 1 ms, doubled up to 10 ms. Progress begins a new wait."},
	{SIZE(worker, memory), false, 8 * MIB, 65536 * MIB, NULL, NULL, NULL, "16MiB",
	 "Memory that DPDK reserves. A dpdk wire adds 64 MiB."},
	{BOOL(worker, huge_pages), false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether the memory of DPDK uses huge pages, if the machine has any."},
	{BOOL(worker, lock_memory), false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether all memory is locked, so that no page fault delays a measurement."},

	{NAMED(check, command, STRING, command), true, 1, CHECKS_COMMAND_MAX, NULL,
	 check_command_validate,
	 "an absolute path, then arguments between blanks; quotes or \\ keep a blank", NULL,
	 "Program of a check of this node, and its arguments; no shell runs it. It gets the "
	 "agent's environment, /dev/null as its input, and a process group of its own, which is "
	 "killed when the program ends. The first line of its output is the evidence, cut to 80 "
	 "characters. The reason is Check and NAME in CamelCase."},
	{NAMED(check, user, STRING, user), true, 0, SPAWN_USER_BYTES_MAX - 1, NULL, check_name,
	 "the name of a user", "",
	 "User whose rights and groups the program gets; HOME, USER and LOGNAME are set "
	 "accordingly. A user other than the agent's own needs the unit tocsin-root.socket, which "
	 "reads this key and command in /etc/tocsin/tocsin.conf; or an agent with CAP_SETUID, "
	 "CAP_SETGID and CAP_KILL. Empty: the agent's own user."},
	{NAMED(check, convention, ENUM, convention), true, 0, 0, convention_choices, NULL, NULL,
	 "nagios",
	 "Meaning of the exit status. nagios: 0 ok, 1 warning, 2 critical. npd, as for "
	 "node-problem-detector: 0 ok, 1 critical. Any other status, a signal and a timeout are "
	 "unknown, which is shown, and neither fails the check nor clears it."},
	{NAMED(check, interval, DURATION, interval_ns), true, SECOND, 86400 * SECOND, NULL, NULL,
	 NULL, "30s",
	 "Time from one run to the next, varied by a twentieth."},
	{NAMED(check, timeout, DURATION, timeout_ns), true, SECOND / 10, 3600 * SECOND, NULL, NULL,
	 NULL, "5s",
	 "Time that a run may take, less than interval. Then its processes get SIGTERM, and half "
	 "a second later SIGKILL. If a process does not end even then, its pid and its place in "
	 "the kernel are shown; it is not waited for, and the check does not run again before it "
	 "has ended."},
	{NAMED(check, confirm, INT, confirm), true, 1, CHECKS_CONFIRM_MAX, NULL, NULL, NULL, "1",
	 "Number of runs in a row that must be as bad before the node is reported as such."},
	{NAMED(check, clear, INT, clear), true, 1, CHECKS_CONFIRM_MAX, NULL, NULL, NULL, "1",
	 "Number of runs in a row that must be better before the report is withdrawn."},

	{BOOL(probe, enabled), true, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether the pulses of other nodes are read over RDMA all the time. If this is switched "
	 "off while the agent runs, the baselines of paths are forgotten."},
	{DURATION(probe, interval), true, SECOND / 10, 60 * SECOND, NULL, NULL, NULL, "1s",
	 "Time between two reads of one neighbour on a ring, longer if the budget does not "
	 "suffice. A write follows every fourth read."},
	{INT(probe, packets), true, 10, 5000, NULL, NULL, NULL, "100",
	 "Maximum number of packets per second that probes cause in both directions; never "
	 "exceeded."},
	{KEY(probe, bytes, SIZE, bytes), true, 16 * KIB, 1024 * MIB, NULL, NULL, NULL, "512KiB",
	 "The same maximum in bytes, with headers."},
	{BOOL(probe, rotation), true, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether nodes that are not neighbours are probed in turn, with the rest of the budget. "
	 "The counter coverage_ns of probe tells how long a round takes."},
	{BOOL(probe, gpu), false, 0, 0, NULL, NULL, NULL, "no",
	 "Whether peers may read 64 KiB of GPU memory, as dmabuf, beside the pulse on the rail "
	 "that device = cuda:N chose; their reads cross PCIe to the GPU. The agent keeps a CUDA "
	 "context on the GPU while it runs (some 520 MiB of an H200's memory), so a reset of the "
	 "GPU needs an end of the agent. If two GPUs are next to one rail, the first is exposed."},

	{STRING(client, listen), false, 0, 80, NULL, check_address,
	 "an address, its port optional", "127.0.0.1:28029",
	 "Address for clients that only read, NCCL's ncclras among them; on loopback only. "
	 "Empty: none."},
	{STRING(client, socket), false, 0, 107, NULL, check_path,
	 "an absolute path of at most 107 bytes", "",
	 "Unix socket for all commands. Empty: tocsind.sock in the runtime directory, which is "
	 "/run/tocsin for root, else $XDG_RUNTIME_DIR/tocsin."},
	{STRING(client, group), false, 0, 63, NULL, check_name, "the name of a group", "",
	 "Group whose members may give commands that change something, as root and the agent's "
	 "user may."},
	{INT(client, connections), false, 1, 4096, NULL, NULL, NULL, "64",
	 "Maximum number of connected clients."},
	{DURATION(client, idle), false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "5m",
	 "Time without a request after which a client is disconnected, unless it monitors."},

	{BOOL(job, enabled), false, 0, 0, NULL, NULL, NULL, "yes",
	 "Whether processes of jobs may connect, by libtocsin: their communicators are shown, "
	 "and they learn which ranks are gone."},
	{STRING(job, socket), false, 0, 107, NULL, check_path,
	 "an absolute path of at most 107 bytes", "",
	 "Unix socket for jobs, open to every user. Empty: job.sock beside the socket of "
	 "[client] if that is tocsind.sock, and NAME-job.sock beside another NAME.sock."},
	{INT(job, processes), false, 1, 65536, NULL, NULL, NULL, "4096",
	 "Maximum number of registered processes; each may have 127 communicators."},
	{INT(job, per_user), false, 1, 65536, NULL, NULL, NULL, "2048",
	 "Maximum number of registered processes of one user, and of all users of a range in "
	 "/etc/subuid together."},
	{INT(job, keep), false, 0, 65536, NULL, NULL, NULL, "256",
	 "Number of ended processes that are still shown, with their last counts."},
	{DURATION(job, keep_for), false, SECOND, 604800 * SECOND, NULL, NULL, NULL, "1h",
	 "How long ended processes are shown."},
	{STRING(job, nccl_ras), false, 0, 80, NULL, check_loopback,
	 "an address on loopback, its port optional (28028)", "",
	 "Address of NCCL's own RAS of a job. While the GPU of a local rank is unknown, the agent "
	 "asks it once a minute. NCCL 2.28 and later answers on 127.0.0.1 if "
	 "NCCL_RAS_ADDR is not set. Empty: NCCL is not asked, since NCCL up to 2.29 may crash "
	 "when it is asked while a communicator is being made."},
	{DURATION(job, waiting), false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "10s",
	 "A communicator none of whose ranks moved for this time is shown as waiting if a rank "
	 "waits in an operation. It is shown as stuck instead if there is a proof that the awaited "
	 "rank cannot come by itself."},
	{DURATION(job, stuck), false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "10m",
	 "Time after which a waiting communicator is shown as stuck if all ranks have launched "
	 "the operation."},
	{DURATION(job, stuck_busy), false, SECOND, 604800 * SECOND, NULL, NULL, NULL, "1h",
	 "Time after which a waiting communicator is shown as stuck although the awaited rank "
	 "may be healthy: checkpoints, compilation and slow files take long."},

	{BOOL(health, act), false, 0, 0, NULL, NULL, NULL, "yes",
	 "no: Tocsin only observes. No drain and no restart is advised, so schedulers and hooks "
	 "leave all nodes as they are, and each of them reports what it would have done. Give "
	 "all agents the same value."},
	{DURATION(health, confirm), false, SECOND, 86400 * SECOND, NULL, NULL, NULL, "60s",
	 "How long agent-frozen, mgmt-net-down, device-stuck and check-failed must last before a "
	 "scheduler is advised to drain the node."},
	{INT(health, drain_rate), false, 1, 100, NULL, NULL, NULL, "5",
	 "Percentage of the nodes that may be drained in ten minutes, at least one node. It is "
	 "one limit for the cluster: the member that grants drains uses its own value."},
	{INT(health, drain_out), false, 1, 100, NULL, NULL, NULL, "33",
	 "Percentage of the nodes that may be out of service, the one to be drained included; at "
	 "least one node. 33 is a third. Out of service are nodes with a granted drain that are not "
	 "healthy again, and nodes that are dead or unreachable."},
	{STRING(health, topology), false, 0, 4096, NULL, NULL, NULL, "",
	 "File that names the leaf switch of each node, in lines such as \"leaf1: "
	 "node[001-032]\". Bad paths that share a switch are then blamed on it. Empty: none."},
	{DURATION(health, interval), true, SECOND, 3600 * SECOND, NULL, NULL, NULL, "10s",
	 "Interval of the built-in checks: links, their errors and pauses, drivers, ports, "
	 "polling threads, processor time, the memory of the agent and of the machine, and the "
	 "file system of the state directory."},
	{LIST(health, off), true, 0, CHECKS_BUILTIN_COUNT, NULL, check_own_name,
	 "link-state, link-rate, link-errors, pauses, drivers, ports, workers, processor, "
	 "agent-memory, memory-pressure, state-directory", "",
	 "Built-in checks that do not run."},
	{SIZE(health, memory_limit), true, 0, INT64_MAX, NULL, NULL, NULL, "192MiB",
	 "Memory that the agent may use before it warns of itself; 0: no limit. Memory that DPDK "
	 "reserves counts."},
	{SIZE(health, disk_free), true, 0, INT64_MAX, NULL, NULL, NULL, "32MiB",
	 "Free space on the file system of the state directory, below which a check warns."},
	{STRING(health, webhook), false, 0, CHECKS_COMMAND_MAX, NULL, check_webhook,
	 "an absolute path, then arguments between blanks; quotes or \\ keep a blank", "",
	 "Program that runs for each change of a verdict, with a JSON object in one line on its "
	 "standard input: node, verdict, was, reason, evidence, advice, confidence, both_planes, "
	 "maint, time, cluster, observer, lost. One run at a time, in the order of the changes; "
	 "64 wait, beyond that the oldest are dropped, and lost counts them. Every agent with "
	 "this key runs the program: configure it on one or two. Empty: none."},
	{STRING(health, webhook_user), false, 0, SPAWN_USER_BYTES_MAX - 1, NULL, check_name,
	 "the name of a user", "",
	 "User whose rights the webhook gets, as for [check NAME] user."},
	{DURATION(health, webhook_timeout), false, SECOND / 10, 600 * SECOND, NULL, NULL,
	 NULL, "10s",
	 "Time that the webhook may take; then its processes are ended."},

	{SIZE(history, size), false, 0, 65536 * MIB, NULL, NULL, NULL, "64MiB",
	 "Size of the file `history` in the state directory, which is reserved at the start. Three "
	 "eighths hold records of each interval, the rest records of each hour; the oldest ones are "
	 "overwritten. The file takes half of the free space at most. --check-config prints for "
	 "how long it lasts. At least 2MiB; 0: no file."},
	{DURATION(history, interval), false, SECOND, 600 * SECOND, NULL, NULL, NULL, "60s",
	 "Time between two records of the history, in whole seconds. A shorter one shows more and "
	 "lasts for a shorter time."},

	{STRING(http, listen), false, 0, 80, NULL, check_address,
	 "an address, its port optional", "127.0.0.1:28031",
	 "Address of /metrics, /health, /health/node and /status.json. Empty: none."},
	{LIST(http, allow), false, 0, 64, NULL, check_network,
	 "networks such as 10.0.0.0/8 between commas", "",
	 "Networks that may use HTTP, besides this machine. Required if [http] listen is not on "
	 "loopback; 0.0.0.0/0 and ::/0 allow everybody."},

	{ENUM(log, level), true, 0, 0, level_choices, NULL, NULL, "info",
	 "Least severe level that is logged."},
};
// clang-format on

static const struct config_named named[] = {
	{"device NAME", sizeof(struct device_section), offsetof(struct agent_settings, devices)},
	{"check NAME", sizeof(struct check_section), offsetof(struct agent_settings, checks)},
	{NULL, 0, 0},
};
static_assert(offsetof(struct device_section, section) == 0, "lib/config needs it first");
static_assert(offsetof(struct check_section, section) == 0, "lib/config needs it first");

const struct config_schema agent_config_schema = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.named = named,
	.settings_size = sizeof(struct agent_settings),
	.conflict = check_contradictions,
};

const struct config_schema agent_check_schema = {
	.keys = keys,
	.key_count = sizeof(keys) / sizeof(keys[0]),
	.named = named,
	.settings_size = sizeof(struct agent_settings),
	.conflict = check_machine,
};
