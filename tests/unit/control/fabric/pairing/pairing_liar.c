// SPDX-License-Identifier: BSD-3-Clause
#include "control/fabric/pairing/pairing_liar.h"

struct pairing_key liar_key;
struct liar_heard liar_heard;

static bool listen(struct net *unused, uint32_t from, uint32_t to, uint8_t *bytes, size_t *size) {
	(void)unused;
	if (from != NODE || to != LIAR)
		return false;
	assert_int_equal(pairing_message_decode(bytes, *size, &liar_heard.message), 0);
	liar_heard.count++;
	return true;
}

int liar_begin(void **state) {
	(void)state;
	net_create(2, 2, 1);
	net.filter = listen;
	liar_heard.count = 0;
	liar_key = net_key(0, LIAR, 0);
	return 0;
}

int liar_end(void **state) {
	(void)state;
	net_pass(20 * SECOND);
	net.filter = NULL;
	net_crash(LIAR, true);
	net_start(LIAR, true);
	net_pass(2 * SECOND);
	net_want(NODE, 0, LIAR, 0);
	net_settle();
	net_destroy();
	return 0;
}

struct pairing_message liar_message(enum pairing_message_type type) {
	struct pairing_message message = {
		.version = PAIRING_VERSION,
		.version_least = PAIRING_VERSION_LEAST,
		.type = type,
		.device = "rdma0",
		.your_device = "rdma0",
		.end =
			{
				.start = net.nodes[LIAR].start,
				.generation = 100,
				.endpoint =
					{
						.link = DEVICE_LINK_ETHERNET,
						.mtu = 1024,
						.queue_number = 77,
						.psn = 1,
					},
				.responder = DEVICE_RESPONDER_KERNEL,
			},
	};

	message.end.endpoint.gid.raw[0] = 0xfe;
	message.end.endpoint.gid.raw[14] = LIAR;
	if (type == PAIRING_REFUSE)
		message.end.generation = 0;
	if (type == PAIRING_REFUSE || type == PAIRING_CLOSE)
		message.failure.reason = PAIRING_DRIVER;
	return message;
}

int liar_say(const struct pairing_message *message) {
	return net_inject(LIAR, NODE, message);
}

uint32_t node_generation(void) {
	return net_view(NODE, liar_key).generation;
}

void liar_be_ready(void) {
	struct pairing_message message = liar_message(PAIRING_INFO);

	net_request(NODE, liar_key, SECOND);
	net_pass(2 * MS);
	message.your_start = 1;
	message.your_generation = node_generation();
	assert_int_equal(liar_say(&message), 0);
	net_pass(2 * MS);
	message.type = PAIRING_READY_SENT;
	assert_int_equal(liar_say(&message), 0);
	assert_int_equal(net_view(NODE, liar_key).state, PAIRING_READY);
	net_pass(2 * SECOND);
}
