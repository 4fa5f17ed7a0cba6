// SPDX-License-Identifier: BSD-3-Clause
// Run the lead or a process of a mesh.
#include "mesh_main.h"

#include "mesh/mesh_agents.h"
#include "mesh/mesh_flows.h"
#include "mesh/mesh_lead.h"
#include "mesh/mesh_member.h"
#include "mesh/mesh_output.h"
#include "mesh/mesh_start.h"
#include "mesh/page_mesh.h"
#include "report/output.h"
#include "run/exit_status.h"

#include <lib/error.h>

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#define PATIENCE_NS UINT64_C(60000000000)
#define ANSWER_NS UINT64_C(30000000000)

static int print_failure(const struct lab_why *why) {
	fprintf(stderr, "tocsin-perf: %s\n", why->text);
	return EXIT_FAILED;
}

static struct mesh_member member_config(const struct options *options) {
	return (struct mesh_member){
		.patience_ns = PATIENCE_NS,
		.access = options->session.access,
		.device = options->session.device,
		.settings = options->session.settings,
		.signal_fd = options->session.signal_fd,
	};
}

static bool path_is_standard_output(const char *path) {
	return path != NULL && strcmp(path, "-") == 0;
}

// Check the output files before the mesh is measured.
static int files_check(const struct options *options, struct lab_why *why) {
	const char *const paths[] = {
		options->json_path, options->csv_path, options->html_path, options->svg_path};
	int err = 0;

	for (size_t n = 0; n < sizeof(paths) / sizeof(paths[0]) && err == 0; n++)
		err = output_check(paths[n], why);
	return err;
}

// Return the exit status. A direction that was not measured takes precedence over one that stands
// out, and this one over an undecided one.
static int summary_exit_status(const struct mesh_summary *summary) {
	if (summary->measured < summary->wanted)
		return EXIT_FAILED;
	if (summary->outliers > 0)
		return EXIT_EXCEEDED;
	return summary->undecided > 0 ? EXIT_UNDECIDED : EXIT_DONE;
}

// Print and write the mesh.
static int mesh_output(const struct options *options, const struct mesh *mesh) {
	struct mesh_summary summary;
	struct lab_why why = {.text = ""};
	int err = mesh_summarize(mesh, &summary);
	bool quiet = path_is_standard_output(options->json_path) ||
		     path_is_standard_output(options->csv_path) ||
		     path_is_standard_output(options->html_path) ||
		     path_is_standard_output(options->svg_path);

	if (err != 0)
		err = lab_fail(&why, err, "no memory");
	else if (!quiet)
		mesh_print(mesh, &summary);
	if (err == 0 && options->json_path != NULL)
		err = mesh_write_json(mesh, &summary, options->json_path, &why);
	if (err == 0 && options->csv_path != NULL)
		err = mesh_write_csv(mesh, options->csv_path, &why);
	if (err == 0 && options->html_path != NULL)
		err = page_mesh(mesh, &summary, options->html_path, &why);
	if (err == 0 && options->svg_path != NULL)
		err = mesh_write_svg(mesh, &summary, options->svg_path, &why);
	if (err != 0)
		return print_failure(&why);
	return summary_exit_status(&summary);
}

static int mesh_run_as_lead(
	const struct options *options,
	const struct channel_listener *listener,
	const struct mesh_member *own,
	bool *ret_began
) {
	const struct mesh_lead config = {
		.listener = listener,
		.secrets = own->secrets,
		.at_once = options->mesh.at_once,
		.patience_ns = PATIENCE_NS,
		.answer_ns = ANSWER_NS,
		.signal_fd = options->session.signal_fd,
	};
	struct lab_why why = {.text = ""};
	struct mesh mesh = {.count = 0};
	int status;

	if (mesh_create(&options->session.plan, own->count, &mesh) != 0 ||
	    mesh_flows_create(&mesh, options->mesh.congestion, options->mesh.incast) != 0) {
		mesh_release(&mesh);
		(void)lab_fail(&why, -ENOMEM, "no memory");
		return print_failure(&why);
	}
	*ret_began = mesh_lead_run(&config, &mesh, &why) == 0;
	status = *ret_began ? mesh_output(options, &mesh) : print_failure(&why);
	mesh_release(&mesh);
	return status;
}

static int member_main(const struct mesh_member *member) {
	struct lab_why why = {.text = ""};

	return mesh_member_run(member, &why) == 0 ? EXIT_DONE : print_failure(&why);
}

// Start a member process. After the fork it has its own memory.
static pid_t start_member(const struct mesh_member *member, struct channel_listener *listener) {
	pid_t parent = getpid(), pid = fork();

	if (pid != 0)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGTERM);
	channel_listener_close(listener);
	_exit(getppid() == parent ? member_main(member) : EXIT_FAILED);
}

// End the members. If the mesh did not begin, they are killed, since some would wait for the lead
// until their timeout.
static void end_members(const pid_t *members, uint32_t count, bool began) {
	for (uint32_t n = 0; n < count; n++) {
		if (!began)
			kill(members[n], SIGKILL);
		(void)waitpid(members[n], NULL, 0);
	}
}

static int run_local(const struct options *options) {
	struct mesh_member member = member_config(options);
	struct sock_addr loopback = channel_loopback();
	pid_t members[MESH_NODES_MAX];
	struct channel_listener listener;
	scoped_secrets struct proof_secrets secrets = {.count = 0};
	struct lab_why why = {.text = ""};
	scoped_token char token[TOKEN_BYTES] = "";
	uint32_t started = 0;
	int status = EXIT_DONE;
	bool began = false;

	loopback.port = options->mesh.port;
	if (access_begin_lead(&options->session.access, &secrets, token, &why) != 0 ||
	    channel_bind(&loopback, &listener, &why) != 0)
		return print_failure(&why);
	if (channel_listen(&listener, &why) != 0) {
		channel_listener_close(&listener);
		return print_failure(&why);
	}
	member.secrets = &secrets;
	member.lead = listener.address;
	member.count = options->mesh.local;
	while (status == EXIT_DONE && started < member.count) {
		member.rank = started;
		members[started] = start_member(&member, &listener);
		if (members[started] < 0) {
			(void)lab_fail(&why, neg_errno(), "fork: %s", strerrordesc_np(errno));
			status = print_failure(&why);
			break;
		}
		started++;
	}
	if (status == EXIT_DONE)
		status = mesh_run_as_lead(options, &listener, &member, &began);
	channel_listener_close(&listener);
	end_members(members, started, began);
	return status;
}

static int run_lead(const struct options *options, struct mesh_member *member) {
	struct channel_listener listener;
	scoped_secrets struct proof_secrets secrets = {.count = 0};
	struct lab_why why = {.text = ""};
	scoped_token char token[TOKEN_BYTES] = "";
	int status = EXIT_FAILED;
	bool began = false;
	pid_t own;

	if (access_begin_lead(&options->session.access, &secrets, token, &why) != 0 ||
	    mesh_publish_lead(&options->mesh, member, token, &listener, &why) != 0)
		return print_failure(&why);
	member->secrets = &secrets;
	own = start_member(member, &listener);
	if (own > 0)
		status = mesh_run_as_lead(options, &listener, member, &began);
	else
		fprintf(stderr, "tocsin-perf: fork: %s\n", strerrordesc_np(errno));
	mesh_withdraw_rendezvous(&options->mesh, token, &listener);
	if (own > 0)
		end_members(&own, 1, began);
	member->secrets = NULL;
	return status;
}

static int run_agents(const struct options *options) {
	const struct mesh_agents agents = {
		.socket = options->agent_socket,
		.plan = options->session.plan,
		.signal_fd = options->session.signal_fd,
	};
	struct lab_why why = {.text = ""};
	struct mesh mesh = {.count = 0};
	int status = mesh_agents_run(&agents, &mesh, &why) == 0 ? mesh_output(options, &mesh)
								: print_failure(&why);

	mesh_release(&mesh);
	return status;
}

// Return true if this process writes the results.
static bool writes_results(const struct options *options, const struct mesh_member *member) {
	return options->mesh.agents || options->mesh.local > 0 || member->rank == 0;
}

int mesh_main(const struct options *options) {
	struct mesh_member member = member_config(options);
	struct lab_why why = {.text = ""};

	if (options->mesh.hosts != NULL)
		return mesh_print_commands(
			       &options->mesh, options->session.access.token_file != NULL,
			       options->runs.argc, options->runs.argv, &why
		       ) == 0
			       ? EXIT_DONE
		       : print_failure(&why) == EXIT_FAILED ? EXIT_USAGE
							    : EXIT_FAILED;
	if (!options->mesh.agents && options->mesh.local == 0 &&
	    mesh_find_rank(&options->mesh, &member, &why) != 0)
		return print_failure(&why) == EXIT_FAILED ? EXIT_USAGE : EXIT_FAILED;
	if (writes_results(options, &member) && files_check(options, &why) != 0)
		return print_failure(&why);
	if (options->mesh.agents)
		return run_agents(options);
	if (options->mesh.local > 0)
		return run_local(options);
	if (mesh_find_lead_address(&options->mesh, &member, &why) != 0)
		return print_failure(&why);
	return member.rank == 0 ? run_lead(options, &member) : member_main(&member);
}
