// SPDX-License-Identifier: BSD-3-Clause
// REPORT, FORGET, LEVEL, LOG: the commands that change something. Each one is logged with
// its user.
#include "client/answers.h"
#include "client/command.h"
#include "client/names.h"
#include "client/order.h"
#include "client/server.h"

#include <control/jobhost.h>
#include <lib/escape.h>
#include <lib/log.h>
#include <lib/parse.h>

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <strings.h>

#define QUOTED_BYTES 96
#define REASON_BYTES_MAX 160
#define SECOND_NS UINT64_C(1000000000)
#define LEVEL_MAX_S (JOBHOST_LEVEL_MAX_NS / SECOND_NS)

void order_target_init(const struct ras_peer *peer, struct order_target *ret_target) {
	ret_target->id = peer->record->id;
	ret_target->state = peer->state;
	names_format_record(peer->record, ret_target->name);
}

void order_finish(
	struct session *session, const struct order_target *target, const char *order, int err
) {
	const char *name = target->name;

	switch (err) {
	case 0:
		log_event(
			LOG_LEVEL_INFO, "client_order", log_str("order", order),
			log_str("node", name), log_u64("uid", session->uid)
		);
		session_ok(session);
		break;
	case -ENOENT:
		session_fail(session, "%s is no longer in the peer table", name);
		break;
	case -EBUSY:
		session_fail(
			session,
			"%s is %s: only a node that is dead, unreachable or has left can be forgotten",
			name, ras_state_name(target->state)
		);
		break;
	case -ESTALE:
		session_fail(
			session, "%s has sent a message since: the report is out of date", name
		);
		break;
	default:
		session_fail(session, "%s: %s", name, strerrordesc_np(-err));
		break;
	}
}

void answer_report(struct session *session, const char *rest) {
	struct order_target target;
	struct ras_peer peer;

	if (!names_parse_next(session, &rest, &peer))
		return;
	if (*rest == '\0' || strlen(rest) > REASON_BYTES_MAX ||
	    !escape_text_is_plain(rest, strlen(rest))) {
		session_fail(
			session,
			"REPORT needs a reason: REPORT node reason, at most %u bytes of UTF-8",
			REASON_BYTES_MAX
		);
		return;
	}
	order_target_init(&peer, &target);
	if (target.id == ras_self_id(session_ras(session))) {
		session_fail(session, "%s is this agent: it cannot report itself", target.name);
		return;
	}
	order_finish(
		session, &target, "report",
		overlay_report_peer(session->server->overlay, target.id, session->uid, rest)
	);
}

// No node name begins with "--".
#define UNREACHABLE "--unreachable"
#define REMEMBERED "--remembered"

void answer_forget(struct session *session, const char *rest) {
	struct order_target target;
	struct ras_peer peer;
	struct ras_view view;
	uint32_t count;

	if (strcasecmp(rest, UNREACHABLE) == 0) {
		// view.unreachable alone does not decide: while view.waits is set, this agent may
		// not hold all missing members unreachable.
		ras_view(session_ras(session), &view);
		if (view.unreachable == 0 && !view.waits) {
			session_fail(session, "no node is unreachable");
			return;
		}
		count = overlay_forget_unreachable(session->server->overlay);
		log_event(
			LOG_LEVEL_INFO, "client_order", log_str("order", "forget unreachable"),
			log_u64("nodes", count), log_u64("uid", session->uid)
		);
		session_ok(session);
		return;
	}
	if (strcasecmp(rest, REMEMBERED) == 0) {
		count = overlay_forget_remembered(session->server->overlay);
		log_event(
			LOG_LEVEL_INFO, "client_order", log_str("order", "forget remembered"),
			log_u64("members", count), log_u64("uid", session->uid)
		);
		session_ok(session);
		return;
	}
	if (!names_parse_single(session, rest, &peer))
		return;
	order_target_init(&peer, &target);
	order_finish(
		session, &target, "forget", overlay_forget_peer(session->server->overlay, target.id)
	);
}

void answer_level(struct session *session, const char *rest) {
	const struct client_config *config = &session->server->config;
	char level[32], seconds[32] = "", quoted[QUOTED_BYTES];
	struct parse_error error;
	int64_t for_s;
	int err;

	if (!command_word(&rest, level, sizeof(level)) ||
	    !command_word(&rest, seconds, sizeof(seconds)) ||
	    parse_i64(seconds, strlen(seconds), 1, LEVEL_MAX_S, &error, &for_s) != 0) {
		session_fail(
			session,
			"LEVEL needs a level and a time in seconds: LEVEL level seconds "
			"[job], 1 to %" PRIu64,
			LEVEL_MAX_S
		);
		return;
	}
	if (config->ask_level == NULL) {
		session_fail(session, "this agent serves no jobs, because [job] enabled is no");
		return;
	}
	err = config->ask_level(config->jobhost, level, (uint64_t)for_s * SECOND_NS, rest);
	switch (err) {
	case 0:
		log_event(
			LOG_LEVEL_INFO, "client_order", log_str("order", "level"),
			log_str("level", level), log_str("job", rest),
			log_u64("seconds", (uint64_t)for_s), log_u64("uid", session->uid)
		);
		session_ok(session);
		break;
	case -EINVAL:
		escape_quote(level, strlen(level), quoted, sizeof(quoted));
		session_fail(
			session,
			"%s is not a level; choose default, launches, network, sampled, kernels or "
			"kernels-always",
			quoted
		);
		break;
	case -ENOSPC:
		session_fail(
			session,
			"levels are set for 64 other jobs: wait until one expires, or set the "
			"level of all jobs"
		);
		break;
	default:
		session_fail(session, "the level was not set: %s", strerrordesc_np(-err));
		break;
	}
}

void answer_log(struct session *session, const char *rest) {
	char quoted[QUOTED_BYTES];
	enum log_level level;

	if (log_level_parse(rest, &level) < 0) {
		escape_quote(rest, strlen(rest), quoted, sizeof(quoted));
		session_fail(
			session, "%s is not a log level; choose error, warn, info or debug", quoted
		);
		return;
	}
	log_event(
		LOG_LEVEL_INFO, "client_order", log_str("order", "log"),
		log_str("level", log_level_name(level)), log_u64("uid", session->uid)
	);
	log_set_level(level);
	session_ok(session);
}
