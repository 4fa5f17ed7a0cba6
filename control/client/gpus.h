// SPDX-License-Identifier: BSD-3-Clause
// Memory of GPUs, beside what is told of paths, devices and nodes.
#pragma once

#include "client/session.h"

#include <control/fabric.h>

// Of a path: an object, null where its peer shows none.
json_t *gpu_path_json(struct session *session, const struct fabric_gpu_path *gpu);
// Such an object in words. It may be another node's, and is checked.
#define GPU_WORDS_BYTES 400
void gpu_path_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);
void gpu_time_words(const json_t *gpu, char words[static GPU_WORDS_BYTES]);

// Of a device: an object, null where it is to show none.
json_t *gpu_device_json(const struct fabric_gpu_view *gpu);
// A line of its own, of the device of that name unless NULL; nothing where it is to show none.
void gpu_device_say(struct session *session, const char *device, const struct fabric_gpu_view *gpu);
// All own devices.
void gpus_say_devices(struct session *session);
// In an object: an array "gpus" of them.
void gpus_put_devices(const struct session *session, json_t *object);

// Own paths on which only the GPU is amiss: of one peer, or all with 0, under a head. Nothing
// where there are none.
void gpus_say_bad(struct session *session, uint64_t peer, const char *head);
// In an object: an array "gpus" of all own paths to a peer that shows some.
void gpus_put(struct session *session, uint64_t peer, json_t *object);
