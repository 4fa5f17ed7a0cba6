// SPDX-License-Identifier: BSD-3-Clause
// Sealing: two ends of one stream prove to each other that they hold the cluster's key. From then
// on every frame is encrypted, authenticated and in order.
//
// A pure state machine on buffers: no socket, no clock, no allocation; the only randomness is
// libsodium's. The connecting end speaks first:
//
//	seal_init(&seal, keys, SEAL_CONNECTS, cluster);
//	seal_begin(&seal, &reply);                          // send reply
//	while ((size = seal_wanted_bytes(&seal)) > 0) {     // receive exactly so much
//		err = seal_receive(&seal, bytes, size, &reply); // send reply, on error too
//		if (err != 0)
//			break;                              // close
//	}
//
// The accepting end does the same without seal_begin(). When seal_wanted_bytes() returns 0 and
// there was no error, seal_proven() is true. A reply must be sent before the first frame. The top
// of seal.c describes the messages and the threats that they keep out.
//
// struct seal is a plain value inside its session. It must not be copied, and ends with
// seal_wipe(). One thread at a time.
#pragma once

#include <lib/seal_keys.h>
#include <ras/types.h>

#include <sodium.h>

// Versions of sealing that this program speaks. The highest common one is used.
#define SEAL_VERSION_MIN 1
#define SEAL_VERSION_MAX 1

// Bytes that sealing adds to a frame.
#define SEAL_OVERHEAD crypto_secretstream_xchacha20poly1305_ABYTES
#define SEAL_FRAME_MAX RAS_FRAME_MAX
// Size of the longest handshake message.
#define SEAL_HANDSHAKE_BYTES_MAX 123

enum seal_role {
	SEAL_CONNECTS,
	SEAL_ACCEPTS,
};

// Bytes to be sent to the other end; size 0: none.
struct seal_reply {
	size_t size;
	uint8_t bytes[SEAL_HANDSHAKE_BYTES_MAX];
};

enum seal_state {
	SEAL_STARTED, // connecting end: before seal_begin(); accepting end: waits for the hello
	SEAL_SPOKEN,  // our first message is made; waits for the other end's next one
	SEAL_PROVEN,
	SEAL_FAILED,
};

// All fields are private.
struct seal {
	enum seal_role role;
	enum seal_state state;
	const struct seal_keys *keys; // reference, until proven or failed
	uint8_t version_min, version_max, version;
	uint8_t peer_version_min, peer_version_max;
	uint8_t key_id[8];
	uint8_t transcript[32]; // hash over all handshake messages
	uint8_t proof_key[32];	// from the cluster's key and name
	uint8_t ephemeral_secret[32];
	uint8_t session_secret[32];
	crypto_secretstream_xchacha20poly1305_state sending, receiving;
	size_t sent_since_rekey_bytes;
};

// Start a session. Takes a reference to the keys; `cluster` is not kept.
void seal_init(
	struct seal *seal, const struct seal_keys *keys, enum seal_role role, const char *cluster
);
// Limit the versions of this end. Must be called before the first message; 1 <= min <= max.
void seal_limit_versions(struct seal *seal, uint8_t version_min, uint8_t version_max);

// Make the connecting end's first message.
void seal_begin(struct seal *seal, struct seal_reply *ret_reply);

// Return the size of the next handshake message from the other end, at most
// SEAL_HANDSHAKE_BYTES_MAX; 0 if none is expected.
size_t seal_wanted_bytes(const struct seal *seal);

// Process one message of seal_wanted_bytes() bytes. *ret_reply must be sent, after a failure as
// well. A failure ends the session and wipes its secrets:
//
//	-ENOKEY   the named key is not one of ours; no reply
//	-EACCES   the other end does not hold the named key, is of another cluster, or its message
//	          was altered or replayed; no reply
//	-EPROTO   it holds the key, but no version is common: see seal_peer_versions(). The
//	          accepting end's reply tells the other end
//	-EBADMSG  it holds the key, but the message makes no sense
int seal_receive(struct seal *seal, const void *bytes, size_t size, struct seal_reply *ret_reply);

bool seal_proven(const struct seal *seal);

// Write the id of the key in use, or of the key that the other end named; 0000000000000000 before.
void seal_key_id(const struct seal *seal, char text[static SEAL_KEY_ID_TEXT_BYTES]);
// Return the version in use; 0 before it is agreed on.
uint8_t seal_version(const struct seal *seal);
// Return the versions that the other end speaks; 0 and 0 before it has proven its message. A
// connecting end learns them from the answer.
void seal_peer_versions(const struct seal *seal, uint8_t *ret_min, uint8_t *ret_max);

// Seal a frame of at most SEAL_FRAME_MAX bytes. ret_bytes has room for size + SEAL_OVERHEAD and
// does not overlap the frame. Sealed frames must be sent, in this order. Returns 0, -EMSGSIZE
// (nothing was sealed), or -ENOTCONN (not proven, or over).
int seal_encrypt(struct seal *seal, const void *frame, size_t size, uint8_t *ret_bytes);

// Open the next sealed frame. ret_frame has room for size - SEAL_OVERHEAD and does not overlap it.
// Returns 0, -ENOTCONN as above, or -EBADMSG: the frame was altered, repeated, out of order, cut or
// too long. The session is over then, nothing was written, and no other call succeeds.
int seal_decrypt(struct seal *seal, const void *bytes, size_t size, uint8_t *ret_frame);

// Wipe everything; seal_init() may follow. May be called again, and on zeroed memory.
void seal_wipe(struct seal *seal);
