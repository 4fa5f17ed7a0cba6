// SPDX-License-Identifier: BSD-3-Clause
#include "dataplane/device/device_bed.h"

#include <lib/scoped.h>
#include <support/cmocka.h>
#include <support/fake_verbs.h>

#include <errno.h>

int device_bed_make(void **state) {
	(void)state;
	fake_verbs_init(NULL);
	return 0;
}

// Even a failed test must leave no libibverbs object.
int device_bed_end(void **state) {
	const char *broken = fake_verbs_fini();

	(void)state;
	if (broken != NULL)
		print_error("%s\n", broken);
	return broken == NULL ? 0 : -1;
}

struct device_facts device_bed_list(const struct device_settings *settings) {
	scoped_mem struct device_facts *facts = NULL;
	uint32_t count = 0;

	assert_int_equal(device_list(&fake_verbs_calls, settings, &facts, &count), 0);
	assert_int_equal(count, 1);
	assert_int_equal(facts[0].usable, facts[0].reason[0] == '\0');
	return facts[0];
}

int device_bed_open(
	const char *name,
	const struct device_settings *settings,
	char reason[static DEVICE_REASON_MAX + 1]
) {
	struct device *device = NULL;
	int err = device_open(&fake_verbs_calls, name, settings, reason, &device);

	if (err != 0)
		assert_null(device);
	device_put(device);
	return err;
}

// Listing and opening must give the same reason.
void device_bed_refuses(const struct device_settings *settings, int err, const char *reason) {
	char opened[DEVICE_REASON_MAX + 1];
	const struct device_facts facts = device_bed_list(settings);

	assert_false(facts.usable);
	assert_string_equal(facts.reason, reason);
	assert_int_equal(facts.awaits_port, err == -ENETDOWN);
	assert_int_equal(device_bed_open("fake0", settings, opened), err);
	assert_string_equal(opened, reason);
}
