// SPDX-License-Identifier: BSD-3-Clause
// Creation of choices, their notes, and error texts that list all candidates.
#include "judge.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int choice_create(const struct netif_table *table, struct netif_choice **ret_choice) {
	struct netif_choice *choice = calloc(1, sizeof(*choice));
	size_t room = table->address_count + table->link_count;
	bool *has_address = NULL;

	if (choice == NULL)
		return -ENOMEM;
	choice->judgements = calloc(room + 1, sizeof(*choice->judgements));
	has_address = calloc(table->link_count + 1, sizeof(*has_address));
	if (choice->judgements == NULL || has_address == NULL)
		goto fail;
	for (size_t n = 0; n < table->address_count; n++) {
		struct netif_judgement *judgement = &choice->judgements[choice->count++];

		judgement->link = table->addresses[n].link;
		judgement->address = (int32_t)n;
		judgement->item = -1;
		has_address[judgement->link] = true;
	}
	for (size_t n = 0; n < table->link_count; n++) {
		struct netif_judgement *judgement = &choice->judgements[choice->count];

		if (has_address[n])
			continue;
		judgement->link = (uint32_t)n;
		judgement->address = -1;
		judgement->item = -1;
		judgement->reason = NETIF_LINK_WITHOUT_ADDRESS;
		choice->count++;
	}
	free(has_address);
	*ret_choice = choice;
	return 0;
fail:
	free(has_address);
	netif_choice_destroy(choice);
	return -ENOMEM;
}

void choice_note(struct netif_choice *choice, const char *format, ...) {
	va_list args;

	if (choice->note_count == NETIF_NOTES_MAX)
		return;
	va_start(args, format);
	vsnprintf(choice->notes[choice->note_count++], NETIF_NOTE_BYTES, format, args);
	va_end(args);
}

int netif_fail(struct netif_error *error, int err, const char *format, ...) {
	va_list args;

	if (error == NULL)
		return err;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	return err;
}

// Append if the text and the longest ending still fit. Returns false if not.
static bool text_append(char *text, size_t text_size, const char *more) {
	static const char ending[] = "\n  and 4294967295 more";
	size_t used = strlen(text);

	if (used + strlen(more) + sizeof(ending) > text_size)
		return false;
	memcpy(text + used, more, strlen(more) + 1);
	return true;
}

static void list_candidates(
	struct netif_error *error, const struct netif_choice *all, const struct netif_table *table
) {
	char candidate[NETIF_CANDIDATE_BYTES];
	char line[NETIF_CANDIDATE_BYTES + 3];
	size_t used;

	for (size_t n = 0; n < all->count; n++) {
		netif_candidate_print(table, &all->judgements[n], candidate);
		snprintf(line, sizeof(line), "\n  %s", candidate);
		if (text_append(error->text, sizeof(error->text), line))
			continue;
		used = strlen(error->text);
		snprintf(
			error->text + used, sizeof(error->text) - used, "\n  and %zu more",
			all->count - n
		);
		return;
	}
}

void netif_error_list(struct netif_error *error, const struct netif_table *table) {
	struct netif_choice *all;

	if (choice_create(table, &all) != 0)
		return; // without memory the error text has no list
	text_append(
		error->text, sizeof(error->text),
		all->count == 0 ? "\nThis machine has no interface"
				: "\nInterfaces of this machine:"
	);
	list_candidates(error, all, table);
	netif_choice_destroy(all);
}

int netif_fail_listing(
	struct netif_error *error, int err, const struct netif_table *table, const char *format, ...
) {
	va_list args;

	if (error == NULL)
		return err;
	va_start(args, format);
	vsnprintf(error->text, sizeof(error->text), format, args);
	va_end(args);
	netif_error_list(error, table);
	return err;
}
