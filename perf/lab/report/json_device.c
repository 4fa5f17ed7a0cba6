// SPDX-License-Identifier: BSD-3-Clause
// Conversion of the --device-time results to JSON and back.
#include "report/json.h"

#include <jansson.h>

#include <errno.h>
#include <inttypes.h>

static bool member_unsigned(const json_t *object, const char *key, uint64_t *ret_value) {
	return json_get_unsigned(json_object_get(object, key), INT64_MAX, ret_value);
}

int device_to_json(const struct result_device *device, json_t **ret_json) {
	json_t *answers = device->answer_count == 0
				  ? json_null()
				  : json_pack(
					    "{s:I s:f s:I s:I s:I}", "count",
					    (json_int_t)device->answer_count, "mean_ns",
					    (double)device->answer_mean_ps / 1e3, "p50_ns",
					    (json_int_t)device->answer_p50_ns, "p99_ns",
					    (json_int_t)device->answer_p99_ns, "max_ns",
					    (json_int_t)device->answer_max_ns
				    );
	json_t *object = json_pack(
		"{s:s s:I s:I s:I s:b s:o}", "clock", plan_stamps_name(device->stamps), "khz",
		(json_int_t)device->khz, "off_ns", (json_int_t)device->off_ns, "outside",
		(json_int_t)device->outside, "doubtful", device->doubtful, "server_answers", answers
	);
	json_t *series;
	int err = series_to_json(device->device, &device->device_summary, &series);

	if (err == 0)
		err = json_object_set_new(object, "device", series) == 0 ? 0 : -ENOMEM;
	if (err == 0)
		err = series_to_json(device->host, &device->host_summary, &series);
	if (err == 0)
		err = json_object_set_new(object, "host", series) == 0 ? 0 : -ENOMEM;
	if (err != 0) {
		json_decref(object);
		return err;
	}
	*ret_json = object;
	return 0;
}

static bool answers_from_json(const json_t *json, struct result_device *device) {
	const json_t *mean = json_object_get(json, "mean_ns");
	double mean_ps = json_number_value(mean) * 1e3;

	if (json_is_null(json))
		return true;
	if (!json_is_number(mean) || !(mean_ps >= 0 && mean_ps < (double)INT64_MAX))
		return false;
	device->answer_mean_ps = (uint64_t)(mean_ps + 0.5);
	return member_unsigned(json, "count", &device->answer_count) && device->answer_count > 0 &&
	       member_unsigned(json, "p50_ns", &device->answer_p50_ns) &&
	       member_unsigned(json, "p99_ns", &device->answer_p99_ns) &&
	       member_unsigned(json, "max_ns", &device->answer_max_ns);
}

static int series_read(
	const json_t *json, const char *key, struct lab_why *why, struct run_record **ret_record
) {
	struct lab_why inner = {.text = ""};
	int err = series_from_json(json_object_get(json, key), &inner, ret_record);

	return err == 0 ? 0 : lab_fail(why, err, "device_time.%s: %s", key, inner.text);
}

int device_from_json(
	const json_t *json, uint64_t count, struct lab_why *why, struct result_device *ret_device
) {
	const char *clock = json_string_value(json_object_get(json, "clock"));
	struct result_device *device = ret_device;
	int err;

	if (clock == NULL || plan_stamps_parse(clock, &device->stamps) != 0 ||
	    device->stamps == PLAN_STAMPS_NONE)
		return lab_fail(why, -EBADMSG, "device_time.clock is not raw or wall");
	if (!member_unsigned(json, "khz", &device->khz) ||
	    !member_unsigned(json, "off_ns", &device->off_ns) ||
	    !member_unsigned(json, "outside", &device->outside))
		return lab_fail(
			why, -EBADMSG, "device_time: khz, off_ns or outside is not a valid number"
		);
	if (!answers_from_json(json_object_get(json, "server_answers"), device))
		return lab_fail(why, -EBADMSG, "device_time.server_answers is invalid");
	err = series_read(json, "device", why, &device->device);
	if (err == 0)
		err = series_read(json, "host", why, &device->host);
	if (err != 0)
		return err;
	if (run_record_count(device->device) != count || run_record_count(device->host) != count)
		return lab_fail(
			why, -EBADMSG,
			"device_time: device and host do not have %" PRIu64 " samples each", count
		);
	return 0;
}
