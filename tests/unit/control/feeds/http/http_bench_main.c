// SPDX-License-Identifier: BSD-3-Clause
// Memory and delay of the HTTP server under clients that ask for a page and never read it. A second
// process is the clients; this process has the server and a table of peers, and publishes a new
// snapshot every second, as an agent does.
#include <control/http.h>
#include <control/snapshot.h>
#include <dataplane/peer_table.h>
#include <lib/clock.h>
#include <lib/must.h>
#include <lib/rcu_reclaimer.h>
#include <lib/rcu_thread.h>

#include <errno.h>
#include <inttypes.h>
#include <malloc.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#define SILENT 64
#define STEP_MS 20
#define STEPS_PER_SECOND (1000 / STEP_MS)
#define LARGE_BLOCK_BYTES (128 * 1024) // as tocsind has it
#define MIB (1024.0 * 1024.0)

static struct clock monotonic;

// The clients.

static int client_connect(const struct sockaddr_storage *address, socklen_t length) {
	const int small = 4096;
	int fd = socket(address->ss_family, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	must(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &small, sizeof(small)) == 0);
	must(connect(fd, (const struct sockaddr *)address, length) == 0);
	return fd;
}

static void client_ask(int fd, const char *path, const char *more) {
	char request[512];
	int size = snprintf(
		request, sizeof(request), "GET %s HTTP/1.1\r\nHost: x\r\n%s\r\n", path, more
	);

	// A client that was closed already is connected anew in the next step.
	if (send(fd, request, (size_t)size, MSG_NOSIGNAL) < 0)
		must(errno == EPIPE || errno == ECONNRESET);
}

// Return the time in which /health answers, and fail if it does not answer 200 or 503.
static uint64_t health_ns(const struct sockaddr_storage *address, socklen_t length) {
	uint64_t begin_ns = clock_now_ns(&monotonic);
	int fd = client_connect(address, length);
	char answer[16] = "";

	client_ask(fd, "/health", "");
	if (recv(fd, answer, 12, MSG_WAITALL) != 12)
		printf("/health was not answered\n");
	close(fd);
	return clock_now_ns(&monotonic) - begin_ns;
}

static int clients_main(
	const struct sockaddr_storage *address,
	socklen_t length,
	const char *path,
	const char *more,
	uint32_t seconds
) {
	struct pollfd silent[SILENT];
	uint64_t longest_ns = 0, total_ns = 0;
	uint32_t dropped = 0, asked = 0;

	for (uint32_t n = 0; n < SILENT; n++)
		silent[n] = (struct pollfd){.fd = -1, .events = POLLRDHUP};
	for (uint32_t turn = 0; turn < seconds * STEPS_PER_SECOND; turn++) {
		must(poll(silent, SILENT, 0) >= 0);
		for (uint32_t n = 0; n < SILENT; n++) {
			if (silent[n].fd >= 0 && silent[n].revents == 0)
				continue;
			if (silent[n].fd >= 0) {
				close(silent[n].fd);
				dropped++;
			}
			silent[n].fd = client_connect(address, length);
			client_ask(silent[n].fd, path, more);
		}
		if (turn % (STEPS_PER_SECOND / 10) == 0) {
			uint64_t time_ns = health_ns(address, length);

			asked++;
			total_ns += time_ns;
			longest_ns = time_ns > longest_ns ? time_ns : longest_ns;
		}
		(void)poll(NULL, 0, STEP_MS);
	}
	printf("/health asked %" PRIu32 " times: mean %.1f ms, longest %.1f ms\n", asked,
	       (double)total_ns / asked / 1e6, (double)longest_ns / 1e6);
	printf("silent readers dropped by the server: %" PRIu32 "\n", dropped);
	return 0;
}

// The server.

static double memory_mib(void) {
	FILE *file = fopen("/proc/self/statm", "re");
	long size, resident = 0;

	must(file != NULL);
	must(fscanf(file, "%ld %ld", &size, &resident) == 2);
	fclose(file);
	return (double)(resident * sysconf(_SC_PAGESIZE)) / MIB;
}

static struct peer_table *table_of(uint32_t count) {
	struct peer_view view = {.number = 1, .joined = true, .alive = count};
	struct peer_table *table;

	must(peer_table_create(&table) == 0);
	for (uint32_t n = 0; n < count; n++) {
		struct peer_row row = {.id = n + 1, .slot = n, .state = PEER_ALIVE};

		snprintf(row.name, sizeof(row.name), "node%05" PRIu32, n);
		snprintf(row.host, sizeof(row.host), "node%05" PRIu32, n);
		row.name_length = row.host_length = (uint8_t)strlen(row.name);
		must(sock_addr_parse("10.1.2.3", 8, 28030, NULL, &row.address) == 0);
		must(peer_table_set(table, &row) == 0);
	}
	rcu_thread_online(clock_now_ns(&monotonic));
	must(peer_table_publish(table, &view) == 0);
	rcu_thread_offline();
	return table;
}

static void snapshot_publish(struct snapshots *snapshots) {
	struct snapshot snapshot = {
		.at_ns = clock_now_ns(&monotonic),
		.view = {.joined = true},
		.finding = {.reason = "None"},
	};

	rcu_thread_online(snapshot.at_ns);
	must(snapshots_publish(snapshots, &snapshot) == 0);
	rcu_thread_offline();
}

// Bind a port, so that both processes know the address, and free it for the server.
static void address_choose(struct sock_addr *ret_address, struct sockaddr_storage *ret_storage) {
	socklen_t length;
	int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);

	must(fd >= 0);
	must(sock_addr_parse("127.0.0.1", 9, 0, NULL, ret_address) == 0);
	length = sock_addr_to_sockaddr(ret_address, ret_storage);
	must(bind(fd, (const struct sockaddr *)ret_storage, length) == 0);
	must(getsockname(fd, (struct sockaddr *)ret_storage, &length) == 0);
	must(sock_addr_from_sockaddr((const struct sockaddr *)ret_storage, length, ret_address) == 0
	);
	close(fd);
}

static int server_main(const struct http_config *config, uint32_t rows, pid_t clients, int gate) {
	struct http_config own = *config;
	char detail[HTTP_DETAIL_BYTES];
	struct snapshots *snapshots;
	struct peer_table *table;
	struct http *http;
	double before_mib, largest_mib = 0;
	int status = 0;

	must(rcu_reclaimer_start() == 0);
	must(rcu_thread_register("control", clock_now_ns(&monotonic)) == 0);
	rcu_thread_offline();
	table = table_of(rows);
	must(snapshots_create(&snapshots) == 0);
	snapshot_publish(snapshots);
	own.peers = table;
	own.snapshots = snapshots;
	must(http_start(&own, detail, &http) == 0);
	before_mib = memory_mib();
	must(write(gate, "", 1) == 1);
	for (uint32_t turn = 1; waitpid(clients, &status, WNOHANG) == 0; turn++) {
		double now_mib = memory_mib();

		largest_mib = now_mib > largest_mib ? now_mib : largest_mib;
		if (turn % STEPS_PER_SECOND == 0)
			snapshot_publish(snapshots);
		(void)poll(NULL, 0, STEP_MS);
	}
	printf("resident memory with %" PRIu32 " rows: before %.1f MiB, largest %.1f MiB "
	       "(%+.1f), at the end %.1f MiB\n",
	       rows, before_mib, largest_mib, largest_mib - before_mib, memory_mib());
	http_stop(http);
	snapshots_destroy(snapshots);
	peer_table_destroy(table);
	rcu_thread_unregister();
	return status == 0 ? 0 : 1;
}

int main(int argc, char **argv) {
	const char *path = argc > 1 ? argv[1] : "/status.json";
	const char *more =
		argc > 2 && strcmp(argv[2], "gzip") == 0 ? "Accept-Encoding: gzip\r\n" : "";
	uint32_t seconds = argc > 3 ? (uint32_t)strtoul(argv[3], NULL, 10) : 30;
	struct http_config config = {.clock = &monotonic, .version = "bench"};
	struct sockaddr_storage storage;
	int gate[2];
	pid_t clients;
	char open;

	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);
	clock_init_monotonic(&monotonic);
	address_choose(&config.listen, &storage);
	must(pipe(gate) == 0);
	clients = fork();
	must(clients >= 0);
	if (clients == 0) {
		must(read(gate[0], &open, 1) == 1);
		return clients_main(&storage, sizeof(struct sockaddr_in), path, more, seconds);
	}
	return server_main(
		&config, argc > 4 ? (uint32_t)strtoul(argv[4], NULL, 10) : 40000, clients, gate[1]
	);
}
