// SPDX-License-Identifier: BSD-3-Clause
// Tests of the dpdk wire alone, with frames that the test makes. EAL starts only once per process,
// so each end is a child process. A child reports failures on stderr.
#include "nic/wire.h"
#include "packet/frame.h"

#include <lib/clock.h>
#include <support/cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <linux/udp.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef SOL_UDP
#define SOL_UDP 17
#endif
#define WAIT_NS UINT64_C(20000000000)
#define FRAME_SIZE 300
#define ROUNDS 500

// Check in a child process, where a cmocka assertion would jump into the parent's tests.
#define CHECK(condition)                                                          \
	do {                                                                      \
		if (!(condition)) {                                               \
			fprintf(stderr, "# line %d: %s\n", __LINE__, #condition); \
			_exit(1);                                                 \
		}                                                                 \
	} while (0)

static struct soft_counters counters;
static const struct in_addr_pair {
	const char *server, *client;
} ip4 = {"192.0.2.1", "192.0.2.2"}, ip6 = {"2001:db8::1", "2001:db8::2"};

static struct sock_addr address_of(const char *text) {
	struct sock_addr address;

	CHECK(sock_addr_parse_host(text, strlen(text), NULL, &address) == 0);
	return address;
}

static struct soft_wire *open_wire(const char *args, const char *address) {
	struct wire_config config = {
		.address = address_of(address), .args = args, .counters = &counters};
	char reason[SOFT_REASON_MAX + 1] = "";
	struct soft_wire *wire = NULL;
	int err = wire_dpdk_create(&config, reason, &wire);

	if (err != 0)
		fprintf(stderr, "# %s: %d, %s\n", args, err, reason);
	CHECK(err == 0);
	return wire;
}

static void in_memif(bool server, char args[static 128]) {
	snprintf(
		args, 128, "net_memif0,role=%s,id=3,socket=tocsin-test-%d",
		server ? "server" : "client", getppid()
	);
}

// Send one frame whose bytes derive from its number.
static bool post(struct soft_wire *wire, const char *to, uint32_t number, uint32_t size) {
	struct sock_addr address = address_of(to);
	struct frame_route route = {
		.from = wire->gid, .to = wire_gid(&address), .source_port = 49152, .hop_limit = 64};
	uint32_t headers = frame_headers_bytes(frame_is_ip4(&wire->gid));
	uint8_t *bytes = wire->calls->take(wire);

	if (bytes == NULL)
		return false;
	frame_write_headers(&route, size - headers, bytes);
	memset(bytes + headers, (uint8_t)number, size - headers);
	memcpy(bytes + headers, &number, sizeof(number));
	wire->calls->give(wire, size);
	wire->calls->flush(wire);
	return true;
}

static uint32_t take_in(struct soft_wire *wire, uint32_t size, uint32_t *ret_number) {
	uint32_t headers = frame_headers_bytes(frame_is_ip4(&wire->gid));
	struct wire_frame frames[WIRE_BATCH];
	uint32_t count = wire->calls->receive(wire, frames, WIRE_BATCH, clock_monotonic_ns());

	for (uint32_t i = 0; i < count; i++) {
		CHECK(frames[i].size == size && frames[i].id_known);
		memcpy(ret_number, frames[i].bytes + headers, sizeof(*ret_number));
		CHECK(frames[i].bytes[size - 1] == (uint8_t)*ret_number);
	}
	return count;
}

// Send a frame until its echo arrives. A lost frame is sent again, as a requester would do.
static void
ping_once(struct soft_wire *wire, const char *to, uint32_t number, uint32_t size, uint64_t end_ns) {
	uint64_t again_ns = 0;
	uint32_t came = 0;

	while (came != number) {
		uint64_t now_ns = clock_monotonic_ns();

		CHECK(now_ns < end_ns);
		if (now_ns >= again_ns && post(wire, to, number, size))
			again_ns = now_ns + 50000000;
		if (take_in(wire, size, &came) == 0)
			sched_yield();
	}
}

static void ping(struct soft_wire *wire, const char *to, uint32_t rounds, uint32_t size) {
	uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;

	for (uint32_t number = 1; number <= rounds; number++)
		ping_once(wire, to, number, size, end_ns);
}

static void echo(struct soft_wire *wire, const char *to, uint32_t size, bool sleeps) {
	int doorbell = eventfd(0, EFD_CLOEXEC);

	for (;;) {
		uint32_t number;

		if (take_in(wire, size, &number) > 0)
			post(wire, to, number, size);
		else if (sleeps)
			wire->calls->wait(wire, doorbell, 1000000000);
		else
			sched_yield();
	}
}

static pid_t child(void (*work)(const void *), const void *argument) {
	pid_t pid = fork();

	assert_true(pid >= 0);
	if (pid == 0) {
		work(argument);
		exit(0); // NOLINT(concurrency-mt-unsafe): exit() runs the leak check
	}
	return pid;
}

static void ended_well(pid_t pid) {
	int status;

	assert_int_equal(waitpid(pid, &status, 0), pid);
	if (WIFSIGNALED(status))
		fprintf(stderr, "# a child was ended by signal %d\n", WTERMSIG(status));
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
}

static void end(pid_t pid) {
	kill(pid, SIGKILL);
	assert_int_equal(waitpid(pid, NULL, 0), pid);
}

struct plan {
	const struct in_addr_pair *addresses;
	uint32_t rounds, size;
	bool sleeps;
};

static void serve(const void *argument) {
	const struct plan *plan = argument;
	char args[128];

	in_memif(true, args);
	echo(open_wire(args, plan->addresses->server), plan->addresses->client, plan->size,
	     plan->sleeps);
}

static void call(const void *argument) {
	const struct plan *plan = argument;
	struct soft_wire *wire;
	char args[128];

	in_memif(false, args);
	wire = open_wire(args, plan->addresses->client);
	CHECK(wire->mtu == 4096);
	ping(wire, plan->addresses->server, plan->rounds, plan->size);
	wire_destroy(wire);
}

static void run_plan(const struct plan *plan) {
	pid_t server = child(serve, plan);

	ended_well(child(call, plan));
	end(server);
}

static void two_processes_talk_over_memif(void **state) {
	(void)state;
	run_plan(&(struct plan){.addresses = &ip4, .rounds = ROUNDS, .size = FRAME_SIZE});
}

static void the_largest_frames_of_ip6_pass(void **state) {
	(void)state;
	run_plan(&(struct plan){.addresses = &ip6, .rounds = 200, .size = FRAME_BYTES_MAX});
}

static void a_sleeper_is_rung(void **state) {
	(void)state;
	run_plan(&(struct plan
	){.addresses = &ip4, .rounds = 200, .size = FRAME_SIZE, .sleeps = true});
}

static void a_server_that_dies_and_comes_back_is_found(void **state) {
	struct plan plan = {.addresses = &ip4, .rounds = 0, .size = FRAME_SIZE};
	pid_t server, caller;

	(void)state;
	server = child(serve, &plan);
	caller = child(call, &(struct plan){.addresses = &ip4, .rounds = 3000, .size = FRAME_SIZE});
	for (uint32_t i = 0; i < 3; i++) {
		poll(NULL, 0, 150); // the moment within the traffic does not matter
		end(server);
		server = child(serve, &plan);
	}
	ended_well(caller);
	end(server);
}

static void a_client_waits_for_its_server(void **state) {
	struct plan plan = {.addresses = &ip4, .rounds = 10, .size = FRAME_SIZE};
	pid_t server, caller;

	(void)state;
	caller = child(call, &plan);
	poll(NULL, 0, 300); // by then the client most likely failed to connect
	server = child(serve, &plan);
	ended_well(caller);
	end(server);
}

// Create a veth pair in a network namespace of this process. The kernel uses one end and its
// addresses, the wire uses the other.
static void make_veth(void) {
	static const char *const commands =
		"ip link add va type veth peer name vb && ip link set va up && ip link set vb up &&"
		"ip addr add 198.51.100.1/24 dev va && ip addr add fd07::1/64 dev va nodad";
	pid_t pid;
	int status;

	CHECK(unshare(CLONE_NEWNET) == 0);
	pid = fork();
	CHECK(pid >= 0);
	if (pid == 0) {
		execl("/bin/sh", "sh", "-c", commands, (char *)NULL);
		_exit(127);
	}
	CHECK(waitpid(pid, &status, 0) == pid && status == 0);
}

static int kernel_socket(const char *text) {
	struct sock_addr address = address_of(text);
	struct sockaddr_storage storage;
	static const int on = 1;
	socklen_t length;
	int fd;

	address.port = SOFT_UDP_PORT;
	length = sock_addr_to_sockaddr(&address, &storage);
	fd = socket(storage.ss_family, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (storage.ss_family == AF_INET6)
		CHECK(setsockopt(fd, SOL_UDP, UDP_NO_CHECK6_RX, &on, sizeof(on)) == 0);
	CHECK(bind(fd, (struct sockaddr *)&storage, length) == 0);
	return fd;
}

// Each side must resolve the other's address first: the kernel asks the wire, and the wire asks the
// kernel.
static void talk_with_kernel(const char *ours, const char *kernels) {
	struct soft_wire *wire = open_wire("net_af_packet0,iface=vb", ours);
	struct sock_addr address = address_of(ours);
	struct wire_frame frames[WIRE_BATCH];
	uint64_t end_ns = clock_monotonic_ns() + WAIT_NS;
	bool heard = false, was_heard = false;
	struct sockaddr_storage storage;
	int fd = kernel_socket(kernels);
	uint8_t byte = 7;
	socklen_t length;

	CHECK(wire->mtu == 1024);
	address.port = SOFT_UDP_PORT;
	length = sock_addr_to_sockaddr(&address, &storage);
	while (!heard || !was_heard) {
		CHECK(clock_monotonic_ns() < end_ns);
		// The kernel drops datagrams to an unresolved address, and so may the wire.
		(void)!sendto(fd, &byte, 1, 0, (struct sockaddr *)&storage, length);
		post(wire, kernels, 1, FRAME_SIZE);
		heard |= wire->calls->receive(wire, frames, WIRE_BATCH, clock_monotonic_ns()) > 0;
		was_heard |= recv(fd, &byte, 1, 0) > 0;
		wire->calls->wait(wire, -1, 1000000);
	}
	close(fd);
	wire_destroy(wire);
}

static void meet_kernel(const void *argument) {
	(void)argument;
	make_veth();
	talk_with_kernel("198.51.100.2", "198.51.100.1");
	talk_with_kernel("fd07::2", "fd07::1");
}

// The driver of net_ring does not name its port like the device.
static void open_unnamed(const void *argument) {
	struct wire_config config = {.counters = &counters, .address = address_of(ip4.server)};
	char args[64], reason[SOFT_REASON_MAX + 1] = "";
	struct soft_wire *wire = NULL;

	(void)argument;
	config.args = args;
	for (int n = 0; n < 3; n++) {
		snprintf(args, sizeof(args), "net_ring0,nodeaction=tocsin%d:0:CREATE", n);
		// The error must not be that a device of this name already exists.
		CHECK(wire_dpdk_create(&config, reason, &wire) == -ENODEV);
		CHECK(strstr(reason, "no driver supports net_ring0") != NULL);
	}
	wire_destroy(open_wire("net_ring0", ip4.server));
}

static void a_device_that_makes_no_port_of_its_name_is_given_back(void **state) {
	(void)state;
	ended_well(child(open_unnamed, NULL));
}

static void the_kernel_and_we_find_each_other(void **state) {
	(void)state;
	if (geteuid() != 0)
		skip(); // creating a namespace needs root
	ended_well(child(meet_kernel, NULL));
}

UNIT_GROUP(soft_wire_dpdk) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(two_processes_talk_over_memif),
		cmocka_unit_test(the_largest_frames_of_ip6_pass),
		cmocka_unit_test(a_sleeper_is_rung),
		cmocka_unit_test(a_client_waits_for_its_server),
		cmocka_unit_test(a_device_that_makes_no_port_of_its_name_is_given_back),
		cmocka_unit_test(the_kernel_and_we_find_each_other),
		cmocka_unit_test(a_server_that_dies_and_comes_back_is_found),
	};

	// Agents and benchmarks ignore SIGPIPE too, because DPDK's memif writes to a peer that may
	// be gone.
	signal(SIGPIPE, SIG_IGN);
	return cmocka_run_group_tests(tests, NULL, NULL);
}
