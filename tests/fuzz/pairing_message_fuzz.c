// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes handshake messages. A decoded message must be within all bounds and encode to the same
// bytes.
#include "fabric/pairing/pairing_message.h"

#include <lib/must.h>
#include <support/fuzz.h>

#include <errno.h>
#include <string.h>

static void check_end(const struct pairing_end *end) {
	must(end->endpoint.mtu >= 256 && end->endpoint.mtu <= 4096);
	must(end->endpoint.psn <= 0xffffff && end->flow_label <= 0xfffff);
	must(end->endpoint.queue_number >= 2 && end->endpoint.queue_number <= 0xffffff);
	must(end->endpoint.link <= DEVICE_LINK_ETHERNET);
	must(end->responder <= DEVICE_RESPONDER_IN_PROCESS);
	must((end->generation & 0xffffff) != 0);
	must(end->endpoint.pkey != 0x8000);
	must(end->write_sink.length == 0 ||
	     end->write_sink.address + end->write_sink.length >= end->write_sink.length);
	must(end->write_sink.length != 0 ||
	     (end->write_sink.address == 0 && end->write_sink.key == 0));
	must(end->gpu.length == 0 || end->gpu.address + end->gpu.length >= end->gpu.length);
	must(end->gpu.length != 0 || (end->gpu.address == 0 && end->gpu.word == 0));
}

static void check(const struct pairing_message *message) {
	must(message->type >= PAIRING_INFO && message->type < PAIRING_MESSAGE_TYPE_END);
	must(message->device[0] != '\0' && message->your_device[0] != '\0');
	must(memchr(message->device, '\0', sizeof(message->device)) != NULL);
	must(memchr(message->your_device, '\0', sizeof(message->your_device)) != NULL);
	must(message->end.start != 0);
	must(message->failure.reason < PAIRING_REASON_COUNT);
	must(memchr(message->failure.text, '\0', sizeof(message->failure.text)) != NULL);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	uint8_t bytes[PAIRING_MESSAGE_BYTES_MAX], again[PAIRING_MESSAGE_BYTES_MAX];
	struct pairing_message message, copy;
	int err = pairing_message_decode(data, size, &message);
	size_t count;

	if (err == -EBADMSG)
		return 0;
	check(&message);
	if (err < 0) {
		must(message.failure.reason == PAIRING_MALFORMED ||
		     message.failure.reason == PAIRING_NO_COMMON_VERSION);
		return 0;
	}
	if (message.type == PAIRING_INFO || message.type == PAIRING_READY_SENT)
		check_end(&message.end);
	else
		must(message.failure.reason != PAIRING_REASON_NONE && message.failure.by_peer);
	// Fields of a newer version are dropped, and an unknown reason is replaced by a known one.
	count = pairing_message_encode(&message, bytes);
	must(count <= size);
	must(pairing_message_decode(bytes, count, &copy) == 0);
	must(pairing_message_encode(&copy, again) == count);
	must(memcmp(bytes, again, count) == 0);
	return 0;
}
