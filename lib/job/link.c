// SPDX-License-Identifier: BSD-3-Clause
// Connection to the agent: connect, reconnect, send and receive, without blocking.
#include "inside.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#define PAUSE_FIRST_NS (NS_PER_S / 5)
#define PAUSE_LONGEST_NS (5 * NS_PER_S)
#define PAUSE_REFUSED_NS (30 * NS_PER_S)
#define WELCOME_TIMEOUT_NS (10 * NS_PER_S) // timeout for the agent's WELCOME
#define PACKETS_PER_STEP 256
#define PACKET_BYTES_MAX sizeof(struct job_failed)

void link_close(struct link *link) {
	if (link->fd >= 0)
		close(link->fd);
	link->fd = -1;
	link->state = LINK_DOWN;
	link->blocked = false;
}

static void drop_connection(struct tocsin_job *job, uint64_t now_ns) {
	struct link *link = &job->link;

	link_close(link);
	// Mark everything as unsent, because the next agent knows nothing of this process.
	job->left_count = 0;
	job->report_count = 0;
	for (uint32_t n = 0; n < JOB_COMMS_MAX; n++) {
		struct tocsin_comm *comm = job->comms[n];

		if (comm == NULL)
			continue;
		comm->registration_is_unsent = true;
		comm->state = TOCSIN_JOB_ALONE;
	}
	link->pause_ns = link->pause_ns < PAUSE_FIRST_NS ? PAUSE_FIRST_NS : link->pause_ns * 2;
	if (link->pause_ns > PAUSE_LONGEST_NS)
		link->pause_ns = PAUSE_LONGEST_NS;
	link->next_ns = now_ns + (link->refused ? PAUSE_REFUSED_NS : link->pause_ns);
}

static int connect_to(const char *path, int *ret_fd) {
	struct sockaddr_un address = {.sun_family = AF_UNIX};
	int fd, err;

	if (strlen(path) >= sizeof(address.sun_path))
		return -ENAMETOOLONG;
	memcpy(address.sun_path, path, strlen(path) + 1);
	fd = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
	if (fd < 0)
		return -errno;
	if (connect(fd, (const struct sockaddr *)&address, sizeof(address)) < 0) {
		err = -errno;
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}

static void set_failure_reason(struct link *link, const char *path, int err) {
	char words[64] = "";

	// NOLINTNEXTLINE(concurrency-mt-unsafe): the GNU strerror_r()
	snprintf(
		link->reason, sizeof(link->reason), "%s: %s", path,
		strerror_r(-err, words, sizeof(words))
	);
}

// Connect to the first agent that answers on a configured or default path.
static int find_agent(struct tocsin_job *job, int *ret_fd) {
	// NOLINTNEXTLINE(concurrency-mt-unsafe): the environment, which a library cannot guard
	const char *runtime = getenv("XDG_RUNTIME_DIR");
	char own[SOCKET_PATH_BYTES];
	int err;

	if (job->socket_path[0] != '\0') {
		err = connect_to(job->socket_path, ret_fd);
		if (err != 0)
			set_failure_reason(&job->link, job->socket_path, err);
		return err;
	}
	err = connect_to("/run/tocsin/" JOB_SOCKET_NAME, ret_fd);
	if (err == 0)
		return 0;
	set_failure_reason(&job->link, "/run/tocsin/" JOB_SOCKET_NAME, err);
	if (runtime == NULL ||
	    snprintf(own, sizeof(own), "%s/tocsin/" JOB_SOCKET_NAME, runtime) >= (int)sizeof(own))
		return err;
	return connect_to(own, ret_fd);
}

// Returns false if the connection must be dropped.
static bool receive_packets(struct tocsin_job *job) {
	struct link *link = &job->link;
	_Alignas(uint64_t) char packet[PACKET_BYTES_MAX];

	for (uint32_t n = 0; n < PACKETS_PER_STEP; n++) {
		// MSG_TRUNC returns the real size, so that a longer packet is detected.
		ssize_t size = recv(link->fd, packet, sizeof(packet), MSG_TRUNC);

		if (size < 0)
			return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR;
		if (size == 0)
			return false;
		if ((size_t)size > sizeof(packet) || !link_receive(job, packet, (size_t)size))
			return false;
	}
	return true;
}

uint64_t link_step(struct tocsin_job *job, uint64_t now_ns) {
	struct link *link = &job->link;

	if (job->inherited)
		return UINT64_MAX;
	if (link->state == LINK_DOWN && now_ns >= link->next_ns) {
		if (find_agent(job, &link->fd) == 0 && link_send_hello(job)) {
			link->state = LINK_HELLO_SENT;
			link->next_ns = now_ns + WELCOME_TIMEOUT_NS;
		} else {
			drop_connection(job, now_ns);
		}
	}
	if (link->state == LINK_DOWN)
		return link->next_ns;
	if (!receive_packets(job) || !link_send_pending(job) ||
	    (link->state == LINK_HELLO_SENT && now_ns >= link->next_ns)) {
		drop_connection(job, now_ns);
		return link->next_ns;
	}
	if (link->state == LINK_HELLO_SENT)
		return link->next_ns;
	link->pause_ns = 0;
	return UINT64_MAX;
}

void link_send_leave(struct tocsin_job *job) {
	const struct job_leave leave = {{JOB_SOCKET_MAGIC, JOB_SOCKET_VERSION, JOB_LEAVE}};

	if (job->link.state == LINK_UP)
		(void)send(job->link.fd, &leave, sizeof(leave), MSG_NOSIGNAL);
	link_close(&job->link);
}
