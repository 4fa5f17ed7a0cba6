// SPDX-License-Identifier: BSD-3-Clause
// Creates devices, queues and memory of one world from its seed; also its time and its counters.
#include "dataplane/soft/transport/model.h"

#define CQ_ENTRIES ((WORKS_RING / 4) * 2 * PAIRS_MAX + SRQ_SLOTS)

static const struct verbs_calls *const calls = &verbs_calls_soft;

static void draw_faults(struct model *model) {
	static const char *const texts[] = {
		"",
		"loss=0.5%,reorder=1%,dup=0.5%",
		"loss=1%,reorder=1%,dup=1%,corrupt=0.5%",
		"delay=50us±20us",
		"delay=20us±20us,loss=1%,reorder=2%,dup=1%,corrupt=1%",
		"dup=20%",
		"reorder=20%",
		"corrupt=2%",
		"loss=5%,reorder=5%,dup=5%,corrupt=1%",
		"loss=20%",
		"loss=20%,delay=30us±30us,reorder=10%,dup=10%,corrupt=5%",
	};
	uint32_t pick = one_in(model, 3) ? 0 : below(model, COUNT_OF(texts));
	const char *chosen = model->faults_asked != NULL ? model->faults_asked : texts[pick];
	struct parse_error error = {""};
	const char *comma = chosen[0] != '\0' ? "," : "";

	snprintf(
		model->faults_text, sizeof(model->faults_text), "%s%sseed=%lu", chosen, comma,
		(unsigned long)model->seed
	);
	if (soft_faults_parse(
		    model->faults_text, strlen(model->faults_text), &error, &model->faults
	    ) != 0)
		fail_msg("%s", error.text);
	model->heavy = model->faults_asked == NULL &&
		       model->faults.loss_ppm + model->faults.corrupt_ppm > 25000;
	model->quiet_ns = 2 * (model->faults.delay_ns + model->faults.jitter_ns) + 500000;
}

static void device_add(struct model *model, uint32_t number) {
	struct device *device = &model->devices[number];
	struct soft_config config = {
		.wire = SOFT_WIRE_MEMORY,
		.address = {.address = {127, 0, 0, (uint8_t)(number + 1)}, .family = SOCK_ADDR_V4},
		.faults = model->faults,
		.clock = &model->clock,
		.random_seed = model->seed * DEVICES_MAX + number + 1,
	};
	int err;

	*device = (struct device){.model = model, .address = config.address};
	snprintf(device->name, sizeof(device->name), "soft%u", number);
	memcpy(config.name, device->name, sizeof(config.name));
	err = soft_device_add(&config);
	model_must(model, err == 0, "soft_device_add says %d", err);
	device->cq_count = 1 + below(model, CQS_MAX);
	device->srq_slots = one_in(model, 2) ? 0 : 4 + below(model, SRQ_SLOTS - 4);
}

static uint32_t reserve(struct device *device, uint32_t bytes) {
	uint32_t at = device->memory_bytes;

	// Areas start at multiples of 8. The bytes between them belong to none and must not change.
	device->memory_bytes += (bytes + 15) / 8 * 8;
	return at;
}

static void end_draw(struct pair *pair, uint32_t number) {
	struct end *end = &pair->ends[number];
	struct model *model = end->model;
	struct device *device = end->device;
	bool big = one_in(model, 6);
	bool sure = !model->heavy && model->faults.any;

	end->uses_srq = device->srq_slots > 0 && one_in(model, 2);
	end->send_cq = below(model, device->cq_count);
	end->receive_cq = below(model, device->cq_count);
	end->signal_all = one_in(model, 6);
	end->cap = (struct ibv_qp_cap){
		.max_send_wr = 1 + below(model, one_in(model, 2) ? 4 : 32),
		.max_recv_wr = 1 + below(model, one_in(model, 2) ? 3 : 16),
		.max_send_sge = 1 + below(model, PIECES_MAX),
		.max_recv_sge = 1 + below(model, PIECES_MAX),
		.max_inline_data = one_in(model, 3) ? 0 : below(model, 513),
	};
	end->timeout = (uint8_t)(9 + below(model, 4));
	end->retries = sure ? 7 : (uint8_t)(3 + below(model, 5));
	end->rnr_retries = one_in(model, 5) && model->faults_asked == NULL
				   ? (uint8_t)(3 + below(model, 4))
				   : 7;
	end->arena_bytes = 4 * 3 * pair->mtu + 4096 + (big ? 3 * BIG_BYTES : 0);
	end->target_bytes = 3 * pair->mtu + below(model, 4096) + (big ? BIG_BYTES : 0);
	end->slot_bytes = end->uses_srq ? device->srq_slot_bytes
					: 1 + below(model, 3 * pair->mtu) + (big ? BIG_BYTES : 0);
	end->slot_count = end->uses_srq ? 0 : (big ? 2 : 16);
	end->arena = reserve(device, end->arena_bytes);
	end->target = reserve(device, end->target_bytes);
	end->words = reserve(device, 8 * WORDS);
	end->slots = reserve(device, end->slot_count * (end->slot_bytes + 8 * PIECES_MAX));
}

static void pairs_draw(struct model *model) {
	model->pair_count = 1 + below(model, one_in(model, 2) ? 2 : PAIRS_MAX);
	model->pairs = calloc(model->pair_count, sizeof(*model->pairs));
	assert_non_null(model->pairs);
	for (uint32_t p = 0; p < model->pair_count; p++) {
		struct pair *pair = &model->pairs[p];

		pair->mtu = 256U << below(model, 5);
		for (uint32_t e = 0; e < 2; e++) {
			pair->ends[e].model = model;
			pair->ends[e].pair = pair;
			pair->ends[e].peer = &pair->ends[1 - e];
			pair->ends[e].device = &model->devices[below(model, model->device_count)];
		}
		for (uint32_t e = 0; e < 2; e++)
			end_draw(pair, e);
	}
}

static void device_reserve(struct device *device) {
	device->counter = reserve(device, 8);
	device->srq_slot_bytes = 1 + below(device->model, 8192);
	for (uint32_t i = 0; i < device->srq_slots; i++)
		device->srq_receives[i].slot =
			reserve(device, device->srq_slot_bytes + 8 * PIECES_MAX);
}

static void device_register(struct device *device) {
	const int all = IBV_ACCESS_LOCAL_WRITE | IBV_ACCESS_REMOTE_WRITE | IBV_ACCESS_REMOTE_READ |
			IBV_ACCESS_REMOTE_ATOMIC;
	struct {
		struct ibv_pd *pd;
		int access;
		struct ibv_mr **mr;
	} regions[] = {
		{device->pd, all, &device->mr},
		{device->pd, all, &device->mr_again},
		{device->pd, IBV_ACCESS_LOCAL_WRITE, &device->mr_local},
		{device->pd, IBV_ACCESS_REMOTE_READ, &device->mr_read},
		{device->pd_other, all, &device->mr_other},
	};

	for (size_t i = 0; i < COUNT_OF(regions); i++) {
		int err = calls->reg_mr(
			regions[i].pd, device->memory, device->memory_bytes, regions[i].access,
			regions[i].mr
		);

		model_must(device->model, err == 0, "reg_mr says %d", err);
	}
}

static void device_open(struct device *device, struct ibv_device *verbs) {
	struct model *model = device->model;
	struct ibv_srq_init_attr srq = {.attr = {.max_wr = device->srq_slots, .max_sge = 4}};
	int err;

	// Areas start at multiples of 8, so the memory must be aligned as well.
	device->memory = aligned_alloc(64, (device->memory_bytes + 63) / 64 * 64);
	device->expected = malloc(device->memory_bytes);
	assert_non_null(device->memory);
	assert_non_null(device->expected);
	memset(device->memory, 0xee, device->memory_bytes);
	memset(device->memory + device->counter, 0, 8);
	memcpy(device->expected, device->memory, device->memory_bytes);
	err = calls->open(verbs, &device->context);
	model_must(model, err == 0, "open says %d", err);
	err = calls->alloc_pd(device->context, &device->pd);
	model_must(model, err == 0, "alloc_pd says %d", err);
	err = calls->alloc_pd(device->context, &device->pd_other);
	model_must(model, err == 0, "alloc_pd says %d", err);
	device_register(device);
	for (uint32_t i = 0; i < device->cq_count; i++) {
		err = calls->create_cq(device->context, CQ_ENTRIES, NULL, &device->cqs[i]);
		model_must(model, err == 0, "create_cq says %d", err);
	}
	if (device->srq_slots == 0)
		return;
	srq.attr.max_wr = 1 + device->srq_slots / 4;
	err = soft_create_srq(device->pd, &srq, &device->srq);
	model_must(model, err == 0, "soft_create_srq says %d", err);
}

static void devices_open(struct model *model) {
	struct ibv_device **list;
	uint32_t count;
	int err = calls->device_list(&list, &count);

	model_must(model, err == 0 && count == model->device_count, "%u devices", count);
	for (uint32_t d = 0; d < count; d++) {
		for (uint32_t n = 0; n < count; n++) {
			if (strcmp(list[n]->name, model->devices[d].name) == 0)
				device_open(&model->devices[d], list[n]);
		}
	}
	calls->device_list_free(list);
}

void end_create_qp(struct end *end) {
	struct device *device = end->device;
	struct ibv_qp_init_attr init = {
		.send_cq = device->cqs[end->send_cq],
		.recv_cq = device->cqs[end->receive_cq],
		.srq = end->uses_srq ? device->srq : NULL,
		.cap = end->cap,
		.qp_type = IBV_QPT_RC,
		.sq_sig_all = end->signal_all,
	};
	int err = calls->create_qp(device->pd, &init, &end->qp);

	model_must(end->model, err == 0, "create_qp says %d", err);
	model_must(
		end->model,
		init.cap.max_send_wr >= end->cap.max_send_wr &&
			init.cap.max_send_sge >= end->cap.max_send_sge &&
			init.cap.max_inline_data >= end->cap.max_inline_data,
		"the queue pair can less than was asked for"
	);
}

void world_create(struct model *model) {
	clock_init_fake(&model->clock, UINT64_C(1000000000));
	model->lives = one_in(model, 2) && model->faults_asked == NULL;
	model->errs = one_in(model, 2) && model->faults_asked == NULL;
	draw_faults(model);
	model->device_count = 1 + below(model, DEVICES_MAX);
	for (uint32_t d = 0; d < model->device_count; d++)
		device_add(model, d);
	for (uint32_t d = 0; d < model->device_count; d++)
		device_reserve(&model->devices[d]);
	pairs_draw(model);
	devices_open(model);
	model_trace(
		model, "%u devices, %u pairs, faults %s", model->device_count, model->pair_count,
		model->faults_text
	);
	for (uint32_t p = 0; p < model->pair_count; p++) {
		end_create_qp(&model->pairs[p].ends[0]);
		end_create_qp(&model->pairs[p].ends[1]);
		pair_connect(&model->pairs[p]);
	}
}

static void device_close(struct device *device) {
	struct ibv_mr *mrs[] = {
		device->mr, device->mr_again, device->mr_local, device->mr_read, device->mr_other};
	int err = 0;

	for (uint32_t i = 0; i < device->cq_count; i++)
		err |= calls->destroy_cq(device->cqs[i]);
	if (device->srq != NULL)
		err |= soft_destroy_srq(device->srq);
	for (size_t i = 0; i < COUNT_OF(mrs); i++)
		err |= calls->dereg_mr(mrs[i]);
	err |= calls->dealloc_pd(device->pd);
	err |= calls->dealloc_pd(device->pd_other);
	err |= calls->close(device->context);
	model_must(device->model, err == 0, "taking %s down says %d", device->name, err);
	free(device->memory);
	free(device->expected);
}

void world_destroy(struct model *model) {
	async_drain(model);
	for (uint32_t p = 0; p < model->pair_count; p++) {
		for (uint32_t e = 0; e < 2; e++) {
			int err = calls->destroy_qp(model->pairs[p].ends[e].qp);

			model_must(model, err == 0, "destroy_qp says %d", err);
		}
	}
	for (uint32_t d = 0; d < model->device_count; d++)
		device_close(&model->devices[d]);
	soft_devices_clear();
	free(model->pairs);
}

struct end *end_random(struct model *model) {
	return &model->pairs[below(model, model->pair_count)].ends[below(model, 2)];
}

uint32_t turn_all(struct model *model) {
	uint32_t moved = 0;
	bool again = true;
	uint64_t due_ns;

	for (uint32_t n = 0; again; n++) {
		model_must(model, n < 100000, "turns do not come to rest");
		again = false;
		for (uint32_t d = 0; d < model->device_count; d++)
			again = soft_turn(model->devices[d].context, &due_ns) || again;
		moved += again;
	}
	return moved;
}

bool advance(struct model *model) {
	uint64_t now_ns = clock_now_ns(&model->clock);
	uint64_t first_ns = NEVER;
	uint64_t due_ns;

	turn_all(model);
	for (uint32_t d = 0; d < model->device_count; d++) {
		soft_turn(model->devices[d].context, &due_ns);
		if (due_ns < first_ns)
			first_ns = due_ns;
	}
	if (first_ns == NEVER)
		return false;
	clock_advance(&model->clock, first_ns > now_ns ? first_ns - now_ns : 1000);
	return true;
}

static void sum_counters(struct model *model, struct soft_counters *ret_sums) {
	memset(ret_sums, 0, sizeof(*ret_sums));
	for (uint32_t d = 0; d < model->device_count; d++) {
		struct soft_counters counters;
		int err = soft_counters_read(model->devices[d].name, &counters);

		model_must(model, err == 0, "soft_counters_read says %d", err);
#define ADD(field, name) ret_sums->field += counters.field;
		SOFT_COUNTERS(ADD)
#undef ADD
	}
}

// Packets that were sent and not lost must have arrived, and each damaged packet must be detected.
void check_counters(struct model *model) {
	struct soft_counters sums;
	uint64_t expected;

	sum_counters(model, &sums);
	expected = sums.packets_sent - sums.fault_lost + sums.fault_duplicated - sums.send_failed;
	model_must(
		model, sums.packets_received == expected, "%lu packets came, not %lu",
		(unsigned long)sums.packets_received, (unsigned long)expected
	);
	model_must(
		model,
		sums.drop_icrc >= sums.fault_corrupted &&
			sums.drop_icrc <= sums.fault_corrupted + sums.fault_duplicated,
		"%lu packets were damaged, %lu found out", (unsigned long)sums.fault_corrupted,
		(unsigned long)sums.drop_icrc
	);
	model_must(
		model,
		sums.drop_short + sums.drop_header + sums.drop_opcode + sums.foreign_icrc +
				sums.drop_address ==
			0,
		"a packet was dropped that nobody damaged"
	);
	// A peer that did not run for long is probed, and probes cause duplicates.
	if (model->faults.any || model->errs || model->broke || sums.probes > 0)
		return;
	model_must(
		model,
		sums.timeouts + sums.duplicates + sums.drop_queue_pair + sums.drop_state +
				sums.drop_ghost + sums.drop_old_read ==
			0,
		"without faults: %lu timeouts, %lu duplicates, %lu ghosts",
		(unsigned long)sums.timeouts, (unsigned long)sums.duplicates,
		(unsigned long)sums.drop_ghost
	);
	if (sums.rnr_naks_sent == 0)
		model_must(
			model, sums.retransmitted + sums.naks_sent + sums.drop_sequence == 0,
			"without faults: %lu packets sent again, %lu NAKs",
			(unsigned long)sums.retransmitted, (unsigned long)sums.naks_sent
		);
}
