// SPDX-License-Identifier: BSD-3-Clause
// Environment of a result: properties of a machine that may change a latency, as keys and values.
#pragma once

#include "run/end.h"

#include <lib/wire.h>

#include <stdint.h>

#define ENVIRONMENT_ITEMS_MAX 32
#define ENVIRONMENT_KEY_BYTES 24
#define ENVIRONMENT_VALUE_BYTES 96

struct lab_environment {
	uint32_t count;
	struct {
		char key[ENVIRONMENT_KEY_BYTES];
		char value[ENVIRONMENT_VALUE_BYTES];
	} items[ENVIRONMENT_ITEMS_MAX];
};

// Read the properties of this machine, this program and this end.
void environment_read(const struct lab_end_facts *facts, struct lab_environment *ret_environment);
// Read the properties of this machine only.
void environment_read_machine(struct lab_environment *ret_environment);
// Add one item. An item beyond the limit is dropped.
__attribute__((format(printf, 3, 4))) void
environment_add(struct lab_environment *environment, const char *key, const char *format, ...);
// Return the value of a key, or "" if unknown.
const char *environment_get(const struct lab_environment *environment, const char *key);

void environment_encode(const struct lab_environment *environment, struct wire_writer *writer);
void environment_decode(struct wire_reader *reader, struct lab_environment *ret_environment);
