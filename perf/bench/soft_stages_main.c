// SPDX-License-Identifier: BSD-3-Clause
// tocsin-soft-stages [TEXT]: packets per second on one core, and cycles per packet and stage.
//
// Prints rows as a JSON array for tocsin-soft-bench, whose --help describes them. The program uses
// one thread, two devices on the udp wire, and one core. Slices without counters give the rate, and
// slices with counters give the split. Between them, plain sockets send the same number of packets.
//
// The devices have a clock and therefore no threads. A device thread would be woken by each packet
// and process it, since no spinning thread runs on this core. The program's thread drives the
// devices as the verbs do when polling: a push after each post, and a turn for each poll that finds
// nothing.
#include "engine/engine.h"
#include "soft_end.h"
#include "soft_stages.h"
#include "soft_table.h"
#include "transport/qp.h"

#include <lib/clock.h>
#include <lib/error.h>
#include <lib/must.h>

#include <arpa/inet.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>

#define SLICE_NS UINT64_C(60000000)
#define PING_BYTES 8
#define BULK_BYTES 65536
#define BULK_OFFSET 65536
#define BATCH 16 // packets of plain sockets per batch; capacity of the receiver
#define CALIBRATION 100000
#define PARTS (STAGES + 1) // all, the stages without the program's, and the rest

struct load {
	const char *name;
	uint32_t size, depth;
	uint32_t packet_bytes, packets; // per write, for plain sockets
};

static const struct load loads[] = {
	{"udp: 8-byte writes", PING_BYTES, 64, 40, 1},
	{"udp: 64 KiB writes", BULK_BYTES, 8, 4128, 16},
};

static struct clock tsc;
static const struct soft_setup setup = {
	.kind = &soft_verbs,
	.calls = &verbs_calls_soft,
	.wire = SOFT_WIRE_UDP,
	.clock = &tsc,
	.timeout = 17};

struct plain {
	int fds[2];
	struct sockaddr_in names[2];
	uint8_t bytes[BATCH][8192];
	struct iovec pieces[BATCH];
	struct mmsghdr messages[BATCH];
};

struct bench {
	struct soft_why why;
	struct end ends[2];
	struct plain plain;
	double ticks_per_s;
	double inside, outside; // ticks of a border, charged to the stage and to its caller
};

struct slice {
	double packets, cpu_s;
};

static double cpu_seconds(void) {
	struct timespec time;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &time);
	return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

static int open_devices(struct bench *bench) {
	const char *names[2];
	int err = 0;

	for (uint32_t n = 0; n < 2 && err == 0; n++)
		err = end_add_device(&setup, n, &bench->why, &names[n]);
	for (uint32_t n = 0; n < 2 && err == 0; n++) {
		bench->ends[n].calls = setup.calls;
		bench->ends[n].why = &bench->why;
		err = end_open(&bench->ends[n], names[n]);
	}
	for (uint32_t n = 0; n < 2 && err == 0; n++) {
		bench->ends[n].theirs = bench->ends[1 - n].mine;
		err = end_connect(&bench->ends[n], bench->ends[n].qp, setup.timeout);
		stages_wrap_wire(soft_qp_of(bench->ends[n].qp)->nic->wire);
	}
	return err;
}

static int open_plain(struct bench *bench) {
	struct plain *plain = &bench->plain;
	const struct timeval patience = {.tv_sec = 1};
	socklen_t length;

	for (uint32_t n = 0; n < 2; n++) {
		length = sizeof(plain->names[n]);
		plain->names[n] = (struct sockaddr_in
		){.sin_family = AF_INET, .sin_addr.s_addr = htonl(UINT32_C(0x7f4e0001) + n)};
		plain->fds[n] = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
		setsockopt(plain->fds[n], SOL_SOCKET, SO_RCVTIMEO, &patience, sizeof(patience));
		if (bind(plain->fds[n], (struct sockaddr *)&plain->names[n], length) != 0 ||
		    getsockname(plain->fds[n], (struct sockaddr *)&plain->names[n], &length) != 0)
			return soft_fail(
				&bench->why, neg_errno(), "no UDP socket: %s",
				strerrordesc_np(errno)
			);
	}
	return 0;
}

static uint64_t packets_sent(void) {
	struct soft_counters counters;
	uint64_t sum = 0;

	must(soft_counters_read("soft0", &counters) == 0);
	sum += counters.packets_sent;
	must(soft_counters_read("soft1", &counters) == 0);
	return sum + counters.packets_sent;
}

static int timed_post(struct end *end, const struct load *load, uint64_t count) {
	uint32_t to = BULK_OFFSET + (uint32_t)(count % load->depth) * load->size;
	struct soft_nic *nic = soft_qp_of(end->qp)->nic;
	enum stage before = stage_enter(STAGE_VERBS);
	int err = end_post(end, BULK_OFFSET, to, load->size);

	nic_lock(nic);
	nic_push(nic);
	nic_unlock_and_ring(nic);
	stage_leave(before);
	return err;
}

static int timed_poll(struct end *end) {
	struct soft_nic *nic = soft_qp_of(end->qp)->nic;
	enum stage before = stage_enter(STAGE_VERBS);
	int err;

	nic_lock(nic);
	(void)nic_turn(nic, true);
	nic_unlock_and_ring(nic);
	err = end_reap(end);
	stage_leave(before);
	return err;
}

static int slice_play(struct bench *bench, const struct load *load, struct slice *ret_slice) {
	uint64_t sent = packets_sent(), posted = 0;
	uint64_t end_ns = clock_now_ns(&tsc) + SLICE_NS;
	struct end *from = &bench->ends[0], *to = &bench->ends[1];
	double cpu_s = cpu_seconds();
	int err = 0;

	while (err == 0 && (from->out > 0 || clock_now_ns(&tsc) < end_ns)) {
		while (err == 0 && from->out < load->depth && clock_now_ns(&tsc) < end_ns)
			err = timed_post(from, load, posted++);
		if (err == 0)
			err = timed_poll(to);
		if (err == 0)
			err = timed_poll(from);
	}
	ret_slice->cpu_s = cpu_seconds() - cpu_s;
	ret_slice->packets = (double)(packets_sent() - sent);
	return err;
}

static int plain_receive(struct plain *plain, uint32_t count) {
	int got;

	for (uint32_t taken = 0; taken < count; taken += (uint32_t)got) {
		for (uint32_t n = 0; n < BATCH; n++)
			plain->messages[n].msg_hdr.msg_name = NULL;
		got = recvmmsg(plain->fds[1], plain->messages, BATCH, MSG_WAITFORONE, NULL);
		if (got <= 0)
			return got == 0 ? -EIO : neg_errno();
	}
	return 0;
}

// Send the packets of a write with one call, and receive in batches.
static int play_plain(struct bench *bench, const struct load *load, struct slice *ret_slice) {
	uint64_t end_ns = clock_now_ns(&tsc) + SLICE_NS;
	struct plain *plain = &bench->plain;
	double cpu_s = cpu_seconds(), packets = 0;
	uint32_t writes = BATCH / load->packets;
	int err = 0;

	for (uint32_t n = 0; n < BATCH; n++) {
		plain->pieces[n] = (struct iovec){plain->bytes[n], load->packet_bytes};
		plain->messages[n].msg_hdr = (struct msghdr
		){.msg_iov = &plain->pieces[n],
		  .msg_iovlen = 1,
		  .msg_namelen = sizeof(plain->names[1])};
	}
	for (; err == 0 && clock_now_ns(&tsc) < end_ns; packets += BATCH) {
		for (uint32_t n = 0; n < BATCH; n++) {
			plain->messages[n].msg_hdr.msg_name = &plain->names[1];
			plain->messages[n].msg_hdr.msg_namelen = sizeof(plain->names[1]);
		}
		for (uint32_t n = 0; n < writes && err == 0; n++) {
			if (sendmmsg(
				    plain->fds[0], &plain->messages[(size_t)n * load->packets],
				    load->packets, 0
			    ) != (int)load->packets)
				err = -EIO;
		}
		if (err == 0)
			err = plain_receive(plain, BATCH);
	}
	ret_slice->cpu_s = cpu_seconds() - cpu_s;
	ret_slice->packets = packets;
	return soft_fail(&bench->why, err, "plain sockets lost packets");
}

// Measure the cost of a border.
static void counters_calibrate(struct bench *bench) {
	uint64_t ticks = stage_ticks(), begin_ns = clock_monotonic_ns();
	enum stage before;

	stages_begin();
	for (uint32_t n = 0; n < CALIBRATION; n++) {
		before = stage_enter(STAGE_CHECK);
		stage_leave(before);
	}
	stages_end();
	bench->inside = (double)stages.ticks[STAGE_CHECK] / CALIBRATION;
	bench->outside = (double)stages.ticks[STAGE_PROGRAM] / CALIBRATION;
	while (clock_monotonic_ns() < begin_ns + SLICE_NS)
		continue;
	bench->ticks_per_s =
		(double)(stage_ticks() - ticks) * 1e9 / (double)(clock_monotonic_ns() - begin_ns);
}

static double stage_own_ticks(const struct bench *bench, enum stage stage) {
	double ticks = (double)stages.ticks[stage] - bench->inside * (double)stages.entered[stage] -
		       bench->outside * (double)stages.called[stage];

	return ticks > 0 ? ticks : 0;
}

// Compute the parts from one slice with counters and one without.
static void ticks_split(
	const struct bench *bench,
	const struct slice *off,
	const struct slice *on,
	double ret_parts[static PARTS]
) {
	double rest = off->cpu_s * bench->ticks_per_s / off->packets;

	ret_parts[0] = rest;
	for (uint32_t n = STAGE_PROGRAM + 1; n < STAGES; n++) {
		ret_parts[n] = stage_own_ticks(bench, (enum stage)n) / on->packets;
		rest -= ret_parts[n];
	}
	ret_parts[STAGES] = rest;
}

static const char *const part_names[PARTS] = {"all",   "receive", "check", "transport",
					      "build", "send",	  "verbs", "rest"};

struct found {
	struct soft_slices rate;
	struct soft_slices parts[PARTS];
};

static int load_measure(struct bench *bench, const struct load *load, struct found *found) {
	struct slice off, on, plain;
	double parts[PARTS];
	int err = slice_play(bench, load, &off);

	for (uint32_t slice = 0; slice < SOFT_SLICES && err == 0; slice++) {
		err = slice_play(bench, load, &off);
		if (err == 0)
			err = play_plain(bench, load, &plain);
		stages_begin();
		if (err == 0)
			err = slice_play(bench, load, &on);
		stages_end();
		if (err != 0)
			break;
		found->rate.values[slice] = off.packets / off.cpu_s * 1e-6;
		found->rate.yardsticks[slice] = plain.packets / plain.cpu_s * 1e-6;
		ticks_split(bench, &off, &on, parts);
		for (uint32_t n = 0; n < PARTS; n++)
			found->parts[n].values[slice] = parts[n];
	}
	return err;
}

static json_t *make_row(
	const struct soft_head *head,
	struct soft_slices *slices,
	int err,
	const struct soft_why *why
) {
	return err == 0 ? soft_table_row(head, slices) : soft_table_missing(head, why->text);
}

static bool name_is_selected(const char *name, const char *text) {
	return text == NULL || strstr(name, text) != NULL;
}

static void add_rows(
	const struct load *load,
	struct found *found,
	int err,
	const struct soft_why *why,
	const char *text,
	json_t *rows
) {
	char name[64];
	struct soft_head head = {
		.what = name,
		.unit = "M/s",
		.yardstick = "as many packets between two plain sockets, one core",
		.judged = SOFT_JUDGED_VALUE,
	};

	snprintf(name, sizeof(name), "%s, packets, one core", load->name);
	if (name_is_selected(name, text))
		json_array_append_new(rows, make_row(&head, &found->rate, err, why));
	head.unit = "cycles";
	head.yardstick = NULL;
	for (uint32_t n = 0; n < PARTS; n++) {
		snprintf(name, sizeof(name), "%s, cycles: %s", load->name, part_names[n]);
		if (name_is_selected(name, text))
			json_array_append_new(rows, make_row(&head, &found->parts[n], err, why));
	}
}

static bool load_is_selected(const struct load *load, const char *text) {
	json_t *rows = json_array();
	struct found found = {0};
	size_t count;

	add_rows(load, &found, -EAGAIN, &(struct soft_why){{0}}, text, rows);
	count = json_array_size(rows);
	json_decref(rows);
	return count > 0;
}

int main(int argc, char **argv) {
	static struct bench bench;
	const char *text = argc > 1 ? argv[1] : NULL;
	json_t *rows = json_array();
	int err;

	soft_pin(0); // includes all threads that are started later
	clock_init_tsc(&tsc);
	counters_calibrate(&bench);
	err = open_plain(&bench);
	for (uint32_t n = 0; n < sizeof(loads) / sizeof(loads[0]); n++) {
		struct found found = {0};

		if (!load_is_selected(&loads[n], text))
			continue;
		if (err == 0 && bench.ends[0].qp == NULL)
			err = open_devices(&bench);
		if (err == 0)
			err = load_measure(&bench, &loads[n], &found);
		add_rows(&loads[n], &found, err, &bench.why, text, rows);
	}
	err = json_dumpf(rows, stdout, JSON_REAL_PRECISION(6));
	json_decref(rows);
	return err == 0 ? 0 : 1;
}
