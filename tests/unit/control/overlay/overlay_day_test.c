// SPDX-License-Identifier: BSD-3-Clause
// A day of events in an agent, with a simulated clock. The real core, journal and clients must
// not need more memory or disk than after the first hour.
//
// There is one event a second, and once an hour as many at once as a whole cluster causes. One of
// three clients follows the events, one follows and never reads, and one requests all events now
// and then.
#include "overlay/state_file.h"

#include <control/client.h>
#include <control/overlay.h>
#include <lib/log.h>
#include <lib/seal_keys.h>
#include <support/cmocka.h>
#include <support/tree.h>

#include <dirent.h>
#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define HOURS 24
#define STEP_NS (RAS_NS_PER_SEC / 2) // the core would take longer steps for a pause of its own
#define BURST_EVENTS 5000
#define JOURNAL_BYTES (1u << 20)
#define OTHER_FILES_BYTES 4096 // start counter and lock file
#define GROWTH_BYTES_MAX (64u << 10)

struct agent {
	struct clock clock;
	struct loop *loop;
	const struct seal_keys *keys;
	struct state *state;
	struct overlay *overlay;
	struct client_server *server;
	struct overlay_listener listener;
	uint64_t told; // number of events
	bool maint;
	char directory[64];
	char path[96]; // the client socket
};

static struct agent agent;

static void happened(struct overlay_listener *listener, const struct ras_event *event) {
	(void)listener;
	(void)event;
	agent.told++;
}

static int agent_start(void **state) {
	struct overlay_config config = {
		.profile = &ras_profile_fast,
		.cluster = "day",
		.self = {.name = "n1", .host = "h1", .address_count = 1},
		.conns_max = 64,
	};
	struct client_config clients;
	char detail[256];

	(void)state;
	log_set_level(LOG_LEVEL_ERROR);
	agent = (struct agent){.listener = {.event = happened}};
	snprintf(agent.directory, sizeof(agent.directory), "/tmp/tocsin-day-XXXXXX");
	assert_non_null(mkdtemp(agent.directory));
	snprintf(agent.path, sizeof(agent.path), "%s.sock", agent.directory);
	clock_init_fake(&agent.clock, 1000 * RAS_NS_PER_SEC);
	assert_int_equal(loop_create(&agent.clock, &agent.loop), 0);
	assert_int_equal(seal_keys_create_keyless(config.cluster, &agent.keys), 0);
	assert_int_equal(state_open(agent.directory, JOURNAL_BYTES, detail, &agent.state), 0);
	assert_int_equal(sock_addr_parse("127.0.0.1:0", 11, 0, NULL, &config.listen), 0);
	config.self.addresses[0] = config.listen;
	config.keys = agent.keys;
	config.state = agent.state;
	assert_int_equal(overlay_create(agent.loop, &config, detail, &agent.overlay), 0);
	overlay_listen(agent.overlay, &agent.listener);
	client_config_init(&clients);
	clients.socket_path = agent.path;
	clients.socket_mode = 0600;
	clients.version = "day";
	clients.cluster = config.cluster;
	assert_int_equal(
		client_server_create(agent.loop, &clients, agent.overlay, detail, &agent.server), 0
	);
	overlay_join(agent.overlay, NULL, 0);
	return 0;
}

static int agent_stop(void **state) {
	(void)state;
	client_server_destroy(agent.server);
	overlay_unlisten(agent.overlay, &agent.listener);
	overlay_destroy(agent.overlay);
	state_close(agent.state);
	seal_keys_put(agent.keys);
	loop_destroy(agent.loop);
	return tree_remove(agent.directory);
}

static void turn(void) {
	assert_int_equal(loop_turn(agent.loop, 0), 0);
}

static int connect_client(const char *line) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, agent.path, strlen(agent.path) + 1);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(write(fd, line, strlen(line)), strlen(line));
	return fd;
}

// Count occurrences of the byte in the input. Sets ret_ended if the other side closed.
static uint64_t take_bytes(int fd, char byte, bool *ret_ended) {
	char bytes[65536];
	uint64_t count = 0;
	ssize_t got;

	while ((got = read(fd, bytes, sizeof(bytes))) > 0) {
		for (ssize_t n = 0; n < got; n++)
			count += bytes[n] == byte;
	}
	*ret_ended = got == 0;
	return count;
}

// Wait until the writer thread has written everything; the simulated clock stands still.
static uint64_t journal_settles(void) {
	struct state_counters counters;

	do {
		sched_yield();
		state_counters(agent.state, &counters);
	} while (counters.events_written + counters.events_lost + counters.write_failures <
		 agent.told);
	assert_int_equal(counters.write_failures, 0);
	return counters.events_lost;
}

static uint64_t bytes_on_disk(void) {
	DIR *directory = opendir(agent.directory);
	struct dirent *entry;
	uint64_t bytes = 0;
	struct stat info;

	assert_non_null(directory);
	while ((entry = readdir(directory)) != NULL) {
		if (fstatat(dirfd(directory), entry->d_name, &info, AT_SYMLINK_NOFOLLOW) == 0 &&
		    S_ISREG(info.st_mode))
			bytes += (uint64_t)info.st_size;
	}
	closedir(directory);
	return bytes;
}

// Returns 0 under a sanitizer, which reports leaks itself.
static size_t bytes_in_use(void) {
	struct mallinfo2 info = mallinfo2();

	return info.uordblks + info.hblkhd;
}

// Cause one event: switch the maintenance of this node on or off.
static void happen(void) {
	const struct overlay_maintenance_order order = {.for_ns = RAS_NEVER};
	uint64_t self = ras_self_id(overlay_ras(agent.overlay));

	agent.maint = !agent.maint;
	assert_int_equal(
		overlay_set_maintenance(agent.overlay, self, agent.maint ? &order : NULL), 0
	);
}

static void pass_hour(int reader) {
	bool ended;

	for (uint32_t second = 0; second < 3600; second++) {
		happen();
		for (uint32_t step = 0; step < 2; step++) {
			clock_advance(&agent.clock, STEP_NS);
			turn();
		}
		take_bytes(reader, '\n', &ended);
		assert_false(ended);
		if (second % 100 == 0)
			journal_settles();
	}
	for (uint32_t n = 0; n < BURST_EVENTS; n++)
		happen();
}

static void ask_for_all(void) {
	int fd = connect_client("EVENTS 0\n");
	uint64_t events = 0;
	bool ended;

	// One object for each event, and one around them.
	for (uint32_t n = 0; n < 20000 && events < 4097; n++) {
		turn();
		events += take_bytes(fd, '}', &ended);
	}
	assert_int_equal(events, 4096 + 1); // the maximum that is kept
	close(fd);
}

// Check that the journal ends with the last event.
static void assert_latest_is_kept(void) {
	char path[sizeof(agent.directory) + 16], line[STATE_LINE_BYTES_MAX + 1];
	struct state_event event = {0};
	FILE *file;

	happen();
	journal_settles();
	snprintf(path, sizeof(path), "%s/journal", agent.directory);
	file = fopen(path, "r");
	assert_non_null(file);
	while (fgets(line, sizeof(line), file) != NULL)
		assert_int_equal(state_line_parse(line, strlen(line), &event), 0);
	fclose(file);
	assert_int_equal(event.event.kind, RAS_EVENT_MAINT);
	assert_int_equal(event.event.value, agent.maint);
}

static void a_day_of_events_takes_no_more_than_its_first_hour(void **state) {
	const struct ras *ras = overlay_ras(agent.overlay);
	int reader = connect_client("MONITOR all\n");
	int sleeper = connect_client("MONITOR all\n");
	size_t core_bytes = 0, heap_bytes = 0;
	uint64_t lost = 0;
	bool ended;

	(void)state;
	for (uint32_t n = 0; n < 10; n++)
		turn();
	for (uint32_t hour = 0; hour < HOURS; hour++) {
		pass_hour(reader);
		lost = journal_settles();
		ask_for_all();
		take_bytes(reader, '\n', &ended);
		assert_false(ended);
		assert_in_range(bytes_on_disk(), 1, JOURNAL_BYTES + OTHER_FILES_BYTES);
		if (hour == 0) {
			core_bytes = ras_memory_used(ras);
			heap_bytes = bytes_in_use();
		}
		assert_in_range(ras_memory_used(ras), 0, core_bytes);
		assert_in_range(bytes_in_use(), 0, heap_bytes + GROWTH_BYTES_MAX);
	}
	assert_true(agent.told >= HOURS * (3600 + BURST_EVENTS));
	assert_true(lost < agent.told - HOURS * 3600); // lost only from the bursts
	take_bytes(sleeper, '\n', &ended);
	assert_true(ended);
	close(reader);
	close(sleeper);

	assert_latest_is_kept();
}

UNIT_GROUP(overlay_day) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_day_of_events_takes_no_more_than_its_first_hour, agent_start, agent_stop
		),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
