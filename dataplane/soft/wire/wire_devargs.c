// SPDX-License-Identifier: BSD-3-Clause
// Parses the DEVARGS of a DPDK wire. The driver validates DEVARGS when the port is opened.
#include "wire/wire_devargs.h"

#include <errno.h>
#include <string.h>

int wire_devargs_parse(
	const char *text,
	size_t length,
	struct parse_error *ret_error,
	char ret_args[static SOFT_WIRE_ARGS_MAX + 1]
) {
	size_t prefix = strlen(WIRE_DPDK_PREFIX);

	if (length == prefix)
		return parse_fail(
			ret_error, -EINVAL, text, length,
			"names no port; give one, for example dpdk:net_af_packet0,iface=veth0"
		);
	if (length - prefix > SOFT_WIRE_ARGS_MAX)
		return parse_fail(
			ret_error, -EINVAL, text, length, "is longer than %d bytes",
			SOFT_WIRE_ARGS_MAX
		);
	for (size_t n = prefix; n < length; n++) {
		if ((unsigned char)text[n] <= ' ' || text[n] == '\x7f')
			return parse_fail(
				ret_error, -EINVAL, text, length,
				"contains a space or a control character"
			);
	}
	memcpy(ret_args, text + prefix, length - prefix);
	ret_args[length - prefix] = '\0';
	return 0;
}
