// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes one pairing. Three peers send arbitrary messages. Keepers answer at any time with any
// result. Requests, peer events and time are driven by the input too.
//
// Checks: drivers and lanes get only permitted calls. Each waiter is answered once. State is
// bounded. A key does not begin twice within a second. Once all calls are answered, nothing is
// left.
#include "fabric/pairing/pairing_inside.h"
#include "fabric/pairing/pairing_message.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <stdio.h>
#include <stdlib.h>

#define PEERS 3
#define DEVICES 2
#define SELF 100
#define PAIRS_MAX 128 // one for each key, and two that are being destroyed
#define WAITERS_MAX 64
#define STEPS_MAX 400
#define BEGINNINGS_MAX 32 // keys of three peers with two devices, against four of their devices

enum asked {
	ASKED_NOTHING,
	ASKED_CREATE,
	ASKED_CONNECT,
	ASKED_DRAIN,
	ASKED_DESTROY,
};

struct held {
	uint32_t generation; // 0: unused
	enum asked asked;
	bool made, connect_asked, connected, in_lane;
};

struct bed {
	struct pairing *pairing;
	uint64_t now_ns, wake_ns;
	struct held pairs[PAIRS_MAX];
	struct pairing_waiter waiters[WAITERS_MAX];
	bool waits[WAITERS_MAX];
	uint64_t starts[PEERS]; // start numbers of the peers, from peer 1 on
	uint64_t own_start;
	struct {
		struct pairing_key key;
		uint64_t at_ns;
		bool announced; // attempts that failed before the peer was notified may be repeated
	} beginnings[BEGINNINGS_MAX];
	uint32_t said; // our generation that was last announced to a peer
	bool refuse;   // calls to keepers and lanes fail
	bool check_fails;
	const uint8_t *data;
	size_t size;
};

static struct bed bed;

static uint8_t take(void) {
	if (bed.size == 0)
		return 0;
	bed.size--;
	return *bed.data++;
}

static uint64_t take_number(void) {
	uint64_t value = 0;

	for (uint32_t n = take() & 3; n > 0; n--)
		value = value << 8 | take();
	return value;
}

// Keepers and lanes.

static struct held *find(uint32_t generation) {
	for (uint32_t n = 0; n < PAIRS_MAX; n++) {
		if (bed.pairs[n].generation == generation)
			return &bed.pairs[n];
	}
	return NULL;
}

static void began(const struct pairing_key *key) {
	uint32_t n = 0;

	while (bed.beginnings[n].key.peer != 0 &&
	       (bed.beginnings[n].key.device != key->device ||
		bed.beginnings[n].key.peer != key->peer ||
		strcmp(bed.beginnings[n].key.peer_device, key->peer_device) != 0))
		must(++n < BEGINNINGS_MAX);
	must(bed.beginnings[n].at_ns == 0 || !bed.beginnings[n].announced ||
	     bed.now_ns - bed.beginnings[n].at_ns >= PAIRING_NS_PER_SEC);
	bed.beginnings[n].key = *key;
	bed.beginnings[n].at_ns = bed.now_ns;
	bed.beginnings[n].announced = false;
}

static int op_create(void *ctx, const struct pairing_key *key, uint32_t generation, uint32_t psn) {
	struct held *held = find(0);

	(void)ctx;
	must(psn <= 0xffffff && (generation & 0xffffff) != 0 && find(generation) == NULL);
	must(held != NULL);
	if (bed.refuse)
		return -ENOMEM;
	began(key);
	*held = (struct held){.generation = generation, .asked = ASKED_CREATE};
	return 0;
}

static int
op_connect(void *ctx, uint32_t generation, const struct pairing_end *theirs, uint32_t flow_label) {
	struct held *held = find(generation);

	(void)ctx;
	must(held != NULL && held->asked == ASKED_NOTHING && held->made && !held->connect_asked);
	must(theirs->generation != 0 && flow_label <= 0xfffff);
	if (bed.refuse)
		return -EAGAIN;
	held->connect_asked = true;
	held->asked = ASKED_CONNECT;
	return 0;
}

static int op_hand_over(void *ctx, uint32_t generation) {
	struct held *held = find(generation);

	(void)ctx;
	must(held != NULL && held->asked == ASKED_NOTHING && held->connected && !held->in_lane);
	if (bed.refuse)
		return -EAGAIN;
	held->in_lane = true;
	return 0;
}

static int op_drain(void *ctx, uint32_t generation, const struct pairing_failure *failure) {
	struct held *held = find(generation);

	(void)ctx;
	must(held != NULL && held->asked == ASKED_NOTHING && held->in_lane && failure->err < 0);
	if (bed.refuse)
		return -EAGAIN;
	held->asked = ASKED_DRAIN;
	return 0;
}

static int op_destroy(void *ctx, uint32_t generation) {
	struct held *held = find(generation);

	(void)ctx;
	must(held != NULL && held->asked == ASKED_NOTHING && held->made && !held->in_lane);
	if (bed.refuse)
		return -EAGAIN;
	held->asked = ASKED_DESTROY;
	return 0;
}

static void note_announced(const struct pairing_message *message, uint64_t peer) {
	for (uint32_t n = 0; n < BEGINNINGS_MAX; n++) {
		if (bed.beginnings[n].key.peer == peer &&
		    strcmp(bed.beginnings[n].key.peer_device, message->your_device) == 0 &&
		    message->device[1] == (char)('0' + bed.beginnings[n].key.device))
			bed.beginnings[n].announced = true;
	}
}

static int
op_send(void *ctx, uint64_t peer, uint64_t start, const void *bytes, size_t size, uint32_t tag) {
	struct pairing_message message;

	(void)ctx;
	(void)start;
	(void)tag;
	must(pairing_message_decode(bytes, size, &message) >= 0 || bed.check_fails);
	if (message.type == PAIRING_INFO || message.type == PAIRING_READY_SENT) {
		bed.said = message.end.generation;
		note_announced(&message, peer);
	}
	return 0;
}

static int op_peer(void *ctx, uint64_t peer, uint64_t *ret_start) {
	(void)ctx;
	must(peer >= 1 && peer <= PEERS);
	*ret_start = bed.starts[peer - 1];
	return 0;
}

static int op_check(
	void *ctx,
	uint32_t device,
	const struct device_endpoint *theirs,
	char ret_reason[static DEVICE_REASON_MAX + 1]
) {
	(void)ctx;
	(void)theirs;
	must(device < DEVICES);
	snprintf(ret_reason, DEVICE_REASON_MAX + 1, "fuzz");
	return bed.check_fails ? -EPROTONOSUPPORT : 0;
}

static void op_wake(void *ctx, uint64_t at_ns) {
	(void)ctx;
	bed.wake_ns = at_ns;
}

static void on_answered(struct pairing_waiter *waiter, const struct pairing_answer *answer) {
	uint32_t n = (uint32_t)(waiter - bed.waiters);

	must(bed.waits[n]);
	must((answer->generation == 0) == (answer->failure.reason != PAIRING_REASON_NONE));
	bed.waits[n] = false;
}

// Answers, including some that were not requested.

static void answer_create(struct held *held, int err) {
	struct device_endpoint endpoint = {
		.link = DEVICE_LINK_ETHERNET,
		.gid.raw[0] = 0xfe,
		.mtu = 1024,
		.queue_number = 2 + (held->generation & 0xffff),
	};
	uint32_t generation = held->generation;

	held->made = err == 0;
	if (err < 0)
		*held = (struct held){0};
	pairing_created(bed.pairing, bed.now_ns, generation, err, &endpoint);
}

static void answer(struct held *held, int err) {
	enum asked asked = held->asked;
	uint32_t generation = held->generation;

	held->asked = ASKED_NOTHING;
	switch (asked) {
	case ASKED_CREATE:
		answer_create(held, err);
		return;
	case ASKED_CONNECT:
		held->connected = err == 0;
		pairing_connected(bed.pairing, bed.now_ns, generation, err, NULL);
		return;
	case ASKED_DRAIN:
		held->in_lane = false;
		pairing_drained(bed.pairing, bed.now_ns, generation, err < 0 ? "cause" : NULL);
		return;
	case ASKED_DESTROY:
		if (err == 0)
			*held = (struct held){0};
		pairing_destroyed(bed.pairing, bed.now_ns, generation, err);
		return;
	default:
		if (held->in_lane) {
			held->asked = ASKED_DRAIN;
			pairing_broken(bed.pairing, bed.now_ns, generation, -EIO, "broken");
		}
	}
}

static void answer_some(void) {
	static const int errors[] = {0, 0, 0, 0, -EIO, -ENOMEM, -ENOSPC, -EPROTONOSUPPORT};
	struct held *held = &bed.pairs[take() % PAIRS_MAX];
	int err = errors[take() % 8];

	for (uint32_t n = 0; n < PAIRS_MAX && held->generation == 0; n++)
		held = &bed.pairs[n];
	if (held->generation != 0)
		answer(held, err);
}

static void answer_unasked(void) {
	struct device_endpoint endpoint = {0};
	uint32_t generation = take();
	struct held *held = find(generation);
	enum asked asked = held != NULL && generation != 0 ? held->asked : ASKED_NOTHING;

	if (asked != ASKED_CREATE)
		pairing_created(bed.pairing, bed.now_ns, generation, -EIO, &endpoint);
	if (asked != ASKED_CONNECT)
		pairing_connected(bed.pairing, bed.now_ns, generation, 0, NULL);
	if (asked != ASKED_DESTROY)
		pairing_destroyed(bed.pairing, bed.now_ns, generation, 0);
	if (asked != ASKED_DRAIN)
		pairing_drained(bed.pairing, bed.now_ns, generation, "unasked");
}

// Messages of peers.

static void name(char text[static DEVICE_NAME_MAX + 1], uint32_t n) {
	text[0] = 'd';
	text[1] = (char)('0' + n);
}

static void hear_message(void) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX];
	uint64_t peer = 1 + take() % PEERS;
	uint8_t what = take();
	struct pairing_message message = {
		.version = 1,
		.version_least = 1,
		.type = 1 + (what & 3),
		.flags = (what >> 2) & 1,
		.your_start = what & 8 ? bed.own_start : 0,
		.your_generation = what & 16   ? bed.said
				   : what & 32 ? take()
					       : 0,
		.end =
			{
				.start = bed.starts[peer - 1] + (what >= 250),
				.generation = take(),
				.endpoint =
					{
						.link = DEVICE_LINK_ETHERNET,
						.gid.raw[0] = 0xfe,
						.mtu = what == 77 ? 7 : 1024,
						.queue_number = 2,
					},
				.wanted = (what & 64) != 0,
			},
		.failure.reason = take(),
	};

	name(message.device, take() & 3);
	name(message.your_device, take() % 3);
	if (message.type == PAIRING_REFUSE)
		message.end.generation = 0;
	pairing_receive(
		bed.pairing, bed.now_ns, peer, message.end.start, bytes,
		pairing_message_encode(&message, bytes)
	);
}

static void hear_bytes(void) {
	uint8_t bytes[256];
	size_t size = take();

	for (size_t n = 0; n < size; n++)
		bytes[n] = take();
	pairing_receive(bed.pairing, bed.now_ns, 1 + take() % PEERS, take() & 3, bytes, size);
}

// Requests, peer events and time.

static struct pairing_key any_key(void) {
	struct pairing_key key = {.device = take() % DEVICES};

	key.peer = 1 + take() % (PEERS + 1);
	if (key.peer > PEERS)
		key.peer = SELF;
	name(key.peer_device, take() & 3);
	return key;
}

static void request(void) {
	struct pairing_key key = any_key();
	struct pairing_answer answer;
	uint32_t n = take() % WAITERS_MAX;
	uint64_t deadline_ns =
		take() & 1 ? PAIRING_NEVER : bed.now_ns + take_number() * PAIRING_NS_PER_MS;

	if (bed.waits[n]) {
		must(pairing_cancel(bed.pairing, &bed.waiters[n]) == 0);
		must(!bed.waits[n]);
		return;
	}
	bed.waiters[n] = (struct pairing_waiter){.answered = on_answered};
	bed.waits[n] = !pairing_request(
		bed.pairing, bed.now_ns, &key, deadline_ns, &bed.waiters[n], &answer
	);
}

static void want(void) {
	struct pairing_key key = any_key();

	pairing_set_wanted(bed.pairing, bed.now_ns, &key, take() & 1);
}

static void tell_news(void) {
	uint64_t peer = take() % PEERS;
	uint8_t what = take();

	bed.starts[peer] += what == 255;
	pairing_peer(bed.pairing, bed.now_ns, 1 + peer, what % 3, bed.starts[peer]);
	if (what == 254)
		pairing_restart(bed.pairing, bed.now_ns, ++bed.own_start);
}

static void pass(uint64_t ns) {
	uint64_t until_ns = bed.now_ns + ns;

	for (uint32_t n = 0; n < 200 && bed.wake_ns <= until_ns; n++) {
		if (bed.wake_ns > bed.now_ns)
			bed.now_ns = bed.wake_ns;
		bed.wake_ns = PAIRING_NEVER;
		pairing_tick(bed.pairing, bed.now_ns);
	}
	if (bed.now_ns < until_ns)
		bed.now_ns = until_ns;
}

static void step(void) {
	switch (take() % 12) {
	case 0:
	case 1:
	case 2:
		hear_message();
		return;
	case 3:
		hear_bytes();
		return;
	case 4:
	case 5:
		answer_some();
		return;
	case 6:
		answer_unasked();
		return;
	case 7:
		request();
		return;
	case 8:
		want();
		return;
	case 9:
		tell_news();
		return;
	case 10:
		bed.refuse = take() & 1;
		bed.check_fails = take() == 1;
		pairing_device_state(
			bed.pairing, bed.now_ns, take() % DEVICES, 1 + take() % 2, "fuzz"
		);
		pairing_undelivered(bed.pairing, bed.now_ns, 1 + take() % PEERS, take(), "fuzz");
		return;
	default:
		pass(take_number() * 100000);
	}
}

static void check(void) {
	const struct pairing_counters *counters = pairing_counters(bed.pairing);
	struct pairing_view view;
	uint32_t count = 0;

	for (uint32_t cursor = 0; pairing_next(bed.pairing, &cursor, &view); count++)
		must(view.retired <= 2 && view.state < PAIRING_STATE_COUNT);
	must(count <= PAIRING_ENTRIES_MAX);
	must(counters->ready + counters->pending + counters->retired <= PAIRS_MAX);
}

static void bed_init(const uint8_t *data, size_t size) {
	struct pairing_config config = {.self = SELF, .start = 1, .random_seed = 1};
	struct pairing_ops ops = {
		.create = op_create,
		.connect = op_connect,
		.hand_over = op_hand_over,
		.drain = op_drain,
		.destroy = op_destroy,
		.send = op_send,
		.peer = op_peer,
		.check = op_check,
		.wake = op_wake,
	};

	bed = (struct bed
	){.data = data, .size = size, .now_ns = PAIRING_NS_PER_SEC, .own_start = 1};
	bed.wake_ns = PAIRING_NEVER;
	config.demand_max = 8;
	config.guest_max = 4;
	must(pairing_create(&config, &ops, &bed.pairing) == 0);
	for (uint32_t n = 0; n < DEVICES; n++) {
		struct pairing_device device = {0};
		uint32_t index;

		name(device.name, n);
		must(pairing_device(bed.pairing, &device, &index) == 0);
		pairing_device_state(bed.pairing, bed.now_ns, n, PAIRING_DEVICE_ACTIVE, NULL);
	}
	for (uint32_t n = 0; n < PEERS; n++)
		bed.starts[n] = 1;
}

// Answer every call, and check that nothing is left.
static void bed_fini(void) {
	bed.refuse = false;
	pairing_stop(bed.pairing, bed.now_ns);
	for (uint32_t n = 0; n < 100 && !pairing_is_empty(bed.pairing); n++) {
		for (uint32_t pair = 0; pair < PAIRS_MAX; pair++) {
			if (bed.pairs[pair].asked != ASKED_NOTHING)
				answer(&bed.pairs[pair], 0);
		}
		pass(PAIRING_NS_PER_SEC);
	}
	must(pairing_is_empty(bed.pairing));
	for (uint32_t n = 0; n < PAIRS_MAX; n++)
		must(bed.pairs[n].generation == 0);
	for (uint32_t n = 0; n < WAITERS_MAX; n++)
		must(!bed.waits[n]);
	bed.pairing = pairing_destroy(bed.pairing);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	bed_init(data, size);
	for (uint32_t n = 0; n < STEPS_MAX && bed.size > 0; n++) {
		step();
		check();
	}
	bed_fini();
	return 0;
}
