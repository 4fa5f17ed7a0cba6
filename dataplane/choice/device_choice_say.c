// SPDX-License-Identifier: BSD-3-Clause
// Describes a device choice as text.
#include <dataplane/device_choice.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 4 // device names in a sentence; further ones are only counted

// Append to a text of DEVICE_CHOICE_TEXT_BYTES; truncates.
__attribute__((format(printf, 2, 3))) static void words_add(char *text, const char *format, ...) {
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, DEVICE_WHY_BYTES - used, format, args);
	va_end(args);
}

const char *device_verdict_name(enum device_verdict verdict) {
	switch (verdict) {
	case DEVICE_BEST:
		return "best";
	case DEVICE_SLOWER:
		return "slower";
	case DEVICE_FARTHER:
		return "farther";
	case DEVICE_AWAITS_PORT:
		return "awaits-port";
	case DEVICE_UNUSABLE:
		return "unusable";
	case DEVICE_NOT_ASKED:
		break;
	}
	return "not-asked";
}

const char *device_choice_place(const struct device_choice *choice, enum topology_class class) {
	bool is_own = choice->target.kind != DEVICE_TARGET_CPU &&
		      choice->target.kind != DEVICE_TARGET_CUDA;

	return is_own && class == TOPOLOGY_HOST ? "in the PCI tree" : topology_class_text(class);
}

static void add_bandwidth(
	const struct device_judgement *judgement, const struct device_facts *facts, char *text
) {
	if (judgement->bandwidth_mbps == 0)
		words_add(text, "speed not known");
	else if (judgement->bandwidth_mbps == facts->port.speed_mbps)
		words_add(text, "%u Mb/s by its port", judgement->bandwidth_mbps);
	else
		words_add(
			text, "%u Mb/s by PCIe%s", judgement->bandwidth_mbps,
			judgement->way.assumed ? ", assumed" : ""
		);
}

void device_choice_say_one(
	const struct device_choice *choice, uint32_t n, char text[static DEVICE_WHY_BYTES]
) {
	const struct device_judgement *judgement = &choice->judgements[n];
	const struct device_facts *device = &choice->facts[judgement->device];

	text[0] = '\0';
	switch (judgement->verdict) {
	case DEVICE_NOT_ASKED:
		words_add(text, "not asked for");
		return;
	case DEVICE_AWAITS_PORT:
	case DEVICE_UNUSABLE:
		words_add(text, "not usable: %s", device->reason);
		return;
	case DEVICE_FARTHER:
		words_add(text, "farther: ");
		break;
	case DEVICE_SLOWER:
		words_add(text, "slower: ");
		break;
	case DEVICE_BEST:
		break;
	}
	words_add(text, "%s, ", device_choice_place(choice, judgement->way.class));
	add_bandwidth(judgement, device, text);
}

static void say_nothing(const struct device_choice *choice, char *text) {
	if (choice->target.kind == DEVICE_TARGET_SOFT) {
		words_add(text, "the software device, which agents make for themselves");
		return;
	}
	words_add(text, "no device: ");
	for (uint32_t n = 0; n < choice->count; n++) {
		const struct device_judgement *judgement = &choice->judgements[n];
		const struct device_facts *device = &choice->facts[judgement->device];

		// Give the reason only for the named device or a single one.
		if (judgement->verdict == DEVICE_NOT_ASKED ||
		    (choice->count > 1 && choice->target.kind != DEVICE_TARGET_NIC))
			continue;
		words_add(text, "%s is not usable: %s", device->name, device->reason);
		return;
	}
	if (choice->target.kind == DEVICE_TARGET_NONE)
		words_add(text, "none was asked for");
	else if (choice->count == 0)
		words_add(text, "this machine has no RDMA device");
	else
		words_add(text, "of %u none may be taken", choice->count);
}

static void add_best(const struct device_choice *choice, char *text) {
	uint32_t shown = choice->best_count <= NAMES_MAX ? choice->best_count : NAMES_MAX - 1;

	for (uint32_t n = 0; n < shown; n++)
		words_add(
			text, "%s%s", n > 0 ? ", " : "",
			choice->facts[choice->judgements[n].device].name
		);
	if (shown < choice->best_count)
		words_add(text, " and %u more", choice->best_count - shown);
}

// Add what distinguishes the best from the next device, the more important criterion first.
static void add_decider(const struct device_choice *choice, char *text) {
	const struct device_judgement *best = &choice->judgements[0];
	const struct device_judgement *next = &choice->judgements[choice->best_count];

	if (choice->target.kind == DEVICE_TARGET_NIC) {
		words_add(text, ", by its name");
		if (!choice->facts[best->device].usable)
			words_add(text, ", although %s", choice->facts[best->device].reason);
		return;
	}
	if (choice->eligible_count == 1) {
		words_add(text, ", the only one that may be taken");
		return;
	}
	if (choice->best_count > 1)
		words_add(text, ", equal in place and bandwidth");
	if (choice->best_count == choice->eligible_count)
		return;
	if (choice->best_count == choice->nearest_count)
		words_add(
			text, ", by place: %s; next is %s: %s",
			device_choice_place(choice, best->way.class),
			choice->facts[next->device].name,
			device_choice_place(choice, next->way.class)
		);
	else if (next->bandwidth_mbps == 0)
		words_add(
			text, ", by bandwidth: %u Mb/s; next is %s, of which it is not known",
			best->bandwidth_mbps, choice->facts[next->device].name
		);
	else
		words_add(
			text, ", by bandwidth: %u Mb/s; next is %s with %u Mb/s",
			best->bandwidth_mbps, choice->facts[next->device].name, next->bandwidth_mbps
		);
}

void device_choice_say(const struct device_choice *choice, char text[static DEVICE_WHY_BYTES]) {
	text[0] = '\0';
	if (choice->best_count == 0) {
		say_nothing(choice, text);
		return;
	}
	add_best(choice, text);
	add_decider(choice, text);
}
