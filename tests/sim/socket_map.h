// SPDX-License-Identifier: BSD-3-Clause
// Map from one node's connection handles to sockets: a small open-addressing table.
#pragma once

#include <stdint.h>

#define SOCKET_NONE UINT32_MAX

struct socket_place {
	uint32_t handle;
	uint32_t socket; // SOCKET_NONE: empty slot
};

struct socket_map {
	struct socket_place *places;
	uint32_t count, capacity; // capacity is a power of two, or 0
};

void socket_map_fini(struct socket_map *map);
// The handle must not be in the map.
void socket_map_add(struct socket_map *map, uint32_t handle, uint32_t socket);
void socket_map_remove(struct socket_map *map, uint32_t handle);

static inline uint32_t socket_map_slot(const struct socket_map *map, uint32_t handle) {
	return (handle * UINT32_C(2654435769)) >> 7 & (map->capacity - 1);
}

// Returns SOCKET_NONE if the handle is not in the map.
static inline uint32_t socket_map_find(const struct socket_map *map, uint32_t handle) {
	uint32_t at;

	if (map->capacity == 0)
		return SOCKET_NONE;
	at = socket_map_slot(map, handle);
	while (map->places[at].socket != SOCKET_NONE && map->places[at].handle != handle)
		at = (at + 1) & (map->capacity - 1);
	return map->places[at].socket;
}
