// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes device targets. An accepted target must survive formatting and parsing, and must be usable
// for a device choice.
#include <dataplane/device_choice.h>
#include <lib/must.h>
#include <support/fuzz.h>

#include <string.h>

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	char text[DEVICE_TARGET_TEXT_BYTES];
	struct parse_error error;
	struct device_target target;
	struct device_target back;

	if (device_target_parse((const char *)data, size, &error, &target) != 0) {
		must(strstr(error.text, "is not allowed") != NULL);
		return 0;
	}
	device_target_format(&target, text);
	must(device_target_parse(text, strlen(text), NULL, &back) == 0);
	must(back.kind == target.kind && back.number == target.number);
	must(strcmp(back.name, target.name) == 0);
	return 0;
}
