// SPDX-License-Identifier: BSD-3-Clause
// The name of a DPDK wire: "dpdk:DEVARGS".
#pragma once

#include <dataplane/soft.h>
#include <lib/parse.h>

#include <stddef.h>

#define WIRE_DPDK_PREFIX "dpdk:"

// Parse DEVARGS from a text that begins with WIRE_DPDK_PREFIX. Returns 0, -EINVAL, or -EOPNOTSUPP
// if this build has no DPDK; *ret_error has the reason.
int wire_devargs_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
);
