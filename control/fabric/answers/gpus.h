// SPDX-License-Identifier: BSD-3-Clause
// JSON for pages in GPU memory, for paths, devices and nodes.
#pragma once

#include "client/session.h"

#include <control/fabric.h>

// Return the object of a path; null if its peer offers no page.
json_t *gpu_path_json(struct session *session, const struct fabric_gpu_path *gpu);

// Return the object of a device; null if no page is configured.
json_t *gpu_device_json(const struct fabric_gpu_view *gpu);
// Add an array "gpus" with all own devices that are configured to offer a page.
void gpus_add_devices(const struct session *session, json_t *object);

// Add an array "gpus" with all own paths to a peer that offers a page; `peer` 0: all peers.
void gpus_add_paths(struct session *session, uint64_t peer, json_t *object);
