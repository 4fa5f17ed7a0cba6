// SPDX-License-Identifier: BSD-3-Clause
// Two connected ends with a clock set by the test, new for each test.
#pragma once

#include "support/fake_verbs_ends.h"

#include <support/cmocka.h>

static struct clock clock_;
static struct ends ends;

static inline int set_up(void **state) {
	(void)state;
	clock_init_fake(&clock_, 1000000);
	fake_verbs_init(&clock_);
	ends_make(&ends);
	return 0;
}

static inline int tear_down(void **state) {
	(void)state;
	ends_destroy(&ends);
	return fake_verbs_fini() == NULL ? 0 : -1;
}

static inline int tear_down_broken(void **state) {
	(void)state;
	ends_destroy(&ends);
	fake_verbs_forgive();
	return fake_verbs_fini() == NULL ? 0 : -1;
}

static struct end *a, *b;

static inline int set_up_connected(void **state) {
	int err = set_up(state);

	a = &ends.end[0];
	b = &ends.end[1];
	ends_connect(a, b);
	return err;
}

#define CONNECTED(test) cmocka_unit_test_setup_teardown(test, set_up_connected, tear_down)
// A test that breaks a rule, which is reported at its end.
#define BREACH(test) cmocka_unit_test_setup_teardown(test, set_up_connected, tear_down_broken)
