// SPDX-License-Identifier: BSD-3-Clause
// Allocate and free memory for messages.
#include "run/messages.h"

#include <dataplane/near.h>
#include <dataplane/worker.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define PAGE_BYTES 4096u
#define PLACE_MAX 1023u
#define PATH_BYTES 64

void messages_place_format(struct messages_place place, char text[static MESSAGES_PLACE_BYTES]) {
	if (place.kind == MESSAGES_HOST)
		snprintf(text, MESSAGES_PLACE_BYTES, "host");
	else
		snprintf(
			text, MESSAGES_PLACE_BYTES, "%s %u",
			place.kind == MESSAGES_GPU ? "GPU" : "NUMA node", place.number
		);
}

static int place_number(const char *text, struct parse_error *error, uint32_t *ret_number) {
	uint64_t number;
	int err = parse_u64(text, strlen(text), 0, PLACE_MAX, error, &number);

	if (err == 0)
		*ret_number = (uint32_t)number;
	return err;
}

int messages_place_parse(
	const char *value, struct parse_error *error, struct messages_place *ret_place
) {
	struct messages_place place = {.kind = MESSAGES_GPU};
	int err = 0;

	if (strcmp(value, "host") == 0)
		place.kind = MESSAGES_HOST;
	else if (strncmp(value, "gpu:", 4) == 0)
		err = place_number(value + 4, error, &place.number);
	else if (strncmp(value, "numa:", 5) == 0) {
		place.kind = MESSAGES_NUMA;
		err = place_number(value + 5, error, &place.number);
	} else if (strcmp(value, "gpu") != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is not one of host, numa:N, gpu, gpu:N"
		);
	if (err == 0)
		*ret_place = place;
	return err;
}

static struct near place_near(struct messages_place place) {
	return (struct near){.known = place.kind == MESSAGES_NUMA, .node = place.number};
}

// Allocate on one NUMA node, and check the result. The kernel may fall back to another node, which
// would falsify the measurement.
static int allocate_numa(struct messages *messages, struct lab_why *why) {
	char path[PATH_BYTES];
	uint32_t node = messages->place.number;
	uint8_t *area;
	int first, last;

	snprintf(path, sizeof(path), "/sys/devices/system/node/node%u", node);
	if (access(path, F_OK) != 0)
		return lab_fail(why, -ENOENT, "--memory: this machine has no NUMA node %u", node);
	area = near_alloc(place_near(messages->place), messages->size);
	if (area == NULL)
		return lab_fail(why, -ENOMEM, "--memory: no memory of NUMA node %u", node);
	messages->address = worker_pointer_to_word(area);
	memset(area, 0, messages->size);
	first = near_node(area);
	last = near_node(area + messages->size - 1);
	if (first < 0 || last < 0)
		return lab_fail(
			why, -EOPNOTSUPP,
			"--memory: the kernel does not report the NUMA node of memory"
		);
	if (first != (int)node || last != (int)node)
		return lab_fail(
			why, -ENOMEM,
			"--memory: NUMA node %u has no memory left, memory is from node %d", node,
			first != (int)node ? first : last
		);
	return 0;
}

static int allocate_gpu(struct messages *messages, struct lab_why *why) {
	char reason[CUDA_REASON_MAX + 1] = "";
	uint32_t ordinal = messages->place.number;
	int err = cuda_open(NULL, reason, &messages->cuda);

	if (err != 0)
		return lab_fail(
			why, err, "--memory: no libcuda: %s",
			reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	err = cuda_block_create(
		messages->cuda, ordinal, messages->size, 0, reason, &messages->block
	);
	if (err == -ENOENT)
		return lab_fail(why, err, "--memory: this machine has no GPU %u", ordinal);
	if (err != 0)
		return lab_fail(
			why, err, "--memory: no memory of GPU %u: %s", ordinal,
			reason[0] != '\0' ? reason : strerrordesc_np(-err)
		);
	messages->address = messages->block.address;
	return 0;
}

int messages_create(
	struct messages_place place, size_t size, struct lab_why *why, struct messages *ret_messages
) {
	struct messages messages = {.place = place, .size = size};
	void *area;
	int err = 0;

	switch (place.kind) {
	case MESSAGES_HOST:
		area = aligned_alloc(PAGE_BYTES, size);
		messages.address = worker_pointer_to_word(area);
		if (area != NULL)
			memset(area, 0, size);
		else
			err = lab_fail(why, -ENOMEM, "no memory for messages");
		break;
	case MESSAGES_NUMA:
		err = allocate_numa(&messages, why);
		break;
	case MESSAGES_GPU:
		err = allocate_gpu(&messages, why);
		break;
	}
	if (err != 0) {
		messages_destroy(&messages);
		return err;
	}
	*ret_messages = messages;
	return 0;
}

void messages_destroy(struct messages *messages) {
	void *area = worker_word_to_pointer(messages->address);

	if (messages->place.kind == MESSAGES_HOST)
		free(area);
	else if (messages->place.kind == MESSAGES_NUMA)
		near_free(place_near(messages->place), area, messages->size);
	else if (messages->cuda != NULL)
		cuda_block_destroy(messages->cuda, &messages->block);
	cuda_close(messages->cuda);
	*messages = (struct messages){.address = 0};
}
