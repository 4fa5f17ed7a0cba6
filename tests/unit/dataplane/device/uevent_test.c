// SPDX-License-Identifier: BSD-3-Clause
#include <dataplane/uevent.h>
#include <support/cmocka.h>

#include <unistd.h>

static void messages_of_rdma_devices_are_told_from_others(void **state) {
	static const struct {
		const char *what;
		const char *bytes;
		size_t size;
		bool ours;
	} rows[] = {
#define ROW(what, bytes, ours) {what, bytes, sizeof(bytes) - 1, ours}
		ROW("a device",
		    "add@/devices/virtual/infiniband/rxe0\0ACTION=add\0SUBSYSTEM=infiniband\0"
		    "SEQNUM=7\0",
		    true),
		ROW("its character device",
		    "remove@/devices/x/infiniband_verbs/uverbs0\0SUBSYSTEM=infiniband_verbs\0",
		    true),
		ROW("its management device",
		    "remove@/devices/x/infiniband_mad/umad0\0SUBSYSTEM=infiniband_mad\0", false),
		ROW("an interface", "add@/devices/virtual/net/ve0\0SUBSYSTEM=net\0", false),
		ROW("a name that only begins so", "add@/x\0SUBSYSTEM=infiniband_other\0", false),
		ROW("a value that is cut off", "add@/x\0SUBSYSTEM=infiniband", false),
		ROW("in the path alone", "add@SUBSYSTEM=infiniband\0", false),
		ROW("empty strings", "\0\0\0", false),
		ROW("nothing", "", false),
	};

	(void)state;
	for (size_t n = 0; n < sizeof(rows) / sizeof(rows[0]); n++) {
		if (uevent_is_about_rdma(rows[n].bytes, rows[n].size) != rows[n].ours)
			fail_msg("%s", rows[n].what);
	}
}

static void descriptor_without_messages_says_nothing(void **state) {
	int fd = -1;

	(void)state;
	if (uevent_open(&fd) != 0)
		skip();
	// Other events of this machine may arrive, but none about RDMA devices.
	(void)uevent_read(fd);
	close(fd);
}

UNIT_GROUP(uevent) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(messages_of_rdma_devices_are_told_from_others),
		cmocka_unit_test(descriptor_without_messages_says_nothing),
	};

	return cmocka_run_group_tests_name("uevent", tests, NULL, NULL);
}
