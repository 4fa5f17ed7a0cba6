// SPDX-License-Identifier: BSD-3-Clause
// Rules that hold for the tables of all records.
#include <records/checks.h>
#include <records/communicators.h>
#include <records/connections.h>
#include <records/devices.h>
#include <records/events.h>
#include <records/findings.h>
#include <records/gpus.h>
#include <records/links.h>
#include <records/maintenance.h>
#include <records/pairs.h>
#include <records/path.h>
#include <records/paths.h>
#include <records/peers.h>
#include <records/ranks.h>
#include <records/status.h>
#include <records/why.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <support/units.h>

#include <string.h>

#define TERMINAL_COLUMNS 80

static const struct record *const records[] = {
	&status_cluster_record,
	&status_communicator_record,
	&unanswered_record,
	&diagnosis_record,
	&communicator_story_record,
	&path_detail_record,
	&path_size_record,
	&path_flow_record,
	&path_verdict_record,
	&path_blame_record,
	&port_congestion_record,
	&gpu_page_record,
	&gpu_page_place_record,
	&gpu_read_record,
	&gpu_read_place_record,
	&observation_record,
	&statement_record,
	&past_verdict_record,
	&peer_link_record,
	&peer_pair_record,
	&bad_flow_record,
	&agent_device_record,
	&agent_port_record,
	&machine_device_record,
	&machine_choice_record,
	&event_record,
	&check_record,
	&communicator_record,
	&link_record,
	&maintenance_record,
	&pair_record,
	&path_record,
	&peer_record,
	&rank_record,
	&transport_record,
	&connection_record,
	&finding_record,
};

static bool key_names_unit(const struct record_field *field) {
	bool is_size = strcmp(field->key, "bytes") == 0 || key_has_ending(field->key, "_bytes") ||
		       key_has_ending(field->key, "_bytes_per_s");

	return !key_has_foreign_unit(field->key) &&
	       (field->unit == UNIT_NANOSECONDS) == key_has_ending(field->key, "_ns") &&
	       (field->unit == UNIT_BYTES) == is_size;
}

static void key_names_the_one_unit_of_its_quantity(void **state) {
	(void)state;
	for (size_t r = 0; r < COUNT_OF(records); r++) {
		for (size_t n = 0; n < records[r]->count; n++) {
			const struct record_field *field = &records[r]->fields[n];

			if (field->key != NULL && !key_names_unit(field))
				fail_msg("%s: %s", records[r]->name, field->key);
		}
	}
}

static void columns_that_are_never_dropped_fit_a_terminal(void **state) {
	(void)state;
	for (size_t r = 0; r < COUNT_OF(records); r++) {
		size_t width = 0;

		for (size_t n = 0; n < records[r]->count; n++) {
			const struct record_field *field = &records[r]->fields[n];

			if (field->label == NULL)
				continue;
			if (strlen(field->label) > field->width)
				fail_msg("%s: %s", records[r]->name, field->label);
			width += field->rank == 0 ? field->width + 1UL : 0;
		}
		if (width > TERMINAL_COLUMNS + 1)
			fail_msg("%s: %zu columns", records[r]->name, width - 1);
	}
}

static void every_member_is_explained(void **state) {
	(void)state;
	for (size_t r = 0; r < COUNT_OF(records); r++) {
		for (size_t n = 0; n < records[r]->count; n++) {
			const struct record_field *field = &records[r]->fields[n];

			if (field->type != RECORD_NONE &&
			    (field->help == NULL || *field->help == '\0'))
				fail_msg("%s: %s", records[r]->name, field->key);
		}
	}
}

UNIT_GROUP(records) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(key_names_the_one_unit_of_its_quantity),
		cmocka_unit_test(columns_that_are_never_dropped_fit_a_terminal),
		cmocka_unit_test(every_member_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
