// SPDX-License-Identifier: BSD-3-Clause
// Collect the environment from /proc, /sys and the facts of the end.
#include "run/environment.h"

#include "run/why.h"

#include <lib/scoped.h>

#include <fcntl.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#define FILE_BYTES 4096
#define PATH_BYTES 96

void environment_add(
	struct lab_environment *environment, const char *key, const char *format, ...
) {
	uint32_t place = environment->count;
	va_list arguments;

	if (place == ENVIRONMENT_ITEMS_MAX)
		return;
	environment->count++;
	snprintf(environment->items[place].key, ENVIRONMENT_KEY_BYTES, "%s", key);
	va_start(arguments, format);
	vsnprintf(environment->items[place].value, ENVIRONMENT_VALUE_BYTES, format, arguments);
	va_end(arguments);
	lab_sanitize(environment->items[place].value); // JSON needs valid UTF-8
}

// Add the first line of a file; skip a file that does not exist.
static void add_file(struct lab_environment *environment, const char *key, const char *path) {
	scoped_fd int fd = open(path, O_RDONLY | O_CLOEXEC);
	char text[ENVIRONMENT_VALUE_BYTES];
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;

	if (length <= 0)
		return;
	text[length] = '\0';
	text[strcspn(text, "\n")] = '\0';
	if (text[0] != '\0')
		environment_add(environment, key, "%s", text);
}

static void add_machine(struct lab_environment *environment, uint32_t cpu) {
	scoped_fd int fd = open("/proc/cpuinfo", O_RDONLY | O_CLOEXEC);
	char text[FILE_BYTES], path[PATH_BYTES];
	ssize_t length = fd >= 0 ? read(fd, text, sizeof(text) - 1) : 0;
	struct utsname names;
	const char *model;

	if (uname(&names) == 0) {
		environment_add(environment, "host", "%s", names.nodename);
		environment_add(environment, "kernel", "%s %s", names.release, names.machine);
	}
	text[length > 0 ? length : 0] = '\0';
	model = strstr(text, "model name");
	if (model != NULL) {
		model += strcspn(model, ":\n");
		if (*model == ':')
			model += 1 + strspn(model + 1, " ");
		environment_add(environment, "processor", "%.*s", (int)strcspn(model, "\n"), model);
	}
	add_file(environment, "processors_online", "/sys/devices/system/cpu/online");
	add_file(environment, "processors_isolated", "/sys/devices/system/cpu/isolated");
	add_file(environment, "smt", "/sys/devices/system/cpu/smt/control");
	snprintf(path, sizeof(path), "/sys/devices/system/cpu/cpu%u/cpufreq/scaling_governor", cpu);
	add_file(environment, "governor", path);
	add_file(environment, "idle_driver", "/sys/devices/system/cpu/cpuidle/current_driver");
	add_file(
		environment, "clock_source",
		"/sys/devices/system/clocksource/clocksource0/current_clocksource"
	);
}

void environment_read_machine(struct lab_environment *ret_environment) {
	ret_environment->count = 0;
	add_machine(ret_environment, 0);
}

void environment_read(const struct lab_end_facts *facts, struct lab_environment *ret_environment) {
	struct lab_environment *environment = ret_environment;
	char memory[MESSAGES_PLACE_BYTES];

	environment->count = 0;
	environment_add(environment, "program", "tocsin-perf %s", TOCSIN_VERSION);
	add_machine(environment, facts->cpu);
	environment_add(environment, "device", "%s", facts->device);
	environment_add(environment, "answered_by", "%s", facts->responder);
	environment_add(environment, "link", "%s", facts->link);
	environment_add(environment, "mtu", "%u", facts->mtu);
	if (facts->speed_mbps > 0)
		environment_add(environment, "speed_mbps", "%u", facts->speed_mbps);
	environment_add(environment, "core", "%u", facts->cpu);
	if (facts->priority > 0)
		environment_add(environment, "priority", "SCHED_FIFO %u", facts->priority);
	environment_add(environment, "clock", "%s", facts->clock);
	environment_add(environment, "clock_reason", "%s", facts->clock_why);
	environment_add(environment, "clock_error_ppb", "%u", facts->clock_error_ppb);
	environment_add(environment, "clock_read_ns", "%" PRIu64, facts->clock_read_ns);
	environment_add(environment, "block_and_wake_ns", "%" PRIu64, facts->block_ns);
	messages_place_format(facts->memory, memory);
	environment_add(environment, "memory", "%s", memory);
	environment_add(environment, "inline_bytes", "%u", facts->inline_bytes);
	if (facts->stamp_khz > 0)
		environment_add(environment, "device_clock_khz", "%" PRIu64, facts->stamp_khz);
	environment_add(environment, "memory_locked", "%s", facts->memory_locked ? "yes" : "no");
}

const char *environment_get(const struct lab_environment *environment, const char *key) {
	for (uint32_t n = 0; n < environment->count; n++) {
		if (strcmp(environment->items[n].key, key) == 0)
			return environment->items[n].value;
	}
	return "";
}

void environment_encode(const struct lab_environment *environment, struct wire_writer *writer) {
	wire_put_u16(writer, (uint16_t)environment->count);
	for (uint32_t n = 0; n < environment->count; n++) {
		const char *key = environment->items[n].key, *value = environment->items[n].value;

		wire_put_string(writer, key, strlen(key));
		// The decoder rejects invalid UTF-8, so an invalid value is sent empty.
		wire_put_string(
			writer, value, wire_utf8_valid(value, strlen(value)) ? strlen(value) : 0
		);
	}
}

void environment_decode(struct wire_reader *reader, struct lab_environment *ret_environment) {
	struct lab_environment *environment = ret_environment;

	environment->count = wire_get_count_u16(reader, ENVIRONMENT_ITEMS_MAX, 4);
	for (uint32_t n = 0; n < environment->count; n++) {
		wire_get_string(reader, environment->items[n].key, ENVIRONMENT_KEY_BYTES);
		if (wire_get_string(reader, environment->items[n].value, ENVIRONMENT_VALUE_BYTES) >
		    0)
			lab_sanitize(environment->items[n].value);
	}
	if (!wire_reader_ok(reader))
		environment->count = 0;
}
