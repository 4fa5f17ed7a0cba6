// SPDX-License-Identifier: BSD-3-Clause
// Queries of the kernel by sock_diag: listeners and owners of local TCP sockets.
#include <lib/error.h>
#include <lib/netif/netlink.h>
#include <lib/tcp_owner.h>

#include <errno.h>
#include <linux/inet_diag.h>
#include <linux/sock_diag.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#define DRAIN_MAX 16
// One socket without extensions needs 88 bytes, an error 36 plus the request.
#define ANSWER_BYTES 1024

static struct nlmsghdr *
question_build(void *buffer, const struct sock_addr *theirs, const struct sock_addr *ours) {
	struct nlmsghdr *question = mnl_nlmsg_put_header(buffer);
	struct inet_diag_req_v2 *request = mnl_nlmsg_put_extra_header(question, sizeof(*request));
	size_t size = theirs->family == SOCK_ADDR_V4 ? 4 : 16;

	question->nlmsg_type = SOCK_DIAG_BY_FAMILY;
	question->nlmsg_flags = NLM_F_REQUEST;
	request->sdiag_family = theirs->family == SOCK_ADDR_V4 ? AF_INET : AF_INET6;
	request->sdiag_protocol = IPPROTO_TCP;
	request->idiag_states = UINT32_MAX;
	request->id.idiag_sport = htons(theirs->port);
	request->id.idiag_dport = htons(ours->port);
	request->id.idiag_cookie[0] = request->id.idiag_cookie[1] = INET_DIAG_NOCOOKIE;
	memcpy(request->id.idiag_src, theirs->address, size);
	memcpy(request->id.idiag_dst, ours->address, size);
	return question;
}

static int answer_read_uid(const struct nlmsghdr *answer, size_t size, uint32_t *ret_uid) {
	const struct inet_diag_msg *message = mnl_nlmsg_get_payload(answer);
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(answer);
	size_t room;

	if (!netlink_message_is_whole(answer, size))
		return -EPROTO;
	room = mnl_nlmsg_get_payload_len(answer);
	if (answer->nlmsg_type == NLMSG_ERROR && room >= sizeof(*error))
		return error->error < 0 ? error->error : -EPROTO;
	if (answer->nlmsg_type != SOCK_DIAG_BY_FAMILY || room < sizeof(*message))
		return -EPROTO;
	// The kernel has no owner for a socket that its process closed, and returns 0, which is
	// root.
	if (message->idiag_inode == 0)
		return -ENOENT;
	*ret_uid = message->idiag_uid;
	return 0;
}

int tcp_owner_find(
	int fd, const struct sock_addr *theirs, const struct sock_addr *ours, uint32_t *ret_uid
) {
	_Alignas(struct nlmsghdr) char buffer[ANSWER_BYTES];
	const struct nlmsghdr *question;
	ssize_t size = 0;

	if (theirs->family != ours->family || theirs->family == SOCK_ADDR_NONE)
		return -EINVAL;
	// Discard pending answers. A later call reports an answer that had no room as an error.
	// Another leftover answer would be read as the answer to the next question.
	for (unsigned int n = 0; n < DRAIN_MAX && (size >= 0 || errno != EAGAIN); n++)
		size = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	question = question_build(buffer, theirs, ours);
	if (send(fd, question, question->nlmsg_len, MSG_DONTWAIT) < 0)
		return neg_errno();
	size = recv(fd, buffer, sizeof(buffer), MSG_DONTWAIT);
	return size < 0 ? neg_errno()
			: answer_read_uid((const void *)buffer, (size_t)size, ret_uid);
}

int tcp_owner_check_listener(int fd, const struct sock_addr *at) {
	const struct sock_addr anybody = {.family = at->family};
	uint32_t uid;

	return tcp_owner_find(fd, at, &anybody, &uid);
}

int tcp_owner_open(int *ret_fd) {
	// No socket has port 0. This first query makes the kernel load its module.
	const struct sock_addr nobody = {.family = SOCK_ADDR_V4};
	uint32_t uid;
	int fd = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, NETLINK_SOCK_DIAG);
	int err;

	if (fd < 0)
		return neg_errno();
	err = tcp_owner_find(fd, &nobody, &nobody, &uid);
	// A kernel without the module returns the same error as one without the socket. It then
	// finds no owner, which has the same effect as a failed query.
	if (err != 0 && err != -ENOENT) {
		close(fd);
		return err;
	}
	*ret_fd = fd;
	return 0;
}
