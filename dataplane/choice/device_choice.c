// SPDX-License-Identifier: BSD-3-Clause
// Chooses devices by name, location and bandwidth.
#include <dataplane/device_choice.h>
#include <lib/must.h>
#include <lib/suggestion.h>

#include <xxhash.h>

#include <endian.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define GPUS_MAX 64 // limit when counting GPUs for an error text

static bool device_is_eligible(enum device_eligibility verdict) {
	return verdict == DEVICE_BEST;
}

static int format_target_error(
	const struct device_target *target, int err, struct parse_error *error, const char *known
) {
	char text[DEVICE_TARGET_TEXT_BYTES];

	device_target_format(target, text);
	return parse_fail(error, err, text, strlen(text), "%s", known);
}

static int format_lookup_error(
	const struct device_target *target, int err, struct parse_error *error, const char *why
) {
	char sentence[160];

	snprintf(sentence, sizeof(sentence), "cannot be found: %s", why);
	return format_target_error(target, err, error, sentence);
}

static int find_gpu(
	const struct device_target *target,
	const struct device_gpus *gpus,
	struct parse_error *error,
	char ret_pci[static DEVICE_PCI_BYTES]
) {
	char known[96], pci[DEVICE_PCI_BYTES];
	uint32_t count = 0;
	int err;

	if (gpus == NULL || gpus->pci == NULL)
		return format_lookup_error(
			target, -ENOSYS, error,
			gpus == NULL ? "CUDA is not available on this machine" : gpus->reason
		);
	err = gpus->pci(gpus->ctx, target->number, ret_pci);
	if (err == 0)
		return 0;
	if (err != -ENOENT)
		return format_lookup_error(target, err, error, strerrordesc_np(-err));

	// The error names the known GPUs, which are numbered from 0.
	while (count < GPUS_MAX && gpus->pci(gpus->ctx, count, pci) == 0)
		count++;
	if (count == 0)
		return format_target_error(target, err, error, "names no GPU: CUDA finds no GPU");
	if (count == 1)
		return format_target_error(target, err, error, "names no GPU; known is cuda:0");
	snprintf(known, sizeof(known), "names no GPU; known are: cuda:0 to cuda:%u", count - 1);
	return format_target_error(target, err, error, known);
}

static int find_node(
	const struct topology *topology,
	const struct device_target *target,
	struct parse_error *error
) {
	char nodes[TOPOLOGY_NODES_TEXT_BYTES];
	char known[TOPOLOGY_NODES_TEXT_BYTES + 48];

	if (topology_has_node(topology, target->number))
		return 0;
	topology_nodes(topology, nodes);
	snprintf(known, sizeof(known), "names no NUMA node; known are: %s", nodes);
	return format_target_error(target, -ENOENT, error, known);
}

static int find_name(
	const struct device_target *target,
	const struct device_facts *facts,
	uint32_t count,
	struct parse_error *error
) {
	char known[sizeof(error->text)];
	struct suggestion suggestion;

	suggestion_init(&suggestion, target->name);
	for (uint32_t n = 0; n < count; n++) {
		if (strcmp(facts[n].name, target->name) == 0)
			return 0;
		suggestion_add(&suggestion, facts[n].name, strlen(facts[n].name));
	}
	if (count == 0)
		return format_target_error(
			target, -ENOENT, error, "names no device: this machine has no RDMA device"
		);
	snprintf(known, sizeof(known), "names no device; %s", suggestion_text(&suggestion));
	return format_target_error(target, -ENOENT, error, known);
}

// Return DEVICE_BEST for an eligible device, to be compared later, or the reason against it.
static enum device_eligibility
device_judge(const struct device_target *target, const struct device_facts *facts) {
	bool is_soft = facts->responder == DEVICE_RESPONDER_IN_PROCESS;
	bool is_named = target->kind == DEVICE_TARGET_NIC;

	if (target->kind == DEVICE_TARGET_NONE ||
	    (is_named && strcmp(facts->name, target->name) != 0))
		return DEVICE_NOT_ASKED;
	if (!is_named && is_soft != (target->kind == DEVICE_TARGET_SOFT))
		return DEVICE_NOT_ASKED;
	if (facts->usable)
		return DEVICE_BEST;
	if (!facts->awaits_port)
		return DEVICE_UNUSABLE;
	return is_named ? DEVICE_BEST : DEVICE_AWAITS_PORT;
}

static void distance_measure(
	const struct topology *topology,
	const struct device_choice *choice,
	struct device_judgement *judgement
) {
	const struct device_facts *device = &choice->facts[judgement->device];
	struct topology_path *way = &judgement->way;
	uint32_t port_mbps = device->port.speed_mbps;

	judgement->bandwidth_mbps = port_mbps;
	if (device->pci[0] == '\0') {
		way->class = TOPOLOGY_UNKNOWN;
		return;
	}
	if (choice->target.kind == DEVICE_TARGET_CPU)
		topology_path_to_node(topology, device->pci, choice->target.number, way);
	else if (choice->target.kind == DEVICE_TARGET_CUDA)
		topology_path_to_device(topology, device->pci, choice->target_pci, way);
	else
		topology_path_to_host(topology, device->pci, way);
	if (way->pci_mbps < port_mbps)
		judgement->bandwidth_mbps = way->pci_mbps;
}

static int compare_merit(const void *a, const void *b, void *ctx) {
	const struct device_judgement *left = a;
	const struct device_judgement *right = b;
	const struct device_choice *choice = ctx;

	if (device_is_eligible(left->verdict) != device_is_eligible(right->verdict))
		return device_is_eligible(left->verdict) ? -1 : 1;
	if (device_is_eligible(left->verdict) && left->way.class != right->way.class)
		return left->way.class < right->way.class ? -1 : 1;
	if (device_is_eligible(left->verdict) && left->bandwidth_mbps != right->bandwidth_mbps)
		return left->bandwidth_mbps > right->bandwidth_mbps ? -1 : 1;
	return strverscmp(choice->facts[left->device].name, choice->facts[right->device].name);
}

static int find_target(
	const struct device_query *query,
	struct parse_error *error,
	char ret_pci[static DEVICE_PCI_BYTES]
) {
	switch (query->target.kind) {
	case DEVICE_TARGET_NIC:
		return find_name(&query->target, query->facts, query->count, error);
	case DEVICE_TARGET_CPU:
		return find_node(query->topology, &query->target, error);
	case DEVICE_TARGET_CUDA:
		return find_gpu(&query->target, query->gpus, error, ret_pci);
	case DEVICE_TARGET_AUTO:
	case DEVICE_TARGET_BEST:
	case DEVICE_TARGET_SOFT:
	case DEVICE_TARGET_NONE:
		break;
	}
	return 0;
}

int device_choice_create(
	const struct device_query *query,
	struct parse_error *error,
	struct device_choice **ret_choice
) {
	char target_pci[DEVICE_PCI_BYTES] = "";
	const struct device_judgement *first;
	struct device_choice *choice;
	size_t size = query->count * sizeof(choice->judgements[0]);
	int err = find_target(query, error, target_pci);

	if (err != 0)
		return err;
	choice = calloc(1, sizeof(*choice) + size);
	if (choice == NULL)
		return -ENOMEM;
	choice->facts = query->facts;
	choice->target = query->target;
	choice->count = query->count;
	memcpy(choice->target_pci, target_pci, sizeof(target_pci));
	for (uint32_t n = 0; n < choice->count; n++) {
		struct device_judgement *judgement = &choice->judgements[n];

		judgement->device = n;
		judgement->verdict = device_judge(&query->target, &query->facts[n]);
		distance_measure(query->topology, choice, judgement);
	}
	qsort_r(choice->judgements, choice->count, sizeof(choice->judgements[0]), compare_merit,
		choice);

	// The eligible devices come first, the best one at their head. Mark the worse ones.
	first = choice->judgements;
	for (uint32_t n = 0; n < choice->count; n++) {
		struct device_judgement *judgement = &choice->judgements[n];

		if (!device_is_eligible(judgement->verdict))
			break;
		choice->eligible_count++;
		if (judgement->way.class != first->way.class) {
			judgement->verdict = DEVICE_FARTHER;
			continue;
		}
		choice->nearest_count++;
		if (judgement->bandwidth_mbps == first->bandwidth_mbps)
			choice->best_count++;
		else
			judgement->verdict = DEVICE_SLOWER;
	}
	*ret_choice = choice;
	return 0;
}

struct device_choice *device_choice_destroy(struct device_choice *choice) {
	free(choice);
	return NULL;
}

bool device_choice_needs_soft(const struct device_facts *facts, uint32_t count) {
	for (uint32_t n = 0; n < count; n++) {
		if (facts[n].responder != DEVICE_RESPONDER_IN_PROCESS &&
		    (facts[n].usable || facts[n].awaits_port))
			return false;
	}
	return true;
}

static int cuda_gpu_pci(void *ctx, uint32_t ordinal, char ret_pci[static DEVICE_PCI_BYTES]) {
	return cuda_device_pci_address(ctx, ordinal, ret_pci);
}

void device_gpus_init(struct device_gpus *ret_gpus) {
	struct cuda *cuda = NULL;

	memset(ret_gpus, 0, sizeof(*ret_gpus));
	snprintf(ret_gpus->reason, sizeof(ret_gpus->reason), "out of memory");
	if (cuda_open(NULL, ret_gpus->reason, &cuda) != 0)
		return;
	ret_gpus->pci = cuda_gpu_pci;
	ret_gpus->ctx = cuda;
}

void device_gpus_fini(struct device_gpus *gpus) {
	cuda_close(gpus->ctx);
	memset(gpus, 0, sizeof(*gpus));
}
