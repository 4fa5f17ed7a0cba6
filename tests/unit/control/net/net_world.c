// SPDX-License-Identifier: BSD-3-Clause
#include "control/net/net_world.h"

#include <endian.h>
#include <errno.h>
#include <fcntl.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <string.h>
#include <sys/time.h>
#include <unistd.h>

struct clock world_clock;
struct loop *world_loop;
struct world_agent world_agents[WORLD_AGENTS];
const struct seal_keys *world_keys;
struct transport_config world_config;

static struct world_conn *conn_of(struct world_agent *agent, uint32_t conn) {
	assert_true(conn < agent->count && agent->conns[conn].known);
	return &agent->conns[conn];
}

static struct world_conn *take_conn(struct world_agent *agent, uint32_t *ret_conn) {
	struct world_conn *conn = &agent->conns[agent->count];

	assert_true(agent->count < WORLD_CONNS);
	*ret_conn = agent->count++;
	*conn = (struct world_conn){.known = true};
	return conn;
}

static void call_hook(struct world_agent *agent, const char *op, uint32_t conn) {
	if (agent->hook != NULL)
		agent->hook(agent, op, conn);
}

static int on_accepted(void *ctx, const struct sock_addr *from, uint32_t *ret_conn) {
	struct world_agent *agent = ctx;
	struct world_conn *conn;

	if (agent->full)
		return -EMFILE;
	conn = take_conn(agent, ret_conn);
	conn->from = *from;
	conn->opened = true;
	agent->accepted++;
	call_hook(agent, "accepted", *ret_conn);
	return 0;
}

static void on_opened(void *ctx, uint32_t number) {
	struct world_conn *conn = conn_of(ctx, number);

	assert_false(conn->opened || conn->ended);
	conn->opened = true;
	call_hook(ctx, "opened", number);
}

static void on_frame(void *ctx, uint32_t number, const void *frame, size_t size) {
	static uint8_t expected[RAS_FRAME_MAX];
	struct world_agent *agent = ctx;
	struct world_conn *conn = conn_of(agent, number);

	assert_true(conn->opened && !conn->ended);
	world_fill(expected, size, conn->frames);
	if (!agent->plain_frames)
		conn->bad += memcmp(frame, expected, size) != 0;
	conn->frames++;
	conn->bytes += size;
	call_hook(agent, "frame", number);
}

static void on_writable(void *ctx, uint32_t number) {
	struct world_conn *conn = conn_of(ctx, number);

	assert_true(conn->opened && !conn->ended);
	conn->writables++;
	call_hook(ctx, "writable", number);
}

static void on_ended(void *ctx, uint32_t number, enum ras_cause cause) {
	struct world_conn *conn = conn_of(ctx, number);

	assert_false(conn->ended);
	conn->ended = true;
	conn->cause = cause;
	call_hook(ctx, "ended", number);
}

static void on_kernel_asked(void *ctx, const struct sock_addr *host, bool answered) {
	struct world_agent *agent = ctx;

	agent->asked++;
	agent->asked_host = *host;
	agent->answered = answered;
	call_hook(agent, "kernel_asked", 0);
}

static const struct transport_ops ops = {
	.accepted = on_accepted,
	.opened = on_opened,
	.frame = on_frame,
	.writable = on_writable,
	.ended = on_ended,
	.kernel_asked = on_kernel_asked,
};

int world_setup(void **state) {
	(void)state;
	if (sodium_init() < 0)
		return -1;
	memset(world_agents, 0, sizeof(world_agents));
	clock_init_fake(&world_clock, WORLD_START_NS);
	if (loop_create(&world_clock, &world_loop) != 0 ||
	    seal_keys_create_random(&world_keys) != 0)
		return -1;
	world_config = (struct transport_config){
		.keys = world_keys,
		.cluster = WORLD_CLUSTER,
		.listen = world_loopback("127.0.0.1"),
		.connect_ns = 2 * SEC,
		.proof_ns = 3 * SEC,
		.stuck_ns = 20 * SEC,
		.close_ns = 5 * SEC,
		.conns_max = WORLD_CONNS,
		.proving_max = 64,
		.proving_per_source = 16,
		.accepts_per_source_per_s = 100,
	};
	return 0;
}

int world_teardown(void **state) {
	(void)state;
	for (uint32_t n = 0; n < WORLD_AGENTS; n++)
		world_agents[n].transport = transport_destroy(world_agents[n].transport);
	world_loop = loop_destroy(world_loop);
	world_keys = seal_keys_put(world_keys);
	return 0;
}

void world_start(uint32_t agent) {
	struct transport **transport = &world_agents[agent].transport;
	char detail[256];
	int err;

	err = transport_create(
		world_loop, &world_config, &ops, &world_agents[agent], detail, transport
	);
	if (err != 0)
		fail_msg("%d: %s", err, detail);
}

uint32_t world_open(uint32_t agent, const struct sock_addr *to) {
	uint32_t conn;

	take_conn(&world_agents[agent], &conn);
	transport_open(world_agents[agent].transport, conn, to);
	return conn;
}

void world_connect_pair(void) {
	struct sock_addr to;

	world_start(0);
	world_start(1);
	to = world_address(1);
	assert_int_equal(world_open(0, &to), 0);
	WORLD_UNTIL(world_agents[0].conns[0].opened && world_agents[1].accepted == 1);
}

void world_fill(uint8_t *frame, size_t size, uint32_t number) {
	for (size_t n = 0; n < size; n++)
		frame[n] = (uint8_t)(n * 31 + (n >> 8) + number * 7 + size);
}

int world_send(uint32_t agent, uint32_t conn, uint32_t number, size_t size) {
	static uint8_t frame[RAS_FRAME_MAX];

	world_fill(frame, size, number);
	return transport_send(world_agents[agent].transport, conn, frame, size);
}

void world_turn(void) {
	assert_int_equal(loop_turn(world_loop, 20), 0);
}

void world_wait(uint64_t since_ns, const char *what) {
	world_turn();
	if (clock_monotonic_ns() - since_ns > 20 * SEC)
		fail_msg("never came: %s", what);
}

void world_settle(void) {
	uint64_t before;

	do {
		before = loop_counters(world_loop)->events;
		world_turn();
	} while (loop_counters(world_loop)->events != before);
}

void world_pass(uint64_t by_ns) {
	clock_advance(&world_clock, by_ns);
	world_settle();
}

struct sock_addr world_address(uint32_t agent) {
	return transport_address(world_agents[agent].transport);
}

struct sock_addr world_loopback(const char *host) {
	struct sock_addr address;

	assert_int_equal(sock_addr_parse_host(host, strlen(host), NULL, &address), 0);
	return address;
}

static int raw_socket(const struct sock_addr *like) {
	struct timeval limit = {.tv_sec = 20};
	int family = like->family == SOCK_ADDR_V6 ? AF_INET6 : AF_INET;
	int fd = socket(family, SOCK_STREAM | SOCK_CLOEXEC, 0);
	int one = 1;

	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof(limit));
	// Send data at once, so that it is in flight and not lost when the socket is reset.
	setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof(one));
	return fd;
}

static void raw_bind(int fd, struct sock_addr address) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(&address, &storage);

	assert_int_equal(bind(fd, (struct sockaddr *)&storage, length), 0);
}

int raw_connect(const struct sock_addr *to, const char *from) {
	struct sockaddr_storage storage;
	socklen_t length = sock_addr_to_sockaddr(to, &storage);
	int fd = raw_socket(to);

	if (from != NULL)
		raw_bind(fd, world_loopback(from));
	assert_int_equal(connect(fd, (struct sockaddr *)&storage, length), 0);
	return fd;
}

int raw_listen(struct sock_addr *ret_address, int backlog) {
	struct sock_addr address = world_loopback("127.0.0.1");
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	int fd = raw_socket(&address);

	raw_bind(fd, address);
	assert_int_equal(listen(fd, backlog), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(
		sock_addr_from_sockaddr((struct sockaddr *)&storage, length, ret_address), 0
	);
	return fd;
}

// Turn the loop until fd is readable.
static void wait_readable(int fd) {
	struct pollfd poll_fd = {.fd = fd, .events = POLLIN};

	WORLD_UNTIL(poll(&poll_fd, 1, 0) > 0);
}

int raw_accept(int listener) {
	struct timeval limit = {.tv_sec = 20};
	int fd;

	wait_readable(listener);
	fd = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
	assert_true(fd >= 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof(limit));
	return fd;
}

void raw_send(int fd, const void *bytes, size_t size) {
	assert_int_equal(send(fd, bytes, size, MSG_NOSIGNAL), size);
}

bool raw_receive(int fd, void *bytes, size_t size) {
	uint8_t *at = bytes;
	ssize_t n;

	while (size > 0) {
		wait_readable(fd);
		n = recv(fd, at, size, 0);
		if (n <= 0)
			return false;
		at += n;
		size -= (size_t)n;
	}
	return true;
}

int raw_wait_end(int fd) {
	uint8_t bytes[4096];
	ssize_t n;

	do {
		wait_readable(fd);
		n = recv(fd, bytes, sizeof(bytes), 0);
	} while (n > 0);
	return n == 0 ? 0 : -errno;
}

void raw_reset(int fd) {
	struct linger linger = {.l_onoff = 1};

	setsockopt(fd, SOL_SOCKET, SO_LINGER, &linger, sizeof(linger));
	close(fd);
}

int raw_prove(int fd, struct seal *seal, const struct seal_keys *keys, enum seal_role role) {
	struct seal_reply reply = {0};
	uint8_t bytes[SEAL_HANDSHAKE_BYTES_MAX];
	size_t size;
	int err = 0;

	if (seal->keys == NULL)
		seal_init(seal, keys, role, WORLD_CLUSTER);
	if (role == SEAL_CONNECTS) {
		seal_begin(seal, &reply);
		raw_send(fd, reply.bytes, reply.size);
	}
	while (err == 0 && (size = seal_wanted_bytes(seal)) > 0) {
		if (!raw_receive(fd, bytes, size))
			return -ENODATA;
		err = seal_receive(seal, bytes, size, &reply);
		if (reply.size > 0)
			raw_send(fd, reply.bytes, reply.size);
	}
	return err;
}

void raw_send_frame(int fd, struct seal *seal, const void *frame, size_t size) {
	static uint8_t bytes[4 + RAS_FRAME_MAX + SEAL_OVERHEAD];
	uint32_t length = htole32((uint32_t)(size + SEAL_OVERHEAD));

	memcpy(bytes, &length, sizeof(length));
	assert_int_equal(seal_encrypt(seal, frame, size, bytes + sizeof(length)), 0);
	raw_send(fd, bytes, sizeof(length) + size + SEAL_OVERHEAD);
}

int raw_member(struct seal *seal, uint32_t *ret_conn) {
	struct sock_addr to = world_address(0);
	uint32_t accepted = world_agents[0].accepted;
	int fd = raw_connect(&to, NULL);

	*seal = (struct seal){0};
	assert_int_equal(raw_prove(fd, seal, world_keys, SEAL_CONNECTS), 0);
	WORLD_UNTIL(world_agents[0].accepted > accepted);
	*ret_conn = world_agents[0].count - 1;
	return fd;
}
