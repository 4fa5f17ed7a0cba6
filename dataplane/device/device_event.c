// SPDX-License-Identifier: BSD-3-Clause
// Translates the events of an open device.
#include "device/device_impl.h"

#define KNOWN(type, what) [IBV_EVENT_##type] = {#type, DEVICE_EVENT_##what}

static const struct {
	const char *name;
	enum device_event_kind kind;
} known[] = {
	KNOWN(CQ_ERR, COMPLETIONS_FATAL),
	KNOWN(QP_FATAL, PAIR_FATAL),
	KNOWN(QP_REQ_ERR, PAIR_FATAL),
	KNOWN(QP_ACCESS_ERR, PAIR_FATAL),
	KNOWN(COMM_EST, OTHER),
	KNOWN(SQ_DRAINED, OTHER),
	KNOWN(PATH_MIG, OTHER),
	KNOWN(PATH_MIG_ERR, OTHER),
	KNOWN(DEVICE_FATAL, FATAL),
	KNOWN(PORT_ACTIVE, PORT_ACTIVE),
	KNOWN(PORT_ERR, PORT_DOWN),
	KNOWN(LID_CHANGE, PORT_CHANGED),
	KNOWN(PKEY_CHANGE, PORT_CHANGED),
	KNOWN(SM_CHANGE, PORT_CHANGED),
	KNOWN(SRQ_ERR, OTHER),
	KNOWN(SRQ_LIMIT_REACHED, OTHER),
	KNOWN(QP_LAST_WQE_REACHED, OTHER),
	KNOWN(CLIENT_REREGISTER, PORT_CHANGED),
	KNOWN(GID_CHANGE, PORT_CHANGED),
	KNOWN(WQ_FATAL, OTHER),
};

int device_event_fd(const struct device *device) {
	return device->context->async_fd;
}

int device_event(struct device *device, struct device_event *ret_event) {
	struct device_event event = {.kind = DEVICE_EVENT_OTHER, .name = "unknown"};
	struct ibv_async_event raw;
	int err = device->calls->get_async_event(device->context, &raw);

	if (err != 0)
		return err;
	if (raw.event_type < sizeof(known) / sizeof(known[0])) {
		event.kind = known[raw.event_type].kind;
		event.name = known[raw.event_type].name;
	}

	// Read the subject before the acknowledgement, after which the queue pair may be freed.
	switch (event.kind) {
	case DEVICE_EVENT_PORT_ACTIVE:
	case DEVICE_EVENT_PORT_DOWN:
	case DEVICE_EVENT_PORT_CHANGED:
		event.port = (uint8_t)raw.element.port_num;
		break;
	case DEVICE_EVENT_PAIR_FATAL:
		event.queue_number = raw.element.qp->qp_num;
		break;
	case DEVICE_EVENT_COMPLETIONS_FATAL:
	case DEVICE_EVENT_FATAL:
	case DEVICE_EVENT_OTHER:
		break;
	}
	device->calls->ack_async_event(&raw);
	*ret_event = event;
	return 0;
}
