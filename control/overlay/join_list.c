// SPDX-License-Identifier: BSD-3-Clause
// Resolves the join addresses on a thread that the loop never waits for.
#include <control/join_list.h>
#include <control/keeper.h>
#include <control/loop.h>
#include <lib/config.h>
#include <lib/error.h>
#include <lib/hostlist.h>
#include <lib/must.h>
#include <lib/parse.h>
#include <lib/scoped.h>
#include <lib/thread.h>
#include <ras/types.h>

#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <unistd.h>

#define FILE_LINES_MAX 10000
#define ERROR_BYTES (PARSE_ERROR_BYTES + 64)

// Result of one pass.
struct pass {
	struct sock_addr seeds[RAS_SEEDS_MAX];
	uint32_t count;
	uint32_t failures;
	char error[ERROR_BYTES];
};

// State shared by the loop and the thread. The last user frees it, because the resolver may hang
// for longer than an agent takes to end.
struct shared {
	pthread_mutex_t mutex;
	pthread_cond_t wanted;
	uint32_t references;
	bool again, stop, done; // done: the loop may read `pass`
	int eventfd;
	struct pass pass;
	struct pass making; // used by the thread only
	char *text;
	uint16_t default_port;
	enum sock_addr_family prefer;
};

struct join_list {
	struct loop_source source;
	struct shared *shared;
	struct join_list_ops ops;
	struct pass taken; // copy for the callback
};

static void shared_put(struct shared *shared) {
	bool last;

	pthread_mutex_lock(&shared->mutex);
	last = --shared->references == 0;
	pthread_mutex_unlock(&shared->mutex);
	if (!last)
		return;
	if (shared->eventfd >= 0)
		close(shared->eventfd);
	free(shared->text);
	pthread_mutex_destroy(&shared->mutex);
	pthread_cond_destroy(&shared->wanted);
	free(shared);
}

// The thread.

static void pass_fail(struct pass *pass, const char *text, const char *reason) {
	if (pass->failures++ == 0)
		snprintf(
			pass->error, sizeof(pass->error), "%s%s%s", text,
			text[0] != '\0' ? ": " : "", reason
		);
}

static void pass_resolve(struct pass *pass, const struct shared *shared, const char *text) {
	struct parse_error error;
	struct sock_addr addr;

	if (pass->count == RAS_SEEDS_MAX)
		return; // enough addresses to find a ring
	if (sock_addr_resolve(
		    text, strlen(text), shared->default_port, shared->prefer, &error, &addr
	    ) == 0)
		pass->seeds[pass->count++] = addr;
	else
		pass_fail(pass, "", error.text);
}

// Resolve a name, an address or a hostlist: node[01-16]:28030 is node01:28030, node02:28030 and so
// on.
static void pass_name(struct pass *pass, const struct shared *shared, const char *text) {
	const char *open = strchr(text, '['), *colon = strrchr(text, ':');
	size_t length = colon != NULL ? (size_t)(colon - text) : strlen(text);
	struct parse_error error;
	struct hostlist *hosts;

	// The bracket of an IPv6 address comes first.
	if (open == NULL || open == text) {
		pass_resolve(pass, shared, text);
		return;
	}
	if (hostlist_expand(text, length, CONFIG_HOSTLIST_COUNT_MAX, &error, &hosts) != 0) {
		pass_fail(pass, "", error.text);
		return;
	}
	for (uint32_t n = 0; n < hostlist_count(hosts) && pass->count < RAS_SEEDS_MAX; n++) {
		char name[HOSTLIST_NAME_LENGTH_MAX + 16];

		snprintf(
			name, sizeof(name), "%s%s", hostlist_name(hosts, n),
			colon != NULL ? colon : ""
		);
		pass_resolve(pass, shared, name);
	}
	hostlist_destroy(hosts);
}

// Find the next item, up to a comma outside of brackets, without the blanks around it. *text moves
// on. Returns false at the end. An item may be empty.
static bool item_next(const char **text, const char **ret_item, size_t *ret_length) {
	const char *at = *text;
	int depth = 0;

	if (at == NULL)
		return false;
	at += strspn(at, " \t\r");
	*ret_item = at;
	for (; *at != '\0' && (*at != ',' || depth > 0); at++)
		depth += *at == '[' ? 1 : *at == ']' ? -1 : 0;
	*text = *at == ',' ? at + 1 : NULL;
	*ret_length = (size_t)(at - *ret_item);
	while (*ret_length > 0 && strchr(" \t\r", (*ret_item)[*ret_length - 1]) != NULL)
		--*ret_length;
	return true;
}

static void pass_items(
	struct pass *pass,
	const struct shared *shared,
	const char *text,
	void (*take)(struct pass *pass, const struct shared *shared, const char *item)
) {
	const char *item;
	size_t length;

	while (item_next(&text, &item, &length)) {
		scoped_mem char *copy = strndup(item, length);

		if (copy == NULL)
			pass_fail(pass, "", "out of memory");
		else if (length > 0)
			take(pass, shared, copy);
	}
}

// Resolve an item of the configuration, which may be the path of a file of items.
static void pass_item(struct pass *pass, const struct shared *shared, const char *text) {
	scoped_file FILE *file = NULL;
	scoped_mem char *line = NULL;
	size_t size = 0;

	if (text[0] != '/') {
		pass_name(pass, shared, text);
		return;
	}
	file = fopen(text, "re");
	if (file == NULL) {
		pass_fail(pass, text, strerrordesc_np(errno));
		return;
	}
	for (int n = 0; n < FILE_LINES_MAX && getline(&line, &size, file) >= 0; n++) {
		line[strcspn(line, "#\n")] = '\0';
		pass_items(pass, shared, line, pass_name);
	}
}

static int addresses_compare(const void *a, const void *b) {
	return sock_addr_compare(a, b);
}

static void *resolver_main(void *argument) {
	struct shared *shared = argument;
	struct pass *pass = &shared->making;
	uint32_t kept;
	uint64_t one = 1;

	pthread_mutex_lock(&shared->mutex);
	while (!shared->stop) {
		if (!shared->again) {
			pthread_cond_wait(&shared->wanted, &shared->mutex);
			continue;
		}
		shared->again = false;
		pthread_mutex_unlock(&shared->mutex);
		memset(pass, 0, sizeof(*pass));
		pass_items(pass, shared, shared->text, pass_item);
		qsort(pass->seeds, pass->count, sizeof(pass->seeds[0]), addresses_compare);
		kept = 0;
		for (uint32_t n = 0; n < pass->count; n++) {
			if (kept == 0 || !sock_addr_equal(&pass->seeds[kept - 1], &pass->seeds[n]))
				pass->seeds[kept++] = pass->seeds[n];
		}
		pass->count = kept;
		pthread_mutex_lock(&shared->mutex);
		shared->pass = *pass;
		shared->done = true;
		if (write(shared->eventfd, &one, sizeof(one)) < 0)
			must(errno == EAGAIN); // the eventfd is readable already
	}
	pthread_mutex_unlock(&shared->mutex);
	shared_put(shared);
	return NULL;
}

// The loop's side.

static void join_list_ready(struct loop_source *source, uint32_t events) {
	struct join_list *list = (struct join_list *)source;
	struct shared *shared = list->shared;
	struct pass *pass = &list->taken;
	uint64_t count;

	(void)events;
	if (read(source->fd, &count, sizeof(count)) < 0)
		return;
	pthread_mutex_lock(&shared->mutex);
	*pass = shared->pass;
	shared->done = false;
	pthread_mutex_unlock(&shared->mutex);
	list->ops.resolved(list->ops.ctx, pass->seeds, pass->count, pass->failures, pass->error);
}

void join_list_refresh(struct join_list *list) {
	pthread_mutex_lock(&list->shared->mutex);
	list->shared->again = true;
	pthread_cond_signal(&list->shared->wanted);
	pthread_mutex_unlock(&list->shared->mutex);
}

int join_list_create(
	struct loop *loop,
	const char *text,
	uint16_t default_port,
	enum sock_addr_family prefer,
	const struct join_list_ops *ops,
	struct join_list **ret_list
) {
	struct join_list *list = calloc(1, sizeof(*list));
	struct shared *shared;
	pthread_t thread;
	int err;

	if (list == NULL)
		return -ENOMEM;
	shared = calloc(1, sizeof(*shared));
	if (shared == NULL) {
		free(list);
		return -ENOMEM;
	}
	pthread_mutex_init(&shared->mutex, NULL);
	pthread_cond_init(&shared->wanted, NULL);
	shared->references = 1;
	shared->default_port = default_port;
	shared->prefer = prefer;
	shared->again = true;
	shared->text = strdup(text);
	shared->eventfd = eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC);
	list->shared = shared;
	list->ops = *ops;
	list->source = (struct loop_source
	){.fd = shared->eventfd, .events = EPOLLIN, .rank = LOOP_OVERLAY, .ready = join_list_ready};
	err = shared->eventfd < 0 ? neg_errno() : 0;
	if (shared->text == NULL)
		err = -ENOMEM;
	if (err == 0)
		err = loop_add(loop, &list->source);
	if (err != 0)
		goto fail;
	shared->references++; // before the other thread exists
	err = thread_start_masked("tocsin-resolve", resolver_main, shared, &thread);
	if (err != 0) {
		shared->references--;
		goto fail;
	}
	pthread_detach(thread);
	*ret_list = list;
	return 0;
fail:
	join_list_destroy(list);
	return err;
}

struct join_list *join_list_destroy(struct join_list *list) {
	if (list == NULL)
		return NULL;
	loop_remove(&list->source);
	pthread_mutex_lock(&list->shared->mutex);
	list->shared->stop = true;
	pthread_cond_signal(&list->shared->wanted);
	pthread_mutex_unlock(&list->shared->mutex);
	shared_put(list->shared);
	free(list);
	return NULL;
}

static int join_item_check(const char *item, size_t length, struct parse_error *error) {
	struct hostlist *hosts;
	struct sock_addr addr;
	const char *colon;
	int err;

	if (length == 0)
		return parse_fail(error, -EINVAL, item, length, "is an empty item");
	if (item[0] == '/')
		return 0; // the file may be created later
	if (memchr(item, '[', length) != NULL && item[0] != '[') {
		colon = memrchr(item, ':', length);
		err = hostlist_expand(
			item, colon != NULL ? (size_t)(colon - item) : length,
			CONFIG_HOSTLIST_COUNT_MAX, error, &hosts
		);
		if (err == 0)
			hostlist_destroy(hosts);
		return err;
	}
	// A name can only be checked by the resolver, but an address can be checked here.
	if (item[0] == '[' || strspn(item, "0123456789.:") >= length)
		return sock_addr_parse(item, length, 0, error, &addr);
	return 0;
}

int join_list_check(const char *text, size_t length, struct parse_error *error) {
	scoped_mem char *copy = strndup(text, length);
	const char *rest = copy;
	const char *item;
	size_t item_length;
	int err = 0;

	if (copy == NULL)
		return parse_fail(error, -ENOMEM, text, length, "cannot be checked: out of memory");
	if (strlen(copy) == 0)
		return 0; // no address to join through
	while (err == 0 && item_next(&rest, &item, &item_length))
		err = join_item_check(item, item_length, error);
	return err;
}
