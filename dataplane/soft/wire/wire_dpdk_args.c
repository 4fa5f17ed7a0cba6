// SPDX-License-Identifier: BSD-3-Clause
// Parses the arguments of a `dpdk:` wire.
#include "wire/wire_dpdk_args.h"

#include "packet/frame.h"
#include "wire/link.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

// Ethernet frame with the largest packet.
#define FRAME_WANTED (LINK_HEADER_BYTES + FRAME_BYTES_MAX)
// memif: one frame per buffer.
#define MEMIF_BUFFER_BYTES 4608
#define MEMIF_RING_LOG2 10
#define MEMIF_RING_LOG2_MAX 14
// af_packet: frames lie in blocks of whole pages, so sizes are powers of two. The kernel puts a
// header in front of each. A longer ring reduces the risk that the driver waits endlessly for room.
#define AF_PACKET_HEADER_BYTES 96
#define AF_PACKET_FRAME_BYTES 2048
#define AF_PACKET_FRAMES 512
#define AF_PACKET_BLOCK_BYTES 65536

// Assumed MTU of a PCI port's link, as in the kernel.
#define PCI_MTU 1500
#define MTU_MIN 256
#define MTU_MAX 9216

#define PCI_FIRST "0000:00:00.0"
#define PCI_BYTES sizeof(PCI_FIRST)

// One KEY=VALUE item.
struct item {
	const char *key, *value;
	size_t key_length, value_length;
};

struct seen {
	bool iface, bsize, rsize, framesz, framecnt, blocksz, mtu;
	uint64_t bsize_value, rsize_value, framesz_value, framecnt_value, mtu_value;
};

static bool item_has_key(const struct item *item, const char *key) {
	return item->key_length == strlen(key) && memcmp(item->key, key, item->key_length) == 0;
}

static int parse_number_item(
	const struct item *item,
	uint64_t min,
	uint64_t max,
	struct parse_error *error,
	uint64_t *ret_value
) {
	return parse_u64(item->value, item->value_length, min, max, error, ret_value);
}

static int
parse_text_item(const struct item *item, size_t size, struct parse_error *error, char *ret_text) {
	if (item->value_length == 0 || item->value_length >= size)
		return parse_fail(
			error, -EINVAL, item->value, item->value_length,
			"is not a value of %.*s; give 1 to %zu characters", (int)item->key_length,
			item->key, size - 1
		);
	memcpy(ret_text, item->value, item->value_length);
	ret_text[item->value_length] = '\0';
	return 0;
}

static int
parse_gateway(const struct item *item, struct parse_error *error, struct dpdk_args *args) {
	const char *slash = memchr(item->value, '/', item->value_length);
	size_t length = slash != NULL ? (size_t)(slash - item->value) : item->value_length;
	uint64_t bits;
	int err;

	if (slash == NULL)
		return parse_fail(
			error, -EINVAL, item->value, item->value_length,
			"is not a gateway; give ADDRESS/PREFIX, for example 192.0.2.1/24"
		);
	err = sock_addr_parse_host(item->value, length, error, &args->gateway);
	if (err == 0)
		err = parse_u64(
			slash + 1, item->value_length - length - 1, 0,
			args->gateway.family == SOCK_ADDR_V4 ? 32 : 128, error, &bits
		);
	if (err == 0)
		args->prefix_bits = (uint32_t)bits;
	return err != 0 ? -EINVAL : 0;
}

static int parse_memif_item(
	const struct item *item,
	struct parse_error *error,
	struct seen *seen,
	struct dpdk_args *args
) {
	uint64_t id;
	int err = 0;

	if (item_has_key(item, "role")) {
		// The driver also accepts the older words.
		args->memif_server = memmem(item->value, item->value_length, "server", 6) != NULL ||
				     memmem(item->value, item->value_length, "master", 6) != NULL;
	} else if (item_has_key(item, "id")) {
		err = parse_number_item(item, 0, UINT32_MAX, error, &id);
		if (err == 0)
			args->memif_id = (uint32_t)id;
	} else if (item_has_key(item, "socket")) {
		err = parse_text_item(item, sizeof(args->socket), error, args->socket);
	} else if (item_has_key(item, "mac")) {
		args->mac_given = true;
	} else if (item_has_key(item, "bsize")) {
		seen->bsize = true;
		err = parse_number_item(item, 512, UINT16_MAX, error, &seen->bsize_value);
	} else if (item_has_key(item, "rsize")) {
		seen->rsize = true;
		err = parse_number_item(item, 1, MEMIF_RING_LOG2_MAX, error, &seen->rsize_value);
	}
	return err;
}

static int parse_af_packet_item(
	const struct item *item,
	struct parse_error *error,
	struct seen *seen,
	struct dpdk_args *args
) {
	int err = 0;

	if (item_has_key(item, "iface")) {
		seen->iface = true;
		err = parse_text_item(item, sizeof(args->iface), error, args->iface);
	} else if (item_has_key(item, "framesz")) {
		seen->framesz = true;
		err = parse_number_item(item, 512, UINT16_MAX, error, &seen->framesz_value);
	} else if (item_has_key(item, "framecnt")) {
		seen->framecnt = true;
		err = parse_number_item(item, 32, UINT16_MAX, error, &seen->framecnt_value);
	} else if (item_has_key(item, "blocksz")) {
		seen->blocksz = true;
	}
	return err;
}

// Parse up to `width` hexadecimal digits and the character `end`, and add leading zeros. Returns
// the text behind, or NULL if it does not match.
static const char *pci_parse_part(const char *name, size_t width, char end, char *ret_part) {
	size_t digits = strspn(name, "0123456789abcdefABCDEF");

	if (digits == 0 || digits > width || name[digits] != end)
		return NULL;
	memset(ret_part, '0', width - digits);
	for (size_t n = 0; n < digits; n++)
		ret_part[width - digits + n] = (char)tolower(name[n]);
	ret_part[width] = end;
	return name + digits + 1;
}

// Convert a PCI address to the form of kernel and DPDK, 0000:03:00.0. The domain and leading zeros
// may be missing. Only the syntax is checked.
static bool pci_normalise(const char *name, char ret_full[static PCI_BYTES]) {
	bool has_domain = strchr(name, ':') != strrchr(name, ':');

	memcpy(ret_full, PCI_FIRST, PCI_BYTES);
	if (has_domain)
		name = pci_parse_part(name, 4, ':', ret_full);
	if (name != NULL)
		name = pci_parse_part(name, 2, ':', ret_full + 5);
	if (name != NULL)
		name = pci_parse_part(name, 2, '.', ret_full + 8);
	if (name != NULL)
		name = pci_parse_part(name, 1, '\0', ret_full + 11);
	return name != NULL;
}

__attribute__((format(printf, 2, 3))) static bool
args_append(struct dpdk_args *args, const char *format, ...) {
	size_t length = strlen(args->devargs);
	size_t room = sizeof(args->devargs) - length;
	va_list list;
	int written;

	va_start(list, format);
	written = vsnprintf(args->devargs + length, room, format, list);
	va_end(list);
	return written >= 0 && (size_t)written < room;
}

int dpdk_args_set_mac(struct dpdk_args *args, const union ibv_gid *gid) {
	const uint8_t *tail = gid->raw + 12;

	if (args->kind != DPDK_MEMIF || args->mac_given)
		return 0;
	// 02: locally administered.
	return args_append(
		       args, ",mac=02:%02x:%02x:%02x:%02x:%02x", gid->raw[11], tail[0], tail[1],
		       tail[2], tail[3]
	       )
		       ? 0
		       : -EINVAL;
}

static int af_packet_add_defaults(
	struct dpdk_args *args,
	const struct seen *seen,
	int (*iface_mtu)(const char *iface),
	struct parse_error *error
) {
	uint32_t frame, slot;
	bool fits;
	int mtu;

	if (!seen->iface)
		return parse_fail(
			error, -EINVAL, args->name, strlen(args->name),
			"needs iface=NAME, the name of an interface of this machine"
		);
	mtu = iface_mtu(args->iface);
	if (mtu < 0)
		return parse_fail(
			error, -ENODEV, args->iface, strlen(args->iface),
			"is not an interface of this machine"
		);
	frame = LINK_HEADER_BYTES + (uint32_t)mtu;
	if (frame > FRAME_WANTED)
		frame = FRAME_WANTED;
	slot = AF_PACKET_FRAME_BYTES;
	while (slot < frame + AF_PACKET_HEADER_BYTES)
		slot *= 2;
	if (seen->framesz)
		slot = (uint32_t)seen->framesz_value;
	// The driver would silently drop longer frames.
	if (frame + AF_PACKET_HEADER_BYTES > slot)
		frame = slot - AF_PACKET_HEADER_BYTES;
	args->frame_bytes = frame;
	args->buffer_bytes = slot;
	args->ring_frames = seen->framecnt ? (uint32_t)seen->framecnt_value : AF_PACKET_FRAMES;
	fits = (seen->framesz || args_append(args, ",framesz=%u", slot)) &&
	       (seen->blocksz || args_append(args, ",blocksz=%u", AF_PACKET_BLOCK_BYTES)) &&
	       (seen->framecnt || args_append(args, ",framecnt=%u", AF_PACKET_FRAMES));
	return fits ? 0 : -EINVAL;
}

static int parse_devargs_item(
	const struct item *item,
	struct parse_error *error,
	struct seen *seen,
	struct dpdk_args *args
) {
	int err = 0;

	if (item_has_key(item, "gateway"))
		return parse_gateway(item, error, args);
	if (item_has_key(item, "mtu")) {
		seen->mtu = true;
		err = parse_number_item(item, MTU_MIN, MTU_MAX, error, &seen->mtu_value);
		return err != 0 ? -EINVAL : 0;
	}
	if (args->kind == DPDK_MEMIF)
		err = parse_memif_item(item, error, seen, args);
	if (args->kind == DPDK_AF_PACKET)
		err = parse_af_packet_item(item, error, seen, args);
	if (err != 0)
		return -EINVAL;
	if (!args_append(
		    args, ",%.*s=%.*s", (int)item->key_length, item->key, (int)item->value_length,
		    item->value
	    ))
		return parse_fail(
			error, -EINVAL, item->key, item->key_length,
			"makes the arguments longer than %d characters", DPDK_DEVARGS_MAX
		);
	return 0;
}

static int parse_device_name(
	const char *text, size_t length, struct parse_error *error, struct dpdk_args *args
) {
	char full[PCI_BYTES];

	if (length == 0 || length > DPDK_NAME_MAX)
		return parse_fail(
			error, -EINVAL, text, length,
			"is not a device; use net_memif0,role=..., net_af_packet0,iface=... or a "
			"PCI address"
		);
	memcpy(args->name, text, length);
	args->kind = DPDK_OTHER;
	if (strncmp(args->name, "net_memif", 9) == 0) {
		args->kind = DPDK_MEMIF;
	} else if (strncmp(args->name, "net_af_packet", 13) == 0) {
		args->kind = DPDK_AF_PACKET;
	} else if (pci_normalise(args->name, full)) {
		args->kind = DPDK_PCI;
		memcpy(args->name, full, sizeof(full)); // the port's name in DPDK
	}
	memcpy(args->devargs, args->name, sizeof(args->name));
	return 0;
}

int dpdk_args_parse(
	const char *text,
	int (*iface_mtu)(const char *iface),
	struct parse_error *ret_error,
	struct dpdk_args *ret_args
) {
	struct dpdk_args args = {.socket = DPDK_MEMIF_SOCKET};
	size_t length = strcspn(text, ",");
	struct seen seen = {0};
	struct item item;
	uint32_t mtu;
	int err = parse_device_name(text, length, ret_error, &args);

	for (text += length; err == 0 && *text == ','; text += length) {
		text++;
		length = strcspn(text, ",");
		item.key = text;
		item.key_length = strcspn(text, ",=");
		if (text[item.key_length] != '=')
			return parse_fail(
				ret_error, -EINVAL, text, length,
				"is not an argument of %s; arguments are KEY=VALUE", args.name
			);
		item.value = text + item.key_length + 1;
		item.value_length = length - item.key_length - 1;
		err = parse_devargs_item(&item, ret_error, &seen, &args);
	}
	if (err == 0 && args.kind == DPDK_MEMIF) {
		args.buffer_bytes = seen.bsize ? (uint32_t)seen.bsize_value : MEMIF_BUFFER_BYTES;
		args.frame_bytes = args.buffer_bytes;
		args.ring_frames = UINT32_C(1) << (seen.rsize ? seen.rsize_value : MEMIF_RING_LOG2);
		if (!seen.bsize && !args_append(&args, ",bsize=%u", MEMIF_BUFFER_BYTES))
			err = -EINVAL;
	}
	if (err == 0 && args.kind == DPDK_AF_PACKET)
		err = af_packet_add_defaults(&args, &seen, iface_mtu, ret_error);
	if (err != 0)
		return err;

	// Packets have at most 4 KiB of payload, so a larger MTU is useless.
	mtu = seen.mtu ? (uint32_t)seen.mtu_value : PCI_MTU;
	if (mtu > FRAME_BYTES_MAX)
		mtu = FRAME_BYTES_MAX;
	if (args.kind == DPDK_PCI)
		args.mtu = mtu;
	else if (seen.mtu && LINK_HEADER_BYTES + mtu < args.frame_bytes)
		args.frame_bytes = LINK_HEADER_BYTES + mtu;
	*ret_args = args;
	return 0;
}
