// SPDX-License-Identifier: BSD-3-Clause
// Limits of a device, clamped to our types, and its stamp clock.
#include "device/device_impl.h"

#include <endian.h>
#include <errno.h>

// Drivers report signed integers; negative values count as 0.
static uint32_t limit_clamp(int value, uint32_t max) {
	if (value <= 0)
		return 0;
	return (uint32_t)value < max ? (uint32_t)value : max;
}

// `name` is the field name in verbs, for the user to check with the driver.
static void limit_require(struct device_inspection *look, uint64_t value, const char *name) {
	if (value == 0)
		device_inspection_refuse(
			look, -ENOTSUP, "%s reports 0 for %s", look->facts->name, name
		);
}

int device_limits_inspect(struct device_inspection *look) {
	struct device_limits *limits = &look->facts->limits;
	struct ibv_device_attr attr;
	int err = look->calls->query_device(look->context, &attr);

	if (err != 0)
		return device_inspection_fail(look, err, "query_device");
	look->facts->vendor_id = attr.vendor_id;
	look->facts->guid = be64toh(attr.node_guid);
	look->port_count = look->facts->port_count = attr.phys_port_cnt;
	limits->pair_max = limit_clamp(attr.max_qp, UINT32_MAX);
	limits->queue_depth_max = limit_clamp(attr.max_qp_wr, UINT32_MAX);
	limits->completions_max = limit_clamp(attr.max_cqe, UINT32_MAX);
	limits->sge_max = limit_clamp(attr.max_sge, UINT32_MAX);
	limits->regions_max = limit_clamp(attr.max_mr, UINT32_MAX);
	limits->region_bytes_max = attr.max_mr_size;
	limits->reads_out_max = (uint8_t)limit_clamp(attr.max_qp_init_rd_atom, UINT8_MAX);
	limits->reads_in_max = (uint8_t)limit_clamp(attr.max_qp_rd_atom, UINT8_MAX);
	limits->atomics = attr.atomic_cap != IBV_ATOMIC_NONE;

	limit_require(look, limits->pair_max, "max_qp");
	limit_require(look, limits->queue_depth_max, "max_qp_wr");
	limit_require(look, limit_clamp(attr.max_cq, UINT32_MAX), "max_cq");
	limit_require(look, limits->completions_max, "max_cqe");
	limit_require(look, limits->sge_max, "max_sge");
	limit_require(look, limit_clamp(attr.max_pd, UINT32_MAX), "max_pd");
	limit_require(look, limits->regions_max, "max_mr");
	limit_require(look, limits->region_bytes_max, "max_mr_size");
	// Without reads a peer's pulse cannot be read.
	limit_require(look, limits->reads_out_max, "max_qp_init_rd_atom");
	limit_require(look, limits->reads_in_max, "max_qp_rd_atom");
	limit_require(look, attr.phys_port_cnt, "phys_port_cnt");
	return 0;
}

int device_stamp_clock(const struct device *device, struct device_stamp_clock *ret_stamps) {
	const struct verbs_calls *calls = device_calls(device);
	struct device_stamp_clock stamps = {.mask = 0};
	int err;

	if (calls->query_stamp_clock == NULL || calls->create_cq_ex == NULL)
		return -EOPNOTSUPP;
	err = calls->query_stamp_clock(device_context(device), &stamps.mask, &stamps.khz);
	if (err == 0 && (stamps.mask == 0 || stamps.khz == 0))
		err = -EOPNOTSUPP;
	if (err == 0)
		*ret_stamps = stamps;
	return err;
}
