// SPDX-License-Identifier: BSD-3-Clause
// Sends packets to the agent.
#include "inside.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>

// Returns 1 (sent), 0 (socket buffer full) or -1 (connection broken).
static int send_packet(struct tocsin_job *job, const void *packet, size_t size) {
	ssize_t sent = send(job->link.fd, packet, size, MSG_NOSIGNAL);

	if (sent == (ssize_t)size)
		return 1;
	if (sent < 0 && (errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR ||
			 errno == ENOBUFS || errno == ENOMEM)) {
		job->link.blocked = true;
		return 0;
	}
	return -1;
}

bool link_send_hello(struct tocsin_job *job) {
	struct job_hello hello = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_HELLO},
		.version_min = JOB_SOCKET_VERSION_MIN,
		.start_time = job->start_time,
		.page_bytes = JOB_PAGE_BYTES,
		.attempt = job->attempt,
	};
	struct iovec part = {&hello, sizeof(hello)};
	union {
		struct cmsghdr head;
		char bytes[CMSG_SPACE(sizeof(int))];
	} control = {0};
	struct msghdr message = {
		.msg_iov = &part,
		.msg_iovlen = 1,
		.msg_control = &control,
		.msg_controllen = sizeof(control),
	};
	struct cmsghdr *rights = CMSG_FIRSTHDR(&message);

	memcpy(hello.job_id, job->job_id, sizeof(hello.job_id));
	rights->cmsg_level = SOL_SOCKET;
	rights->cmsg_type = SCM_RIGHTS;
	rights->cmsg_len = CMSG_LEN(sizeof(int));
	memcpy(CMSG_DATA(rights), &job->page_fd, sizeof(int));
	return sendmsg(job->link.fd, &message, MSG_NOSIGNAL) == (ssize_t)sizeof(hello);
}

// Unregistrations go first: their ranks may have been registered again since. The size of the queue
// also depends on this order.
static int send_unregisters(struct tocsin_job *job) {
	while (job->left_count > 0) {
		const struct job_unregister gone = {
			.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_UNREGISTER},
			.comm = job->left[job->left_count - 1],
		};
		int sent = send_packet(job, &gone, sizeof(gone));

		if (sent <= 0)
			return sent;
		job->left_count--;
	}
	return 1;
}

// Send back the set that an earlier agent reported, because a new agent does not know it. If the
// buffer is full, the rest of the set is not sent.
static int send_failed_set(struct tocsin_job *job, const struct tocsin_comm *comm) {
	struct job_failed failed = {
		.head = {JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_FAILED},
		.comm = comm->number,
		.view = comm->failed.view,
		.total = comm->failed.count,
	};

	while (failed.first < failed.total) {
		uint32_t left = failed.total - failed.first;
		int sent;

		failed.count = left < JOB_FAILED_MAX ? left : JOB_FAILED_MAX;
		memcpy(failed.ranks, comm->failed.ranks + failed.first,
		       failed.count * sizeof(failed.ranks[0]));
		sent = send_packet(job, &failed, sizeof(failed));
		if (sent <= 0)
			return sent;
		failed.first += failed.count;
	}
	return 1;
}

static int send_registrations(struct tocsin_job *job) {
	for (uint32_t n = 0; n < JOB_COMMS_MAX; n++) {
		struct tocsin_comm *comm = job->comms[n];
		int sent;

		if (comm == NULL || !comm->registration_is_unsent)
			continue;
		sent = send_packet(job, &comm->told, sizeof(comm->told));
		if (sent <= 0)
			return sent;
		comm->registration_is_unsent = false;
		sent = send_failed_set(job, comm);
		if (sent < 0)
			return sent;
	}
	return 1;
}

static int send_reports(struct tocsin_job *job) {
	while (job->report_count > 0) {
		int sent = send_packet(job, &job->reports[0], sizeof(job->reports[0]));

		if (sent <= 0)
			return sent;
		job->report_count--;
		memmove(job->reports, job->reports + 1,
			job->report_count * sizeof(job->reports[0]));
	}
	return 1;
}

bool link_send_pending(struct tocsin_job *job) {
	int done;

	if (job->link.state != LINK_UP)
		return true;
	job->link.blocked = false;
	done = send_unregisters(job);
	if (done > 0)
		done = send_registrations(job);
	if (done > 0)
		done = send_reports(job);
	return done >= 0;
}
