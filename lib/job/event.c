// SPDX-License-Identifier: BSD-3-Clause
// Bounded queue of events from the agent to the program. A callback or tocsin_job_next_event()
// empties it.
#include "inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

static struct event_node *dequeue_event(struct tocsin_job *job) {
	struct event_node *node = job->oldest;
	uint64_t count;

	if (node == NULL)
		return NULL;
	job->oldest = node->next;
	if (job->oldest == NULL) {
		job->newest = NULL;
		if (job->events_fd >= 0)
			(void)!read(job->events_fd, &count, sizeof(count));
	}
	job->event_count--;
	return node;
}

void event_enqueue(struct tocsin_job *job, const struct tocsin_event *event, uint64_t number) {
	const uint64_t one = 1;
	struct event_node *node;

	if (job->event_count == EVENTS_MAX)
		free(dequeue_event(job));
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
	if (job->events_fd >= 0)
		(void)!write(job->events_fd, &one, sizeof(one));
}

void event_drop_all(struct tocsin_job *job) {
	while (job->oldest != NULL)
		free(dequeue_event(job));
}

// Return the oldest event whose communicator is still registered, or NULL.
static struct event_node *dequeue_valid_event(struct tocsin_job *job) {
	for (;;) {
		struct event_node *node = dequeue_event(job);

		if (node == NULL || comm_find(job, node->number) != NULL)
			return node;
		free(node);
	}
}

void event_deliver_all(struct tocsin_job *job) {
	if (job->event == NULL)
		return;
	for (;;) {
		struct event_node *node;

		pthread_mutex_lock(&job->mutex);
		job->telling = 0;
		pthread_cond_broadcast(&job->changed);
		node = job->closing ? NULL : dequeue_valid_event(job);
		if (node != NULL) {
			job->telling = node->number;
			job->callback_thread = pthread_self();
		}
		pthread_mutex_unlock(&job->mutex);
		if (node == NULL)
			return;
		job->event(job->event_context, &node->event);
		free(node);
	}
}

// In a fork() child: the descriptor keeps its number but is no longer shared with the parent.
void event_detach_child(struct tocsin_job *job) {
	int fd = job->events_fd >= 0 ? eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC) : -1;

	if (fd >= 0) {
		(void)dup3(fd, job->events_fd, O_CLOEXEC);
		close(fd);
	}
	event_drop_all(job);
}

int tocsin_job_next_event(struct tocsin_job *job, struct tocsin_event *ret_event) {
	size_t size = ret_event->struct_size;
	struct event_node *node;

	// The first version of the struct ends with its text.
	if (size < offsetof(struct tocsin_event, text) + sizeof(node->event.text))
		return -EINVAL;
	pthread_mutex_lock(&job->mutex);
	node = dequeue_valid_event(job);
	pthread_mutex_unlock(&job->mutex);
	if (node == NULL)
		return -EAGAIN;
	node->event.struct_size = size;
	memcpy(ret_event, &node->event, size < sizeof(node->event) ? size : sizeof(node->event));
	free(node);
	return 0;
}

int tocsin_job_fd(const struct tocsin_job *job) {
	return job->events_fd;
}
