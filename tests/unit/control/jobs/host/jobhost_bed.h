// SPDX-License-Identifier: BSD-3-Clause
// The agent's side of jobs with its own socket, a clock set by the test, and hand-made packets.
#pragma once

#include <control/jobhost.h>
#include <support/cases.h>
#include <support/cmocka.h>
#include <tocsin/job_page.h>
#include <tocsin/job_socket.h>

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#define SECOND UINT64_C(1000000000)
#define TURNS_MAX 4000 // of one millisecond each, until a test fails

struct bed {
	char directory[32], path[64];
	struct clock clock;
	struct loop *loop;
	struct jobhost *host;
	struct jobhost_config config;
	uint32_t descriptors; // number of open descriptors at the start
};

static inline uint32_t descriptors(void) {
	DIR *directory = opendir("/proc/self/fd");
	uint32_t count = 0;

	assert_non_null(directory);
	while (readdir(directory) != NULL)
		count++;
	closedir(directory);
	return count;
}

static inline void host_start(struct bed *bed) {
	char detail[JOBHOST_DETAIL_BYTES];

	assert_int_equal(jobhost_create(bed->loop, &bed->config, detail, &bed->host), 0);
}

static inline int setup(void **state) {
	struct bed *bed = calloc(1, sizeof(*bed));

	assert_non_null(bed);
	snprintf(bed->directory, sizeof(bed->directory), "/tmp/tocsin-job-XXXXXX");
	assert_non_null(mkdtemp(bed->directory));
	assert_int_equal(chmod(bed->directory, 0755), 0);
	snprintf(bed->path, sizeof(bed->path), "%s/job.sock", bed->directory);
	clock_init_fake(&bed->clock, 1000 * SECOND);
	bed->descriptors = descriptors();
	assert_int_equal(loop_create(&bed->clock, &bed->loop), 0);
	bed->config = (struct jobhost_config){
		.socket_path = bed->path,
		.processes_max = 64,
		.per_user_max = 32,
		.keep_max = 4,
		.keep_ns = 60 * SECOND,
	};
	host_start(bed);
	*state = bed;
	return 0;
}

static inline int teardown(void **state) {
	struct bed *bed = *state;

	jobhost_destroy(bed->host);
	loop_destroy(bed->loop);
	// A thread closes descriptors that were handed over in vain.
	for (int n = 0; n < TURNS_MAX && descriptors() != bed->descriptors; n++)
		(void)poll(NULL, 0, 1);
	assert_int_equal(descriptors(), bed->descriptors);
	assert_int_equal(rmdir(bed->directory), 0);
	free(bed);
	return 0;
}

#define REPORTS_MAX 16384

// Store a copy of the report with this index. Returns the number of reports.
static inline uint32_t
read_report(const struct bed *bed, uint32_t n, struct jobs_rank_report *ret_report) {
	const struct jobs_rank_report **reports = calloc(REPORTS_MAX, sizeof(void *));
	uint32_t count;

	assert_non_null(reports);
	count = jobhost_select_reports(bed->host, reports, REPORTS_MAX);
	if (n < count)
		*ret_report = *reports[n];
	free(reports);
	return count;
}

static inline uint32_t ranks_shown(const struct bed *bed) {
	struct jobs_rank_report none;

	return read_report(bed, UINT32_MAX, &none);
}

static inline void turn(struct bed *bed, int timeout_ms) {
	assert_int_equal(loop_turn(bed->loop, timeout_ms), 0);
}

// Handle everything that is pending.
static inline void settle(struct bed *bed) {
	for (int n = 0; n < 64; n++)
		turn(bed, 0);
}

static inline void look_again(struct bed *bed) {
	clock_advance(&bed->clock, SECOND);
	settle(bed);
}

// Connect without the library.
static inline int raw_connect(const struct bed *bed) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);

	assert_true(fd >= 0);
	memcpy(address.sun_path, bed->path, strlen(bed->path) + 1);
	assert_int_equal(connect(fd, (const struct sockaddr *)&address, sizeof(address)), 0);
	return fd;
}

static inline void raw_send(int fd, const void *packet, size_t size, int passed) {
	char copy[2048];
	struct iovec part = {copy, size};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1};

	assert_true(size <= sizeof(copy));
	memcpy(copy, packet, size);
	if (passed >= 0) {
		message.msg_control = &control;
		message.msg_controllen = sizeof(control);
		control.head.cmsg_level = SOL_SOCKET;
		control.head.cmsg_type = SCM_RIGHTS;
		control.head.cmsg_len = CMSG_LEN(sizeof(int));
		memcpy(CMSG_DATA(&control.head), &passed, sizeof(int));
	}
	(void)sendmsg(fd, &message, MSG_NOSIGNAL);
}

// Return the kind of the answer, or 0, and its reason.
static inline uint16_t raw_answer(struct bed *bed, int fd, char reason[static JOB_REASON_BYTES]) {
	struct job_failed space;
	struct job_refused answer = {0};
	ssize_t size;

	settle(bed);
	size = recv(fd, &space, sizeof(space), 0);
	if (size < (ssize_t)sizeof(answer.head))
		return 0;
	memcpy(&answer, &space, (size_t)size < sizeof(answer) ? (size_t)size : sizeof(answer));
	memcpy(reason, answer.reason, JOB_REASON_BYTES);
	return answer.head.kind;
}

#define SEALS (F_SEAL_SEAL | F_SEAL_SHRINK | F_SEAL_GROW)

static inline int memory(size_t size, int seals) {
	int fd = memfd_create("test", MFD_CLOEXEC | MFD_ALLOW_SEALING);

	assert_true(fd >= 0);
	assert_int_equal(ftruncate(fd, (off_t)size), 0);
	if (seals != 0)
		assert_int_equal(fcntl(fd, F_ADD_SEALS, seals), 0);
	return fd;
}

static inline uint64_t start_time_of(pid_t pid) {
	char text[1024], path[32];
	FILE *file;
	unsigned long long start = 0;
	const char *at;

	snprintf(path, sizeof(path), "/proc/%d/stat", pid);
	file = fopen(path, "r");
	assert_non_null(file);
	text[fread(text, 1, sizeof(text) - 1, file)] = '\0';
	fclose(file);
	at = strrchr(text, ')');
	for (int field = 2; at != NULL && field < 22; field++)
		at = strchr(at + 1, ' ');
	assert_non_null(at);
	start = strtoull(at, NULL, 10);
	return start;
}

static inline struct job_hello good_hello(void) {
	return (struct job_hello){
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_HELLO},
		.version_min = JOB_SOCKET_VERSION_MIN,
		.start_time = start_time_of(getpid()),
		.page_bytes = JOB_PAGE_BYTES,
	};
}

static inline int raw_greet(struct bed *bed, int page) {
	const struct job_hello hello = good_hello();
	char reason[JOB_REASON_BYTES];
	int fd = raw_connect(bed);

	raw_send(fd, &hello, sizeof(hello), page);
	assert_int_equal(raw_answer(bed, fd, reason), JOB_WELCOME);
	return fd;
}

static inline struct job_register good_register(uint64_t number) {
	return (struct job_register){
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_REGISTER},
		.comm = number,
		.comm_hash = 9,
		.size = 8,
		.rank = 1,
	};
}
