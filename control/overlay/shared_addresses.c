// SPDX-License-Identifier: BSD-3-Clause
// IP addresses of this machine that an agent on another machine announces as its own. Packets to
// such an address reach either machine, so the other agent seems to fall silent and to come back.
// Only a machine itself knows all its addresses. Agents of one host may share an address.
#include "overlay/inside.h"

#include <lib/container.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

// Delay of a pass after the machine's addresses changed. An address that moves between machines
// exists twice until the agent that lost it has announced its new one.
#define SHARED_DELAY_NS (5 * RAS_NS_PER_SEC)

static int ips_compare(const void *a, const void *b) {
	return sock_addr_compare(a, b);
}

static bool address_was_shared(
	const struct overlay_shared_address *before,
	uint32_t count,
	const struct ras_record *record,
	const struct sock_addr *ip
) {
	for (uint32_t n = 0; n < count; n++) {
		if (before[n].peer == record->id && sock_addr_equal(&before[n].address, ip))
			return true;
	}
	return false;
}

// Return whether the peer's address is one of this machine's, too. One host name is one machine:
// after a reboot, agents from before it are still members. Agents at one address with different
// ports may be configured as different hosts ([node] host). `was`: the address was shared in the
// last pass.
static bool peer_address_is_shared(
	const struct overlay *overlay,
	const struct ras_record *self,
	const struct ras_peer *peer,
	bool was
) {
	const struct ras_record *record = peer->record;
	struct sock_addr ip = sock_addr_ip_only(&record->address),
			 own = sock_addr_ip_only(&self->address);
	bool is_own = sock_addr_equal(&ip, &own);

	if (record->id == self->id || record->host_name_id == self->host_name_id ||
	    overlay->own_address_count == 0 ||
	    bsearch(&ip, overlay->own_addresses, overlay->own_address_count, sizeof(ip),
		    ips_compare) == NULL)
		return false;
	if (is_own && record->address.port != self->address.port)
		return false;
	switch (peer->state) {
	case RAS_ALIVE:
	case RAS_SUSPECT:
	case RAS_UNREACHABLE:
		return true;
	case RAS_DEAD: // maybe due to this address; but a dead node's address may be reused
		return was && !is_own;
	default:
		return false;
	}
}

static void shared_address_words(
	const struct overlay *overlay,
	const struct overlay_shared_address *shared,
	char ret_words[static STATE_TEXT_BYTES]
) {
	char text[SOCK_ADDR_TEXT_BYTES], other[RAS_NAME_MAX + 1], self[RAS_NAME_MAX + 1];

	overlay_node_name(overlay, shared->peer, other);
	overlay_node_name(overlay, ras_self_id(overlay->ras), self);
	sock_addr_format_host(&shared->address, text);
	snprintf(
		ret_words, STATE_TEXT_BYTES,
		"%s is the address of %.40s, but the machine of %.40s has it, too: remove it from "
		"one of them",
		text, other, self
	);
}

static void shared_addresses_find(struct overlay *overlay) {
	struct overlay_shared_address before[OVERLAY_SHARED_ADDRESSES];
	uint32_t before_count = overlay->shared_address_count;
	char words[STATE_TEXT_BYTES];
	struct ras_peer self, peer;
	struct ras_view view;

	memcpy(before, overlay->shared_addresses, sizeof(before));
	overlay->shared_address_count = 0;
	if (ras_peer_find(overlay->ras, ras_self_id(overlay->ras), &self) != 0)
		return;
	ras_view(overlay->ras, &view);
	for (uint32_t slot = 0; slot < view.slots_max; slot++) {
		struct overlay_shared_address *shared =
			&overlay->shared_addresses[overlay->shared_address_count];
		struct sock_addr ip;
		bool was;

		if (overlay->shared_address_count == OVERLAY_SHARED_ADDRESSES)
			break;
		if (ras_peer_at(overlay->ras, slot, &peer) != 0)
			continue;
		ip = sock_addr_ip_only(&peer.record->address);
		was = address_was_shared(before, before_count, peer.record, &ip);
		if (!peer_address_is_shared(overlay, self.record, &peer, was))
			continue;
		*shared = (struct overlay_shared_address){.peer = peer.record->id, .address = ip};
		overlay->shared_address_count++;
		if (!was) {
			const struct ras_event note = {
				.kind = RAS_EVENT_ADDRESS_SHARED,
				.peer = shared->peer,
				.cause = RAS_CAUSE_CONFLICT,
				.other = shared->address,
			};

			shared_address_words(overlay, shared, words);
			(void)overlay_note(overlay, &note, words);
		}
	}
}

void overlay_shared_addresses_find(struct overlay *overlay) {
	shared_addresses_find(overlay);
	for (struct overlay_listener *listener = overlay->listeners; listener != NULL;
	     listener = listener->next) {
		if (listener->addresses != NULL)
			listener->addresses(listener);
	}
}

static void on_shared_address_timer(struct loop_timer *timer, uint64_t now_ns) {
	struct overlay *overlay = container_of(timer, struct overlay, shared_addresses_timer);

	(void)now_ns;
	overlay->shared_addresses_due = false;
	overlay_shared_addresses_find(overlay);
}

int overlay_set_own_addresses(
	struct overlay *overlay, const struct sock_addr *addresses, size_t count
) {
	struct sock_addr *own = calloc(count + 1, sizeof(*own));
	size_t used = 0;
	int err = 0;

	if (own == NULL)
		return -ENOMEM;
	// Only one machine can have an address of the list. Every machine has 127/8, and link-local
	// addresses may repeat on another link.
	for (size_t n = 0; n < count; n++) {
		if (!sock_addr_is_any(&addresses[n]) && !sock_addr_is_loopback(&addresses[n]) &&
		    !sock_addr_is_link_local(&addresses[n]))
			own[used++] = sock_addr_ip_only(&addresses[n]);
	}
	qsort(own, used, sizeof(*own), ips_compare);
	free(overlay->own_addresses);
	overlay->own_addresses = own;
	overlay->own_address_count = used;
	// Another change does not postpone the pass, because a machine may have one each second.
	overlay->shared_addresses_timer.expired = on_shared_address_timer;
	if (!overlay->shared_addresses_due)
		err = loop_timer_set(
			overlay->loop, &overlay->shared_addresses_timer,
			loop_now_ns(overlay->loop) + SHARED_DELAY_NS
		);
	overlay->shared_addresses_due = err == 0;
	return err;
}

bool overlay_shared_address_at(
	const struct overlay *overlay, uint32_t place, char ret_words[static STATE_TEXT_BYTES]
) {
	if (place >= overlay->shared_address_count)
		return false;
	shared_address_words(overlay, &overlay->shared_addresses[place], ret_words);
	return true;
}

void overlay_shared_addresses_stop(struct overlay *overlay) {
	loop_timer_cancel(overlay->loop, &overlay->shared_addresses_timer);
	free(overlay->own_addresses);
	overlay->own_addresses = NULL;
	overlay->own_address_count = 0;
}
