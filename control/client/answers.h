// SPDX-License-Identifier: BSD-3-Clause
// The handlers of the commands, one function each. `rest` is the text after the command's name.
#pragma once

struct session;

typedef void answer_fn(struct session *session, const char *rest);

answer_fn answer_client_protocol, answer_timeout, answer_set_format;
answer_fn answer_status, answer_monitor;
answer_fn answer_peers, answer_links, answer_health, answer_events, answer_comms;
answer_fn answer_why, answer_history, answer_ping, answer_counters, answer_node;
answer_fn answer_checks, answer_devices, answer_pairs, answer_probe, answer_conns;
answer_fn answer_paths, answer_path, answer_matrix, answer_maintenance;
answer_fn answer_report, answer_maint, answer_forget, answer_level, answer_log;
