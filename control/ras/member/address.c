// SPDX-License-Identifier: BSD-3-Clause
// Changes the address of this agent, when the addresses of the machine change. A record belongs to
// one start and never changes, so a new address needs a new start. All members treat this like a
// restart of the agent, and give up what was on its way to the old start.
#include "core/core.h"

#include <errno.h>

int ras_set_own_address(struct ras *ras, uint64_t now_ns, const struct sock_addr *address) {
	const struct ras_record *before = ras_self(ras)->record;
	uint32_t count;
	int err = 0;

	ras_enter(ras, now_ns);
	if (ras->leaving)
		err = -EAGAIN;
	else if (!sock_addr_equal(&before->address, address))
		err = ras_restart_at_address(ras, address);
	if (err == 0 && ras->started) {
		liveness_reset(ras); // the silence of peers may be our own fault

		// End all connections that use the old address. Connections that are opened
		// meanwhile to replace them use the new address and stay open.
		count = ras->conns.count;
		for (uint32_t n = 0; n < count; n++) {
			struct conn *conn = ras->conns.table[n];

			if (conn != NULL && conn->stage != CONN_FREE)
				conn->outlived = true;
		}
		for (uint32_t n = 0; n < count; n++) {
			struct conn *conn = ras->conns.table[n];

			// Our address changed; the peer did not fail. The cause SILENT counts
			// nothing against it.
			if (conn != NULL && conn->stage != CONN_FREE && conn->outlived)
				conn_abort(ras, conn, RAS_CLOSE_HARD, RAS_CAUSE_SILENT);
		}

		links_reconnect(ras);
		news_send_self(ras);
	}
	if (err == 0 && ras_self(ras)->record != before)
		ras_emit_own_address(ras);
	ras_exit(ras);
	return err;
}

void ras_own_address_restored(struct ras *ras, uint64_t now_ns) {
	ras_enter(ras, now_ns);
	if (ras->started && !ras->leaving) {
		liveness_reset(ras);
		links_reconnect(ras);
	}
	ras_exit(ras);
}
