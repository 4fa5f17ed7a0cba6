// SPDX-License-Identifier: BSD-3-Clause
// Writes the congestion counters of ports as JSON.
#include "fabric/answers/congestion.h"

#include "client/names.h"
#include "client/server.h"

#include <control/congestion.h>
#include <records/path.h>

static uint64_t share_or_unknown(uint32_t permille) {
	return permille != UINT32_MAX ? permille : RECORD_UNKNOWN;
}

json_t *congestion_json(const struct session *session, const char *device) {
	const struct checks *checks = session->server->checks;
	const struct congestion_port *port = NULL;
	uint32_t port_count = checks != NULL ? checks_congestion(checks, &port) : 0;
	json_t *array = json_array();

	for (; port_count > 0; port_count--, port++) {
		struct port_congestion_row row = {
			.device = port->device,
			.port = port->number,
			.paused_sent_permille = share_or_unknown(port->sent_permille),
			.paused_received_permille = share_or_unknown(port->received_permille),
		};

		if (device != NULL && !congestion_port_is_of_device(port, device))
			continue;
		row.counts = json_object();
		for (uint32_t kind = 0; kind < CONGESTION_KIND_COUNT; kind++) {
			uint64_t total = port->totals[kind], rate = port->milli_per_s[kind];

			if (total == CONGESTION_UNKNOWN)
				continue;
			json_object_set_new(
				row.counts, congestion_name((enum congestion_kind)kind),
				json_pack(
					"{s:I,s:o}", "total",
					(json_int_t)(total < INT64_MAX ? total : INT64_MAX),
					"per_s",
					rate != CONGESTION_UNKNOWN ? json_real((double)rate / 1000)
								   : json_null()
				)
			);
		}
		json_array_append_new(array, record_to_json(&port_congestion_record, &row));
	}
	return array;
}

const char *rail_congestion_name(const struct session *session, const char *device) {
	const struct checks *checks = session->server->checks;
	const struct congestion_port *ports = NULL;
	uint32_t count = checks != NULL ? checks_congestion(checks, &ports) : 0;

	for (uint32_t n = 0; n < count; n++) {
		if (congestion_port_is_of_device(&ports[n], device))
			return congestion_level_name(congestion_level(&ports[n]));
	}
	return congestion_level_name(CONGESTION_NOT_COUNTED);
}
