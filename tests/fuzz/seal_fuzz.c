// SPDX-License-Identifier: BSD-3-Clause
// Fuzzes the handshake and frames of a sealed stream by changing bits. No changed message may be
// accepted, and nothing is sent to a peer that did not prove the key.
#include "net/seal.h"

#include <lib/must.h>
#include <lib/seal_secret.h>
#include <support/fuzz.h>

#include <errno.h>
#include <string.h>

#define CLUSTER "alps"
#define FIELDS_BYTES 34 // of a hello, between key id and MAC

// Deterministic random numbers: a run depends only on its input.
static uint64_t draws;

static uint32_t draw(void) {
	return (uint32_t)(++draws * UINT64_C(0x9e3779b97f4a7c15) >> 32);
}

static void draw_bytes(void *bytes, size_t size) {
	for (size_t n = 0; n < size; n++)
		((uint8_t *)bytes)[n] = (uint8_t)draw();
}

static const char *draw_name(void) {
	return "fixed";
}

static struct randombytes_implementation fixed = {
	.implementation_name = draw_name,
	.random = draw,
	.buf = draw_bytes,
};

struct input {
	const uint8_t *data;
	size_t size;
};

// Read up to `size` bytes of the input; missing bytes are zero.
static void input_take(struct input *input, uint8_t *bytes, size_t size) {
	size_t taken = size < input->size ? size : input->size;

	memset(bytes, 0, size);
	memcpy(bytes, input->data, taken);
	input->data += taken;
	input->size -= taken;
}

// Flip the bits that the input selects. Returns true if any bit changed.
static bool touch(struct input *input, uint8_t *bytes, size_t size) {
	uint8_t mask[SEAL_HANDSHAKE_BYTES_MAX];
	bool touched = false;

	must(size <= sizeof(mask));
	input_take(input, mask, size);
	for (size_t n = 0; n < size; n++) {
		bytes[n] ^= mask[n];
		touched |= mask[n] != 0;
	}
	return touched;
}

// Deliver a message, possibly changed. Returns true if the conversation continues.
static bool
carry(struct input *input, struct seal_reply *said, struct seal *to, struct seal_reply *ret_reply) {
	bool touched = touch(input, said->bytes, said->size);
	int err;

	must(seal_wanted_bytes(to) == said->size);
	err = seal_receive(to, said->bytes, said->size, ret_reply);
	must(touched ? err == -EACCES || err == -ENOKEY : err == 0);
	must(err == 0 || (ret_reply->size == 0 && seal_wanted_bytes(to) == 0 && !seal_proven(to)));
	return err == 0;
}

static void carry_frame(struct input *input, struct seal *from, struct seal *to) {
	uint8_t frame[16] = "sixteen bytes..";
	uint8_t sealed[sizeof(frame) + SEAL_OVERHEAD];
	uint8_t opened[sizeof(frame)];
	bool touched;

	must(seal_encrypt(from, frame, sizeof(frame), sealed) == 0);
	touched = touch(input, sealed, sizeof(sealed));
	must(seal_decrypt(to, sealed, sizeof(sealed), opened) == (touched ? -EBADMSG : 0));
	must(touched || memcmp(frame, opened, sizeof(frame)) == 0);
	must(seal_proven(to) == !touched);
}

static void between_two_ends(struct input *input, const struct seal_keys *keys) {
	struct seal_reply hello, answer, finish, nothing;
	struct seal connects, accepts;

	seal_init(&connects, keys, SEAL_CONNECTS, CLUSTER);
	seal_init(&accepts, keys, SEAL_ACCEPTS, CLUSTER);
	seal_begin(&connects, &hello);
	if (carry(input, &hello, &accepts, &answer) && carry(input, &answer, &connects, &finish) &&
	    carry(input, &finish, &accepts, &nothing)) {
		must(seal_proven(&connects) && seal_proven(&accepts));
		while (input->size > 0 && seal_proven(&accepts))
			carry_frame(input, &connects, &accepts);
	}
	seal_wipe(&connects);
	seal_wipe(&accepts);
}

// A peer with the key sends an arbitrary, valid handshake, then a frame that it did not seal.
static void by_a_holder_of_the_key(struct input *input, const struct seal_keys *keys) {
	const struct seal_key *key = &keys->keys[0];
	uint8_t said[SEAL_HANDSHAKE_BYTES_MAX];
	uint8_t hash[SEAL_SECRET_BYTES], proof_key[SEAL_SECRET_BYTES];
	struct seal_reply reply;
	struct seal seal;
	int err;

	seal_init(&seal, keys, SEAL_ACCEPTS, CLUSTER);
	memcpy(said, key->id, sizeof(key->id));
	input_take(input, said + sizeof(key->id), FIELDS_BYTES);
	seal_hash(NULL, "tocsin seal 1", CLUSTER, strlen(CLUSTER), hash);
	seal_hash(key->secret, "tocsin proof", hash, sizeof(hash), proof_key);
	seal_hash(hash, "tocsin said", said, sizeof(key->id) + FIELDS_BYTES, hash);
	seal_hash(
		proof_key, "tocsin mac conn", hash, sizeof(hash),
		said + sizeof(key->id) + FIELDS_BYTES
	);
	err = seal_receive(&seal, said, seal_wanted_bytes(&seal), &reply);
	must(err == 0 || err == -EPROTO || err == -EBADMSG);
	must((err == -EBADMSG) == (reply.size == 0));
	must(err == 0 || seal_wanted_bytes(&seal) == 0);
	if (err == 0) {
		input_take(input, said, seal_wanted_bytes(&seal));
		must(seal_receive(&seal, said, seal_wanted_bytes(&seal), &reply) == -EACCES);
		must(reply.size == 0);
	}
	must(!seal_proven(&seal));
	seal_wipe(&seal);
}

// Deliver frames of any length that nobody sealed.
static void by_a_stranger_on_the_wire(struct input *input, const struct seal_keys *keys) {
	static uint8_t opened[SEAL_FRAME_MAX];
	struct seal_reply said, reply;
	struct seal connects, accepts;

	seal_init(&connects, keys, SEAL_CONNECTS, CLUSTER);
	seal_init(&accepts, keys, SEAL_ACCEPTS, CLUSTER);
	seal_begin(&connects, &said);
	must(seal_receive(&accepts, said.bytes, said.size, &reply) == 0);
	must(seal_receive(&connects, reply.bytes, reply.size, &said) == 0);
	must(seal_decrypt(&connects, input->data, input->size, opened) == -EBADMSG);
	must(seal_decrypt(&connects, input->data, input->size, opened) == -ENOTCONN);
	must(seal_decrypt(&accepts, input->data, input->size, opened) == -ENOTCONN);
	seal_wipe(&connects);
	seal_wipe(&accepts);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
	static const struct seal_keys *keys;
	struct input input;

	if (keys == NULL) {
		must(randombytes_set_implementation(&fixed) == 0);
		must(seal_keys_create_random(&keys) == 0);
	}
	if (size == 0)
		return 0;
	draws = 0;
	input = (struct input){data + 1, size - 1};
	if (data[0] == 'f')
		by_a_stranger_on_the_wire(&input, keys);
	else if (data[0] == 'h')
		by_a_holder_of_the_key(&input, keys);
	else
		between_two_ends(&input, keys);
	must(keys->references == 1);
	return 0;
}
