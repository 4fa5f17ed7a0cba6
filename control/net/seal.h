// SPDX-License-Identifier: BSD-3-Clause
// Sealing: two ends of one stream prove to each other that they hold the cluster's key, and from
// then on every frame is encrypted, authenticated and in order.
//
// A pure state machine on buffers: no socket, no clock, no allocation; the only randomness is
// libsodium's. The connecting end speaks first:
//
//	seal_init(&seal, keys, SEAL_CONNECTS, cluster);
//	seal_begin(&seal, &reply);                       // send reply
//	while ((size = seal_wants(&seal)) > 0) {         // receive exactly so much
//		err = seal_take(&seal, bytes, size, &reply); // send reply, on error too
//		if (err != 0)
//			break;                           // close
//	}
//
// The accepting end does the same without seal_begin(). When nothing is wanted any more and no
// error came, seal_proven(). A reply is sent before the first frame. What the messages are and
// what they keep out is said at the top of seal.c.
//
// struct seal is a plain value inside its session; it must not be moved by copying and ends with
// seal_wipe(). One thread at a time.
#pragma once

#include <control/seal_keys.h>
#include <ras/types.h>

#include <sodium.h>

// The versions of sealing that this program speaks. The highest that both ends know is used.
#define SEAL_VERSION_MIN 1
#define SEAL_VERSION_MAX 1

// A sealed frame is so much longer than the frame.
#define SEAL_OVERHEAD crypto_secretstream_xchacha20poly1305_ABYTES
#define SEAL_FRAME_MAX RAS_FRAME_MAX
// No handshake message is longer.
#define SEAL_HANDSHAKE_BYTES_MAX 123

enum seal_role {
	SEAL_CONNECTS,
	SEAL_ACCEPTS,
};

// What is to be sent to the other end; size 0: nothing.
struct seal_reply {
	size_t size;
	uint8_t bytes[SEAL_HANDSHAKE_BYTES_MAX];
};

enum seal_state {
	SEAL_STARTED, // connects: seal_begin() comes; accepts: wants the first message
	SEAL_SPOKEN,  // our first message is out, wants the other's next
	SEAL_PROVEN,
	SEAL_FAILED,
};

// Private, as all fields.
struct seal {
	enum seal_role role;
	enum seal_state state;
	const struct seal_keys *keys; // a reference, until proven or failed
	uint8_t version_min, version_max, version;
	uint8_t peer_version_min, peer_version_max;
	uint8_t key_id[8];
	uint8_t transcript[32]; // hash over all that was said
	uint8_t proof_key[32];	// of the cluster's key and name
	uint8_t ephemeral_secret[32];
	uint8_t session_secret[32];
	crypto_secretstream_xchacha20poly1305_state sending, receiving;
	size_t sent_since_rekey_bytes;
};

// Takes a reference to the keys. cluster is not kept.
void seal_init(
	struct seal *seal, const struct seal_keys *keys, enum seal_role role, const char *cluster
);
// Narrows what this end speaks, before the first message: 1 <= min <= max.
void seal_limit_versions(struct seal *seal, uint8_t version_min, uint8_t version_max);

// The connecting end's first message.
void seal_begin(struct seal *seal, struct seal_reply *ret_reply);

// Bytes of the next handshake message from the other end, at most SEAL_HANDSHAKE_BYTES_MAX; 0:
// none is expected (any more).
size_t seal_wants(const struct seal *seal);

// Takes one message of seal_wants() bytes; *ret_reply is what goes back, on failure as well. After
// a failure the session is over and its secrets are wiped:
//
//	-ENOKEY   the key it names is not among ours; nothing goes back
//	-EACCES   the other end has not the key it names, or is of another cluster, or somebody
//	          altered or replayed what it said; nothing goes back
//	-EPROTO   it has the key, but no version in common: see seal_peer_versions(). The accepting
//	          end's reply tells the other
//	-EBADMSG  it has the key, and said what makes no sense
int seal_take(struct seal *seal, const void *bytes, size_t size, struct seal_reply *ret_reply);

bool seal_proven(const struct seal *seal);

// The key in use, or the one that the other end named, in vain or not; 0000000000000000 before.
void seal_key_id(const struct seal *seal, char text[static SEAL_KEY_ID_TEXT_BYTES]);
// In use; 0 before it is agreed on.
uint8_t seal_version(const struct seal *seal);
// What the other end said it speaks; 0 and 0 before it has proven so. A connecting end hears it
// only from an accepting one.
void seal_peer_versions(const struct seal *seal, uint8_t *ret_min, uint8_t *ret_max);

// Seals a frame of at most SEAL_FRAME_MAX bytes into out, which has room for size + SEAL_OVERHEAD
// and does not overlap. What is sealed must be sent, in this order. 0; -EMSGSIZE, nothing was
// sealed; -ENOTCONN: not proven, or over.
int seal_encrypt(struct seal *seal, const void *frame, size_t size, uint8_t *ret_bytes);

// Opens the next sealed frame into ret_frame, which has room for size - SEAL_OVERHEAD and does not
// overlap. 0; -EBADMSG: altered, repeated, out of order, cut or too long, and the session is over:
// nothing was written, no other call succeeds; -ENOTCONN as above.
int seal_decrypt(struct seal *seal, const void *bytes, size_t size, uint8_t *ret_frame);

// Forgets everything; seal_init() may follow. Once or more often, on zeroed memory too.
void seal_wipe(struct seal *seal);
