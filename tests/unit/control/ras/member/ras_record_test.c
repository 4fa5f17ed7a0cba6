// SPDX-License-Identifier: BSD-3-Clause
#include <ras/memory.h>
#include <ras/record.h>
#include <support/cmocka.h>
#include <support/fake_sign.h>
#include <support/heap.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct fixture {
	struct ras_interner *interner;
	struct heap heap;
};

static int set_up(void **state) {
	struct fixture *fixture = calloc(1, sizeof(*fixture));
	struct ras_memory memory = HEAP_MEMORY(&fixture->heap);

	assert_non_null(fixture);
	assert_int_equal(ras_interner_create(&memory, &fixture->interner), 0);
	*state = fixture;
	return 0;
}

static int tear_down(void **state) {
	struct fixture *fixture = *state;

	assert_int_equal(ras_interner_count(fixture->interner), 0);
	ras_interner_destroy(fixture->interner);
	assert_int_equal(fixture->heap.used_bytes, 0);
	free(fixture);
	return 0;
}

static struct ras_peer_info info_of(const char *host, const char *name) {
	struct ras_peer_info info = {
		.start = 5,
		.pid = 77,
		.boot_id = {1, 2, 3},
		.version = "0.1.0",
		.key = {0x12, 0x34, 0x56, 0x78, 0x9a, 0xbc, 0xde, 0xf0, 1},
		.address_count = 1,
		.addresses = {{.family = SOCK_ADDR_V4, .port = 7000, .address = {10, 0, 0, 1}}},
		.device_count = 2,
		.devices =
			{
				{.name = "mlx5_0", .link_layer = RAS_LINK_LAYER_INFINIBAND},
				{.name = "rxe0", .link_layer = RAS_LINK_LAYER_ETHERNET},
			},
	};

	snprintf(info.name, sizeof(info.name), "%s", name);
	snprintf(info.host, sizeof(info.host), "%s", host);
	return info;
}

// Regression: machines booted from the same image counted as one host, and so could not observe
// each other.
static void hosts_of_one_name_and_different_boots_are_two(void **state) {
	struct fixture *fixture = *state;
	struct ras_peer_info info = info_of("h1", "n1");
	struct ras_record *records[4];

	assert_int_equal(ras_record_from_info(fixture->interner, &info, &records[0]), 0);
	snprintf(info.name, sizeof(info.name), "n2");
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &records[1]), 0);
	info.boot_id[15] = 9;
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &records[2]), 0);
	memset(info.boot_id, 0, sizeof(info.boot_id)); // unknown boot
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &records[3]), 0);
	assert_int_equal(records[0]->host_id, records[1]->host_id);
	assert_int_not_equal(records[0]->host_id, records[2]->host_id);
	assert_int_equal(records[0]->host_name_id, records[2]->host_name_id);
	assert_int_equal(records[3]->host_id, records[3]->host_name_id);
	for (size_t n = 0; n < 4; n++)
		ras_record_put(fixture->interner, records[n]);
}

static struct ras_record *record_of(struct fixture *fixture, const char *host, const char *name) {
	struct ras_peer_info info = info_of(host, name);
	struct ras_record *record;

	assert_int_equal(ras_record_from_info(fixture->interner, &info, &record), 0);
	return record;
}

static void facts_come_back_as_they_were_given(void **state) {
	struct fixture *fixture = *state;
	struct ras_peer_info given = info_of("rack1-host7", "node7");
	struct ras_record *record = record_of(fixture, "rack1-host7", "node7");
	struct ras_peer_info info;

	ras_record_info(record, &info);
	assert_string_equal(info.name, given.name);
	assert_string_equal(info.host, given.host);
	assert_memory_equal(info.boot_id, given.boot_id, sizeof(info.boot_id));
	assert_int_equal(info.start, 5);
	assert_int_equal(info.pid, 77);
	assert_string_equal(info.version, "0.1.0");
	assert_memory_equal(info.key, given.key, sizeof(info.key));
	assert_memory_equal(record->key, given.key, sizeof(record->key));
	assert_int_equal(ras_key_fingerprint(record->key), UINT64_C(0x123456789abcdef0));
	assert_int_equal(info.address_count, 1);
	assert_true(sock_addr_equal(&info.addresses[0], &given.addresses[0]));
	assert_int_equal(info.device_count, 2);
	assert_string_equal(info.devices[1].name, "rxe0");
	assert_int_equal(info.devices[1].link_layer, RAS_LINK_LAYER_ETHERNET);
	assert_int_equal(record->id, ras_id("node7", 5));
	assert_int_equal(record->start, 5);
	assert_int_equal(record->name_length, 5);
	assert_memory_equal(record->host, "rack1-host7", record->host_length);
	ras_record_put(fixture->interner, record);
}

static void equal_facts_are_one_record_until_the_last_holder_lets_go(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *a = record_of(fixture, "h", "n");
	struct ras_record *b = record_of(fixture, "h", "n");
	struct ras_record *c;

	assert_ptr_equal(a, b);
	assert_int_equal(ras_record_intern(fixture->interner, a->encoding, a->size, &c), 0);
	assert_ptr_equal(a, c);
	assert_int_equal(ras_interner_count(fixture->interner), 1);
	ras_record_put(fixture->interner, a);
	ras_record_put(fixture->interner, b);
	assert_int_equal(ras_interner_count(fixture->interner), 1);
	ras_record_put(fixture->interner, c);
	assert_int_equal(ras_interner_count(fixture->interner), 0);
}

static void hundreds_of_records_are_found_again_and_removed_in_any_order(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *records[500];

	for (uint32_t n = 0; n < 500; n++) {
		char name[16];

		snprintf(name, sizeof(name), "n%03u", n);
		records[n] = record_of(fixture, "h", name);
	}
	assert_int_equal(ras_interner_count(fixture->interner), 500);
	for (uint32_t n = 0; n < 500; n++) {
		struct ras_record *again;

		assert_int_equal(
			ras_record_intern(
				fixture->interner, records[n]->encoding, records[n]->size, &again
			),
			0
		);
		assert_ptr_equal(again, records[n]);
		ras_record_put(fixture->interner, again);
	}
	for (uint32_t n = 0; n < 500; n++)
		ras_record_put(fixture->interner, records[n * 7 % 500]);
}

// Row 16: every field of the record is in its encoding, and so in the digest.
static void digest_is_that_of_the_encoding_and_changes_with_every_fact(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *base = record_of(fixture, "h", "n");
	struct ras_peer_info changed[8];

	for (size_t n = 0; n < 8; n++)
		changed[n] = info_of("h", "n");
	changed[0].start++;
	changed[1].pid++;
	changed[2].boot_id[15] = 1;
	changed[3].version[0] = '9';
	changed[4].addresses[0].port++;
	changed[5].devices[0].link_layer = RAS_LINK_LAYER_SOFT;
	changed[6].host[0] = 'g';
	changed[7].key[31] = 1;
	for (size_t n = 0; n < 8; n++) {
		struct ras_record *other;

		assert_int_equal(ras_record_from_info(fixture->interner, &changed[n], &other), 0);
		assert_true(other->digest != base->digest);
		assert_int_equal(other->id, base->id);
		ras_record_put(fixture->interner, other);
	}
	ras_record_put(fixture->interner, base);
}

// If the digest differed between two builds, all of their tables would differ.
static void digest_of_known_bytes_is_the_same_everywhere(void **state) {
	(void)state;
	assert_int_equal(ras_id("", 0), UINT64_C(0x2d06800538d394c2));
	assert_int_equal(ras_id("node7x", 5), ras_id("node7", 5)); // the length counts, not the NUL
}

static void order_is_by_host_then_name_and_a_prefix_comes_first(void **state) {
	static const struct {
		const char *host_a, *name_a, *host_b, *name_b;
	} ordered[] = {
		{"a", "z", "b", "a"},
		{"a", "a", "a", "b"},
		{"host", "n", "host1", "n"},
		// The names differ behind the first eight bytes.
		{"longhost1", "z", "longhost2", "a"},
		{"longhost", "z", "longhost1", "a"},
		{"h", "n", "h", "n1"},
		{"h\x7f", "n", "h\xc3\xa4", "n"}, // bytes, not signed characters
	};
	struct fixture *fixture = *state;

	for (size_t n = 0; n < sizeof(ordered) / sizeof(ordered[0]); n++) {
		struct ras_record *a = record_of(fixture, ordered[n].host_a, ordered[n].name_a);
		struct ras_record *b = record_of(fixture, ordered[n].host_b, ordered[n].name_b);

		assert_true(ras_record_compare(a, b) < 0);
		assert_true(ras_record_compare(b, a) > 0);
		assert_int_equal(ras_record_compare(a, a), 0);
		ras_record_put(fixture->interner, a);
		ras_record_put(fixture->interner, b);
	}
}

static void facts_that_cannot_be_encoded_are_refused(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *record = (void *)fixture;
	struct ras_peer_info wrong[7];

	for (size_t n = 0; n < 7; n++)
		wrong[n] = info_of("h", "n");
	wrong[0].name[0] = '\0';
	wrong[1].host[0] = '\0';
	wrong[2].address_count = 0;
	wrong[3].address_count = RAS_ADDRESSES_MAX + 1;
	wrong[4].device_count = RAS_DEVICES_MAX + 1;
	wrong[5].addresses[0].family = SOCK_ADDR_NONE;
	wrong[6].start = RAS_START_MAX + 1;
	for (size_t n = 0; n < 7; n++) {
		assert_int_equal(
			ras_record_from_info(fixture->interner, &wrong[n], &record), -EINVAL
		);
		assert_ptr_equal(record, fixture);
	}
}

static void every_shorter_encoding_is_refused(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *whole = record_of(fixture, "host", "name");
	struct ras_record *record = NULL;

	for (uint32_t size = 0; size < whole->size; size++) {
		uint8_t *cut = malloc(size + 1);

		assert_non_null(cut);
		memcpy(cut, whole->encoding, size);
		// Agents of protocol version 2 have no key. Their records are read for the message
		// about the version.
		if (size == whole->size - RAS_KEY_BYTES - RAS_SIGNATURE_BYTES) {
			static const uint8_t none[RAS_KEY_BYTES];

			assert_int_equal(
				ras_record_intern(fixture->interner, cut, size, &record), 0
			);
			assert_memory_equal(record->key, none, sizeof(none));
			ras_record_put(fixture->interner, record);
			record = NULL;
			free(cut);
			continue;
		}
		assert_in_range(-ras_record_intern(fixture->interner, cut, size, &record), 1, 4095);
		assert_null(record);
		free(cut);
	}
	ras_record_put(fixture->interner, whole);
}

static void record_that_its_key_did_not_sign_is_refused(void **state) {
	struct fixture *fixture = *state;
	struct ras_signer other = fake_signer;
	struct ras_record *whole, *record = NULL;
	uint8_t bytes[RAS_RECORD_BYTES_MAX];
	uint32_t size;

	ras_interner_set_signer(fixture->interner, &fake_signer);
	whole = record_of(fixture, "host", "name");
	for (uint32_t at = 0; at < whole->size; at++) {
		memcpy(bytes, whole->encoding, whole->size);
		bytes[at] ^= 1;
		assert_true(ras_record_intern(fixture->interner, bytes, whole->size, &record) < 0);
		assert_null(record);
	}
	size = whole->size;
	memcpy(bytes, whole->encoding, size);
	ras_record_put(fixture->interner, whole);
	assert_int_equal(ras_record_intern(fixture->interner, bytes, size, &record), 0);
	ras_record_put(fixture->interner, record);
	other.cluster = "another one";
	ras_interner_set_signer(fixture->interner, &other);
	assert_int_equal(ras_record_intern(fixture->interner, bytes, size, &record), -EBADMSG);
}

static void encodings_that_no_agent_makes_are_refused(void **state) {
	// Offsets into the encoding of host "host", name "name"; see ras_record_from_info().
	static const struct {
		size_t offset;
		uint8_t value;
		int expected;
		const char *what;
	} cases[] = {
		{0, 2, -EBADMSG, "another format"},
		{1, 0, 0, "no name"},
		{1, RAS_NAME_MAX + 1, 0, "a name too long"},
		{2, 0xff, 0, "a name longer than the record"},
		{3, 0, -EILSEQ, "a name with a NUL"},
		{3, 0xff, -EILSEQ, "a name that is no text"},
		{9, 0xc0, -EILSEQ, "a host that is no text"},
		{48, 0, -EBADMSG, "no address"},
		{48, RAS_ADDRESSES_MAX + 1, 0, "too many addresses"},
		{50, 9, -EBADMSG, "an address of no family"},
	};
	struct fixture *fixture = *state;
	struct ras_record *whole = record_of(fixture, "host", "name");

	for (size_t n = 0; n < sizeof(cases) / sizeof(cases[0]); n++) {
		uint8_t bytes[RAS_RECORD_BYTES_MAX];
		struct ras_record *record = NULL;
		int err;

		memcpy(bytes, whole->encoding, whole->size);
		bytes[cases[n].offset] = cases[n].value;
		err = ras_record_intern(fixture->interner, bytes, whole->size, &record);
		if (err == 0 || (cases[n].expected != 0 && err != cases[n].expected))
			fail_msg("%s gave %d", cases[n].what, err);
		assert_null(record);
	}
	ras_record_put(fixture->interner, whole);
}

static void what_a_newer_version_appends_is_kept_and_told_apart(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *whole = record_of(fixture, "host", "name");
	uint8_t bytes[RAS_RECORD_BYTES_MAX] = {0};
	struct ras_record *newer;

	memcpy(bytes, whole->encoding, whole->size);
	assert_int_equal(ras_record_intern(fixture->interner, bytes, whole->size + 4, &newer), 0);
	assert_int_equal(newer->id, whole->id);
	assert_int_equal(newer->size, whole->size + 4);
	assert_true(newer->digest != whole->digest);
	ras_record_put(fixture->interner, newer);
	ras_record_put(fixture->interner, whole);
}

static void encoding_beyond_the_cap_is_refused(void **state) {
	struct fixture *fixture = *state;
	struct ras_record *whole = record_of(fixture, "host", "name");
	uint8_t bytes[RAS_RECORD_BYTES_MAX + 1] = {0};
	struct ras_record *record = NULL;

	memcpy(bytes, whole->encoding, whole->size);
	assert_int_equal(
		ras_record_intern(fixture->interner, bytes, sizeof(bytes), &record), -EMSGSIZE
	);
	assert_null(record);
	ras_record_put(fixture->interner, whole);
}

static void without_memory_nothing_is_made_and_nothing_kept(void **state) {
	struct fixture *fixture = *state;
	struct ras_peer_info info = info_of("h", "n");
	struct ras_record *record = NULL;

	heap_leave(&fixture->heap, 0);
	assert_int_equal(ras_record_from_info(fixture->interner, &info, &record), -ENOMEM);
	assert_null(record);
	heap_refill(&fixture->heap);
}

UNIT_GROUP(ras_record) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(facts_that_cannot_be_encoded_are_refused),
		cmocka_unit_test(every_shorter_encoding_is_refused),
		cmocka_unit_test(encodings_that_no_agent_makes_are_refused),
		cmocka_unit_test(encoding_beyond_the_cap_is_refused),
		cmocka_unit_test(without_memory_nothing_is_made_and_nothing_kept),
		cmocka_unit_test(what_a_newer_version_appends_is_kept_and_told_apart),
		cmocka_unit_test(facts_come_back_as_they_were_given),
		cmocka_unit_test(equal_facts_are_one_record_until_the_last_holder_lets_go),
		cmocka_unit_test(hundreds_of_records_are_found_again_and_removed_in_any_order),
		cmocka_unit_test(digest_is_that_of_the_encoding_and_changes_with_every_fact),
		cmocka_unit_test(digest_of_known_bytes_is_the_same_everywhere),
		cmocka_unit_test(order_is_by_host_then_name_and_a_prefix_comes_first),
		cmocka_unit_test(hosts_of_one_name_and_different_boots_are_two),
		// It sets a signer, which all tests share.
		cmocka_unit_test(record_that_its_key_did_not_sign_is_refused),
	};

	return cmocka_run_group_tests_name("ras_record", tests, set_up, tear_down);
}
