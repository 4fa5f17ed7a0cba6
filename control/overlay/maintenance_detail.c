// SPDX-License-Identifier: BSD-3-Clause
// Orders of maintenance: a table of those that hold, and their JSON form.
//
// Files and messages share the form. A time in it is a duration, so the clocks of two machines are
// never compared. An unknown member of an object is ignored, so a later version may add some.
#include "overlay/inside.h"

#include <lib/escape.h>

#include <jansson.h>

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DETAILS_MIN 16

struct maintenance_detail *maintenance_detail_find(struct overlay *overlay, const char *node) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	for (uint32_t n = 0; n < maintenance->detail_count; n++) {
		if (strcmp(maintenance->details[n].node, node) == 0)
			return &maintenance->details[n];
	}
	return NULL;
}

void maintenance_detail_drop(struct overlay *overlay, struct maintenance_detail *detail) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;

	*detail = maintenance->details[--maintenance->detail_count];
	maintenance->is_changed = true;
}

int maintenance_detail_reserve(struct overlay *overlay, const char *node) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint32_t capacity = maintenance->detail_capacity * 2;
	struct maintenance_detail *details;

	if (maintenance->detail_count < maintenance->detail_capacity ||
	    maintenance_detail_find(overlay, node) != NULL)
		return 0;
	if (maintenance->detail_count >= STATE_ORDERS_MAX)
		return -ENOSPC;
	capacity = capacity != 0 ? capacity : DETAILS_MIN;
	details = reallocarray(maintenance->details, capacity, sizeof(*details));
	if (details == NULL)
		return -ENOMEM;
	maintenance->details = details;
	maintenance->detail_capacity = capacity;
	return 0;
}

int maintenance_detail_put(struct overlay *overlay, const struct maintenance_detail *detail) {
	struct overlay_maintenance *maintenance = &overlay->maintenance;
	struct maintenance_detail *known = maintenance_detail_find(overlay, detail->node);
	int err;

	if (detail->version < maintenance_version(overlay, detail->node))
		return -ESTALE;
	if (known != NULL && known->version == detail->version) {
		if (known->origin > detail->origin)
			return -ESTALE;
		if (known->origin == detail->origin && !known->is_from_file)
			return -EALREADY;
	}
	if (known == NULL) {
		err = maintenance_detail_reserve(overlay, detail->node);
		if (err != 0)
			return err;
		known = &maintenance->details[maintenance->detail_count++];
	}
	*known = *detail;
	maintenance->is_changed = true;
	maintenance_store(overlay, detail->node, detail->version);
	return 0;
}

json_t *maintenance_detail_json(const struct maintenance_detail *detail, uint64_t now_ns) {
	int64_t age_ns = (int64_t)now_ns - detail->begun_ns;
	uint64_t left_ns = detail->ends_ns > now_ns ? detail->ends_ns - now_ns : 0;

	// JSON has no unsigned 64-bit integer, so an id above INT64_MAX is negative there.
	return json_pack(
		"{s:s,s:I,s:I,s:I,s:s,s:s,s:I,s:o}", "node", detail->node, "version",
		(json_int_t)detail->version, "origin", (json_int_t)detail->origin, "uid",
		(json_int_t)detail->order.uid, "user", detail->order.user, "reason",
		detail->order.reason, "age_s", (json_int_t)(age_ns / (int64_t)RAS_NS_PER_SEC),
		"left_s",
		detail->ends_ns == RAS_NEVER ? json_null()
					     : json_integer((json_int_t)(left_ns / RAS_NS_PER_SEC))
	);
}

int maintenance_detail_parse(
	json_t *object, uint64_t now_ns, struct maintenance_detail *ret_detail
) {
	const json_int_t time_max_s = (json_int_t)(OVERLAY_MAINTENANCE_FOR_MAX_NS / RAS_NS_PER_SEC);
	struct maintenance_detail detail = {.ends_ns = RAS_NEVER};
	const char *node, *user, *reason;
	json_int_t version, origin, uid, age_s;
	json_t *left;

	if (json_unpack(
		    object, "{s:s,s:I,s:I,s:I,s:s,s:s,s:I,s:o}", "node", &node, "version", &version,
		    "origin", &origin, "uid", &uid, "user", &user, "reason", &reason, "age_s",
		    &age_s, "left_s", &left
	    ) != 0)
		return -EBADMSG;
	if (node[0] == '\0' || strlen(node) > RAS_NAME_MAX || version <= 0 ||
	    version > RAS_MAINT_VERSION_MAX || (version & 1) == 0 || uid < 0 || uid > UINT32_MAX ||
	    strlen(user) >= sizeof(detail.order.user) ||
	    strlen(reason) >= sizeof(detail.order.reason) ||
	    !escape_text_is_plain(node, strlen(node)) ||
	    !escape_text_is_plain(user, strlen(user)) ||
	    !escape_text_is_plain(reason, strlen(reason)) || age_s < 0 ||
	    !(json_is_null(left) || (json_is_integer(left) && json_integer_value(left) >= 0)))
		return -EBADMSG;
	memcpy(detail.node, node, strlen(node));
	memcpy(detail.order.user, user, strlen(user));
	memcpy(detail.order.reason, reason, strlen(reason));
	detail.order.uid = (uint32_t)uid;
	detail.version = (uint32_t)version;
	detail.origin = (uint64_t)origin;
	// A longer age or duration than the longest order is a mistake of another agent.
	age_s = age_s < 100 * time_max_s ? age_s : 100 * time_max_s;
	detail.begun_ns = (int64_t)now_ns - age_s * (int64_t)RAS_NS_PER_SEC;
	if (json_is_integer(left)) {
		json_int_t left_s = json_integer_value(left);

		left_s = left_s < time_max_s ? left_s : time_max_s;
		detail.ends_ns = now_ns + (uint64_t)left_s * RAS_NS_PER_SEC;
	}
	*ret_detail = detail;
	return 0;
}

bool overlay_maintenance_find(
	const struct overlay *overlay,
	const struct ras_peer *peer,
	struct overlay_maintenance_order *ret_order,
	uint64_t *ret_age_ns
) {
	const struct overlay_maintenance *maintenance = &overlay->maintenance;
	uint64_t now_ns = overlay_now_ns(overlay);
	const struct ras_record *record = peer->record;

	for (uint32_t n = 0; n < maintenance->detail_count && peer->maint; n++) {
		const struct maintenance_detail *detail = &maintenance->details[n];

		if (detail->version != peer->maint_version ||
		    strlen(detail->node) != record->name_length ||
		    memcmp(detail->node, record->name, record->name_length) != 0)
			continue;
		*ret_order = detail->order;
		ret_order->for_ns = detail->ends_ns;
		if (detail->ends_ns != RAS_NEVER)
			ret_order->for_ns = detail->ends_ns > now_ns ? detail->ends_ns - now_ns : 0;
		*ret_age_ns = (uint64_t)((int64_t)now_ns - detail->begun_ns);
		return true;
	}
	return false;
}

const struct overlay_maintenance_counters *
overlay_maintenance_counters(const struct overlay *overlay) {
	return &overlay->maintenance.counters;
}

uint64_t overlay_maintenance_age_max_ns(const struct overlay *overlay) {
	int64_t now_ns = (int64_t)overlay_now_ns(overlay), age_max_ns = 0;

	for (uint32_t n = 0; n < overlay->maintenance.detail_count; n++) {
		int64_t age_ns = now_ns - overlay->maintenance.details[n].begun_ns;

		age_max_ns = age_ns > age_max_ns ? age_ns : age_max_ns;
	}
	return (uint64_t)age_max_ns;
}
