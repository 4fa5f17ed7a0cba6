// SPDX-License-Identifier: BSD-3-Clause
// Proof of a common secret between the two ends of a control connection.
//
//	client			server
//	KNOCK		->		nonce, ids of the client's secrets
//			<-	CHALLENGE	nonce, id of a secret that both ends hold
//	PROOF		->		mark of the client
//			<-	PROVEN		mark of the server
//
// A mark is the hash of the role, the protocol version, the id and both nonces, under the secret.
// So a mark of one role or of another connection proves nothing. The client proves first. A
// stranger costs the server a few hashes on a fixed buffer.
//
// A secret is the token of a server, or the cluster's key. An id is a hash of its secret. Plain
// values without sockets; one thread at a time.
//
// Not kept out: an attacker on the path, who may take over the connection after the proof.
#pragma once

#include "run/channel.h"

#include <lib/seal_secret.h>

#include <stdbool.h>
#include <stdint.h>

#define PROOF_NONCE_BYTES 32
#define PROOF_MARK_BYTES SEAL_SECRET_BYTES
#define PROOF_SECRETS_MAX 4
#define PROOF_SOURCE_BYTES 256

enum proof_role {
	PROOF_CLIENT = 'c',
	PROOF_SERVER = 's',
};

struct proof_secrets {
	uint32_t count;
	struct seal_key list[PROOF_SECRETS_MAX];
	bool open; // server: a client without a common secret is served as well
	// Client: where its token is from, for messages; "": it has none.
	char source[PROOF_SOURCE_BYTES];
	bool token_required; // client: the user gave the token, so an open server is refused
};

// Wipe the secrets; `scoped_secrets` does so on every exit from the block of a local.
void proof_secrets_wipe(struct proof_secrets *secrets);
#define scoped_secrets __attribute__((cleanup(proof_secrets_wipe)))

// Prepare the random numbers of this process. Returns 0 or -EIO.
int proof_init(void);
// Add the token, a text, or a key of the cluster. Nothing happens if there is no room.
void proof_add_token(struct proof_secrets *secrets, const char *token);
void proof_add_key(struct proof_secrets *secrets, const struct seal_key *key);

// State of one handshake. The secret is NULL until both ends know which one they use.
struct proof {
	const struct seal_key *secret;
	uint8_t nonces[2][PROOF_NONCE_BYTES]; // of the client, of the server
};

enum proof_answer {
	PROOF_ANSWER_PROVE,   // the client must prove the named secret
	PROOF_ANSWER_OPEN,    // the server serves anybody; no proof follows
	PROOF_ANSWER_UNKNOWN, // the server holds none of the client's secrets
	PROOF_ANSWER_COUNT,
};

#define PROOF_MESSAGE_BYTES 128 // bound of all messages of a proof

// Make the nonce of the client and write its KNOCK. The proof must be zeroed.
void proof_knock(
	struct proof *proof, const struct proof_secrets *secrets, struct wire_writer *writer
);
// Server: read a KNOCK, choose the answer and write the CHALLENGE. Returns 0 or -EBADMSG.
int proof_challenge(
	struct proof *proof,
	const struct proof_secrets *secrets,
	const struct channel_message *knock,
	struct wire_writer *writer,
	enum proof_answer *ret_answer
);
// Client: read a CHALLENGE. Returns 0, or -EBADMSG, also if it names a secret that was not offered.
int proof_read_challenge(
	struct proof *proof,
	const struct proof_secrets *secrets,
	const struct channel_message *challenge,
	enum proof_answer *ret_answer
);

// Make the mark of one role.
void proof_make_mark(
	const struct proof *proof, enum proof_role role, uint8_t ret_mark[static PROOF_MARK_BYTES]
);
// Return true if the message is the mark of this role.
bool proof_mark_is_valid(
	const struct proof *proof, enum proof_role role, const struct channel_message *message
);
