// SPDX-License-Identifier: BSD-3-Clause
// The agent queries NCCL's own RAS for GPUs: a stand-in answers correctly, slowly, wrongly, or
// not at all.
#include "control/jobs/host/jobhost_bed.h"

#include <lib/sockaddr.h>
#include <tocsin/job.h>

#include <netinet/in.h>

#define REPORT_BYTES 1024

// A rank in this process, and a loopback port that stands in for NCCL's RAS port.
struct play {
	struct bed *bed;
	struct tocsin_job *job;
	struct tocsin_comm *comm;
	struct sock_addr address;
	int listener;
	char report[REPORT_BYTES];
};

static void play_listen(struct play *play) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);
	struct sockaddr_in any = {.sin_family = AF_INET, .sin_addr = {htonl(INADDR_LOOPBACK)}};

	play->listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	assert_int_equal(bind(play->listener, (struct sockaddr *)&any, sizeof(any)), 0);
	assert_int_equal(listen(play->listener, 4), 0);
	assert_int_equal(getsockname(play->listener, (struct sockaddr *)&storage, &length), 0);
	assert_int_equal(
		sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &play->address), 0
	);
}

static struct jobs_rank_report report_of(struct bed *bed) {
	struct jobs_rank_report report;

	assert_int_equal(read_report(bed, 0, &report), 1);
	return report;
}

static void play_begin(struct play *play, struct bed *bed) {
	struct tocsin_job_config job = {
		.struct_size = sizeof(job),
		.socket_path = bed->path,
		.flags = TOCSIN_JOB_NO_THREAD,
	};
	struct tocsin_comm_config comm;

	*play = (struct play){.bed = bed};
	play_listen(play);
	bed->host = jobhost_destroy(bed->host);
	bed->config.nccl_ras = &play->address;
	host_start(bed);
	assert_int_equal(tocsin_job_open(&job, &play->job), 0);
	tocsin_comm_config_init(&comm);
	comm.comm_hash = 77;
	comm.size = 4;
	comm.rank = 2;
	assert_int_equal(tocsin_comm_register(play->job, &comm, &play->comm), 0);
	tocsin_comm_launched(play->comm, TOCSIN_ALL_REDUCE, 1, 7, -1);
	for (int n = 0; n < TURNS_MAX && ranks_shown(bed) == 0; n++) {
		assert_int_equal(tocsin_job_poll(play->job), 0);
		turn(bed, 1);
	}
	snprintf(
		play->report, sizeof(play->report),
		"{\n \"communicators\": [\n {\"hash\": \"0x4d\", \"size\": 4, \"ranks\": [\n"
		" {\"rank\": 1, \"pid\": %d, \"cuda_dev\": 1, \"nvml_dev\": 1},\n"
		" {\"rank\": 2, \"pid\": %d, \"cuda_dev\": 3, \"nvml_dev\": 5}\n"
		" ]},\n {\"hash\": \"0x4e\", \"size\": 4, \"ranks\": [\n"
		" {\"rank\": 2, \"pid\": %d, \"cuda_dev\": 9, \"nvml_dev\": 9}]}]}\n",
		getpid(), getpid(), getpid()
	);
}

static void play_end(struct play *play) {
	close(play->listener);
	tocsin_job_close(play->job);
	settle(play->bed);
}

// Let six seconds pass, after which the agent connects. Returns the stand-in's descriptor or -1.
static int play_accept(struct play *play) {
	int fd = -1;

	for (int n = 0; n < 70 && fd < 0; n++) {
		look_again(play->bed);
		fd = accept4(play->listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	return fd;
}

// Return the agent's input up to the end of a line or of the stream.
static const char *hear(struct play *play, int fd) {
	static char line[256];
	size_t length = 0;

	line[0] = '\0';
	for (int n = 0; n < 2000 && strchr(line, '\n') == NULL; n++) {
		ssize_t got;

		turn(play->bed, 0);
		got = recv(fd, line + length, sizeof(line) - 1 - length, 0);
		if (got == 0)
			break;
		if (got < 0) {
			turn(play->bed, 1);
			continue;
		}
		length += (size_t)got;
		line[length] = '\0';
	}
	return line;
}

static void answer(struct play *play, int fd, const char *text, size_t piece) {
	size_t left = strlen(text);

	while (left > 0) {
		size_t size = left < piece ? left : piece;

		if (send(fd, text, size, MSG_NOSIGNAL) < 0)
			return;
		text += size;
		left -= size;
		settle(play->bed);
	}
}

static void converse(struct play *play, int fd, size_t piece, const char *protocol) {
	assert_string_equal(hear(play, fd), "CLIENT PROTOCOL 2\n");
	answer(play, fd, protocol, piece);
	assert_string_equal(hear(play, fd), "SET FORMAT json\n");
	answer(play, fd, "OK\n", piece);
	assert_string_equal(hear(play, fd), "TIMEOUT 2\n");
	answer(play, fd, "OK\r\n", piece);
	assert_string_equal(hear(play, fd), "STATUS\n");
}

static void a_rank_without_a_gpu_learns_it_from_nccl(void **state) {
	static const size_t pieces[] = {1, 7, REPORT_BYTES};

	for (size_t n = 0; n < COUNT_OF(pieces); n++) {
		struct jobs_rank_report report;
		struct play play;
		int fd;

		play_begin(&play, *state);
		assert_int_equal(report_of(play.bed).cuda_device, -1);
		fd = play_accept(&play);
		assert_true(fd >= 0);
		converse(
			&play, fd, pieces[n], n == 0 ? "SERVER PROTOCOL 9\n" : "SERVER PROTOCOL 2\n"
		);
		answer(&play, fd, play.report, pieces[n]);
		close(fd);
		look_again(play.bed);
		report = report_of(play.bed);
		assert_int_equal(report.cuda_device, 3);
		assert_int_equal(report.nvml_device, 5);
		assert_true((report.knows & JOBS_KNOWS_GPU_OF_NCCL) != 0);
		// Everything is known, so the agent does not connect again.
		assert_int_equal(play_accept(&play), -1);
		play_end(&play);
	}
}

// The stand-in's reply in place of the n-th answer, and whether it then closes.
static const struct {
	int step;
	const char *text;
	bool ends;
} hostile[] = {
	{0, "", true},
	{0, "", false},
	{0, "ERROR: Unknown command CLIENT PROTOCOL 2\n", false},
	{0, "HTTP/1.1 400 Bad Request\r\n\r\n", true},
	{0, "SERVER PROTOCOL 2\nOK\nOK\n{}", false}, // sent before any request
	{0, "SERVER PROTOCOL 2", true},
	{1, "ERROR: Invalid format json\n", false}, // NCCL before 2.28
	{1, "OK", true},
	{2, "BUSY\n", false},
	{3, "", true},
	{3, "", false},
	{3, "{\"communicators\": [", true},
	{3, "{\"communicators\": [", false},
	{3, "NCCL version 2.27.3 compiled with CUDA 12.4\n", true},
	{3, "{]", false},
};

static void whoever_answers_wrongly_or_not_at_all_costs_ten_seconds_and_no_more(void **state) {
	static const char *const right[] = {"SERVER PROTOCOL 2\n", "OK\n", "OK\n"};
	struct play play;

	play_begin(&play, *state);
	for (size_t n = 0; n < COUNT_OF(hostile); n++) {
		int fd = play_accept(&play);
		bool is_closed = false;
		char byte;

		assert_true(fd >= 0);
		assert_in_range(hostile[n].step, 0, COUNT_OF(right));
		for (size_t step = 0; step < COUNT_OF(right) && step < (size_t)hostile[n].step;
		     step++) {
			assert_true(strlen(hear(&play, fd)) > 0);
			answer(&play, fd, right[step], 64);
		}
		assert_true(strlen(hear(&play, fd)) > 0);
		answer(&play, fd, hostile[n].text, 64);
		if (hostile[n].ends)
			shutdown(fd, SHUT_WR);
		for (int second = 0; second < 12 && !is_closed; second++) {
			look_again(play.bed);
			is_closed = recv(fd, &byte, 1, MSG_PEEK) == 0;
		}
		if (!is_closed)
			fail_msg("case %zu: the agent still waits", n);
		close(fd);
		assert_int_equal(report_of(play.bed).cuda_device, -1);
	}
	play_end(&play);
}

static void a_line_without_end_is_given_up(void **state) {
	struct play play;
	char line[600];
	int fd;

	memset(line, 'x', sizeof(line) - 1);
	line[sizeof(line) - 1] = '\0';
	play_begin(&play, *state);
	fd = play_accept(&play);
	assert_string_equal(hear(&play, fd), "CLIENT PROTOCOL 2\n");
	answer(&play, fd, line, sizeof(line));
	assert_string_equal(hear(&play, fd), "");
	close(fd);
	play_end(&play);
}

static void nobody_who_listens_is_no_trouble(void **state) {
	struct play play;

	play_begin(&play, *state);
	close(play.listener);
	for (int n = 0; n < 130; n++)
		look_again(play.bed);
	assert_int_equal(report_of(play.bed).cuda_device, -1);
	play.listener = -1;
	play_end(&play);
}

static void another_user_tells_nothing_of_our_processes(void **state) {
	struct play play;
	int fd;

	if (geteuid() != 0)
		skip();
	play_begin(&play, *state);
	assert_int_equal(seteuid(65534), 0);
	fd = -1;
	for (int n = 0; n < 70 && fd < 0; n++) {
		assert_int_equal(seteuid(0), 0);
		look_again(play.bed);
		assert_int_equal(seteuid(65534), 0);
		fd = accept4(play.listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC);
	}
	assert_int_equal(seteuid(0), 0);
	converse(&play, fd, 64, "SERVER PROTOCOL 2\n");
	answer(&play, fd, play.report, 64);
	close(fd);
	look_again(play.bed);
	assert_int_equal(report_of(play.bed).cuda_device, -1);
	play_end(&play);
}

static void a_question_under_way_ends_with_the_agent(void **state) {
	struct play play;
	int fd;

	play_begin(&play, *state);
	fd = play_accept(&play);
	assert_true(fd >= 0);
	play.bed->host = jobhost_destroy(play.bed->host);
	close(fd);
	host_start(play.bed);
	play_end(&play);
}

UNIT_GROUP(jobhost_nccl) {
#define NCCL_TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)
	const struct CMUnitTest tests[] = {
		NCCL_TEST(a_rank_without_a_gpu_learns_it_from_nccl),
		NCCL_TEST(whoever_answers_wrongly_or_not_at_all_costs_ten_seconds_and_no_more),
		NCCL_TEST(a_line_without_end_is_given_up),
		NCCL_TEST(nobody_who_listens_is_no_trouble),
		NCCL_TEST(another_user_tells_nothing_of_our_processes),
		NCCL_TEST(a_question_under_way_ends_with_the_agent),
	};

	return cmocka_run_group_tests_name("jobhost_nccl", tests, NULL, NULL);
}
