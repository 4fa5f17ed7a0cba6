// SPDX-License-Identifier: BSD-3-Clause
// The bytes that may be in memory according to the model.
#include "dataplane/soft/transport/model.h"

bool is_write(enum ibv_wr_opcode opcode) {
	return opcode == IBV_WR_RDMA_WRITE || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

bool is_send(enum ibv_wr_opcode opcode) {
	return opcode == IBV_WR_SEND || opcode == IBV_WR_SEND_WITH_IMM;
}

bool is_atomic(enum ibv_wr_opcode opcode) {
	return opcode == IBV_WR_ATOMIC_CMP_AND_SWP || opcode == IBV_WR_ATOMIC_FETCH_AND_ADD;
}

bool takes_receive(enum ibv_wr_opcode opcode) {
	return is_send(opcode) || opcode == IBV_WR_RDMA_WRITE_WITH_IMM;
}

uint8_t byte_of(uint32_t id, uint32_t at) {
	return (uint8_t)(id * 31 + at * 7 + (at >> 8) * 13 + (id >> 8) + 1);
}

void paint_expected(
	struct device *device, uint32_t at, uint32_t length, uint32_t id, uint32_t first
) {
	for (uint32_t n = 0; n < length; n++)
		device->expected[at + n] = byte_of(id, first + n);
}

void paint(struct device *device, uint32_t at, uint32_t length, uint32_t id, uint32_t first) {
	paint_expected(device, at, length, id, first);
	memcpy(device->memory + at, device->expected + at, length);
}

// Return whether this request may have written this byte there.
static bool may_write(const struct work *work, uint32_t place, uint8_t byte) {
	return is_write(work->opcode) && work->wrong == RIGHT && place >= work->target &&
	       place - work->target < work->length &&
	       byte == byte_of(work->id, place - work->target);
}

static bool
any_may_write(struct end *end, uint32_t from, uint32_t to, uint32_t place, uint8_t byte) {
	for (uint32_t at = from; at != to; at++) {
		if (may_write(work_at(end, at), place, byte))
			return true;
	}
	return false;
}

void check_landed(struct end *end, uint32_t at) {
	struct work *work = work_at(end, at);
	const uint8_t *bytes = end->peer->device->memory + work->target;

	for (uint32_t n = 0; n < work->length; n++) {
		if (bytes[n] != byte_of(work->id, n) &&
		    !any_may_write(end, at + 1, end->tail, work->target + n, bytes[n]))
			model_fail(
				end->model, "write %u of %u bytes is not there from byte %u on",
				work->id, work->length, n
			);
	}
}

void apply_write(struct end *end, const struct work *work) {
	paint_expected(end->peer->device, work->target, work->length, work->id, 0);
}

// Return the first later request with a fence. Writes before it may already be visible in the read.
static uint32_t fence_after(struct end *end, uint32_t at) {
	for (at++; at != end->tail; at++) {
		if (work_at(end, at)->flags & IBV_SEND_FENCE)
			break;
	}
	return at;
}

void apply_read(struct end *end, uint32_t at) {
	struct work *work = work_at(end, at);
	struct device *device = end->device;
	const uint8_t *source = end->peer->device->expected;
	uint32_t fence = fence_after(end, at);
	uint32_t offset = 0;

	for (uint32_t i = 0; i < work->piece_count; i++) {
		const struct piece *piece = &work->pieces[i];

		for (uint32_t n = 0; n < piece->length; n++, offset++) {
			uint32_t place = work->target + offset;
			uint8_t byte = device->memory[piece->at + n];

			if (byte != source[place] &&
			    !any_may_write(end, at + 1, fence, place, byte))
				model_fail(
					end->model,
					"read %u of %u bytes: byte %u is 0x%02x, not "
					"0x%02x",
					work->id, work->length, offset, byte, source[place]
				);
			device->expected[piece->at + n] = byte;
		}
	}
}

static uint64_t word_at(const uint8_t *bytes, uint32_t at) {
	uint64_t word;

	memcpy(&word, bytes + at, sizeof(word));
	return word;
}

static uint64_t after_atomic(const struct work *work, uint64_t before) {
	if (work->opcode == IBV_WR_ATOMIC_FETCH_AND_ADD)
		return before + work->compare_add;
	return before == work->compare_add ? work->swap : before;
}

static bool is_counting(const struct end *end, const struct work *work) {
	return work->target == end->peer->device->counter;
}

// Read the original value of an atomic, which may be split over several pieces.
static uint64_t original_of(struct end *end, const struct work *work) {
	uint8_t bytes[8];
	uint32_t offset = 0;
	uint64_t word;

	for (uint32_t i = 0; i < work->piece_count; i++) {
		const struct piece *piece = &work->pieces[i];

		memcpy(bytes + offset, end->device->memory + piece->at, piece->length);
		memcpy(end->device->expected + piece->at, end->device->memory + piece->at,
		       piece->length);
		offset += piece->length;
	}
	memcpy(&word, bytes, sizeof(word));
	return word;
}

void apply_atomic(struct end *end, const struct work *work) {
	struct device *over = end->peer->device;
	uint64_t original = original_of(end, work);
	uint64_t before;
	uint64_t after;

	if (is_counting(end, work)) {
		over->counted++;
		return;
	}
	before = word_at(over->expected, work->target);
	model_must(
		end->model, original == before, "atomic %u found 0x%lx, not 0x%lx", work->id,
		(unsigned long)original, (unsigned long)before
	);
	after = after_atomic(work, before);
	memcpy(over->expected + work->target, &after, sizeof(after));
}

void apply_receive(
	struct end *end, const struct receive *receive, const struct incoming *incoming
) {
	struct device *device = end->device;
	uint32_t offset = 0;

	if (!is_send(incoming->opcode))
		return;
	for (uint32_t i = 0; i < receive->piece_count && offset < incoming->length; i++) {
		const struct piece *piece = &receive->pieces[i];
		uint32_t length = incoming->length - offset;

		if (length > piece->length)
			length = piece->length;
		paint_expected(device, piece->at, length, incoming->id, offset);
		model_must(
			end->model,
			memcmp(device->memory + piece->at, device->expected + piece->at, length) ==
				0,
			"send %u of %u bytes did not arrive as it was sent", incoming->id,
			incoming->length
		);
		offset += length;
	}
}

static void adopt_read(struct end *end, const struct work *work) {
	const uint8_t *source = end->peer->device->expected;
	struct device *device = end->device;
	uint32_t offset = 0;

	for (uint32_t i = 0; i < work->piece_count; i++) {
		const struct piece *piece = &work->pieces[i];

		for (uint32_t n = 0; n < piece->length; n++, offset++) {
			uint8_t byte = device->memory[piece->at + n];
			uint32_t place = work->target + offset;

			if (byte == device->expected[piece->at + n])
				continue;
			if (work->wrong != RIGHT ||
			    (byte != source[place] &&
			     !any_may_write(end, end->kept, end->tail, place, byte)))
				model_fail(
					end->model, "read %u failed and left 0x%02x at byte %u",
					work->id, byte, offset
				);
			device->expected[piece->at + n] = byte;
		}
	}
}

void adopt_local(struct end *end, uint32_t at) {
	const struct work *work = work_at(end, at);

	if (work->opcode == IBV_WR_RDMA_READ)
		adopt_read(end, work);
	else if (is_atomic(work->opcode))
		original_of(end, work);
}

static bool may_arrive(const struct end *end, uint32_t offset, uint8_t byte) {
	for (uint32_t at = end->incoming_head; at != end->incoming_tail; at++) {
		const struct incoming *incoming = &end->incoming[at % INCOMING_RING];

		if (is_send(incoming->opcode) && offset < incoming->length &&
		    byte == byte_of(incoming->id, offset))
			return true;
	}
	return false;
}

void adopt_receive(struct end *end, const struct receive *receive) {
	struct device *device = end->device;
	uint32_t offset = 0;

	for (uint32_t i = 0; i < receive->piece_count; i++) {
		const struct piece *piece = &receive->pieces[i];

		for (uint32_t n = 0; n < piece->length; n++, offset++) {
			uint8_t byte = device->memory[piece->at + n];

			if (byte == device->expected[piece->at + n])
				continue;
			// The byte may come from a send to another queue pair that shares the
			// queue.
			if (end->uses_srq && !may_arrive(end, offset, byte))
				continue;
			model_must(
				end->model, may_arrive(end, offset, byte),
				"receive %u failed and left 0x%02x at byte %u", receive->id, byte,
				offset
			);
			device->expected[piece->at + n] = byte;
		}
	}
}

// With a wrong lkey an atomic is executed too: the missing local buffer is only noticed when the
// response arrives.
static bool is_executed(const struct work *work) {
	return is_atomic(work->opcode) && (work->wrong == RIGHT || work->wrong == WRONG_LKEY);
}

// Atomics are executed in order, up to some unknown request.
static void adopt_word(struct end *end, uint32_t place) {
	struct device *over = end->peer->device;
	uint64_t actual = word_at(over->memory, place);
	uint64_t value = word_at(over->expected, place);
	bool found = actual == value;

	for (uint32_t at = end->kept; at != end->tail; at++) {
		const struct work *work = work_at(end, at);

		if (!is_executed(work) || work->target != place)
			continue;
		value = after_atomic(work, value);
		found = found || actual == value;
	}
	model_must(
		end->model, found, "word %u is 0x%lx, was 0x%lx, which no atomic left", place,
		(unsigned long)actual, (unsigned long)word_at(over->expected, place)
	);
	memcpy(over->expected + place, &actual, sizeof(actual));
}

void adopt_target(struct end *end) {
	struct device *over = end->peer->device;
	uint32_t last = end->peer->target + end->peer->target_bytes;

	for (uint32_t place = end->peer->target; place < last; place++) {
		uint8_t byte = over->memory[place];

		if (byte == over->expected[place])
			continue;
		model_must(
			end->model, any_may_write(end, end->kept, end->tail, place, byte),
			"byte %u of a target is 0x%02x, which nobody wrote", place, byte
		);
		over->expected[place] = byte;
	}
	for (uint32_t n = 0; n < WORDS; n++)
		adopt_word(end, end->peer->words + 8 * n);
	for (uint32_t at = end->kept; at != end->tail; at++) {
		const struct work *work = work_at(end, at);

		if (is_executed(work) && is_counting(end, work))
			over->perhaps_counted++;
	}
}

void check_memory(struct model *model) {
	for (uint32_t d = 0; d < model->device_count; d++) {
		struct device *device = &model->devices[d];
		uint64_t counted = word_at(device->memory, device->counter);

		model_must(
			model,
			counted >= device->counted &&
				counted <= device->counted + device->perhaps_counted,
			"%lu counted of %lu, and %lu perhaps", (unsigned long)counted,
			(unsigned long)device->counted, (unsigned long)device->perhaps_counted
		);
		memcpy(device->expected + device->counter, &counted, sizeof(counted));
		if (memcmp(device->memory, device->expected, device->memory_bytes) == 0)
			continue;
		for (uint32_t n = 0; n < device->memory_bytes; n++) {
			if (device->memory[n] != device->expected[n])
				model_fail(
					model, "byte %u of %s is 0x%02x, not 0x%02x", n,
					device->name, device->memory[n], device->expected[n]
				);
		}
	}
}
