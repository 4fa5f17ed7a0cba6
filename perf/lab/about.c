// SPDX-License-Identifier: BSD-3-Clause
// Wire format of the description that each end sends to the other one (struct lab_end_info).
#include "run/end.h"

#include <errno.h>
#include <string.h>

#define ENDPOINT_BYTES 33

void lab_end_info_encode(const struct lab_end_info *about, struct wire_writer *writer) {
	wire_put_u16(writer, (uint16_t)about->pair_count);
	for (uint32_t n = 0; n < about->pair_count; n++) {
		const struct device_endpoint *endpoint = &about->endpoints[n];

		wire_put_u8(writer, (uint8_t)endpoint->link);
		wire_put_u16(writer, endpoint->lid);
		wire_put_bytes(writer, endpoint->gid.raw, sizeof(endpoint->gid.raw));
		wire_put_u16(writer, endpoint->mtu);
		wire_put_u8(writer, endpoint->reads_in_max);
		wire_put_u8(writer, endpoint->reads_out_max);
		wire_put_u32(writer, endpoint->queue_number);
		wire_put_u32(writer, endpoint->psn);
		wire_put_u16(writer, endpoint->pkey);
	}
	wire_put_u64(writer, about->address);
	wire_put_u32(writer, about->key);
	wire_put_string(writer, about->device, strlen(about->device));
}

// Decode only; device_endpoint_check() judges the values.
void lab_end_info_decode(struct wire_reader *reader, struct lab_end_info *ret_about) {
	struct lab_end_info about = {.key = 0};

	about.pair_count = wire_get_count_u16(reader, PLAN_PAIRS_MAX, ENDPOINT_BYTES);
	for (uint32_t n = 0; n < about.pair_count; n++) {
		struct device_endpoint *endpoint = &about.endpoints[n];
		uint8_t link = wire_get_u8(reader);

		if (link > DEVICE_LINK_ETHERNET)
			wire_reader_fail(reader, -EBADMSG);
		endpoint->link = (enum device_link)(link & 1);
		endpoint->lid = wire_get_u16(reader);
		wire_get_bytes(reader, endpoint->gid.raw, sizeof(endpoint->gid.raw));
		endpoint->mtu = wire_get_u16(reader);
		endpoint->reads_in_max = wire_get_u8(reader);
		endpoint->reads_out_max = wire_get_u8(reader);
		endpoint->queue_number = wire_get_u32(reader);
		endpoint->psn = wire_get_u32(reader);
		endpoint->pkey = wire_get_u16(reader);
	}
	about.address = wire_get_u64(reader);
	about.key = wire_get_u32(reader);
	wire_get_string(reader, about.device, sizeof(about.device));
	if (wire_reader_ok(reader))
		*ret_about = about;
}
