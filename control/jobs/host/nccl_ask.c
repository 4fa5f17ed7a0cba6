// SPDX-License-Identifier: BSD-3-Clause
// Queries the RAS of an NCCL job on this node. Its report says on which GPU each local rank is. The
// bytes and seconds spent on an answer are bounded, whatever answers there.
//
// NCCL's own RAS knows no communicator names and no job; those come from the profiler plugin. A
// query makes all processes of the job answer each other. So a query is sent only while a local
// rank has no known GPU, and at most once a minute. A rank that has just registered causes no
// query.
#include "jobs/host/inside.h"
#include "jobs/host/nccl_report.h"

#include <lib/container.h>
#include <lib/log.h>
#include <lib/stream.h>
#include <lib/tcp_owner.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ASK_NS (60 * RAS_NS_PER_SEC)   // between two queries
#define SETTLE_NS (5 * RAS_NS_PER_SEC) // time after a registration without queries
#define QUERY_TIMEOUT_NS (10 * RAS_NS_PER_SEC)
#define READ_BYTES 16384u
#define TOTAL_BYTES_MAX (64u << 20)
#define LINE_BYTES 256u
#define COLLECT_S "2" // how long the processes wait for each other, in seconds

// Lines to send, and the prefix of each answer. The report follows the last line.
static const struct {
	const char *line, *answer;
} steps[] = {
	{"CLIENT PROTOCOL 2\n", "SERVER PROTOCOL "},
	{"SET FORMAT json\n", "OK"},
	{"TIMEOUT " COLLECT_S "\n", "OK"},
	{"STATUS\n", NULL},
};
#define STEPS (sizeof(steps) / sizeof(steps[0]))

struct nccl_ask {
	struct jobhost *host;
	struct sock_addr address;
	struct loop_source source; // fd -1: no query is open
	struct loop_timer patience;
	uint64_t next_ns;
	int owner_fd; // socket that asks the kernel for the owner of a TCP socket; -1: unavailable
	size_t step, sent;
	size_t line_length;
	char line[LINE_BYTES];
	uint32_t bytes;
	uint32_t uid;	// owner of the answering process
	uint32_t found; // local ranks found in the report
	bool was_told;	// the failure was logged
	struct nccl_report report;
};

static void end_nccl_query(struct nccl_ask *ask, const char *why) {
	loop_timer_cancel(ask->host->loop, &ask->patience);
	loop_remove(&ask->source);
	close(ask->source.fd);
	ask->source.fd = -1;
	if (why == NULL) {
		ask->was_told = false;
		log_event(LOG_LEVEL_DEBUG, "nccl_ras_read", log_u64("ranks", ask->found));
	} else if (!ask->was_told) {
		ask->was_told = true; // no second log line until a query succeeds
		log_event(LOG_LEVEL_INFO, "nccl_ras_unread", log_str("reason", why));
	}
}

static void on_query_timeout(struct loop_timer *timer, uint64_t now_ns) {
	(void)now_ns;
	end_nccl_query(
		container_of(timer, struct nccl_ask, patience), "no complete report within 10 s"
	);
}

// A user who listens there may report only on that user's own processes; root may report on all.
static void on_nccl_rank(void *ctx, const struct nccl_rank *told) {
	struct nccl_ask *ask = ctx;

	struct host_process *at = process_find(ask->host, told->pid, NULL);

	for (; at != NULL; at = process_find(ask->host, told->pid, at)) {
		if (at->exited_ns != 0 || (ask->uid != at->uid && ask->uid != 0))
			continue;
		for (struct host_rank *rank = at->ranks; rank != NULL; rank = rank->next) {
			if (rank->told.comm_hash != told->comm_hash ||
			    rank->told.rank != told->rank || rank->told.size != told->size ||
			    (rank->told.cuda_device >= 0 && rank->told.nvml_device >= 0))
				continue;
			rank->report.cuda_device = told->cuda_device;
			rank->report.nvml_device = told->nvml_device;
			rank->gpu_is_from_nccl = true;
			ask->found++;
		}
	}
}

// Store one address of a connection, by getsockname() or getpeername().
static int read_socket_address(
	int fd,
	int (*which)(int fd, struct sockaddr *address, socklen_t *length),
	struct sock_addr *ret_end
) {
	struct sockaddr_storage storage;
	socklen_t length = sizeof(storage);

	if (which(fd, (struct sockaddr *)&storage, &length) != 0)
		return -errno;
	return sock_addr_from_sockaddr((struct sockaddr *)&storage, length, ret_end);
}

static bool find_answering_user(struct nccl_ask *ask) {
	struct sock_addr theirs, ours;

	return read_socket_address(ask->source.fd, getpeername, &theirs) == 0 &&
	       read_socket_address(ask->source.fd, getsockname, &ours) == 0 &&
	       tcp_owner_find(ask->owner_fd, &theirs, &ours, &ask->uid) == 0;
}

// NCCL before 2.28 has no JSON, and a server of another kind may answer anything: report its line.
static void scan_answer_lines(struct nccl_ask *ask, const char *bytes, size_t size) {
	for (size_t n = 0; n < size && ask->source.fd >= 0; n++) {
		const char *line = steps[ask->step].line, *answer = steps[ask->step].answer;
		char why[LINE_BYTES + 64];

		if (ask->sent != strlen(line)) {
			end_nccl_query(ask, "the answer came before the request was sent");
			return;
		}
		if (bytes[n] != '\n') {
			if (ask->line_length == sizeof(ask->line) - 1)
				end_nccl_query(ask, "a line of the answer is too long");
			else if (bytes[n] != '\r')
				ask->line[ask->line_length++] = bytes[n];
			continue;
		}
		ask->line[ask->line_length] = '\0';
		if (strncasecmp(ask->line, answer, strlen(answer)) == 0) {
			ask->step++;
			ask->sent = 0;
			ask->line_length = 0;
			loop_set_events(&ask->source, EPOLLOUT);
			continue;
		}
		snprintf(
			why, sizeof(why), "the answer to %.*s is \"%s\"", (int)strlen(line) - 1,
			line, ask->line
		);
		end_nccl_query(ask, why);
	}
}

static void receive_answer(struct nccl_ask *ask) {
	char bytes[READ_BYTES];
	ssize_t got = stream_receive(ask->source.fd, bytes, sizeof(bytes));

	if (got == -EAGAIN)
		return;
	if (got < 0) {
		end_nccl_query(ask, strerrordesc_np((int)-got));
	} else if (got == 0) {
		end_nccl_query(
			ask, nccl_report_is_complete(&ask->report) ? NULL : "the report was cut off"
		);
	} else if (ask->bytes == 0 && !find_answering_user(ask)) {
		end_nccl_query(ask, "the kernel does not report which user's process answers");
	} else if ((ask->bytes += (uint32_t)got) > TOTAL_BYTES_MAX) {
		end_nccl_query(ask, "the report is longer than 64 MiB");
	} else if (ask->step < STEPS - 1) {
		scan_answer_lines(ask, bytes, (size_t)got);
	} else if (nccl_report_feed(&ask->report, bytes, (size_t)got) != 0) {
		end_nccl_query(ask, "the answer is not a report of NCCL's RAS");
	}
}

static void on_query_ready(struct loop_source *source, uint32_t events) {
	struct nccl_ask *ask = container_of(source, struct nccl_ask, source);
	const char *line = steps[ask->step].line;
	ssize_t sent;

	if ((source->events & EPOLLOUT) != 0 && ask->step == 0 && ask->sent == 0) {
		int err = stream_connect_finish(source->fd);

		if (err == -EINPROGRESS)
			return;
		if (err != 0) {
			end_nccl_query(ask, strerrordesc_np(-err));
			return;
		}
	}
	if ((source->events & EPOLLOUT) == 0 || (events & (EPOLLOUT | EPOLLERR | EPOLLHUP)) == 0) {
		receive_answer(ask);
		return;
	}
	sent = stream_send(source->fd, line + ask->sent, strlen(line) - ask->sent);
	if (sent == -EAGAIN)
		return;
	if (sent < 0) {
		end_nccl_query(ask, strerrordesc_np((int)-sent));
		return;
	}
	ask->sent += (size_t)sent;
	if (ask->sent == strlen(line))
		loop_set_events(source, EPOLLIN);
}

void nccl_ask_note_rank(const struct host_rank *rank, uint64_t now_ns) {
	if (rank->report.cuda_device < 0 && rank->report.launched > 0 &&
	    now_ns - rank->since_ns >= SETTLE_NS)
		rank->process->host->round.gpu_is_missing = true;
}

void nccl_ask_tick(struct nccl_ask *ask, uint64_t now_ns) {
	struct sockaddr_storage storage;
	socklen_t length;
	int fd, err;

	if (ask == NULL || ask->source.fd >= 0 || now_ns < ask->next_ns ||
	    !ask->host->round.gpu_is_missing)
		return;
	ask->next_ns = now_ns + ASK_NS;
	ask->step = ask->sent = ask->line_length = 0;
	ask->bytes = ask->found = 0;
	nccl_report_begin(&ask->report, on_nccl_rank, ask);
	length = sock_addr_to_sockaddr(&ask->address, &storage);
	fd = socket(storage.ss_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return;
	ask->source = (struct loop_source
	){.fd = fd, .events = EPOLLOUT, .rank = LOOP_CLIENTS, .ready = on_query_ready};
	err = stream_connect_start(fd, (const struct sockaddr *)&storage, length);
	if (err == 0 || err == -EINPROGRESS)
		err = loop_add(ask->host->loop, &ask->source);
	if (err == 0)
		err = loop_timer_set(ask->host->loop, &ask->patience, now_ns + QUERY_TIMEOUT_NS);
	if (err != 0)
		end_nccl_query(ask, strerrordesc_np(-err));
}

int nccl_ask_create(
	struct jobhost *host, const struct sock_addr *address, struct nccl_ask **ret_ask
) {
	struct nccl_ask *ask = calloc(1, sizeof(*ask));

	if (ask == NULL)
		return -ENOMEM;
	ask->host = host;
	ask->address = *address;
	ask->source.fd = -1;
	ask->patience.expired = on_query_timeout;
	if (tcp_owner_open(&ask->owner_fd) != 0)
		ask->owner_fd = -1;
	*ret_ask = ask;
	return 0;
}

struct nccl_ask *nccl_ask_destroy(struct nccl_ask *ask) {
	if (ask == NULL)
		return NULL;
	if (ask->source.fd >= 0)
		end_nccl_query(ask, NULL);
	if (ask->owner_fd >= 0)
		close(ask->owner_fd);
	free(ask);
	return NULL;
}
