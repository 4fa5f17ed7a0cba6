// SPDX-License-Identifier: BSD-3-Clause
// Handles packets from the agent. A malformed packet ends the connection.
#include "inside.h"

#include <stdio.h>
#include <string.h>

static void copy_text(char *to, const char *from) {
	memcpy(to, from, JOB_REASON_BYTES);
	to[JOB_REASON_BYTES - 1] = '\0';
}

static bool on_welcome(struct tocsin_job *job, const void *packet) {
	const struct job_welcome *said = packet;

	if (job->link.state != LINK_HELLO_SENT ||
	    job_version_choose(said->head.version, said->head.version) == 0)
		return false;
	job->link.state = LINK_UP;
	job->link.refused = false;
	job->link.reason[0] = '\0';
	return true;
}

static bool on_refused(struct tocsin_job *job, const void *packet) {
	const struct job_refused *said = packet;
	struct tocsin_comm *comm;

	if (said->comm == 0) {
		copy_text(job->link.reason, said->reason);
		// An agent of version 1 takes the greeting for another packet.
		if (said->head.version < JOB_SOCKET_VERSION_MIN)
			(void)snprintf(
				job->link.reason, sizeof(job->link.reason),
				"the agent speaks version %u, libtocsin versions %u to %u",
				said->head.version, JOB_SOCKET_VERSION_MIN, JOB_SOCKET_VERSION
			);
		job->link.refused = true;
		return false;
	}
	comm = comm_find(job, said->comm);
	if (comm != NULL) {
		comm->state = TOCSIN_JOB_REFUSED;
		copy_text(comm->reason, said->reason);
	}
	return true;
}

static bool on_registered(struct tocsin_job *job, const void *packet) {
	const struct job_registered *said = packet;
	struct tocsin_comm *comm = comm_find(job, said->comm);

	if (comm != NULL) {
		comm->state = TOCSIN_JOB_CONNECTED;
		comm->reason[0] = '\0';
		if ((comm->told.flags & JOB_REGISTER_AGAIN) == 0)
			page_note_registration(job, comm);
		comm->told.flags |= JOB_REGISTER_AGAIN; // for the next agent
	}
	return true;
}

static bool on_event(struct tocsin_job *job, const void *packet) {
	const struct job_event *said = packet;
	struct tocsin_comm *comm = comm_find(job, said->comm);
	struct tocsin_event event = TOCSIN_INIT(struct tocsin_event);

	if (comm != NULL && said->rank != TOCSIN_NO_RANK && said->rank >= comm->told.size)
		return false;
	// The communicator was unregistered in the meantime, or the agent is newer.
	if (comm == NULL || said->kind > TOCSIN_COMM_SHOULD_ABORT)
		return true;
	if (said->kind == TOCSIN_PEER_GONE && !failed_set_add_gone(comm, said->rank))
		return true; // after a reconnect the agent sends all events again
	event.kind = (enum tocsin_event_kind)said->kind;
	event.rank = said->rank;
	event.comm = comm;
	event.comm_context = comm->context;
	event.view = said->view;
	event.happened_ns = said->happened_ns;
	copy_text(event.text, said->text);
	// Set the flag first, because the receiver of the event may read it.
	if (event.kind == TOCSIN_PEER_GONE && comm->aborts)
		atomic_store_explicit(&comm->should_abort, true, memory_order_release);
	event_enqueue(job, &event, comm->number);
	if (event.kind == TOCSIN_PEER_GONE && comm->aborts) {
		event.kind = TOCSIN_COMM_SHOULD_ABORT;
		event_enqueue(job, &event, comm->number);
	}
	return true;
}

static bool on_failed(struct tocsin_job *job, const void *packet) {
	const struct job_failed *said = packet;
	struct tocsin_comm *comm = comm_find(job, said->comm);

	return comm == NULL || failed_set_receive(comm, said);
}

static const struct {
	uint16_t kind;
	size_t size;
	bool (*take)(struct tocsin_job *job, const void *packet);
} messages[] = {
	{JOB_WELCOME, sizeof(struct job_welcome), on_welcome},
	{JOB_REFUSED, sizeof(struct job_refused), on_refused},
	{JOB_REGISTERED, sizeof(struct job_registered), on_registered},
	{JOB_EVENT, sizeof(struct job_event), on_event},
	{JOB_FAILED, sizeof(struct job_failed), on_failed},
};

bool link_receive(struct tocsin_job *job, const void *packet, size_t size) {
	const struct job_message_head *head = packet;

	if (size < sizeof(*head) || head->magic != JOB_SOCKET_MAGIC)
		return false;
	for (size_t n = 0; n < sizeof(messages) / sizeof(messages[0]); n++)
		if (messages[n].kind == head->kind && messages[n].size == size)
			return messages[n].take(job, packet);
	return false;
}
