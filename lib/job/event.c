// SPDX-License-Identifier: BSD-3-Clause
// Bounded queue of events from the agent to the program. A callback or tocsin_job_next_event()
// empties it.
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/eventfd.h>
#include <unistd.h>

static void ring_descriptor(int fd) {
	const uint64_t one = 1;

	if (fd >= 0)
		(void)!write(fd, &one, sizeof(one));
}

static void silence_descriptor(int fd) {
	uint64_t count;

	if (fd >= 0)
		(void)!read(fd, &count, sizeof(count));
}

static struct event_node *take_oldest(struct tocsin_job *job) {
	struct event_node *node = job->oldest;

	if (node == NULL)
		return NULL;
	job->oldest = node->next;
	if (job->oldest == NULL) {
		job->newest = NULL;
		silence_descriptor(job->told_fd);
	}
	job->event_count--;
	return node;
}

void event_put(struct tocsin_job *job, const struct tocsin_event *event, uint64_t number) {
	struct event_node *node;

	if (job->event_count == EVENTS_MAX)
		free(take_oldest(job));
	node = malloc(sizeof(*node));
	if (node == NULL)
		return; // same effect as a full queue; the failed set can still be queried
	*node = (struct event_node){.number = number, .event = *event};
	if (job->newest != NULL)
		job->newest->next = node;
	else
		job->oldest = node;
	job->newest = node;
	job->event_count++;
	ring_descriptor(job->told_fd);
}

void event_drop_all(struct tocsin_job *job) {
	while (job->oldest != NULL)
		free(take_oldest(job));
}

// Return the oldest event whose communicator is still registered, or NULL.
static struct event_node *take_living(struct tocsin_job *job) {
	for (;;) {
		struct event_node *node = take_oldest(job);

		if (node == NULL || comm_find(job, node->number) != NULL)
			return node;
		free(node);
	}
}

void event_tell_all(struct tocsin_job *job) {
	if (job->event == NULL)
		return;
	for (;;) {
		struct event_node *node;

		pthread_mutex_lock(&job->mutex);
		job->telling = 0;
		pthread_cond_broadcast(&job->changed);
		node = job->closing ? NULL : take_living(job);
		if (node != NULL) {
			job->telling = node->number;
			job->teller = pthread_self();
		}
		pthread_mutex_unlock(&job->mutex);
		if (node == NULL)
			return;
		job->event(job->event_context, &node->event);
		free(node);
	}
}

// In a fork() child: the descriptor keeps its number but is no longer shared with the parent.
void event_leave(struct tocsin_job *job) {
	int fd = job->told_fd >= 0 ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)dup3(fd, job->told_fd, O_CLOEXEC);
		close(fd);
	}
	event_drop_all(job);
}

int tocsin_job_next_event(struct tocsin_job *job, struct tocsin_event *ret_event) {
	struct event_node *node;

	pthread_mutex_lock(&job->mutex);
	node = take_living(job);
	pthread_mutex_unlock(&job->mutex);
	if (node == NULL)
		return -EAGAIN;
	*ret_event = node->event;
	free(node);
	return 0;
}

int tocsin_job_fd(const struct tocsin_job *job) {
	return job->told_fd;
}
