// SPDX-License-Identifier: BSD-3-Clause
// What this node's ports count of congestion, beside what is told of paths and nodes.
#pragma once

#include "client/session.h"

// An array of ports; `device` as paths name it ("mlx5_0", "mlx5_0:2"), or NULL: all.
json_t *congestion_json(const struct session *session, const char *device);
// One port of such an array in words: what moves now. It may be another node's, and is checked.
#define CONGESTION_WORDS_BYTES 512
void congestion_words(const json_t *port, char words[static CONGESTION_WORDS_BYTES]);

// Of one device, as paths name it: a mark behind a word of a table, "" where nothing moves, and
// what the marks mean, below a table that has some.
const char *congestion_mark(const struct session *session, const char *device);
extern const char congestion_legend[];
const char *congestion_word(const struct session *session, const char *device);

// The part of WHY: ports of the node that is asked. Nothing where none counts anything.
void why_say_congestion(struct session *session);
void why_put_congestion(const struct session *session, json_t *object);
