// SPDX-License-Identifier: BSD-3-Clause
// Encoding of the messages of a mesh.
#include "mesh/mesh_wire.h"

#include <errno.h>
#include <string.h>

#define KEPT_BYTES_MAX (1u << 20)
#define TAU_SCALE 1e6
#define TAU_MAX 1e9

static void put_text(struct wire_writer *writer, const char *text) {
	wire_put_string(writer, text, wire_utf8_valid(text, strlen(text)) ? strlen(text) : 0);
}

// Decode a text of another machine and make it safe to print.
static void get_text(struct wire_reader *reader, char *text, size_t size) {
	if (wire_get_string(reader, text, size) > 0)
		lab_sanitize(text);
}

int mesh_send_join(struct channel *channel, const struct mesh_join *join, struct lab_why *why) {
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	put_text(&writer, join->version);
	wire_put_u32(&writer, join->rank);
	wire_put_u32(&writer, join->count);
	put_text(&writer, join->node.host);
	put_text(&writer, join->node.rack);
	wire_put_u32(&writer, join->node.processors);
	return channel_send_written(channel, CHANNEL_MESH_JOIN, buffer, &writer, why);
}

static int fail_malformed(struct lab_why *why, const struct channel_message *message) {
	return lab_fail(why, -EBADMSG, "mesh message of kind %u is malformed", message->kind);
}

int mesh_read_join(
	const struct channel_message *message, struct mesh_join *ret_join, struct lab_why *why
) {
	struct mesh_join join = {.rank = 0};
	struct wire_reader reader;

	wire_reader_init(&reader, message->bytes, message->size);
	get_text(&reader, join.version, sizeof(join.version));
	join.rank = wire_get_u32(&reader);
	join.count = wire_get_u32(&reader);
	get_text(&reader, join.node.host, sizeof(join.node.host));
	get_text(&reader, join.node.rack, sizeof(join.node.rack));
	join.node.processors = wire_get_u32(&reader);
	if (message->kind != CHANNEL_MESH_JOIN || wire_reader_finish(&reader) != 0)
		return fail_malformed(why, message);
	*ret_join = join;
	return 0;
}

int mesh_send_order(
	struct channel *channel,
	enum channel_kind kind,
	const struct mesh_order *order,
	struct lab_why *why
) {
	char server[SOCK_ADDR_TEXT_BYTES] = "";
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;

	if (kind == CHANNEL_MESH_PLAY)
		sock_addr_format(&order->server, server);
	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_u32(&writer, order->number);
	wire_put_u32(&writer, order->place);
	put_text(&writer, server);
	wire_put_u8(&writer, order->waits_for_go);
	plan_encode(&order->plan, &writer);
	return channel_send_written(channel, kind, buffer, &writer, why);
}

int mesh_read_order(
	const struct channel_message *message, struct mesh_order *ret_order, struct lab_why *why
) {
	struct mesh_order order = {.number = 0};
	char server[SOCK_ADDR_TEXT_BYTES];
	struct parse_error error;
	struct wire_reader reader;

	wire_reader_init(&reader, message->bytes, message->size);
	order.number = wire_get_u32(&reader);
	order.place = wire_get_u32(&reader);
	get_text(&reader, server, sizeof(server));
	order.waits_for_go = wire_get_u8(&reader) != 0;
	plan_decode(&reader, &order.plan);
	if (wire_reader_finish(&reader) != 0)
		return fail_malformed(why, message);
	// The client of a measurement uses its plan without checks, so the plan is checked here.
	if (plan_check(&order.plan, why) != 0)
		return -EBADMSG;
	if (message->kind == CHANNEL_MESH_PLAY &&
	    sock_addr_parse(server, strlen(server), 0, &error, &order.server) != 0)
		return fail_malformed(why, message);
	*ret_order = order;
	return 0;
}

int mesh_send_answer(
	struct channel *channel,
	enum channel_kind kind,
	const struct mesh_answer *answer,
	struct lab_why *why
) {
	uint8_t buffer[CHANNEL_BYTES_MAX];
	struct wire_writer writer;

	wire_writer_init(&writer, buffer, sizeof(buffer));
	wire_put_u32(&writer, answer->order);
	wire_put_u32(&writer, answer->port);
	put_text(&writer, answer->why);
	if (kind == CHANNEL_MESH_RESULT) {
		put_text(&writer, answer->device);
		put_text(&writer, answer->their_device);
		for (int n = 0; n < MESH_QUANTILES; n++) {
			double tau = answer->taus[n] < TAU_MAX ? answer->taus[n] : TAU_MAX;

			wire_put_u64(&writer, (uint64_t)(tau * TAU_SCALE));
		}
		histogram_encode(answer->kept, &writer);
	}
	return channel_send_written(channel, kind, buffer, &writer, why);
}

// Return true if the histogram has the shape that all processes of a mesh use, and has samples, all
// of them in buckets.
static bool histogram_has_mesh_shape(const struct histogram *kept) {
	const struct histogram_shape *shape = histogram_shape(kept);
	struct histogram_summary all;

	histogram_summarize(kept, &all);
	return shape->value_min == 1 && shape->value_max == HISTOGRAM_VALUE_MAX &&
	       shape->precision_bits == 7 && all.count > 0 && all.lost == 0;
}

int mesh_read_answer(
	const struct channel_message *message, struct mesh_answer *ret_answer, struct lab_why *why
) {
	struct mesh_answer answer = {.kept = NULL};
	struct wire_reader reader;
	int err;

	wire_reader_init(&reader, message->bytes, message->size);
	answer.order = wire_get_u32(&reader);
	answer.port = wire_get_u32(&reader);
	get_text(&reader, answer.why, sizeof(answer.why));
	if (message->kind == CHANNEL_MESH_RESULT) {
		get_text(&reader, answer.device, sizeof(answer.device));
		get_text(&reader, answer.their_device, sizeof(answer.their_device));
		for (int n = 0; n < MESH_QUANTILES; n++) {
			answer.taus[n] = (double)wire_get_u64(&reader) / TAU_SCALE;
			if (answer.taus[n] < 1 || answer.taus[n] > TAU_MAX)
				wire_reader_fail(&reader, -EBADMSG);
		}
		if (wire_reader_ok(&reader))
			(void)histogram_decode(&reader, KEPT_BYTES_MAX, &answer.kept);
	}
	err = wire_reader_finish(&reader);
	if (err != 0 || answer.port > UINT16_MAX ||
	    (answer.kept != NULL && !histogram_has_mesh_shape(answer.kept))) {
		histogram_destroy(answer.kept);
		return fail_malformed(why, message);
	}
	*ret_answer = answer;
	return 0;
}
