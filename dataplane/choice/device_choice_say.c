// SPDX-License-Identifier: BSD-3-Clause
// Describes a device choice as text.
#include <dataplane/device_choice.h>

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define NAMES_MAX 4 // device names in a sentence; further ones are only counted

// Append to a text of DEVICE_CHOICE_TEXT_BYTES; truncates.
__attribute__((format(printf, 2, 3))) static void text_append(char *text, const char *format, ...) {
	size_t used = strlen(text);
	va_list args;

	va_start(args, format);
	vsnprintf(text + used, DEVICE_CHOICE_TEXT_BYTES - used, format, args);
	va_end(args);
}

const char *device_eligibility_name(enum device_eligibility verdict) {
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

const char *
device_choice_location_text(const struct device_choice *choice, enum topology_class class) {
	bool is_own = choice->target.kind != DEVICE_TARGET_CPU &&
		      choice->target.kind != DEVICE_TARGET_CUDA;

	return is_own && class == TOPOLOGY_HOST ? "in the PCI tree" : topology_class_text(class);
}

static void append_bandwidth(
	const struct device_judgement *judgement, const struct device_facts *facts, char *text
) {
	if (judgement->bandwidth_mbps == 0)
		text_append(text, "speed not known");
	else if (judgement->bandwidth_mbps == facts->port.speed_mbps)
		text_append(text, "%u Mb/s by its port", judgement->bandwidth_mbps);
	else
		text_append(
			text, "%u Mb/s by PCIe%s", judgement->bandwidth_mbps,
			judgement->way.assumed ? ", assumed" : ""
		);
}

void device_choice_say_one(
	const struct device_choice *choice, uint32_t n, char text[static DEVICE_CHOICE_TEXT_BYTES]
) {
	const struct device_judgement *judgement = &choice->judgements[n];
	const struct device_facts *device = &choice->facts[judgement->device];

	text[0] = '\0';
	switch (judgement->verdict) {
	case DEVICE_NOT_ASKED:
		text_append(text, "not requested");
		return;
	case DEVICE_AWAITS_PORT:
	case DEVICE_UNUSABLE:
		text_append(text, "not usable: %s", device->reason);
		return;
	case DEVICE_FARTHER:
		text_append(text, "farther: ");
		break;
	case DEVICE_SLOWER:
		text_append(text, "slower: ");
		break;
	case DEVICE_BEST:
		break;
	}
	text_append(text, "%s, ", device_choice_location_text(choice, judgement->way.class));
	append_bandwidth(judgement, device, text);
}

static void describe_no_device(const struct device_choice *choice, char *text) {
	if (choice->target.kind == DEVICE_TARGET_SOFT) {
		text_append(text, "the software device, which each agent creates for itself");
		return;
	}
	text_append(text, "no device: ");
	for (uint32_t n = 0; n < choice->count; n++) {
		const struct device_judgement *judgement = &choice->judgements[n];
		const struct device_facts *device = &choice->facts[judgement->device];

		// Give the reason only for the named device or a single one.
		if (judgement->verdict == DEVICE_NOT_ASKED ||
		    (choice->count > 1 && choice->target.kind != DEVICE_TARGET_NIC))
			continue;
		text_append(text, "%s is not usable: %s", device->name, device->reason);
		return;
	}
	if (choice->target.kind == DEVICE_TARGET_NONE)
		text_append(text, "the configuration requests none");
	else if (choice->count == 0)
		text_append(text, "this machine has no RDMA device");
	else
		text_append(text, "none of the %u devices can be used", choice->count);
}

// Add what distinguishes the best from the next device, the more important criterion first.
static void append_deciding_criterion(const struct device_choice *choice, char *text) {
	const struct device_judgement *best = &choice->judgements[0];
	const struct device_judgement *next = &choice->judgements[choice->best_count];

	if (choice->target.kind == DEVICE_TARGET_NIC) {
		text_append(text, ", by its name");
		if (!choice->facts[best->device].usable)
			text_append(text, ", although %s", choice->facts[best->device].reason);
		return;
	}
	if (choice->eligible_count == 1) {
		text_append(text, ", the only usable device");
		return;
	}
	if (choice->best_count > 1)
		text_append(text, ", equal in location and bandwidth");
	if (choice->best_count == choice->eligible_count)
		return;
	if (choice->best_count == choice->nearest_count)
		text_append(
			text, ", by location: %s; next is %s: %s",
			device_choice_location_text(choice, best->way.class),
			choice->facts[next->device].name,
			device_choice_location_text(choice, next->way.class)
		);
	else if (next->bandwidth_mbps == 0)
		text_append(
			text, ", by bandwidth: %u Mb/s; next is %s, whose bandwidth is unknown",
			best->bandwidth_mbps, choice->facts[next->device].name
		);
	else
		text_append(
			text, ", by bandwidth: %u Mb/s; next is %s with %u Mb/s",
			best->bandwidth_mbps, choice->facts[next->device].name, next->bandwidth_mbps
		);
}

void device_choice_say(
	const struct device_choice *choice, char text[static DEVICE_CHOICE_TEXT_BYTES]
) {
	uint32_t shown = choice->best_count <= NAMES_MAX ? choice->best_count : NAMES_MAX - 1;

	text[0] = '\0';
	if (choice->best_count == 0) {
		describe_no_device(choice, text);
		return;
	}
	for (uint32_t n = 0; n < shown; n++)
		text_append(
			text, "%s%s", n > 0 ? ", " : "",
			choice->facts[choice->judgements[n].device].name
		);
	if (shown < choice->best_count)
		text_append(text, " and %u more", choice->best_count - shown);
	append_deciding_criterion(choice, text);
}
