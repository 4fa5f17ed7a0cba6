// SPDX-License-Identifier: BSD-3-Clause
// Texts of events. The core numbers and keeps the events. Few events have a text; those are kept in
// a ring buffer beside the core.
#include "overlay/inside.h"

#include <stdio.h>

int overlay_note(struct overlay *overlay, const struct ras_event *note, const char *text) {
	int err;

	overlay->text = text;
	overlay->text_kind = note->kind;
	err = ras_add_event(overlay->ras, overlay_now_ns(overlay), note);
	overlay->text = NULL;
	return err;
}

// Compare the kind, because the core may report another event first, such as a pause of our own.
const char *overlay_note_text(const struct overlay *overlay, const struct ras_event *event) {
	return overlay->text != NULL && event->kind == overlay->text_kind ? overlay->text : NULL;
}

void overlay_note_store(struct overlay *overlay, const struct ras_event *event) {
	const char *text = overlay_note_text(overlay, event);
	struct overlay_text *place;

	if (text == NULL)
		return;
	place = &overlay->texts[overlay->text_next++ % OVERLAY_TEXTS];
	place->sequence = event->sequence;
	snprintf(place->text, sizeof(place->text), "%s", text);
}

const char *overlay_event_text(const struct overlay *overlay, uint64_t sequence) {
	for (uint32_t n = 0; n < OVERLAY_TEXTS; n++) {
		if (overlay->texts[n].sequence == sequence)
			return overlay->texts[n].text;
	}
	return "";
}

void overlay_note_verdict(
	struct overlay *overlay, uint64_t peer, uint64_t verdict, const char *sentence
) {
	const struct ras_event note = {.kind = RAS_EVENT_VERDICT, .peer = peer, .value = verdict};

	(void)overlay_note(overlay, &note, sentence);
}

void overlay_note_rails(
	struct overlay *overlay, uint64_t node, uint64_t count, const char *sentence
) {
	const struct ras_event note = {
		.kind = RAS_EVENT_RAILS_CHANGED, .peer = node, .value = count};

	(void)overlay_note(overlay, &note, sentence);
}
