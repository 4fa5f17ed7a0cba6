// SPDX-License-Identifier: BSD-3-Clause
// Relay ports for other parts of the agent. The core must not be called back from its own calls. So
// messages are copied, and delivered at the end of the turn.
#include "overlay/inside.h"

#include <lib/container.h>
#include <lib/must.h>

#include <errno.h>
#include <stdlib.h>
#include <string.h>

// A received message, or a report that a sent message was not delivered.
struct overlay_port_item {
	struct overlay_port_item *next;
	bool undelivered;
	struct ras_relay_report report; // if undelivered
	uint32_t tag;
	uint64_t node; // sender of a received message
	uint64_t incarnation;
	size_t size;
	uint8_t bytes[];
};

// A sent message without a report. The core takes at most RAS_RELAY_PENDING_MAX of all ports.
struct overlay_port_sent {
	struct overlay_port_sent *next;
	uint64_t message_id;
	uint32_t tag;
};

static struct overlay_port *port_find(const struct overlay *overlay, uint32_t number) {
	struct overlay_port *port = overlay->ports;

	while (port != NULL && port->number != number)
		port = port->next;
	return port;
}

static void queue_append(struct overlay_port *port, struct overlay_port_item *item) {
	item->next = NULL;
	*port->last = item;
	port->last = &item->next;
	port->waiting++;
	loop_defer(port->overlay->loop, &port->hand_over);
}

static struct overlay_port_item *queue_take(struct overlay_port *port) {
	struct overlay_port_item *item = port->first;

	if (item == NULL)
		return NULL;
	port->first = item->next;
	if (port->first == NULL)
		port->last = &port->first;
	port->waiting--;
	return item;
}

// Deliver the items that are queued now. A callback may close the port.
static void hand_over(struct loop_job *job) {
	struct overlay_port *port = container_of(job, struct overlay_port, hand_over);
	uint32_t count = port->waiting;

	while (count-- > 0 && port->overlay != NULL) {
		struct overlay_port_item *item = queue_take(port);

		if (item == NULL)
			return; // the port was closed and opened again
		if (item->undelivered)
			port->undelivered(port, item->tag, &item->report);
		else
			port->message(port, item->node, item->incarnation, item->bytes, item->size);
		free(item);
	}
}

int overlay_port_deliver(struct overlay *overlay, const struct ras_relay_delivery *delivery) {
	struct overlay_port *port = port_find(overlay, delivery->port);
	struct overlay_port_item *item;

	if (port == NULL)
		return -ENOENT;
	if (delivery->size > RAS_RELAY_CONTROL_BYTES_MAX)
		return -EBADMSG;
	if (port->waiting >= OVERLAY_PORT_WAITING_MAX)
		return -EAGAIN;
	item = calloc(1, sizeof(*item) + delivery->size);
	if (item == NULL)
		return -EAGAIN;
	item->node = delivery->source;
	item->incarnation = delivery->source_incarnation;
	item->size = delivery->size;
	if (delivery->size > 0)
		memcpy(item->bytes, delivery->payload, delivery->size);
	queue_append(port, item);
	return 0;
}

static bool port_forget_sent(struct overlay_port *port, uint64_t message_id, uint32_t *ret_tag) {
	for (struct overlay_port_sent **at = &port->sent; *at != NULL; at = &(*at)->next) {
		struct overlay_port_sent *sent = *at;

		if (sent->message_id != message_id)
			continue;
		*at = sent->next;
		*ret_tag = sent->tag;
		free(sent);
		return true;
	}
	return false;
}

bool overlay_port_report(struct overlay *overlay, const struct ras_relay_report *report) {
	struct overlay_port *port = overlay->ports;
	struct overlay_port_item *item;
	uint32_t tag = 0;

	while (port != NULL && !port_forget_sent(port, report->message_id, &tag))
		port = port->next;
	if (port == NULL)
		return false;
	if (report->outcome == RAS_RELAY_OUTCOME_DELIVERED)
		return true;
	// Without memory the sender gets no report, as if the message were lost at its destination.
	item = calloc(1, sizeof(*item));
	if (item == NULL)
		return true;
	item->undelivered = true;
	item->tag = tag;
	item->report = *report;
	queue_append(port, item);
	return true;
}

int overlay_port_send(struct overlay_port *port, const struct overlay_port_message *message) {
	struct overlay *overlay = port->overlay;
	struct overlay_port_sent *sent = malloc(sizeof(*sent));
	struct ras_relay_message relayed = {
		.destination = message->node,
		.class = RAS_RELAY_CONTROL,
		.flags = RAS_RELAY_REPORT,
		.flow = port->number,
		.port = port->number,
		.life_ns = message->life_ns,
		.payload = message->bytes,
		.size = message->size,
	};
	int err;

	if (sent == NULL)
		return -ENOMEM;
	err = ras_relay_send(overlay->ras, overlay_now_ns(overlay), &relayed, &sent->message_id);
	if (err != 0) {
		free(sent);
		return err;
	}
	sent->tag = message->tag;
	sent->next = port->sent;
	port->sent = sent;
	return 0;
}

uint32_t overlay_port_pending(const struct overlay_port *port) {
	uint32_t count = 0;

	for (const struct overlay_port_sent *sent = port->sent; sent != NULL; sent = sent->next)
		count++;
	return count;
}

void overlay_port_open(struct overlay *overlay, struct overlay_port *port) {
	must(port_find(overlay, port->number) == NULL);
	port->overlay = overlay;
	port->first = NULL;
	port->last = &port->first;
	port->waiting = 0;
	port->sent = NULL;
	port->hand_over = (struct loop_job){.run = hand_over};
	port->next = overlay->ports;
	overlay->ports = port;
	ras_relay_port_ready(overlay->ras, overlay_now_ns(overlay), port->number);
}

void overlay_port_close(struct overlay_port *port) {
	struct overlay_port **at;
	struct overlay_port_item *item;

	if (port->overlay == NULL)
		return;
	loop_undefer(port->overlay->loop, &port->hand_over);
	for (at = &port->overlay->ports; *at != port; at = &(*at)->next)
		;
	*at = port->next;
	while ((item = queue_take(port)) != NULL)
		free(item);
	while (port->sent != NULL) {
		struct overlay_port_sent *sent = port->sent;

		(void)ras_relay_cancel(
			port->overlay->ras, overlay_now_ns(port->overlay), sent->message_id
		);
		port->sent = sent->next;
		free(sent);
	}
	port->overlay = NULL;
}

void overlay_port_fini(struct overlay *overlay) {
	while (overlay->ports != NULL)
		overlay_port_close(overlay->ports);
}
