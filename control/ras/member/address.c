// SPDX-License-Identifier: BSD-3-Clause
// Our own address, when the machine's change under us. A record is of one start and never changes,
// so another address is a new start: everybody takes it over as that of an agent that was started
// again, and what was on its way to the old one is given up by the same rules.
#include "core/core.h"

#include <errno.h>

// What was spoken from the old address ends with it. All that there are now: those that are opened
// for them are from the new one.
static void conns_end(struct ras *ras) {
	uint32_t count = ras->conns.count;

	for (uint32_t n = 0; n < count; n++) {
		struct conn *conn = ras->conns.table[n];

		if (conn != NULL && conn->stage != CONN_FREE)
			conn->outlived = true;
	}
	for (uint32_t n = 0; n < count; n++) {
		struct conn *conn = ras->conns.table[n];

		// As one that nothing came by any more: no evidence against the other side.
		if (conn != NULL && conn->stage != CONN_FREE && conn->outlived)
			conn_failed(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_SILENT);
	}
}

int ras_readdress(struct ras *ras, uint64_t now_ns, const struct sock_addr *address) {
	const struct ras_record *before = ras_self(ras)->record;
	int err = 0;

	ras_enter(ras, now_ns);
	if (ras->leaving)
		err = -EAGAIN;
	else if (!sock_addr_equal(&before->address, address))
		err = ras_self_renew(ras, address);
	if (err == 0 && ras->started) {
		liveness_begin_anew(ras); // whom we did not hear we could not hear
		conns_end(ras);
		links_redial(ras);
		news_of_self(ras);
	}
	if (err == 0 && ras_self(ras)->record != before)
		ras_own_address(ras);
	ras_exit(ras);
	return err;
}

void ras_address_back(struct ras *ras, uint64_t now_ns) {
	ras_enter(ras, now_ns);
	if (ras->started && !ras->leaving) {
		liveness_begin_anew(ras);
		links_redial(ras);
	}
	ras_exit(ras);
}
