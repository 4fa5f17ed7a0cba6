// SPDX-License-Identifier: BSD-3-Clause
// All traffic stays on the loopback interface; most wires use 127.77.0.0/16.
#include "wire/wire_udp.h"

#include <support/cases.h>
#include <support/cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#define TAKEN 1000
#define PACKET_BYTES 60 // from BTH to ICRC, all that a wire needs

// Results of the next system calls of the wire: errno values; 0 makes the real call.
static struct {
	int errors[4];
	uint32_t count, next;
} script_out, script_in;

static int script_error(void *script) {
	__typeof__(script_out) *calls = script;

	return calls->next < calls->count ? calls->errors[calls->next++] : 0;
}

// The linker prefers these definitions to libc's.
int sendmmsg(int fd, struct mmsghdr *messages, unsigned int count, int flags) {
	errno = script_error(&script_out);
	return errno != 0 ? -1 : (int)syscall(SYS_sendmmsg, fd, messages, count, flags);
}

int recvmmsg(
	int fd, struct mmsghdr *messages, unsigned int count, int flags, struct timespec *timeout
) {
	errno = script_error(&script_in);
	return errno != 0 ? -1 : (int)syscall(SYS_recvmmsg, fd, messages, count, flags, timeout);
}

ssize_t
sendto(int fd,
       const void *bytes,
       size_t size,
       int flags,
       const struct sockaddr *name,
       socklen_t length) {
	errno = script_error(&script_out);
	return errno != 0 ? -1 : syscall(SYS_sendto, fd, bytes, size, flags, name, length);
}

ssize_t recvfrom(
	int fd,
	void *bytes,
	size_t size,
	int flags,
	struct sockaddr *restrict name,
	socklen_t *restrict length
) {
	errno = script_error(&script_in);
	return errno != 0 ? -1 : syscall(SYS_recvfrom, fd, bytes, size, flags, name, length);
}

static struct sock_addr address_of(const char *text) {
	struct sock_addr address;

	assert_int_equal(sock_addr_parse_host(text, strlen(text), NULL, &address), 0);
	return address;
}

static struct soft_wire *
open_any(const struct wire_config *config, char reason[SOFT_REASON_MAX + 1]) {
	struct soft_wire *wire = NULL;
	int err = wire_udp_create(config, reason, &wire);

	if (err != 0)
		fail_msg("%s: %s", strerrorname_np(-err), reason);
	return wire;
}

static struct soft_wire *open_wire(const char *address, struct soft_counters *counters) {
	const struct wire_config config = {.address = address_of(address), .counters = counters};
	char reason[SOFT_REASON_MAX + 1];

	return open_any(&config, reason);
}

static int refused(const char *address, char reason[SOFT_REASON_MAX + 1]) {
	const struct wire_config config = {.address = address_of(address)};
	struct soft_wire *wire = NULL;
	int err = wire_udp_create(&config, reason, &wire);

	assert_null(wire);
	return err;
}

// Put a packet whose bytes are all `number` on the wire, with this traffic class, without flushing.
static void
put(struct soft_wire *wire, const union ibv_gid *to, uint8_t number, uint8_t traffic_class) {
	const struct frame_route route = {
		.from = wire->gid,
		.to = *to,
		.source_port = wire->source_port,
		.traffic_class = traffic_class,
		.hop_limit = 64,
	};
	uint32_t headers = frame_headers_bytes(frame_is_ip4(to));
	uint8_t *frame = wire->calls->take(wire);

	assert_non_null(frame);
	frame_write_headers(&route, PACKET_BYTES, frame);
	memset(frame + headers, number, PACKET_BYTES);
	wire->calls->give(wire, headers + PACKET_BYTES);
}

static void put_and_flush(struct soft_wire *wire, const union ibv_gid *to, uint8_t number) {
	put(wire, to, number, 0);
	wire->calls->flush(wire);
}

// Receive frames. On loopback a packet is delivered before the sender's call returns.
static uint32_t get(struct soft_wire *wire, struct wire_frame frames[WIRE_BATCH]) {
	return wire->calls->receive(wire, frames, WIRE_BATCH, 0);
}

// Receive all pending frames and return their number. With `in_order` they must be numbered from 0.
static uint32_t get_all(struct soft_wire *wire, bool in_order) {
	struct wire_frame frames[WIRE_BATCH];
	uint32_t seen = 0, count;

	for (count = get(wire, frames); count > 0; count = get(wire, frames)) {
		for (uint32_t n = 0; n < count; n++, seen++) {
			if (in_order)
				assert_int_equal(frames[n].bytes[28], (uint8_t)seen);
		}
	}
	return seen;
}

static void expect_number(struct soft_wire *wire, uint8_t number) {
	uint32_t headers = frame_headers_bytes(frame_is_ip4(&wire->gid));
	struct wire_frame frames[WIRE_BATCH];

	assert_int_equal(get(wire, frames), 1);
	assert_int_equal(frames[0].size, headers + PACKET_BYTES);
	assert_int_equal(frames[0].bytes[headers], number);
	assert_int_equal(frames[0].bytes[headers + PACKET_BYTES - 1], number);
}

static void frame_arrives_with_the_headers_that_it_was_sent_with(void **state) {
	static const char *const cases[][2] = {{"127.77.0.1", "127.77.0.2"}, {"::1", "::1"}};
	struct soft_counters counters = {0};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		bool alone = strcmp(cases[n][0], cases[n][1]) == 0;
		struct soft_wire *a = open_wire(cases[n][0], &counters);
		struct soft_wire *b = alone ? a : open_wire(cases[n][1], &counters);
		const struct frame_route route = {
			.from = a->gid, .to = b->gid, .source_port = 4791, .hop_limit = 64};
		uint32_t headers = frame_headers_bytes(frame_is_ip4(&a->gid));
		uint8_t expected[FRAME_IP6_BYTES + FRAME_UDP_BYTES];
		struct wire_frame frames[WIRE_BATCH];

		put_and_flush(a, &b->gid, 7);
		assert_int_equal(get(b, frames), 1);
		assert_int_equal(frames[0].size, headers + PACKET_BYTES);
		assert_false(frames[0].id_known);
		frame_write_headers(&route, PACKET_BYTES, expected);
		assert_memory_equal(frames[0].bytes, expected, headers);
		assert_int_equal(frames[0].bytes[headers], 7);
		wire_destroy(a);
		if (!alone)
			wire_destroy(b);
	}
	assert_int_equal(counters.send_failed, 0);
}

static void frames_arrive_in_order_over_many_batches(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);

	(void)state;
	for (uint32_t n = 0; n < 5 * WIRE_BATCH + 3; n++)
		put(a, &b->gid, (uint8_t)n, 0);
	a->calls->flush(a);
	assert_int_equal(get_all(b, true), 5 * WIRE_BATCH + 3);
	wire_destroy(a);
	wire_destroy(b);
}

static void wire_of_an_address_says_what_its_interface_carries(void **state) {
	struct soft_wire *wire = open_wire("127.77.0.1", NULL);

	(void)state;
	assert_string_equal(wire->netdev, "lo");
	assert_int_equal(wire->mtu, 4096);
	assert_int_equal(wire->source_port, SOFT_UDP_PORT);
	assert_int_equal(wire->address.port, SOFT_UDP_PORT);
	assert_true(frame_is_ip4(&wire->gid));
	assert_int_equal(wire->gid.raw[13], 77);
	assert_true(wire->window_bytes >= 16 * 4096);
	wire_destroy(wire);
}

// As many packets of 4096 bytes as the wire's window allows.
static void nothing_is_lost_of_what_the_window_allows(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);
	const struct frame_route route = {.from = a->gid, .to = b->gid, .source_port = 4791};
	uint32_t packets = b->window_bytes / b->mtu;
	uint32_t size = (uint32_t)b->mtu + 32;

	(void)state;
	for (uint32_t n = 0; n < packets; n++) {
		frame_write_headers(&route, size, a->calls->take(a));
		a->calls->give(a, 28 + size);
	}
	a->calls->flush(a);
	assert_int_equal(get_all(b, false), packets);
	wire_destroy(a);
	wire_destroy(b);
}

static void any_address_is_the_first_free_one(void **state) {
	const struct wire_config config = {.address_any = true};
	char reason[SOFT_REASON_MAX + 1];
	struct soft_wire *first = open_any(&config, reason);
	struct soft_wire *second = open_any(&config, reason);
	struct sock_addr of_first = first->address, of_second = second->address;
	struct soft_wire *again;

	(void)state;
	assert_int_equal(of_first.address[0], 127);
	assert_int_equal(of_first.address[1], 64);
	assert_true(sock_addr_compare(&of_first, &of_second) < 0);
	wire_destroy(first);
	again = open_any(&config, reason);
	assert_true(sock_addr_equal(&again->address, &of_first));
	wire_destroy(again);
	wire_destroy(second);
}

static int take_address(uint32_t host) {
	const struct sockaddr_in name = {
		.sin_family = AF_INET,
		.sin_port = htons(SOFT_UDP_PORT),
		.sin_addr.s_addr = htonl(host),
	};
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	// An address in use by another program is taken as well.
	if (bind(fd, (const struct sockaddr *)&name, sizeof(name)) != 0)
		assert_int_equal(errno, EADDRINUSE);
	return fd;
}

static void any_address_passes_over_a_thousand_taken_ones(void **state) {
	const struct wire_config config = {.address_any = true};
	struct rlimit limit = {TAKEN + 100, TAKEN + 100};
	char reason[SOFT_REASON_MAX + 1];
	struct soft_wire *wire;
	uint32_t number;
	int fds[TAKEN];

	(void)state;
	if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_max < TAKEN + 100)
		skip();
	limit.rlim_cur = TAKEN + 100;
	assert_int_equal(setrlimit(RLIMIT_NOFILE, &limit), 0);
	for (uint32_t n = 0; n < TAKEN; n++)
		fds[n] = take_address(UINT32_C(0x7f400001) + n);
	wire = open_any(&config, reason);
	memcpy(&number, wire->address.address, sizeof(number));
	assert_true(ntohl(number) >= UINT32_C(0x7f400001) + TAKEN);
	wire_destroy(wire);
	for (uint32_t n = 0; n < TAKEN; n++)
		close(fds[n]);
}

static void address_in_use_is_refused_and_its_holder_named(void **state) {
	char reason[SOFT_REASON_MAX + 1], expected[SOFT_REASON_MAX + 1], command[32] = "";
	struct soft_wire *holder = open_wire("127.77.0.1", NULL);
	FILE *file = fopen("/proc/self/comm", "re");

	(void)state;
	assert_non_null(file);
	assert_non_null(fgets(command, sizeof(command), file));
	fclose(file);
	command[strcspn(command, "\n")] = '\0';
	assert_int_equal(refused("127.77.0.1", reason), -EADDRINUSE);
	snprintf(
		expected, sizeof(expected), "127.77.0.1 port 4791 is held by %s, process %d",
		command, getpid()
	);
	assert_string_equal(reason, expected);
	wire_destroy(holder);
}

static void addresses_that_no_wire_can_have_are_refused_with_why(void **state) {
	static const struct {
		const char *address;
		int err;
		const char *why;
	} cases[] = {
		{"192.0.2.1", -EADDRNOTAVAIL,
		 "192.0.2.1 is not the address of an interface that is up"},
		{"2001:db8::1", -EADDRNOTAVAIL,
		 "2001:db8::1 is not the address of an interface that is up"},
		{"0.0.0.0", -EINVAL, "the udp wire needs the address of one interface"},
		{"::", -EINVAL, "the udp wire needs the address of one interface"},
	};
	const struct wire_config none = {.address = {.family = SOCK_ADDR_NONE}};
	char reason[SOFT_REASON_MAX + 1];
	struct soft_wire *wire;

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		assert_int_equal(refused(cases[n].address, reason), cases[n].err);
		assert_string_equal(reason, cases[n].why);
	}
	assert_int_equal(wire_udp_create(&none, reason, &wire), -EINVAL);
}

static void traffic_class_is_that_of_the_frame(void **state) {
	struct soft_wire *wire = open_wire("127.77.0.1", NULL);
	const union ibv_gid to = {.raw = {[10] = 0xff, 0xff, 127, 77, 0, 2}};
	int fd = take_address(UINT32_C(0x7f4d0002));
	union udp_control control;
	char byte;
	struct iovec piece = {&byte, 1};
	const int one = 1;

	(void)state;
	assert_int_equal(setsockopt(fd, IPPROTO_IP, IP_RECVTOS, &one, sizeof(one)), 0);
	put(wire, &to, 1, 0x68);
	put(wire, &to, 2, 0);
	wire->calls->flush(wire);
	for (uint32_t n = 0; n < 2; n++) {
		struct msghdr message = {
			.msg_iov = &piece,
			.msg_iovlen = 1,
			.msg_control = &control,
			.msg_controllen = sizeof(control),
		};

		assert_true(recvmsg(fd, &message, MSG_DONTWAIT) > 0);
		assert_int_equal(*CMSG_DATA(&control.header), n == 0 ? 0x68 : 0);
	}
	close(fd);
	wire_destroy(wire);
}

// Capture the next loopback packet from 127.77.0.1, starting at the IP header.
static void capture(int fd, uint8_t packet[64]) {
	static const uint8_t from[4] = {127, 77, 0, 1};

	for (;;) {
		assert_true(recv(fd, packet, 64, MSG_DONTWAIT) > 28);
		if (memcmp(packet + 12, from, sizeof(from)) == 0)
			return;
	}
}

static void ip_id_on_the_wire_is_0_and_df_is_set(void **state) {
	const struct sockaddr_ll name = {
		.sll_family = AF_PACKET,
		.sll_protocol = htons(ETH_P_IP),
		.sll_ifindex = (int)if_nametoindex("lo"),
	};
	int fd = socket(AF_PACKET, SOCK_DGRAM | SOCK_CLOEXEC, htons(ETH_P_IP));
	struct soft_wire *a, *b;
	uint8_t packet[64];

	(void)state;
	if (fd < 0) {
		print_message("needs CAP_NET_RAW\n");
		skip();
	}
	assert_int_equal(bind(fd, (const struct sockaddr *)&name, sizeof(name)), 0);
	a = open_wire("127.77.0.1", NULL);
	b = open_wire("127.77.0.2", NULL);
	for (uint32_t n = 0; n < 3; n++) {
		put_and_flush(a, &b->gid, (uint8_t)n);
		capture(fd, packet);
		assert_int_equal(packet[4] << 8 | packet[5], 0);
		assert_int_equal(packet[6] << 8 | packet[7], 0x4000);
		assert_int_equal(packet[20] << 8 | packet[21], SOFT_UDP_PORT);
		assert_int_equal(packet[26] << 8 | packet[27], 0); // without UDP checksum
	}
	wire_destroy(a);
	wire_destroy(b);
	close(fd);
}

static void packets_of_any_length_are_taken_or_cut(void **state) {
	static const uint32_t lengths[] = {0, 1, 11, 4164, 4165, 9000, 65507};
	static const struct sockaddr_in to = {.sin_family = AF_INET};
	struct soft_wire *wire = open_wire("127.77.0.1", NULL);
	int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	struct sockaddr_in name = to;
	struct wire_frame frames[WIRE_BATCH];
	static uint8_t bytes[65507];

	(void)state;
	name.sin_port = htons(SOFT_UDP_PORT);
	memcpy(&name.sin_addr, wire->address.address, 4);
	for (size_t n = 0; n < COUNT_OF(lengths); n++) {
		uint32_t size = 28 + lengths[n];

		sendto(fd, bytes, lengths[n], 0, (struct sockaddr *)&name, sizeof(name));
		assert_int_equal(get(wire, frames), 1);
		assert_int_equal(frames[0].size, size < UDP_FRAME_ROOM ? size : UDP_FRAME_ROOM);
		assert_true(frames[0].size <= FRAME_BYTES_MAX || lengths[n] > 4164);
	}
	close(fd);
	wire_destroy(wire);
}

static void packets_to_nobody_do_not_end_receiving(void **state) {
	const union ibv_gid nobody = {.raw = {[10] = 0xff, 0xff, 127, 77, 0, 9}};
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);

	(void)state;
	for (uint32_t n = 0; n < 3; n++)
		put_and_flush(a, &nobody, 1); // an ICMP error arrives at once
	put_and_flush(b, &a->gid, 5);
	expect_number(a, 5);
	wire_destroy(a);
	wire_destroy(b);
}

static void errors_left_at_the_socket_do_not_end_receiving(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);

	(void)state;
	put_and_flush(a, &b->gid, 5);
	script_in = (__typeof__(script_in)){{ECONNREFUSED, EHOSTUNREACH, EINTR, EPROTO}, 4, 0};
	expect_number(b, 5);
	wire_destroy(a);
	wire_destroy(b);
}

// Three frames are sent: results of the first system calls, expected counters, number of frames
// that arrive.
static void refused_packets_are_counted_and_the_others_go(void **state) {
	static const struct {
		int errors[4];
		uint32_t calls;
		uint64_t full, failed;
		uint32_t arrived;
	} cases[] = {
		{{EINTR}, 1, 0, 0, 3},	      {{EMSGSIZE}, 1, 0, 1, 2},
		{{ECONNREFUSED}, 1, 0, 1, 2}, {{EPERM, EPERM}, 2, 0, 2, 1},
		{{ENOBUFS}, 1, 1, 0, 2},      {{ENOMEM, ENETUNREACH, EMSGSIZE}, 3, 1, 2, 0},
	};

	(void)state;
	for (size_t n = 0; n < COUNT_OF(cases); n++) {
		struct soft_counters counters = {0};
		struct soft_wire *a = open_wire("127.77.0.1", &counters);
		struct soft_wire *b = open_wire("127.77.0.2", &counters);

		memcpy(script_out.errors, cases[n].errors, sizeof(script_out.errors));
		script_out.count = cases[n].calls;
		script_out.next = 0;
		for (uint8_t number = 0; number < 3; number++)
			put(a, &b->gid, number, 0);
		a->calls->flush(a);
		assert_int_equal(counters.send_full, cases[n].full);
		assert_int_equal(counters.send_failed, cases[n].failed);
		assert_int_equal(get_all(b, false), cases[n].arrived);
		wire_destroy(a);
		wire_destroy(b);
	}
}

static void full_socket_keeps_its_frames_and_takes_no_more_than_a_batch(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);
	uint32_t given = 0;

	(void)state;
	script_out = (__typeof__(script_out)){{EAGAIN, EAGAIN}, 2, 0};
	put_and_flush(a, &b->gid, 0); // fails with EAGAIN
	for (given = 1; given < WIRE_BATCH; given++)
		put(a, &b->gid, (uint8_t)given, 0);
	assert_null(a->calls->take(a)); // fails with EAGAIN again
	assert_int_equal(counters.send_full, 2);
	assert_int_equal(get_all(b, false), 0);
	a->calls->wait(a, -1, UINT64_MAX); // returns at once, because the socket has room
	a->calls->flush(a);
	assert_int_equal(get_all(b, true), WIRE_BATCH);
	assert_int_equal(counters.send_failed, 0);
	wire_destroy(a);
	wire_destroy(b);
}

static void frame_of_the_other_family_is_refused(void **state) {
	const union ibv_gid ip6 = {.raw = {[15] = 1}};
	struct soft_counters counters = {0};
	struct soft_wire *wire = open_wire("127.77.0.1", &counters);

	(void)state;
	put_and_flush(wire, &ip6, 1);
	assert_int_equal(counters.send_failed, 1);
	wire_destroy(wire);
}

static void wait_ends_with_a_frame_a_ring_or_the_time(void **state) {
	struct soft_counters counters = {0};
	struct soft_wire *a = open_wire("127.77.0.1", &counters);
	struct soft_wire *b = open_wire("127.77.0.2", &counters);
	int bell = eventfd(0, EFD_CLOEXEC);
	uint64_t rung = 1;

	(void)state;
	a->calls->wait(a, bell, 1000);
	put_and_flush(b, &a->gid, 3);
	a->calls->wait(a, bell, UINT64_MAX);
	expect_number(a, 3);
	assert_int_equal(write(bell, &rung, sizeof(rung)), sizeof(rung));
	a->calls->wait(a, bell, UINT64_MAX);
	close(bell);
	wire_destroy(a);
	wire_destroy(b);
}

UNIT_GROUP(soft_wire_udp) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(frame_arrives_with_the_headers_that_it_was_sent_with),
		cmocka_unit_test(frames_arrive_in_order_over_many_batches),
		cmocka_unit_test(wire_of_an_address_says_what_its_interface_carries),
		cmocka_unit_test(nothing_is_lost_of_what_the_window_allows),
		cmocka_unit_test(any_address_is_the_first_free_one),
		cmocka_unit_test(any_address_passes_over_a_thousand_taken_ones),
		cmocka_unit_test(address_in_use_is_refused_and_its_holder_named),
		cmocka_unit_test(addresses_that_no_wire_can_have_are_refused_with_why),
		cmocka_unit_test(traffic_class_is_that_of_the_frame),
		cmocka_unit_test(ip_id_on_the_wire_is_0_and_df_is_set),
		cmocka_unit_test(packets_of_any_length_are_taken_or_cut),
		cmocka_unit_test(packets_to_nobody_do_not_end_receiving),
		cmocka_unit_test(errors_left_at_the_socket_do_not_end_receiving),
		cmocka_unit_test(refused_packets_are_counted_and_the_others_go),
		cmocka_unit_test(full_socket_keeps_its_frames_and_takes_no_more_than_a_batch),
		cmocka_unit_test(frame_of_the_other_family_is_refused),
		cmocka_unit_test(wait_ends_with_a_frame_a_ring_or_the_time),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
