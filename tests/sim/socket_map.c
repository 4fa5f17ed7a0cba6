// SPDX-License-Identifier: BSD-3-Clause
#include "socket_map.h"

#include <lib/must.h>

#include <stdlib.h>
#include <string.h>

#define SOCKET_MAP_CAPACITY_MIN 32

void socket_map_fini(struct socket_map *map) {
	free(map->places);
	memset(map, 0, sizeof(*map));
}

static void socket_map_put(struct socket_map *map, uint32_t handle, uint32_t socket) {
	uint32_t at = socket_map_slot(map, handle);

	while (map->places[at].socket != SOCKET_NONE) {
		must(map->places[at].handle != handle);
		at = (at + 1) & (map->capacity - 1);
	}
	map->places[at] = (struct socket_place){handle, socket};
}

static void socket_map_grow(struct socket_map *map) {
	struct socket_map old = *map;

	map->capacity = old.capacity > 0 ? 2 * old.capacity : SOCKET_MAP_CAPACITY_MIN;
	map->places = malloc(map->capacity * sizeof(*map->places));
	must(map->places != NULL);
	memset(map->places, 0xff, map->capacity * sizeof(*map->places)); // SOCKET_NONE
	for (uint32_t n = 0; n < old.capacity; n++) {
		if (old.places[n].socket != SOCKET_NONE)
			socket_map_put(map, old.places[n].handle, old.places[n].socket);
	}
	free(old.places);
}

void socket_map_add(struct socket_map *map, uint32_t handle, uint32_t socket) {
	if (map->capacity == 0 || map->count >= map->capacity / 2)
		socket_map_grow(map);
	socket_map_put(map, handle, socket);
	map->count++;
}

void socket_map_remove(struct socket_map *map, uint32_t handle) {
	uint32_t mask = map->capacity - 1;
	uint32_t at = socket_map_slot(map, handle);
	uint32_t hole;

	while (map->places[at].handle != handle || map->places[at].socket == SOCKET_NONE) {
		must(map->places[at].socket != SOCKET_NONE);
		at = (at + 1) & mask;
	}
	// Move up later entries that a search would find through this slot, so that no tombstones
	// are needed.
	hole = at;
	for (;;) {
		uint32_t home;

		at = (at + 1) & mask;
		if (map->places[at].socket == SOCKET_NONE)
			break;
		home = socket_map_slot(map, map->places[at].handle);
		if (((at - home) & mask) < ((at - hole) & mask))
			continue;
		map->places[hole] = map->places[at];
		hole = at;
	}
	map->places[hole].socket = SOCKET_NONE;
	map->count--;
}
