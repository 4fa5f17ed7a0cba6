// SPDX-License-Identifier: BSD-3-Clause
// Requests to the kernel over rtnetlink.
#include "address.h"

#include <lib/error.h>
#include <lib/netif/netlink.h>
#include <lib/scoped.h>

#include <linux/if_addr.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <string.h>
#include <sys/socket.h>

// The kernel sends datagrams of up to 32 KiB. A single message may be larger, for example that of a
// link with many virtual functions.
#define DATAGRAM_BYTES_MAX ((size_t)256 * 1024)

// Room for a header, its body, a destination and an interface.
union request {
	struct nlmsghdr header;
	uint8_t bytes[128];
};

int netif_netlink_open(uint32_t groups, int *ret_fd) {
	struct sockaddr_nl address = {.nl_family = AF_NETLINK, .nl_groups = groups};
	scoped_fd int fd = -1;
	int type = SOCK_RAW | SOCK_CLOEXEC;
	int on = 1;

	if (groups != 0)
		type |= SOCK_NONBLOCK; // notifications may not come; an answer always does
	fd = socket(AF_NETLINK, type, NETLINK_ROUTE);
	if (fd < 0)
		return neg_errno();
	if (bind(fd, (struct sockaddr *)&address, sizeof(address)) != 0)
		return neg_errno();
	// Let the kernel filter dumps by the request header. Kernels before 4.20 reject the option
	// and send everything; the parser then filters.
	(void)setsockopt(fd, SOL_NETLINK, NETLINK_GET_STRICT_CHK, &on, sizeof(on));
	*ret_fd = scoped_release_fd(&fd);
	return 0;
}

// Returns the body, which is zero.
static void *request_init(union request *request, uint16_t type, uint16_t flags, size_t body_size) {
	mnl_nlmsg_put_header(request);
	request->header.nlmsg_type = type;
	request->header.nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags);
	return mnl_nlmsg_put_extra_header(&request->header, body_size);
}

static int netlink_exchange(
	int fd,
	const union request *request,
	netif_netlink_handler *take,
	void *context,
	const bool *done
) {
	struct sockaddr_nl kernel = {.nl_family = AF_NETLINK};
	scoped_mem void *buffer = malloc(DATAGRAM_BYTES_MAX);
	struct sockaddr_nl from = {0};
	struct iovec part = {.iov_base = buffer, .iov_len = DATAGRAM_BYTES_MAX};
	struct msghdr message = {.msg_name = &from, .msg_iov = &part, .msg_iovlen = 1};
	ssize_t size;
	int err;

	if (buffer == NULL)
		return -ENOMEM;
	if (sendto(fd, request, request->header.nlmsg_len, 0, (struct sockaddr *)&kernel,
		   sizeof(kernel)) < 0)
		return neg_errno();
	do {
		// Skip datagrams of other senders than the kernel.
		do {
			message.msg_namelen = sizeof(from);
			size = recvmsg(fd, &message, 0);
		} while ((size < 0 && errno == EINTR) || (size >= 0 && from.nl_pid != 0));
		if (size < 0)
			return neg_errno();
		if ((message.msg_flags & MSG_TRUNC) != 0)
			return -EMSGSIZE;
		err = take(context, buffer, (size_t)size);
		if (err != 0)
			return err;
	} while (!*done);
	return 0;
}

int netif_netlink_dump(
	int fd, enum netif_dump what, netif_netlink_handler *take, void *context, const bool *done
) {
	union request request;
	struct rtmsg *route;

	switch (what) {
	case NETIF_DUMP_LINKS:
		request_init(&request, RTM_GETLINK, NLM_F_DUMP, sizeof(struct ifinfomsg));
		break;
	case NETIF_DUMP_ADDRESSES:
		request_init(&request, RTM_GETADDR, NLM_F_DUMP, sizeof(struct ifaddrmsg));
		break;
	case NETIF_DUMP_DEFAULTS_IPV4:
	case NETIF_DUMP_DEFAULTS_IPV6:
		route = request_init(&request, RTM_GETROUTE, NLM_F_DUMP, sizeof(*route));
		route->rtm_family = what == NETIF_DUMP_DEFAULTS_IPV4 ? AF_INET : AF_INET6;
		route->rtm_table = RT_TABLE_MAIN;
		break;
	}
	return netlink_exchange(fd, &request, take, context, done);
}

int netif_netlink_lookup(
	int fd,
	const struct sock_addr *peer,
	netif_netlink_handler *take,
	void *context,
	const bool *done
) {
	union request request;
	struct rtmsg *route = request_init(&request, RTM_GETROUTE, 0, sizeof(*route));

	route->rtm_family = peer->family == SOCK_ADDR_V4 ? AF_INET : AF_INET6;
	route->rtm_dst_len = (uint8_t)address_bits(peer);
	mnl_attr_put(&request.header, RTA_DST, address_bytes(peer), peer->address);
	if (peer->scope_id != 0)
		mnl_attr_put_u32(&request.header, RTA_OIF, peer->scope_id);
	return netlink_exchange(fd, &request, take, context, done);
}

struct index_answer {
	uint32_t index;
	bool done;
};

static int parse_index_answer(void *context, const void *bytes, size_t size) {
	struct index_answer *answer = context;
	const struct nlmsghdr *header = bytes;
	const struct ifinfomsg *link = mnl_nlmsg_get_payload(header);
	const struct nlmsgerr *error = mnl_nlmsg_get_payload(header);

	if (!netlink_message_is_whole(header, size))
		return -EBADMSG;
	if (header->nlmsg_type == NLMSG_ERROR &&
	    mnl_nlmsg_get_payload_len(header) >= sizeof(*error))
		return error->error < 0 ? error->error : -EBADMSG;
	if (header->nlmsg_type != RTM_NEWLINK || mnl_nlmsg_get_payload_len(header) < sizeof(*link))
		return -EBADMSG;
	answer->index = (uint32_t)link->ifi_index;
	answer->done = true;
	return 0;
}

int netif_netlink_index(const char *name, uint32_t *ret_index) {
	struct index_answer answer = {0};
	union request request;
	scoped_fd int fd = -1;
	int err;

	if (name[0] == '\0' || strlen(name) >= IF_NAMESIZE)
		return -EINVAL;
	err = netif_netlink_open(0, &fd);
	if (err != 0)
		return err;
	request_init(&request, RTM_GETLINK, 0, sizeof(struct ifinfomsg));
	mnl_attr_put_strz(&request.header, IFLA_IFNAME, name);
	err = netlink_exchange(fd, &request, parse_index_answer, &answer, &answer.done);
	if (err == 0)
		*ret_index = answer.index;
	return err;
}
