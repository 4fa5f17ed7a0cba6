// SPDX-License-Identifier: BSD-3-Clause
// Devices that are removed or reset while open, that return, and that are renamed.
#include "fake_verbs_impl.h"

#include <lib/must.h>

#include <endian.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

void fake_object_add(struct ibv_context *verbs, struct fake_object *object, void *owner, int fd) {
	struct fake_context *context = fake_context_of(verbs);

	*object = (struct fake_object){
		.next = context->listed,
		.at = &context->listed,
		.owner = owner,
		.fd = fd,
	};
	if (object->next != NULL)
		object->next->at = &object->next;
	context->listed = object;
}

void fake_object_remove(struct fake_object *object) {
	*object->at = object->next;
	if (object->next != NULL)
		object->next->at = object->at;
}

// Make poll() report only POLLERR on this descriptor, as the kernel does for a channel of a removed
// device. The descriptor becomes the write end of a pipe without reader. Waiting threads are woken
// first.
static void break_descriptor(int fd) {
	const uint64_t one = 1;
	int ends[2];

	must(write(fd, &one, sizeof(one)) == sizeof(one));
	must(pipe2(ends, O_CLOEXEC | O_NONBLOCK) == 0);
	must(dup3(ends[1], fd, O_CLOEXEC) == fd);
	close(ends[0]);
	close(ends[1]);
}

// Remove the queue pairs of a context from the table of numbers.
static void bury_qps(struct fake_context *context) {
	struct fake_device_private *private = context->device->private;

	for (uint32_t n = 0; n < private->qp_places; n++) {
		struct fake_qp *qp = private->qps[n];

		if (qp == NULL || qp->verbs.context != &context->verbs)
			continue;
		private->qps[n] = NULL;
		fake_qp_unlist(qp);
		qp->next = fake.buried_qps;
		fake.buried_qps = qp;
	}
}

static void bury_mrs(struct fake_context *context) {
	struct fake_device_private *private = context->device->private;

	for (uint32_t n = 0; n < private->mr_places; n++) {
		struct fake_mr *mr = private->mrs[n];

		if (mr == NULL || mr->verbs.context != &context->verbs)
			continue;
		private->mrs[n] = NULL;
		fake.buried_mrs = reallocarray(
			fake.buried_mrs, fake.buried_mr_count + 1, sizeof(struct fake_mr *)
		);
		must(fake.buried_mrs != NULL);
		fake.buried_mrs[fake.buried_mr_count++] = mr;
	}
}

static void lose_context(struct fake_context *context) {
	const uint64_t one = 1;

	if (context->lost)
		return;
	context->lost = true;
	bury_qps(context);
	bury_mrs(context);
	for (struct fake_object *object = context->listed; object != NULL; object = object->next) {
		if (object->fd >= 0)
			break_descriptor(object->fd);
	}
	// Never read: the descriptor stays ready, and reading it fails with EIO.
	must(write(context->verbs.async_fd, &one, sizeof(one)) == sizeof(one));
}

void fake_device_lose(struct fake_device *device) {
	if (!device->loses_silently)
		fake_device_event(device, IBV_EVENT_DEVICE_FATAL, 0);
	fake_lock();
	for (struct fake_context *context = device->private->contexts; context != NULL;
	     context = context->next)
		lose_context(context);
	device->private->gone = true;
	fake_qp_changed();
	fake_run_locked();
	fake_unlock();
}

bool fake_device_withdraw(struct fake_device *device) {
	bool free_of_users;

	fake_lock();
	device->private->gone = true;
	free_of_users = device->private->contexts == NULL;
	fake_unlock();
	return free_of_users;
}

void fake_device_return(struct fake_device *device) {
	fake_lock();
	device->private->gone = false;
	fake_unlock();
}

void fake_device_rename(struct fake_device *device, const char *name, uint64_t guid) {
	fake_lock();
	snprintf(device->verbs.name, sizeof(device->verbs.name), "%s", name);
	if (guid != 0)
		device->attr.node_guid = htobe64(guid);
	fake_unlock();
}

void fake_context_bury(struct fake_context *context) {
	while (context->listed != NULL) {
		struct fake_object *object = context->listed;

		fake_object_remove(object);
		object->next = fake.buried;
		fake.buried = object;
	}
}

static void qp_free(struct fake_qp *qp) {
	free(qp->sends);
	free(qp->receives);
	free(qp->inlined);
	free(qp);
}

static bool is_pipe(int fd) {
	struct stat status;

	return fstat(fd, &status) == 0 && S_ISFIFO(status.st_mode);
}

void fake_buried_free(void) {
	while (fake.buried != NULL) {
		struct fake_object *object = fake.buried;

		fake.buried = object->next;
		if (object->fd >= 0 && is_pipe(object->fd))
			fake_break("the descriptor of a lost channel was left open");
		free(object->owner);
	}
	while (fake.buried_qps != NULL) {
		struct fake_qp *qp = fake.buried_qps;

		fake.buried_qps = qp->next;
		qp_free(qp);
	}
	for (uint32_t n = 0; n < fake.buried_mr_count; n++) {
		if (fake.buried_mrs[n]->mapping != NULL)
			munmap(fake.buried_mrs[n]->mapping, fake.buried_mrs[n]->mapping_length);
		free(fake.buried_mrs[n]);
	}
	free(fake.buried_mrs);
	fake.buried_mrs = NULL;
	fake.buried_mr_count = 0;
}
