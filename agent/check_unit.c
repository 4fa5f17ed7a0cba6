// SPDX-License-Identifier: BSD-3-Clause
// Finds needs of the configuration that tocsind.service and its drop-ins deny. Reads the unit files
// in systemd's search order. Does not query systemd, which may not run here or may not have
// reloaded edited files.
#include "agent.h"
#include "check.h"
#include "root_helper.h"

#include <dataplane/device_choice.h>
#include <dataplane/soft.h>
#include <lib/config.h>
#include <lib/scoped.h>

#include <dirent.h>
#include <fnmatch.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define UNIT "tocsind.service"
// Search path of systemd, highest priority first. SYSTEMD_UNIT_PATH replaces it, as for systemd.
#define UNIT_PATH                                                                \
	"/etc/systemd/system:/run/systemd/system:/usr/local/lib/systemd/system:" \
	"/usr/lib/systemd/system:/lib/systemd/system"
#define LIST_BYTES 2048
#define DROP_INS_MAX 64
#define NAME_BYTES 256

struct unit {
	bool closed;		    // DevicePolicy is not auto
	bool private_devices;	    // PrivateDevices is set: all devices are hidden
	char devices[LIST_BYTES];   // words of DeviceAllow, each surrounded by blanks
	char families[LIST_BYTES];  // words of RestrictAddressFamilies, each surrounded by blanks
	bool families_are_denied;   // the list began with ~
	char user[NAME_BYTES];	    // "": root
	char ambient[LIST_BYTES];   // words of AmbientCapabilities, each surrounded by blanks
	char bounding[LIST_BYTES];  // words of CapabilityBoundingSet, each surrounded by blanks
	bool bounding_is_set;	    // a list was given, maybe an empty one
	char start_pre[LIST_BYTES]; // commands of ExecStartPre
};

static void word_list_append(char list[static LIST_BYTES], const char *words) {
	size_t used = strlen(list);

	if (words[0] == '\0')
		list[0] = '\0'; // an empty assignment clears the list
	else
		snprintf(list + used, LIST_BYTES - used, "%s%s ", used > 0 ? "" : " ", words);
}

static bool word_is_true(const char *word) {
	return strcmp(word, "yes") == 0 || strcmp(word, "true") == 0 || strcmp(word, "on") == 0 ||
	       strcmp(word, "1") == 0;
}

static char *text_trim(char *text) {
	size_t length;

	text += strspn(text, " \t");
	length = strlen(text);
	while (length > 0 && strchr(" \t\r\n", text[length - 1]) != NULL)
		text[--length] = '\0';
	return text;
}

static void unit_read_file(struct unit *unit, const char *path) {
	scoped_file FILE *file = fopen(path, "re");
	bool in_service = false;
	char line[LINE_MAX];

	while (file != NULL && fgets(line, sizeof(line), file) != NULL) {
		char *key = text_trim(line), *value = strchr(key, '=');

		if (key[0] == '[')
			in_service = strcmp(key, "[Service]") == 0;
		if (!in_service || value == NULL || key[0] == '#' || key[0] == ';')
			continue;
		*value++ = '\0';
		key = text_trim(key);
		value = text_trim(value);
		if (strcmp(key, "DevicePolicy") == 0) {
			unit->closed = strcmp(value, "auto") != 0 && value[0] != '\0';
		} else if (strcmp(key, "PrivateDevices") == 0) {
			unit->private_devices = word_is_true(value);
		} else if (strcmp(key, "DeviceAllow") == 0) {
			value[strcspn(value, " \t")] = '\0'; // cut off the access mode
			word_list_append(unit->devices, value);
		} else if (strcmp(key, "RestrictAddressFamilies") == 0) {
			if (unit->families[0] == '\0')
				unit->families_are_denied = value[0] == '~';
			word_list_append(unit->families, value[0] == '~' ? value + 1 : value);
		} else if (strcmp(key, "User") == 0) {
			snprintf(unit->user, sizeof(unit->user), "%.255s", value);
		} else if (strcmp(key, "AmbientCapabilities") == 0) {
			word_list_append(unit->ambient, value);
		} else if (strcmp(key, "CapabilityBoundingSet") == 0) {
			unit->bounding_is_set = true;
			word_list_append(unit->bounding, value);
		} else if (strcmp(key, "ExecStartPre") == 0) {
			word_list_append(unit->start_pre, value);
		}
	}
}

struct drop_in {
	char name[NAME_BYTES];
	char path[PATH_MAX];
};

struct drop_ins {
	struct drop_in list[DROP_INS_MAX];
	uint32_t count;
};

// Add the drop-ins of one directory, except those that a directory of higher priority replaces by
// a drop-in of the same name.
static void find_drop_ins(struct drop_ins *found, const char *place) {
	char directory[PATH_MAX];
	struct dirent *entry;
	DIR *stream;

	snprintf(directory, sizeof(directory), "%.3700s/" UNIT ".d", place);
	stream = opendir(directory);
	// NOLINTNEXTLINE(concurrency-mt-unsafe): no other thread uses this stream
	while (stream != NULL && (entry = readdir(stream)) != NULL) {
		struct drop_in *one = &found->list[found->count];
		bool is_replaced = false;

		for (uint32_t n = 0; n < found->count && !is_replaced; n++)
			is_replaced = strcmp(found->list[n].name, entry->d_name) == 0;
		if (is_replaced || found->count == DROP_INS_MAX ||
		    fnmatch("*.conf", entry->d_name, FNM_PERIOD) != 0)
			continue;
		snprintf(one->name, sizeof(one->name), "%.255s", entry->d_name);
		snprintf(one->path, sizeof(one->path), "%.3800s/%s", directory, entry->d_name);
		found->count++;
	}
	if (stream != NULL)
		closedir(stream);
}

static int drop_in_compare_names(const void *left, const void *right) {
	const struct drop_in *a = left, *b = right;

	return strcmp(a->name, b->name);
}

// Read the unit and its drop-ins. Returns false if this machine has no such unit.
static bool unit_read(struct unit *unit) {
	const char *given = getenv("SYSTEMD_UNIT_PATH"); // NOLINT(concurrency-mt-unsafe)
	scoped_mem char *copy = strdup(given != NULL && given[0] != '\0' ? given : UNIT_PATH);
	scoped_mem struct drop_ins *drop_ins = calloc(1, sizeof(*drop_ins));
	char *rest = copy, *place, path[PATH_MAX];
	bool found = false;

	if (copy == NULL || drop_ins == NULL)
		return false;
	while ((place = strsep(&rest, ":")) != NULL) {
		snprintf(path, sizeof(path), "%.3700s/" UNIT, place);
		if (!found && access(path, R_OK) == 0) {
			found = true;
			unit_read_file(unit, path);
		}
		find_drop_ins(drop_ins, place);
	}
	qsort(drop_ins->list, drop_ins->count, sizeof(drop_ins->list[0]), drop_in_compare_names);
	for (uint32_t n = 0; found && n < drop_ins->count; n++)
		unit_read_file(unit, drop_ins->list[n].path);
	return found;
}

// Return true if the unit allows the device, by its driver's name in /proc/devices or by its path.
static bool unit_allows_device(const struct unit *unit, const char *group, const char *path) {
	char list[LIST_BYTES], *rest = list, *word;

	if (unit->private_devices)
		return false;
	if (!unit->closed && unit->devices[0] == '\0')
		return true;
	snprintf(list, sizeof(list), "%s", unit->devices);
	while ((word = strsep(&rest, " ")) != NULL) {
		if (strcmp(word, path) == 0 ||
		    (strncmp(word, "char-", 5) == 0 && fnmatch(word + 5, group, 0) == 0))
			return true;
	}
	return false;
}

static bool unit_allows_family(const struct unit *unit, const char *family) {
	char word[64];
	bool listed;

	if (unit->families[0] == '\0')
		return true;
	snprintf(word, sizeof(word), " %s ", family);
	listed = strstr(unit->families, word) != NULL;
	return listed != unit->families_are_denied;
}

static bool unit_runs_as_root(const struct unit *unit) {
	return unit->user[0] == '\0' || strcmp(unit->user, "root") == 0 ||
	       strcmp(unit->user, "0") == 0;
}

// Return true if the agent gets the capability. A list of removed capabilities (~) counts as one
// that has all.
static bool unit_gives_capability(const struct unit *unit, const char *capability) {
	char word[64];

	snprintf(word, sizeof(word), " %s ", capability);
	if (unit->bounding_is_set && strchr(unit->bounding, '~') == NULL &&
	    strstr(unit->bounding, word) == NULL)
		return false;
	return unit_runs_as_root(unit) || strstr(unit->ambient, word) != NULL;
}

static void
report_denied_setting(FILE *stream, const char *what, const char *setting, const char *drop_in) {
	fprintf(stream,
		"note: " UNIT " denies access that %s needs (%s): copy share/tocsin/systemd/%s to "
		"/etc/systemd/system/" UNIT ".d\n",
		what, setting, drop_in);
}

// Report what a dpdk wire is denied. Its port belongs to a driver without hardware (net_...,
// eth_...), or is a PCI address.
static void
report_wire_denials(const struct agent_settings *settings, const struct unit *unit, FILE *stream) {
	const char *wire = soft_device_section(settings)->wire;
	char end;

	if (strncmp(wire, "dpdk:", 5) != 0)
		return;
	wire += 5;
	end = wire[strspn(wire, "0123456789abcdefABCDEF:.")];
	if (strncmp(wire, "net_af_packet", 13) == 0) {
		if (!unit_allows_family(unit, "AF_PACKET"))
			report_denied_setting(
				stream, "[device " SOFT_DEVICE_NAME "] wire = dpdk:net_af_packet",
				"RestrictAddressFamilies=AF_PACKET", "dpdk.conf"
			);
		else if (!unit_gives_capability(unit, "CAP_NET_RAW") || !unit_gives_capability(unit, "CAP_NET_ADMIN"))
			report_denied_setting(
				stream, "[device " SOFT_DEVICE_NAME "] wire = dpdk:net_af_packet",
				"AmbientCapabilities=CAP_NET_RAW CAP_NET_ADMIN", "dpdk.conf"
			);
	} else if (end == '\0' || end == ',') {
		if (!unit_allows_device(unit, "vfio", "/dev/vfio"))
			report_denied_setting(
				stream, "[device " SOFT_DEVICE_NAME "] wire = dpdk: on PCI",
				"DeviceAllow=char-vfio rw", "dpdk.conf"
			);
	}
}

// Report that a program of another user cannot run. An agent that may change its user needs no
// helper; systemd starts the helper at a connection to its socket.
static void report_user_denial(
	const struct unit *unit,
	const char *section,
	const char *key,
	const char *user,
	FILE *stream
) {
	struct stat info;

	if (user[0] == '\0' || strcmp(user, unit_runs_as_root(unit) ? "root" : unit->user) == 0)
		return;
	if (unit_runs_as_root(unit)) {
		if (!unit_gives_capability(unit, "CAP_SETUID") ||
		    !unit_gives_capability(unit, "CAP_SETGID") ||
		    !unit_gives_capability(unit, "CAP_KILL"))
			fprintf(stream,
				"note: " UNIT " denies access that [%s] %s = %s needs "
				"(CapabilityBoundingSet=CAP_SETUID CAP_SETGID CAP_KILL)\n",
				section, key, user);
	} else if (lstat(ROOT_HELPER_SOCKET, &info) != 0 || !S_ISSOCK(info.st_mode)) {
		fprintf(stream,
			"note: " UNIT " runs as user %s: [%s] %s = %s needs the unit "
			"tocsin-root.socket: systemctl enable --now tocsin-root.socket\n",
			unit->user, section, key, user);
	}
}

void check_report_unit_denials(
	const struct agent_settings *settings, const char *path, FILE *stream
) {
	const struct config_list *list = &settings->node.device;
	struct unit unit = {.closed = false};
	const struct check_section *check;
	struct device_target target;

	if (!unit_read(&unit))
		return;
	for (size_t n = 0; n < list->count; n++) {
		if (device_target_parse(list->items[n], strlen(list->items[n]), NULL, &target) !=
			    0 ||
		    target.kind != DEVICE_TARGET_CUDA)
			continue;
		if (!unit_allows_device(&unit, "nvidia", "/dev/nvidiactl") ||
		    !unit_allows_device(&unit, "nvidia-uvm", "/dev/nvidia-uvm"))
			report_denied_setting(
				stream, "[node] device = cuda:", "DeviceAllow=char-nvidia* rw",
				"cuda.conf"
			);
		break;
	}
	report_wire_denials(settings, &unit, stream);
	for (size_t n = 0; (check = settings->checks[n]) != NULL; n++)
		report_user_denial(&unit, check->section, "user", check->user, stream);
	if (settings->health.webhook[0] != '\0')
		report_user_denial(
			&unit, "health", "webhook_user", settings->health.webhook_user, stream
		);
	if (geteuid() == 0 && !unit_runs_as_root(&unit))
		check_report_unit_user(
			settings, path, unit.user,
			settings->overlay.key[0] != '\0' &&
				strstr(unit.start_pre, settings->overlay.key) != NULL,
			stream
		);
}
