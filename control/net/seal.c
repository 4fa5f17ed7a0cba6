// SPDX-License-Identifier: BSD-3-Clause
// Two ends prove to each other that they hold the cluster's key. They seal frames with keys of this
// session only.
//
// The conversation. C connects, A accepts; all fields are bytes, all sizes fixed.
//
//	C -> A  hello    key id 8, versions 1 + 1, ephemeral 32, mac 32
//	A -> C  answer   version 1, versions 1 + 1, ephemeral 32, mac 32, header 24, proof 32
//	C -> A  finish   header 24, proof 32
//
// H(key, purpose; bytes) is keyed BLAKE2b-256, with the purpose as its personalisation. Purposes
// that depend on the sender's role are in the tables below. K is the cluster's key. T is the
// transcript. It starts as H(-, "tocsin seal 1"; cluster name). Each part is added by T = H(T,
// "tocsin said"; part). The parts are, in this order: the hello up to its mac, the answer up to its
// mac, A's header, C's header.
//
//	key id         the first 8 bytes of H(K, "tocsin key id"; -)
//	proof key P  = H(K, "tocsin proof"; the first T)
//	mac          = H(P, by role; T with what precedes the mac)
//	session S    = H(P, "tocsin session"; X25519 of the ephemerals, T with the answer)
//	proof        = H(S, by role; T with the sender's header)
//	stream key   = H(S, by role; -), for one secretstream a direction
//
// Threats. An attacker sees, alters, repeats, drops and reflects what is on the wire. The attacker
// connects to us, or we connect to the attacker. The key may become known later:
//
//   - The connecting end proves first. Without a valid mac the accepting end sends no byte, whether
//     it knows the key id or not. Both cases take the same work: an unknown id is tested against a
//     key that nobody has. A stranger costs four hashes on a fixed buffer; X25519, on either end,
//     comes after the mac.
//   - A replayed hello gets an answer, and nothing more: the answer's ephemeral is fresh, and
//     without the hello's secret nobody can make the finish. A replayed answer fails at the mac.
//   - A mac or a proof names the role of its sender, so none can be reflected. An end that is led
//     to its own listener does talk to itself. The first frame (INIT) tells who is at the other
//     end, not this handshake: all holders of the key are equal here.
//   - Versions and cluster are part of the transcript, so nobody can force two ends into an older
//     version. Another cluster with the same key looks like a wrong key.
//   - Ephemerals are wiped with the handshake. An attacker who learns K later cannot read recorded
//     traffic. A stream also changes its key, one way, every SEAL_REKEY_BYTES. An attacker who
//     learns a session's state cannot read what was sent before that.
//
// Not kept out: a holder of the key. Not hidden: the protocol (Tocsin), which of the keys is used
// (one key has the same id in all clusters: give each its own), and the sizes and times of frames.
// The end of a stream is not authenticated: an attacker who can cut the wire can end it. LEAVE,
// which matters, is a sealed frame.
#include "net/seal.h"

#include <lib/must.h>
#include <lib/seal_secret.h>

#include <assert.h>
#include <errno.h>
#include <string.h>

// Rekeying happens every four hours at 1 KB/s; at full speed it takes less than 1/1,000 of the
// time.
#define SEAL_REKEY_BYTES ((size_t)16 << 20)

#define HASH_BYTES SEAL_SECRET_BYTES
#define EPHEMERAL_BYTES crypto_scalarmult_BYTES
#define HEADER_BYTES crypto_secretstream_xchacha20poly1305_HEADERBYTES

struct hello {
	uint8_t key_id[SEAL_KEY_ID_BYTES];
	uint8_t version_min, version_max;
	uint8_t ephemeral[EPHEMERAL_BYTES];
	uint8_t mac[HASH_BYTES];
};

struct answer {
	uint8_t version; // 0: none in common, and the bytes after the mac are zero
	uint8_t version_min, version_max;
	uint8_t ephemeral[EPHEMERAL_BYTES];
	uint8_t mac[HASH_BYTES];
	uint8_t header[HEADER_BYTES];
	uint8_t proof[HASH_BYTES];
};

struct finish {
	uint8_t header[HEADER_BYTES];
	uint8_t proof[HASH_BYTES];
};

// The structs are the wire format, so they have only bytes.
static_assert(sizeof(struct hello) == 74, "no padding");
static_assert(sizeof(struct answer) == SEAL_HANDSHAKE_BYTES_MAX, "no padding");
static_assert(sizeof(struct finish) == 56, "no padding");
static_assert(EPHEMERAL_BYTES == sizeof(((struct seal *)0)->ephemeral_secret), "X25519");
static_assert(HASH_BYTES == crypto_secretstream_xchacha20poly1305_KEYBYTES, "a hash is a key");
static_assert(sizeof(((struct seal *)0)->key_id) == SEAL_KEY_ID_BYTES, "an id");

// Purposes by the role of the sender.
static const char *const mac_purpose[] = {
	[SEAL_CONNECTS] = "tocsin mac conn",
	[SEAL_ACCEPTS] = "tocsin mac acc",
};
static const char *const proof_purpose[] = {
	[SEAL_CONNECTS] = "tocsin proof con",
	[SEAL_ACCEPTS] = "tocsin proof acc",
};
static const char *const stream_purpose[] = {
	[SEAL_CONNECTS] = "tocsin from conn",
	[SEAL_ACCEPTS] = "tocsin from acc",
};

static void transcript_add(struct seal *seal, const void *bytes, size_t size) {
	seal_hash(seal->transcript, "tocsin said", bytes, size, seal->transcript);
}

static void
mark_derive(const struct seal *seal, const uint8_t *key, const char *purpose, uint8_t *ret_mark) {
	seal_hash(key, purpose, seal->transcript, sizeof(seal->transcript), ret_mark);
}

static bool mark_is_valid(
	const struct seal *seal, const uint8_t *key, const char *purpose, const uint8_t *given
) {
	uint8_t expected[HASH_BYTES];
	bool equal;

	mark_derive(seal, key, purpose, expected);
	equal = sodium_memcmp(expected, given, sizeof(expected)) == 0;
	sodium_memzero(expected, sizeof(expected));
	return equal;
}

static void derive_proof_key(struct seal *seal, const uint8_t *secret) {
	mark_derive(seal, secret, "tocsin proof", seal->proof_key);
}

static void make_ephemeral(struct seal *seal, uint8_t ret_public[static EPHEMERAL_BYTES]) {
	randombytes_buf(seal->ephemeral_secret, sizeof(seal->ephemeral_secret));
	must(crypto_scalarmult_base(ret_public, seal->ephemeral_secret) == 0);
}

// Returns false for a point of low order, which only a holder of the key can have sent.
static bool derive_session(struct seal *seal, const uint8_t ephemeral[static EPHEMERAL_BYTES]) {
	uint8_t material[EPHEMERAL_BYTES + HASH_BYTES];
	bool good = crypto_scalarmult(material, seal->ephemeral_secret, ephemeral) == 0;

	memcpy(material + EPHEMERAL_BYTES, seal->transcript, HASH_BYTES);
	seal_hash(
		seal->proof_key, "tocsin session", material, sizeof(material), seal->session_secret
	);
	sodium_memzero(material, sizeof(material));
	sodium_memzero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret));
	return good;
}

// Start the stream that we send, and make its proof.
static void sending_stream_start(
	struct seal *seal,
	uint8_t ret_header[static HEADER_BYTES],
	uint8_t ret_proof[static HASH_BYTES]
) {
	uint8_t key[HASH_BYTES];

	seal_hash(seal->session_secret, stream_purpose[seal->role], NULL, 0, key);
	must(crypto_secretstream_xchacha20poly1305_init_push(&seal->sending, ret_header, key) == 0);
	sodium_memzero(key, sizeof(key));
	transcript_add(seal, ret_header, HEADER_BYTES);
	mark_derive(seal, seal->session_secret, proof_purpose[seal->role], ret_proof);
}

// Start the stream that the other end sends, if its proof is valid.
static bool receiving_stream_start(
	struct seal *seal,
	const uint8_t header[static HEADER_BYTES],
	const uint8_t proof[static HASH_BYTES]
) {
	enum seal_role peer = seal->role == SEAL_CONNECTS ? SEAL_ACCEPTS : SEAL_CONNECTS;
	uint8_t key[HASH_BYTES];
	int result;

	transcript_add(seal, header, HEADER_BYTES);
	if (!mark_is_valid(seal, seal->session_secret, proof_purpose[peer], proof))
		return false;
	seal_hash(seal->session_secret, stream_purpose[peer], NULL, 0, key);
	result = crypto_secretstream_xchacha20poly1305_init_pull(&seal->receiving, header, key);
	must(result == 0);
	sodium_memzero(key, sizeof(key));
	return true;
}

// Wipe the state of the handshake. Nothing of it is needed once both streams exist.
static void forget_handshake(struct seal *seal) {
	seal->keys = seal_keys_put(seal->keys);
	sodium_memzero(seal->transcript, sizeof(seal->transcript));
	sodium_memzero(seal->proof_key, sizeof(seal->proof_key));
	sodium_memzero(seal->ephemeral_secret, sizeof(seal->ephemeral_secret));
	sodium_memzero(seal->session_secret, sizeof(seal->session_secret));
}

// Wipe everything except what a log message needs.
static int seal_fail(struct seal *seal, int err) {
	forget_handshake(seal);
	sodium_memzero(&seal->sending, sizeof(seal->sending));
	sodium_memzero(&seal->receiving, sizeof(seal->receiving));
	seal->state = SEAL_FAILED;
	return err;
}

void seal_init(
	struct seal *seal, const struct seal_keys *keys, enum seal_role role, const char *cluster
) {
	*seal = (struct seal){
		.role = role,
		.state = SEAL_STARTED,
		.keys = seal_keys_get(keys),
		.version_min = SEAL_VERSION_MIN,
		.version_max = SEAL_VERSION_MAX,
	};
	seal_hash(NULL, "tocsin seal 1", cluster, strlen(cluster), seal->transcript);
}

void seal_limit_versions(struct seal *seal, uint8_t version_min, uint8_t version_max) {
	must(seal->state == SEAL_STARTED);
	must(version_min >= 1 && version_min <= version_max);
	seal->version_min = version_min;
	seal->version_max = version_max;
}

void seal_begin(struct seal *seal, struct seal_reply *ret_reply) {
	const struct seal_key *key = &seal->keys->keys[0];
	struct hello hello = {
		.version_min = seal->version_min,
		.version_max = seal->version_max,
	};

	must(seal->role == SEAL_CONNECTS && seal->state == SEAL_STARTED);
	memcpy(seal->key_id, key->id, sizeof(seal->key_id));
	memcpy(hello.key_id, key->id, sizeof(hello.key_id));
	derive_proof_key(seal, key->secret);
	make_ephemeral(seal, hello.ephemeral);
	transcript_add(seal, &hello, offsetof(struct hello, mac));
	mark_derive(seal, seal->proof_key, mac_purpose[SEAL_CONNECTS], hello.mac);
	seal->state = SEAL_SPOKEN;
	memcpy(ret_reply->bytes, &hello, sizeof(hello));
	ret_reply->size = sizeof(hello);
}

size_t seal_wanted_bytes(const struct seal *seal) {
	if (seal->role == SEAL_ACCEPTS && seal->state == SEAL_STARTED)
		return sizeof(struct hello);
	if (seal->state == SEAL_SPOKEN)
		return seal->role == SEAL_ACCEPTS ? sizeof(struct finish) : sizeof(struct answer);
	return 0;
}

// Return the highest version that both ends speak; 0 if there is none.
static uint8_t common_version(const struct seal *seal) {
	uint8_t max = seal->version_max < seal->peer_version_max ? seal->version_max
								 : seal->peer_version_max;

	return max >= seal->version_min && max >= seal->peer_version_min ? max : 0;
}

static int take_hello(struct seal *seal, const struct hello *hello, struct seal_reply *ret_reply) {
	static const uint8_t nobodys[SEAL_SECRET_BYTES];
	const struct seal_key *key = seal_keys_find(seal->keys, hello->key_id);
	struct answer answer = {
		.version_min = seal->version_min,
		.version_max = seal->version_max,
	};
	bool valid;

	// An unknown key takes the same work as a known one.
	memcpy(seal->key_id, hello->key_id, sizeof(seal->key_id));
	derive_proof_key(seal, key != NULL ? key->secret : nobodys);
	transcript_add(seal, hello, offsetof(struct hello, mac));
	valid = mark_is_valid(seal, seal->proof_key, mac_purpose[SEAL_CONNECTS], hello->mac);
	if (key == NULL)
		return -ENOKEY;
	if (!valid)
		return -EACCES;
	if (hello->version_min == 0 || hello->version_min > hello->version_max)
		return -EBADMSG;
	seal->peer_version_min = hello->version_min;
	seal->peer_version_max = hello->version_max;
	seal->version = common_version(seal);
	answer.version = seal->version;
	if (seal->version != 0)
		make_ephemeral(seal, answer.ephemeral);
	transcript_add(seal, &answer, offsetof(struct answer, mac));
	mark_derive(seal, seal->proof_key, mac_purpose[SEAL_ACCEPTS], answer.mac);
	if (seal->version != 0) {
		if (!derive_session(seal, hello->ephemeral))
			return -EBADMSG;
		sending_stream_start(seal, answer.header, answer.proof);
		seal->state = SEAL_SPOKEN;
	}
	memcpy(ret_reply->bytes, &answer, sizeof(answer));
	ret_reply->size = sizeof(answer);
	return seal->version != 0 ? 0 : -EPROTO;
}

static int
take_answer(struct seal *seal, const struct answer *answer, struct seal_reply *ret_reply) {
	struct finish finish;

	transcript_add(seal, answer, offsetof(struct answer, mac));
	if (!mark_is_valid(seal, seal->proof_key, mac_purpose[SEAL_ACCEPTS], answer->mac))
		return -EACCES;
	seal->peer_version_min = answer->version_min;
	seal->peer_version_max = answer->version_max;
	if (answer->version == 0)
		return -EPROTO;
	if (answer->version != common_version(seal))
		return -EBADMSG;
	seal->version = answer->version;
	if (!derive_session(seal, answer->ephemeral))
		return -EBADMSG;
	if (!receiving_stream_start(seal, answer->header, answer->proof))
		return -EACCES;
	sending_stream_start(seal, finish.header, finish.proof);
	forget_handshake(seal);
	seal->state = SEAL_PROVEN;
	memcpy(ret_reply->bytes, &finish, sizeof(finish));
	ret_reply->size = sizeof(finish);
	return 0;
}

int seal_receive(struct seal *seal, const void *bytes, size_t size, struct seal_reply *ret_reply) {
	const struct finish *finish = bytes;
	int err = 0;

	must(size > 0 && size == seal_wanted_bytes(seal));
	ret_reply->size = 0;
	if (seal->role == SEAL_CONNECTS) {
		err = take_answer(seal, bytes, ret_reply);
	} else if (seal->state == SEAL_STARTED) {
		err = take_hello(seal, bytes, ret_reply);
	} else if (receiving_stream_start(seal, finish->header, finish->proof)) {
		forget_handshake(seal);
		seal->state = SEAL_PROVEN;
	} else {
		err = -EACCES;
	}
	return err == 0 ? 0 : seal_fail(seal, err);
}

bool seal_proven(const struct seal *seal) {
	return seal->state == SEAL_PROVEN;
}

void seal_key_id(const struct seal *seal, char text[static SEAL_KEY_ID_TEXT_BYTES]) {
	sodium_bin2hex(text, SEAL_KEY_ID_TEXT_BYTES, seal->key_id, sizeof(seal->key_id));
}

uint8_t seal_version(const struct seal *seal) {
	return seal->version;
}

void seal_peer_versions(const struct seal *seal, uint8_t *ret_min, uint8_t *ret_max) {
	*ret_min = seal->peer_version_min;
	*ret_max = seal->peer_version_max;
}

int seal_encrypt(struct seal *seal, const void *frame, size_t size, uint8_t *ret_bytes) {
	uint8_t tag = crypto_secretstream_xchacha20poly1305_TAG_MESSAGE;

	if (seal->state != SEAL_PROVEN)
		return -ENOTCONN;
	if (size > SEAL_FRAME_MAX)
		return -EMSGSIZE;
	seal->sent_since_rekey_bytes += size + SEAL_OVERHEAD;
	if (seal->sent_since_rekey_bytes >= SEAL_REKEY_BYTES) {
		seal->sent_since_rekey_bytes = 0;
		tag = crypto_secretstream_xchacha20poly1305_TAG_REKEY;
	}
	must(crypto_secretstream_xchacha20poly1305_push(
		     &seal->sending, ret_bytes, NULL, frame, size, NULL, 0, tag
	     ) == 0);
	return 0;
}

// The sender decides when its stream changes the key. libsodium follows the tag by itself.
int seal_decrypt(struct seal *seal, const void *bytes, size_t size, uint8_t *ret_frame) {
	uint8_t tag;
	int result;

	if (seal->state != SEAL_PROVEN)
		return -ENOTCONN;
	if (size < SEAL_OVERHEAD || size > SEAL_FRAME_MAX + SEAL_OVERHEAD)
		return seal_fail(seal, -EBADMSG);
	result = crypto_secretstream_xchacha20poly1305_pull(
		&seal->receiving, ret_frame, NULL, &tag, bytes, size, NULL, 0
	);
	return result == 0 ? 0 : seal_fail(seal, -EBADMSG);
}

void seal_wipe(struct seal *seal) {
	seal_keys_put(seal->keys);
	sodium_memzero(seal, sizeof(*seal));
}
