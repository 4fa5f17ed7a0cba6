// SPDX-License-Identifier: BSD-3-Clause
// Encodes, decodes, interns and orders records: the facts that a member publishes about itself.
#include "base/memory.h"
#include "core/message.h"

#include <ras/record.h>

#include <xxhash.h>

#include <errno.h>
#include <string.h>

#define RECORD_FORMAT 1
#define BUCKETS_MIN 64

struct ras_interner {
	struct memory memory;
	struct ras_record **buckets;
	size_t bucket_count; // a power of two
	size_t count;
	struct ras_signer signer; // `sign` NULL: none
	uint64_t cluster;
};

// Keeps a signature of a record from being valid for anything else that is signed.
static const char signed_domain[16] = "tocsin record 1";
#define SIGNED_BYTES_MAX (sizeof(signed_domain) + sizeof(uint64_t) + RAS_RECORD_BYTES_MAX)

uint64_t ras_id(const char *name, size_t length) {
	uint64_t id = XXH3_64bits(name, length);

	return id != 0 ? id : 1; // id 0 means "no peer"
}

uint64_t ras_key_fingerprint(const uint8_t key[static RAS_KEY_BYTES]) {
	uint64_t fingerprint = 0;

	for (size_t n = 0; n < sizeof(fingerprint); n++)
		fingerprint = fingerprint << 8 | key[n];
	return fingerprint;
}

static int text_compare(const char *a, size_t a_length, const char *b, size_t b_length) {
	size_t shorter = a_length < b_length ? a_length : b_length;
	int order = memcmp(a, b, shorter);

	if (order != 0)
		return order;
	return (a_length > b_length) - (a_length < b_length);
}

int ras_record_compare(const struct ras_record *a, const struct ras_record *b) {
	int order;

	if (a->order != b->order)
		return a->order < b->order ? -1 : 1;
	order = text_compare(a->host, a->host_length, b->host, b->host_length);
	if (order != 0)
		return order;
	return text_compare(a->name, a->name_length, b->name, b->name_length);
}

int ras_interner_create(const struct ras_memory *memory, struct ras_interner **ret_interner) {
	struct memory first = {.source = *memory};
	struct ras_interner *interner = memory_allocate(&first, sizeof(*interner));

	if (interner == NULL)
		return -ENOMEM;
	interner->memory = first;
	interner->bucket_count = BUCKETS_MIN;
	interner->buckets =
		memory_allocate(&interner->memory, BUCKETS_MIN * sizeof(struct ras_record *));
	if (interner->buckets == NULL) {
		ras_interner_destroy(interner);
		return -ENOMEM;
	}
	*ret_interner = interner;
	return 0;
}

struct ras_interner *ras_interner_destroy(struct ras_interner *interner) {
	struct memory last;

	if (interner == NULL)
		return NULL;
	must(interner->count == 0);
	memory_release(
		&interner->memory, interner->buckets,
		interner->bucket_count * sizeof(struct ras_record *)
	);
	last = interner->memory;
	memory_release(&last, interner, sizeof(*interner));
	return NULL;
}

size_t ras_interner_count(const struct ras_interner *interner) {
	return interner->count;
}

void ras_interner_set_signer(struct ras_interner *interner, const struct ras_signer *signer) {
	interner->signer = *signer;
	interner->cluster = XXH3_64bits(signer->cluster, strlen(signer->cluster));
	interner->signer.cluster = NULL;
}

// Write the bytes that the agent of a record signs: all before the signature. Returns their number.
static size_t record_signed_bytes(
	const struct ras_interner *interner,
	const void *encoding,
	size_t size,
	uint8_t ret_bytes[static SIGNED_BYTES_MAX]
) {
	struct wire_writer writer;

	wire_writer_init(&writer, ret_bytes, SIGNED_BYTES_MAX);
	wire_put_bytes(&writer, signed_domain, sizeof(signed_domain));
	wire_put_u64(&writer, interner->cluster);
	wire_put_bytes(&writer, encoding, size);
	return wire_writer_used(&writer);
}

// Return true if the agent signed the record, or has no key at all. Such an agent has no common
// version with us, and its record is only read to name it.
static bool record_is_signed(
	const struct ras_interner *interner,
	const uint8_t *encoding,
	size_t size,
	const uint8_t key[static RAS_KEY_BYTES]
) {
	static const uint8_t none[RAS_KEY_BYTES];
	size_t before = size - RAS_SIGNATURE_BYTES;
	uint8_t bytes[SIGNED_BYTES_MAX];

	if (interner->signer.verify == NULL || memcmp(key, none, sizeof(none)) == 0)
		return true;
	return interner->signer.verify(
		interner->signer.ctx, key, bytes,
		record_signed_bytes(interner, encoding, before, bytes), encoding + before
	);
}

static struct ras_record **interner_bucket(struct ras_interner *interner, uint64_t digest) {
	return &interner->buckets[digest & (interner->bucket_count - 1)];
}

// Double the table. Without memory the table keeps its size and gets slower.
static void interner_grow(struct ras_interner *interner) {
	size_t old_count = interner->bucket_count;
	struct ras_record **old = interner->buckets;
	struct ras_record **fresh;

	fresh = memory_allocate(&interner->memory, 2 * old_count * sizeof(struct ras_record *));
	if (fresh == NULL)
		return;
	interner->buckets = fresh;
	interner->bucket_count = 2 * old_count;
	for (size_t n = 0; n < old_count; n++) {
		struct ras_record *record = old[n];

		while (record != NULL) {
			struct ras_record *next = record->next;
			struct ras_record **bucket = interner_bucket(interner, record->digest);

			record->next = *bucket;
			*bucket = record;
			record = next;
		}
	}
	memory_release(&interner->memory, old, old_count * sizeof(struct ras_record *));
}

static void name_decode(struct wire_reader *reader, char *ret_text, size_t text_size) {
	if (wire_get_string(reader, ret_text, text_size) == 0)
		wire_reader_fail(reader, -EBADMSG);
}

static int info_decode(const void *encoding, size_t size, struct ras_peer_info *ret_info) {
	struct wire_reader reader;

	memset(ret_info, 0, sizeof(*ret_info));
	wire_reader_init(&reader, encoding, size);
	if (wire_get_u8(&reader) != RECORD_FORMAT)
		wire_reader_fail(&reader, -EBADMSG);
	name_decode(&reader, ret_info->name, sizeof(ret_info->name));
	name_decode(&reader, ret_info->host, sizeof(ret_info->host));
	wire_get_bytes(&reader, ret_info->boot_id, sizeof(ret_info->boot_id));
	ret_info->start = wire_get_u64(&reader);
	ret_info->pid = wire_get_u32(&reader);
	wire_get_string(&reader, ret_info->version, sizeof(ret_info->version));
	ret_info->address_count = wire_get_count_u16(&reader, RAS_ADDRESSES_MAX, 7);
	if (ret_info->address_count == 0)
		wire_reader_fail(&reader, -EBADMSG);
	for (uint32_t n = 0; n < ret_info->address_count; n++)
		message_sock_addr_decode(&reader, &ret_info->addresses[n]);
	ret_info->device_count = wire_get_count_u16(&reader, RAS_DEVICES_MAX, 3);
	for (uint32_t n = 0; n < ret_info->device_count; n++) {
		struct ras_device *device = &ret_info->devices[n];
		uint8_t layer;

		wire_get_string(&reader, device->name, sizeof(device->name));
		layer = wire_get_u8(&reader);
		// A link layer of a newer version is unusable for us.
		device->link_layer = layer <= RAS_LINK_LAYER_SOFT ? layer : RAS_LINK_LAYER_NONE;
	}
	// Agents of protocol version 2 have neither key nor signature.
	if (!wire_reader_ok(&reader) || wire_reader_left(&reader) == 0)
		return wire_reader_error(&reader);
	wire_get_bytes(&reader, ret_info->key, sizeof(ret_info->key));
	// The last bytes are the signature. Fields that a newer version adds before it stay in the
	// encoding and are forwarded unread.
	if (wire_reader_left(&reader) < RAS_SIGNATURE_BYTES)
		wire_reader_fail(&reader, -EBADMSG);
	return wire_reader_error(&reader);
}

static void record_fill(struct ras_record *record, const struct ras_peer_info *info) {
	static const uint8_t unknown[sizeof(info->boot_id)];
	uint8_t bytes[sizeof(info->boot_id) + sizeof(uint64_t) + sizeof(uint32_t)];
	struct wire_writer writer;

	// The offsets follow from the layout: u8 format, u16 length, name, u16 length, host.
	record->name = (const char *)record->encoding + 3;
	record->name_length = (uint8_t)strlen(info->name);
	record->host = record->name + record->name_length + 2;
	record->host_length = (uint8_t)strlen(info->host);
	record->id = ras_id(record->name, record->name_length);
	record->host_name_id = ras_id(record->host, record->host_length);
	record->host_id = record->host_name_id;
	if (memcmp(info->boot_id, unknown, sizeof(unknown)) != 0)
		record->host_id = XXH3_64bits_withSeed(
			info->boot_id, sizeof(info->boot_id), record->host_name_id
		);
	record->order = 0; // the first bytes of the host name
	for (size_t n = 0; n < sizeof(record->order); n++)
		record->order = record->order << 8 |
				(n < record->host_length ? (uint8_t)record->host[n] : 0);
	record->start = info->start;
	record->address = info->addresses[0];
	memcpy(record->key, info->key, sizeof(record->key));

	// The run leaves out addresses, since they may change within one run.
	wire_writer_init(&writer, bytes, sizeof(bytes));
	wire_put_bytes(&writer, info->boot_id, sizeof(info->boot_id));
	wire_put_u64(&writer, info->start);
	wire_put_u32(&writer, info->pid);
	record->run = XXH3_64bits(bytes, sizeof(bytes));
}

static struct ras_record *
interner_find(struct ras_interner *interner, uint64_t digest, const void *encoding, size_t size) {
	struct ras_record *record = *interner_bucket(interner, digest);

	while (record != NULL && (record->digest != digest || record->size != size ||
				  memcmp(record->encoding, encoding, size) != 0))
		record = record->next;
	return record;
}

int ras_record_intern(
	struct ras_interner *interner,
	const void *encoding,
	size_t size,
	struct ras_record **ret_record
) {
	uint64_t digest = XXH3_64bits(encoding, size);
	struct ras_record *record = interner_find(interner, digest, encoding, size);
	struct ras_record **bucket;
	struct ras_peer_info info;
	int err;

	if (record != NULL) {
		*ret_record = ras_record_get(record);
		return 0;
	}
	if (size > RAS_RECORD_BYTES_MAX)
		return -EMSGSIZE;
	err = info_decode(encoding, size, &info);
	if (err == 0 && !record_is_signed(interner, encoding, size, info.key))
		err = -EBADMSG;
	if (err != 0)
		return err;
	record = memory_allocate(&interner->memory, sizeof(*record) + size);
	if (record == NULL)
		return -ENOMEM;
	record->digest = digest;
	record->size = (uint32_t)size;
	record->references = 1;
	memcpy(record->encoding, encoding, size);
	record_fill(record, &info);
	if (interner->count >= interner->bucket_count)
		interner_grow(interner);
	bucket = interner_bucket(interner, digest);
	record->next = *bucket;
	*bucket = record;
	interner->count++;
	*ret_record = record;
	return 0;
}

int ras_record_from_info(
	struct ras_interner *interner,
	const struct ras_peer_info *info,
	struct ras_record **ret_record
) {
	size_t name_length = strnlen(info->name, sizeof(info->name));
	size_t host_length = strnlen(info->host, sizeof(info->host));
	uint8_t encoding[RAS_RECORD_BYTES_MAX], bytes[SIGNED_BYTES_MAX];
	uint8_t signature[RAS_SIGNATURE_BYTES] = {0};
	struct wire_writer writer;
	size_t size;
	int err;

	if (name_length == 0 || name_length > RAS_NAME_MAX || host_length == 0 ||
	    host_length > RAS_NAME_MAX || info->address_count == 0 ||
	    info->address_count > RAS_ADDRESSES_MAX || info->device_count > RAS_DEVICES_MAX ||
	    info->start > RAS_START_MAX)
		return -EINVAL;
	wire_writer_init(&writer, encoding, sizeof(encoding));
	wire_put_u8(&writer, RECORD_FORMAT);
	wire_put_string(&writer, info->name, name_length);
	wire_put_string(&writer, info->host, host_length);
	wire_put_bytes(&writer, info->boot_id, sizeof(info->boot_id));
	wire_put_u64(&writer, info->start);
	wire_put_u32(&writer, info->pid);
	wire_put_string(&writer, info->version, strnlen(info->version, RAS_VERSION_MAX));
	wire_put_u16(&writer, (uint16_t)info->address_count);
	for (uint32_t n = 0; n < info->address_count; n++) {
		if (info->addresses[n].family == SOCK_ADDR_NONE)
			return -EINVAL;
		message_sock_addr_encode(&info->addresses[n], &writer);
	}
	wire_put_u16(&writer, (uint16_t)info->device_count);
	for (uint32_t n = 0; n < info->device_count; n++) {
		const struct ras_device *device = &info->devices[n];

		wire_put_string(&writer, device->name, strnlen(device->name, RAS_DEVICE_NAME_MAX));
		wire_put_u8(&writer, (uint8_t)device->link_layer);
	}
	wire_put_bytes(&writer, info->key, sizeof(info->key));
	err = wire_writer_finish(&writer, &size);
	if (err != 0)
		return err;
	if (interner->signer.sign != NULL)
		interner->signer.sign(
			interner->signer.ctx, info->key, bytes,
			record_signed_bytes(interner, encoding, size, bytes), signature
		);
	wire_put_bytes(&writer, signature, sizeof(signature));
	err = wire_writer_finish(&writer, &size);
	if (err != 0)
		return err;
	return ras_record_intern(interner, encoding, size, ret_record);
}

struct ras_record *ras_record_get(struct ras_record *record) {
	record->references++;
	return record;
}

void ras_record_put(struct ras_interner *interner, struct ras_record *record) {
	struct ras_record **place;

	if (record == NULL)
		return;
	must(record->references > 0);
	if (--record->references > 0)
		return;
	place = interner_bucket(interner, record->digest);
	while (*place != record)
		place = &(*place)->next;
	*place = record->next;
	interner->count--;
	memory_release(&interner->memory, record, sizeof(*record) + record->size);
}

void ras_record_info(const struct ras_record *record, struct ras_peer_info *ret_info) {
	must(info_decode(record->encoding, record->size, ret_info) == 0);
}
