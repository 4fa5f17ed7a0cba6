// SPDX-License-Identifier: BSD-3-Clause
// Memory of GPUs, beside what is told of paths, devices and nodes.
#pragma once

#include "client/session.h"

#include <control/fabric.h>

// Of a path: an object, null where its peer shows none.
json_t *gpu_path_json(struct session *session, const struct fabric_gpu_path *gpu);

// Of a device: an object, null where it is to show none.
json_t *gpu_device_json(const struct fabric_gpu_view *gpu);
// All own devices, in an object: an array "gpus".
void gpus_put_devices(const struct session *session, json_t *object);

// In an object: an array "gpus" of all own paths to a peer that shows some.
void gpus_put(struct session *session, uint64_t peer, json_t *object);
