// SPDX-License-Identifier: BSD-3-Clause
// HEALTH: what is found of one node.
#pragma once

#include <lib/record.h>

struct finding_row {
	const char *node;
	const char *state;
	const char *grade;
	const char *verdict;
	const char *reason;
	const char *evidence;
	const char *advice;
	bool maint;
	json_t *observers;
	const char *since; // NULL if unknown
	uint64_t for_ns;
	const char *confidence;
	const char *withheld;
	const char *would;
	bool both_planes;
	uint64_t looked_ns;
};

extern const struct record finding_record;
