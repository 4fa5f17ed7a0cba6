// SPDX-License-Identifier: BSD-3-Clause
// Encodes and decodes the message that announces a node's rails.
#include "fabric/rail_message.h"

#include <lib/must.h>
#include <lib/wire.h>

#include <errno.h>
#include <string.h>

#define RAIL_MESSAGE_VERSION 1
#define FLAG_ASKS 0x01
#define MESSAGE_RAILS_MAX 256 // rails of one message, in any version
#define RAIL_BYTES_MIN 21     // without the name
#define BITS_MAX 128

size_t rail_message_encode(
	const struct rail_list *rails, bool asks, uint8_t bytes[static RAIL_MESSAGE_BYTES_MAX]
) {
	struct wire_writer writer;

	wire_writer_init(&writer, bytes, RAIL_MESSAGE_BYTES_MAX);
	wire_put_u8(&writer, RAIL_MESSAGE_VERSION);
	wire_put_u8(&writer, asks ? FLAG_ASKS : 0);
	wire_put_u16(&writer, (uint16_t)rails->count);
	for (uint32_t n = 0; n < rails->count; n++) {
		const struct rail *rail = &rails->rails[n];
		size_t length = strnlen(rail->name, DEVICE_NAME_MAX);

		wire_put_u16(&writer, (uint16_t)(RAIL_BYTES_MIN + length));
		wire_put_string(&writer, rail->name, length);
		wire_put_u8(&writer, (uint8_t)rail->link);
		wire_put_u8(&writer, (uint8_t)rail->subnet.kind);
		wire_put_u8(&writer, rail->subnet.bits);
		wire_put_bytes(&writer, rail->subnet.bytes, sizeof(rail->subnet.bytes));
	}
	must(!writer.overflowed);
	return wire_writer_used(&writer);
}

// Return whether no bit is set past the prefix, so that equal subnets have equal bytes.
static bool subnet_is_canonical(const struct device_subnet *subnet) {
	for (uint32_t bit = subnet->bits; bit < BITS_MAX; bit++) {
		if ((subnet->bytes[bit / 8] >> (7 - bit % 8) & 1) != 0)
			return false;
	}
	return true;
}

static bool list_has_name(const struct rail_list *list, const char *name) {
	for (uint32_t n = 0; n < list->count; n++) {
		if (strcmp(list->rails[n].name, name) == 0)
			return true;
	}
	return false;
}

static void get_rail(struct wire_reader *reader, struct rail_list *list) {
	struct rail rail = {0};
	struct device_subnet *subnet = &rail.subnet;
	struct wire_reader own;
	uint8_t link;

	wire_reader_nested(reader, wire_get_u16(reader), &own);
	wire_get_name(&own, rail.name, sizeof(rail.name));
	link = wire_get_u8(&own);
	subnet->kind = wire_get_u8(&own);
	subnet->bits = wire_get_u8(&own);
	wire_get_bytes(&own, subnet->bytes, sizeof(subnet->bytes));
	if (subnet->kind != DEVICE_SUBNET_INFINIBAND && subnet->kind != DEVICE_SUBNET_IP)
		*subnet = (struct device_subnet){.kind = DEVICE_SUBNET_UNKNOWN};
	else if (subnet->bits == 0 || subnet->bits > BITS_MAX || !subnet_is_canonical(subnet))
		wire_reader_fail(&own, -EBADMSG);
	if (!wire_reader_ok(&own) || list_has_name(list, rail.name)) {
		wire_reader_fail(reader, -EBADMSG);
		return;
	}
	if (link > DEVICE_LINK_ETHERNET || list->count == RAILS_MAX)
		return;
	rail.link = link;
	list->rails[list->count++] = rail;
}

int rail_message_decode(
	const void *bytes, size_t size, struct rail_list *ret_rails, bool *ret_asks
) {
	struct rail_list list = {0};
	struct wire_reader reader;
	uint8_t version, flags;
	uint32_t count;

	wire_reader_init(&reader, bytes, size);
	version = wire_get_u8(&reader);
	flags = wire_get_u8(&reader);
	count = wire_get_count_u16(&reader, MESSAGE_RAILS_MAX, 2 + RAIL_BYTES_MIN);
	for (uint32_t n = 0; n < count && wire_reader_ok(&reader); n++)
		get_rail(&reader, &list);
	if (version == 0 || (version == RAIL_MESSAGE_VERSION && wire_reader_left(&reader) > 0))
		wire_reader_fail(&reader, -EBADMSG);
	if (!wire_reader_ok(&reader))
		return wire_reader_error(&reader);
	*ret_rails = list;
	*ret_asks = (flags & FLAG_ASKS) != 0;
	return 0;
}
