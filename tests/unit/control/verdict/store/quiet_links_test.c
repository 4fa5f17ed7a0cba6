// SPDX-License-Identifier: BSD-3-Clause
// control/verdict/store/quiet_links.c: which links are silent. Overlay and loop are fake.
#include "verdict/store/health_inside.h"

#include <support/cmocka.h>

#include <errno.h>

#define LINKS (3 * HEALTH_QUIET_LINKS)

static uint64_t quiet_ns[LINKS + 1]; // by peer: how long its link has been silent
static uint64_t now_ns;

const struct ras *overlay_ras(const struct overlay *overlay) {
	(void)overlay;
	return NULL;
}

uint64_t loop_now_ns(const struct loop *loop) {
	(void)loop;
	return now_ns;
}

int ras_link_at(const struct ras *ras, uint32_t n, struct ras_link_info *ret_info) {
	(void)ras;
	if (n >= LINKS)
		return -ENOENT;
	*ret_info =
		(struct ras_link_info){.peer = n + 1, .ready = true, .quiet_ns = quiet_ns[n + 1]};
	return 0;
}

int ras_peer_find(const struct ras *ras, uint64_t id, struct ras_peer *ret_peer) {
	(void)ras;
	(void)id;
	*ret_peer = (struct ras_peer){.state = RAS_ALIVE};
	return 0;
}

static void every_link_that_is_quiet_is_known_however_many_are(void **state) {
	static struct health health;
	struct verdict_links links;

	(void)state;
	for (uint64_t quiet = 0; quiet <= LINKS; quiet++) {
		now_ns += RAS_NS_PER_SEC;
		quiet_ns[quiet] = VERDICT_QUIET_NS;
		for (uint64_t peer = 1; peer <= LINKS; peer++) {
			health_links(&health, peer, &links);
			assert_int_equal(links.quiet, quiet);
			assert_int_equal(links.peer_is_quiet, peer <= quiet);
		}
	}
}

UNIT_GROUP(quiet_links) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_link_that_is_quiet_is_known_however_many_are),
	};

	return cmocka_run_group_tests_name("quiet_links", tests, NULL, NULL);
}
