// SPDX-License-Identifier: BSD-3-Clause
// Translates times of other agents' clocks to our own, so that an old message is never taken for
// news. No clock is shared, and a message may wait anywhere for any time.
//
// We ask the other agent for its clock, and note when we asked. Its clock showed the answer after
// that. So a time on its clock, translated with this pair, is never later than it really was.
// Whatever we compare it with, an error makes the other event look older, and older ends are not
// reported. Notices that arrive before the answer are held.
#include "jobs/host/inside.h"

#include <lib/container.h>
#include <lib/wire.h>

#include <stdlib.h>
#include <string.h>

#define VALID_NS (600 * RAS_NS_PER_SEC)	  // afterwards the clock is asked again
#define DRIFT_SHIFT 10			  // NTP changes the rate by at most 500 ppm
#define ASK_AGAIN_NS (RAS_NS_PER_SEC / 2) // between two questions to one agent
#define ANSWER_LIFE_NS (2 * RAS_NS_PER_SEC)
#define ANSWERS_PENDING_MAX 64u
#define MESSAGE_ASK 1
#define MESSAGE_ANSWER 2
#define PEERS_MAX 65536

struct peer_clock {
	uint64_t node;
	int64_t offset_ns;		    // our clock minus the clock of the peer, or less
	uint64_t learned_ns;		    // when we asked; 0: no answer yet
	uint64_t asked_ns, asked_before_ns; // our last question, and the one before
};

static uint32_t clock_find_place(const struct peer_clocks *clocks, uint64_t node) {
	uint32_t low = 0, high = clocks->count;

	while (low < high) {
		uint32_t middle = low + (high - low) / 2;

		if (clocks->rows[middle].node < node)
			low = middle + 1;
		else
			high = middle;
	}
	return low;
}

// Return the row of a peer, a new one if it has none; NULL without memory.
static struct peer_clock *clock_find_or_add(struct peer_clocks *clocks, uint64_t node) {
	uint32_t place = clock_find_place(clocks, node);

	if (place < clocks->count && clocks->rows[place].node == node)
		return &clocks->rows[place];
	if (clocks->count == clocks->capacity) {
		uint32_t capacity = clocks->capacity != 0 ? 2 * clocks->capacity : 16;
		struct peer_clock *rows = capacity <= PEERS_MAX
						  ? realloc(clocks->rows, capacity * sizeof(*rows))
						  : NULL;

		if (rows == NULL)
			return NULL;
		clocks->rows = rows;
		clocks->capacity = capacity;
	}
	memmove(&clocks->rows[place + 1], &clocks->rows[place],
		(clocks->count - place) * sizeof(*clocks->rows));
	clocks->count++;
	clocks->rows[place] = (struct peer_clock){.node = node};
	return &clocks->rows[place];
}

bool peer_clock_translate(
	struct jobhost *host, uint64_t node, uint64_t their_ns, uint64_t *ret_ns
) {
	const struct peer_clocks *clocks = &host->peer_clocks;
	uint32_t place = clock_find_place(clocks, node);
	uint64_t age_ns, now_ns = loop_now_ns(host->loop);
	int64_t ns;

	if (place == clocks->count || clocks->rows[place].node != node ||
	    clocks->rows[place].learned_ns == 0)
		return false;
	age_ns = now_ns - clocks->rows[place].learned_ns;
	if (age_ns >= VALID_NS)
		return false;
	// A time that no clock shows is as good as none.
	if (their_ns > INT64_MAX / 2)
		their_ns = 0;
	ns = (int64_t)their_ns + clocks->rows[place].offset_ns - (int64_t)(age_ns >> DRIFT_SHIFT);
	// The clocks may also have drifted between the translated time and the question.
	if (ns > 0 && (uint64_t)ns < clocks->rows[place].learned_ns)
		ns -= (int64_t)((clocks->rows[place].learned_ns - (uint64_t)ns) >> DRIFT_SHIFT);
	*ret_ns = ns < 0 ? 0 : (uint64_t)ns < now_ns ? (uint64_t)ns : now_ns;
	return true;
}

void peer_clock_learn(struct jobhost *host, uint64_t node, uint64_t asked_ns, uint64_t their_ns) {
	struct peer_clock *row = clock_find_or_add(&host->peer_clocks, node);
	int64_t offset_ns;

	if (row == NULL || asked_ns > loop_now_ns(host->loop) || their_ns > INT64_MAX / 2 ||
	    asked_ns < row->learned_ns)
		return;
	offset_ns = (int64_t)asked_ns - (int64_t)their_ns;
	// The pair with the shorter way tells more.
	if (row->learned_ns == 0 || asked_ns - row->learned_ns >= VALID_NS ||
	    offset_ns > row->offset_ns - (int64_t)((asked_ns - row->learned_ns) >> DRIFT_SHIFT)) {
		row->offset_ns = offset_ns;
		row->learned_ns = asked_ns;
	}
	notice_release_held(host, node);
}

void peer_clock_ask(struct jobhost *host, uint64_t node) {
	struct peer_clock *row = clock_find_or_add(&host->peer_clocks, node);
	uint64_t now_ns = loop_now_ns(host->loop);
	struct overlay_port_message message = {.node = node};
	uint8_t bytes[16];
	struct wire_writer writer;

	if (host->overlay == NULL || row == NULL ||
	    (row->asked_ns != 0 && now_ns - row->asked_ns < ASK_AGAIN_NS))
		return;
	row->asked_before_ns = row->asked_ns;
	row->asked_ns = now_ns;
	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_u8(&writer, MESSAGE_ASK);
	wire_put_u64(&writer, now_ns);
	message.bytes = bytes;
	message.size = wire_writer_used(&writer);
	(void)overlay_port_send(&host->peer_clocks.port, &message); // asked again when needed
}

bool peer_clock_was_just_asked(const struct jobhost *host, uint64_t node) {
	const struct peer_clocks *clocks = &host->peer_clocks;
	uint32_t place = clock_find_place(clocks, node);

	if (host->overlay == NULL)
		return true; // nobody to ask
	return place < clocks->count && clocks->rows[place].node == node &&
	       clocks->rows[place].asked_ns != 0 &&
	       loop_now_ns(host->loop) - clocks->rows[place].asked_ns < SAMPLE_NS;
}

static bool clock_was_asked(const struct jobhost *host, uint64_t node, uint64_t asked_ns) {
	const struct peer_clocks *clocks = &host->peer_clocks;
	uint32_t place = clock_find_place(clocks, node);

	// The time is also the proof that the answer is to our question: any member can name any
	// source. An answer may take longer than the pause before the next question.
	return place < clocks->count && clocks->rows[place].node == node && asked_ns != 0 &&
	       (asked_ns == clocks->rows[place].asked_ns ||
		asked_ns == clocks->rows[place].asked_before_ns);
}

static void on_message(
	struct overlay_port *port,
	uint64_t node,
	uint64_t incarnation,
	const void *bytes,
	size_t size
) {
	struct jobhost *host = container_of(port, struct jobhost, peer_clocks.port);
	struct overlay_port_message message = {.node = node};
	struct wire_reader reader;
	struct wire_writer writer;
	uint64_t asked_ns, their_ns;
	uint8_t answer[24];
	uint8_t kind;

	(void)incarnation;
	wire_reader_init(&reader, bytes, size);
	kind = wire_get_u8(&reader);
	asked_ns = wire_get_u64(&reader);
	if (kind == MESSAGE_ASK && wire_reader_ok(&reader)) {
		// All ports together have RAS_RELAY_PENDING_MAX messages in flight.
		if (overlay_port_pending(port) >= ANSWERS_PENDING_MAX)
			return;
		wire_writer_init(&writer, answer, sizeof(answer));
		wire_put_u8(&writer, MESSAGE_ANSWER);
		wire_put_u64(&writer, asked_ns);
		wire_put_u64(&writer, loop_clock_ns(host->loop));
		message.life_ns = ANSWER_LIFE_NS;
		message.bytes = answer;
		message.size = wire_writer_used(&writer);
		(void)overlay_port_send(port, &message);
	} else if (kind == MESSAGE_ANSWER) {
		their_ns = wire_get_u64(&reader);
		// `asked_ns` is our own time only if we sent it.
		if (wire_reader_ok(&reader) && clock_was_asked(host, node, asked_ns))
			peer_clock_learn(host, node, asked_ns, their_ns);
	}
}

static void
on_undelivered(struct overlay_port *port, uint32_t tag, const struct ras_relay_report *report) {
	(void)port;
	(void)tag;
	(void)report;
}

void peer_clock_init(struct jobhost *host) {
	host->peer_clocks.port = (struct overlay_port
	){.number = OVERLAY_PORT_JOBS, .message = on_message, .undelivered = on_undelivered};
	if (host->overlay != NULL)
		overlay_port_open(host->overlay, &host->peer_clocks.port);
}

void peer_clock_fini(struct jobhost *host) {
	overlay_port_close(&host->peer_clocks.port);
	free(host->peer_clocks.rows);
}
