// SPDX-License-Identifier: BSD-3-Clause
// Borders of the stages; perf/meson.build has the same names for the linker.
#include "engine/engine.h"
#include "soft_stages.h"
#include "transport/output.h"
#include "transport/requester_impl.h"

#include <string.h>

// clang-format off
#define WRAP(of, type, name, parameters, arguments)      \
	type __real_##name parameters;                      \
	type __wrap_##name parameters;                      \
	type __wrap_##name parameters {                     \
		enum stage before = stage_enter(of);     \
		type result = __real_##name arguments;      \
                                                            \
		stage_leave(before);                        \
		return result;                              \
	}
#define WRAP_VOID(of, name, parameters, arguments)       \
	void __real_##name parameters;                      \
	void __wrap_##name parameters;                      \
	void __wrap_##name parameters {                     \
		enum stage before = stage_enter(of);     \
                                                            \
		__real_##name arguments;                    \
		stage_leave(before);                        \
	}
// clang-format on

_Thread_local struct stages stages;

WRAP_VOID(
	STAGE_CHECK,
	nic_frame,
	(struct soft_nic * nic, const struct wire_frame *frame),
	(nic, frame)
)
WRAP_VOID(
	STAGE_TRANSPORT,
	requester_response,
	(struct soft_qp * qp, const struct packet *packet),
	(qp, packet)
)
WRAP_VOID(
	STAGE_TRANSPORT,
	responder_request,
	(struct soft_qp * qp, const struct packet *packet),
	(qp, packet)
)
WRAP(STAGE_TRANSPORT, bool, nic_turn, (struct soft_nic * nic, bool defer_acks), (nic, defer_acks))
WRAP_VOID(STAGE_TRANSPORT, nic_push, (struct soft_nic * nic), (nic))
WRAP(STAGE_BUILD,
     uint8_t *,
     output_begin,
     (struct soft_qp * qp, const struct packet *packet, uint32_t payload_bytes),
     (qp, packet, payload_bytes))
WRAP_VOID(STAGE_BUILD, output_end, (struct soft_qp * qp), (qp))
WRAP(STAGE_BUILD,
     bool,
     work_gather,
     (const struct soft_qp *qp, uint32_t index, uint32_t offset, uint8_t *to, uint32_t size),
     (qp, index, offset, to, size))

// The calls of the wire are in a table, which all devices of this program share.
static const struct wire_calls *inner;

static uint8_t *timed_take(struct soft_wire *wire) {
	enum stage before = stage_enter(STAGE_SEND);
	uint8_t *frame = inner->take(wire);

	stage_leave(before);
	return frame;
}

static void timed_give(struct soft_wire *wire, uint32_t size) {
	enum stage before = stage_enter(STAGE_SEND);

	inner->give(wire, size);
	stage_leave(before);
}

static void timed_flush(struct soft_wire *wire) {
	enum stage before = stage_enter(STAGE_SEND);

	inner->flush(wire);
	stage_leave(before);
}

static uint32_t timed_receive(
	struct soft_wire *wire, struct wire_frame *ret_frames, uint32_t max, uint64_t now_ns
) {
	enum stage before = stage_enter(STAGE_RECEIVE);
	uint32_t count = inner->receive(wire, ret_frames, max, now_ns);

	stage_leave(before);
	return count;
}

void stages_wrap_wire(struct soft_wire *wire) {
	static struct wire_calls timed;

	inner = wire->calls;
	timed = *inner;
	timed.take = timed_take;
	timed.give = timed_give;
	timed.flush = timed_flush;
	timed.receive = timed_receive;
	wire->calls = &timed;
}

void stages_begin(void) {
	memset(&stages, 0, sizeof(stages));
	stages.on = true;
	stages.last = stage_ticks();
}

void stages_end(void) {
	stage_charge();
	stages.on = false;
}
