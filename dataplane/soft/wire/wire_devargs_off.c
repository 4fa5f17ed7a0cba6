// SPDX-License-Identifier: BSD-3-Clause
// Rejects DPDK wires in a build without DPDK. This parser serves the configuration file, the
// command line and environment variables.
#include "wire/wire_devargs.h"

#include <errno.h>

int wire_devargs_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
) {
	(void)ret_args;
	return parse_fail(
		ret_error, -EOPNOTSUPP, text, length,
		"needs DPDK, which this build lacks; use udp, or build with -Ddpdk=shared"
	);
}
