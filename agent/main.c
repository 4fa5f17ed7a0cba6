// SPDX-License-Identifier: BSD-3-Clause
// tocsind: reads the options and the configuration, and runs the loop until it must leave.
#include "agent.h"
#include "check.h"
#include "config_schema.h"

#include <control/overlay.h>
#include <lib/log.h>
#include <lib/standard_streams.h>

#include <errno.h>
#include <malloc.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LARGE_BLOCK_BYTES (128 * 1024)

static enum agent_exit agent_run(const struct options *options, struct config *config) {
	// Static, because abandoned threads may read its clock after this function returns.
	static struct agent agent;
	char text[SOCK_ADDR_TEXT_BYTES];
	struct sock_addr address;
	struct ras_peer self;
	const struct ras *ras;
	int err;

	agent.options = options;
	agent.config = config;
	agent.settings = config_settings(config);
	log_init();
	if (options->foreground)
		log_set_sink(NULL);
	log_set_level(agent.settings->log.level);
	err = agent_start(&agent);
	if (err == 0) {
		ras = overlay_ras(agent.overlay);
		address = overlay_address(agent.overlay);
		sock_addr_format(&address, text);
		if (ras_peer_find(ras, ras_self_id(ras), &self) == 0)
			log_event(
				LOG_LEVEL_INFO, "started", log_str("version", TOCSIN_VERSION),
				log_bytes("node", self.record->name, self.record->name_length),
				log_bytes("host", self.record->host, self.record->host_length),
				log_str("address", text)
			);
		err = loop_run(agent.loop);
		if (err != 0)
			log_event(LOG_LEVEL_ERROR, "loop_failed", log_errno("error", err));
		agent_stop(&agent);
		log_event(LOG_LEVEL_INFO, "stopped", log_u64("exit", agent.exit));
	}
	config_destroy(agent.config);
	config_destroy(agent.started_with);
	return err != 0 && agent.exit == AGENT_EXIT_DONE ? AGENT_EXIT_FAILED : agent.exit;
}

static int stdout_check_written(int status) {
	int err = fflush(stdout) == 0 ? 0 : errno; // 0: an earlier write failed

	if (err == 0 && !ferror(stdout))
		return status;
	fprintf(stderr, "tocsind: cannot write the answer%s%s\n", err != 0 ? ": " : "",
		err != 0 ? strerrordesc_np(err) : "");
	return AGENT_EXIT_FAILED;
}

int main(int argc, char **argv) {
	struct options options;
	struct config *config;
	sigset_t set;

	standard_streams_open();
	// Fix malloc's threshold for mmap(). By default glibc raises it to the size of the first
	// large block that is freed. Later connection buffers (320 KiB each) and long answers would
	// then come from the heap. Their memory would stay with the process; blocks above a fixed
	// threshold return to the kernel. The malloc() of a sanitizer refuses this call, which does
	// no harm.
	// NOLINTNEXTLINE(concurrency-mt-unsafe): there is one thread
	(void)mallopt(M_MMAP_THRESHOLD, LARGE_BLOCK_BYTES);

	// Block SIGHUP until the loop handles signals. By default SIGHUP would kill an agent that a
	// service manager has just started.
	sigemptyset(&set);
	sigaddset(&set, SIGHUP);
	pthread_sigmask(SIG_BLOCK, &set, NULL);

	if (options_parse(argc, argv, &options) != 0)
		return AGENT_EXIT_USAGE;
	switch (options.action) {
	case OPTIONS_HELP:
		options_print_help();
		return stdout_check_written(AGENT_EXIT_DONE);
	case OPTIONS_VERSION:
		printf("tocsind %s\n", TOCSIN_VERSION);
		return stdout_check_written(AGENT_EXIT_DONE);
	case OPTIONS_MAN:
		config_print_man(&agent_config_schema, stdout);
		return stdout_check_written(AGENT_EXIT_DONE);
	case OPTIONS_RUN:
	case OPTIONS_CHECK:
	case OPTIONS_PRINT:
		break;
	}
	if (load_config(&options, &config) != 0)
		return AGENT_EXIT_USAGE;
	if (options.action == OPTIONS_RUN)
		return (int)agent_run(&options, config);
	if (options.action == OPTIONS_PRINT) {
		config_print(config, stdout);
	} else {
		printf("%s: the configuration is sound\n",
		       options.config_given ? options.config_path : "defaults and settings");
		check_report_first_steps(config_settings(config), options.config_path, stdout);
		check_report_running_agents(config_settings(config), stdout);
		check_report_unit_denials(
			config_settings(config),
			access(options.config_path, F_OK) == 0 ? options.config_path : NULL, stdout
		);
		check_report_gpus(config_settings(config), stdout);
		check_report_history(config_settings(config), stdout);
	}
	config_destroy(config);
	return stdout_check_written(AGENT_EXIT_DONE);
}
