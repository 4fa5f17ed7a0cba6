// SPDX-License-Identifier: BSD-3-Clause
// `tocsin ifaces --watch`: prints each change of the chosen address.
#include "command.h"
#include "ifaces/ifaces.h"

#include <lib/clock.h>
#include <lib/netif/diff.h>
#include <lib/netif/watch.h>

#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <string.h>

#define SETTLE_NS \
	200000000ULL // 0.2 s: an address that moves between links arrives within this time
#define SETTLE_MAX_NS 2000000000ULL // 2 s: report even if changes never stop

// Choice that was printed last, and the table behind it.
struct view {
	struct netif_table *table; // NULL if reading failed or a setting matches nothing
	char choice[NETIF_ERROR_BYTES];
};

static void view_read(const struct ifaces *ifaces, struct view *ret_view) {
	char candidate[NETIF_CANDIDATE_BYTES];
	size_t used = 0, size = sizeof(ret_view->choice);
	struct netif_choice *choice;
	struct netif_error error;

	memset(ret_view, 0, sizeof(*ret_view));
	if (ifaces_choose(ifaces, &ret_view->table, &choice, &error) != 0) {
		// Print only the first line of the error; the lines after it list interfaces.
		snprintf(
			ret_view->choice, sizeof(ret_view->choice), "none: %.*s",
			(int)strcspn(error.text, "\n"), error.text
		);
		return;
	}
	snprintf(ret_view->choice, size, "none: nothing qualifies");
	for (size_t n = 0; n < ifaces_answer_count(ifaces, choice) && used < size; n++) {
		netif_candidate_print(
			ret_view->table, &choice->judgements[choice->chosen[n]], candidate
		);
		used += (size_t)snprintf(
			ret_view->choice + used, size - used, "%s%s", n == 0 ? "" : ", ", candidate
		);
	}
	netif_choice_destroy(choice);
}

static void print_change(void *context, const struct netif_change *change) {
	char name[NETIF_NAME_TEXT_BYTES];
	char address[SOCK_ADDR_TEXT_BYTES] = "";
	struct sock_addr bare;

	(void)context;
	if (change->link == NULL) {
		printf("change: %s\n", netif_change_text(change->kind));
		return;
	}
	netif_name_print(change->link->name, name);
	if (change->address == NULL) {
		printf("change: %s: %s\n", name, netif_change_text(change->kind));
		return;
	}
	bare = change->address->address;
	bare.scope_id = 0;
	sock_addr_format_host(&bare, address);
	printf("change: %s: %s %s/%u\n", name, netif_change_text(change->kind), address,
	       change->address->prefix_bits);
}

static int watch_once(
	const struct ifaces *ifaces,
	const struct clock *clock,
	struct netif_watch *watch,
	struct view *view
) {
	struct pollfd wait = {.fd = netif_watch_fd(watch), .events = POLLIN};
	struct netif_watch_event event;
	struct deadline due = netif_watch_deadline(watch);
	struct view now;
	int err = 0;

	if (poll(&wait, 1, deadline_poll_timeout_ms(due, clock_now_ns(clock))) < 0)
		return errno == EINTR ? 0 : -errno;
	if (wait.revents != 0)
		err = netif_watch_read(watch, clock_now_ns(clock));
	if (err != 0 || !netif_watch_consume(watch, clock_now_ns(clock), &event))
		return err;
	view_read(ifaces, &now);
	if (view->table != NULL && now.table != NULL)
		netif_diff(view->table, now.table, print_change, NULL);
	if (strcmp(view->choice, now.choice) != 0)
		printf("choice: %s\n", now.choice);
	netif_table_destroy(view->table);
	*view = now;
	return 0;
}

int ifaces_watch(const struct ifaces *ifaces) {
	struct netif_watch *watch;
	struct clock clock;
	struct view view;
	int err = netif_watch_create(SETTLE_NS, SETTLE_MAX_NS, &watch);

	clock_init_monotonic(&clock);
	if (err == 0) {
		// The table is read after the watch started, so that no change is missed.
		view_read(ifaces, &view);
		printf("choice: %s\n", view.choice);
		while (err == 0 && command_flush_output() == NULL)
			err = watch_once(ifaces, &clock, watch, &view);
		netif_table_destroy(view.table);
		netif_watch_destroy(watch);
	}
	if (err != 0)
		command_error("ifaces", "cannot watch: %s", strerrordesc_np(-err));
	return EXIT_NEGATIVE;
}
