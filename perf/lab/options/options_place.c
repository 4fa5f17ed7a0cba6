// SPDX-License-Identifier: BSD-3-Clause
// Options about the place of a measurement: device, processor and addresses.
#include "options/options_impl.h"

#include <errno.h>
#include <string.h>

static int set_device(struct options *options, const char *value, struct parse_error *error) {
	if (value[0] == '\0' || strlen(value) > DEVICE_NAME_MAX)
		return parse_fail(error, -EINVAL, value, strlen(value), "is not a device name");
	options->session.device = value;
	return 0;
}

static int set_ib_port(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 1, 254, error, &number);

	if (err == 0)
		options->session.settings.port = (uint8_t)number;
	return err;
}

static int set_gid_index(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 0, 255, error, &number);

	if (err == 0)
		options->session.settings.gid_index = (int)number;
	return err;
}

static int set_mtu(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 256, 4096, error, &number);

	if (err == 0 && (number & (number - 1)) != 0)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"is not one of 256, 512, 1024, 2048, 4096"
		);
	if (err == 0)
		options->session.settings.mtu = (uint16_t)number;
	return err;
}

static int
set_traffic_class(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 0, 255, error, &number);

	if (err == 0)
		options->session.settings.traffic_class = (uint8_t)number;
	return err;
}

static int
set_service_level(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 0, 15, error, &number);

	if (err == 0)
		options->session.settings.service_level = (uint8_t)number;
	return err;
}

static int set_timeout(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 0, 31, error, &number);

	if (err == 0)
		options->session.settings.timeout = (uint8_t)number;
	return err;
}

static int set_retry(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 0, 7, error, &number);

	if (err == 0)
		options->session.settings.retry = (uint8_t)number;
	return err;
}

static int set_cores(struct options *options, const char *value, struct parse_error *error) {
	struct lab_session *session = &options->session;
	struct cpu_set allowed;
	int err = cpu_set_get_allowed(&allowed);

	if (err == 0)
		err = cpu_set_parse_allowed(value, strlen(value), &allowed, error, &session->cores);
	if (err == 0 && cpu_set_count(&session->cores) != 1)
		return parse_fail(
			error, -EINVAL, value, strlen(value),
			"must be one processor: only one thread polls"
		);
	session->cores_given = err == 0;
	return err;
}

static int set_priority(struct options *options, const char *value, struct parse_error *error) {
	return option_parse_u32(value, 1, 99, error, &options->session.priority);
}

static int set_port(struct options *options, const char *value, struct parse_error *error) {
	uint32_t number;
	int err = option_parse_u32(value, 1, 65535, error, &number);

	if (err == 0)
		options->session.address.port = (uint16_t)number;
	return err;
}

static int set_listen(struct options *options, const char *value, struct parse_error *error) {
	uint16_t port = options->session.address.port;
	int err = sock_addr_parse_host(value, strlen(value), error, &options->session.address);

	options->session.address.port = port;
	return err;
}

static int set_memory(struct options *options, const char *value, struct parse_error *error) {
	return messages_place_parse(value, error, &options->session.memory);
}

static int parse_file(const char *value, struct parse_error *error, const char **ret_path) {
	if (value[0] == '\0')
		return parse_fail(error, -EINVAL, value, 0, "is not a file name");
	*ret_path = value;
	return 0;
}

static int set_token_file(struct options *options, const char *value, struct parse_error *error) {
	return parse_file(value, error, &options->session.access.token_file);
}

static int set_key_file(struct options *options, const char *value, struct parse_error *error) {
	return parse_file(value, error, &options->session.access.key_file);
}

static int set_open(struct options *options, const char *value, struct parse_error *error) {
	(void)value;
	(void)error;
	options->session.access.open = true;
	return 0;
}

static const struct option rows[] = {
	OPTION("--device", set_device, 0, OPTION_BOTH),
	OPTION("--ib-port", set_ib_port, 0, OPTION_BOTH),
	OPTION("--gid-index", set_gid_index, 0, OPTION_BOTH),
	OPTION("--mtu", set_mtu, 0, OPTION_BOTH),
	OPTION("--traffic-class", set_traffic_class, 0, OPTION_BOTH),
	OPTION("--service-level", set_service_level, 0, OPTION_BOTH),
	OPTION("--timeout", set_timeout, 0, OPTION_BOTH),
	OPTION("--retry", set_retry, 0, OPTION_BOTH),
	OPTION("--cores", set_cores, 0, OPTION_BOTH),
	OPTION("--memory", set_memory, 0, OPTION_BOTH),
	OPTION("--priority", set_priority, 0, OPTION_BOTH),
	OPTION("--port", set_port, 0, OPTION_BOTH),
	OPTION("--listen", set_listen, 0, OPTION_SERVER),
	OPTION("--token-file", set_token_file, 0, OPTION_BOTH),
	OPTION("--key-file", set_key_file, 0, OPTION_BOTH),
	OPTION_FLAG("--open", set_open, 0, OPTION_SERVER),
};

const struct option_table options_of_place = OPTION_TABLE(rows);
