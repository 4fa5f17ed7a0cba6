// SPDX-License-Identifier: BSD-3-Clause
#include <lib/sockaddr.h>
#include <support/cases.h>
#include <support/cmocka.h>

#include <arpa/inet.h>
#include <errno.h>
#include <net/if.h>
#include <netdb.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

// This test's own getaddrinfo(): it knows only these names. A socket cannot connect to
// 255.255.255.255 without SO_BROADCAST, so that address resolves but is unusable.
struct fake_name {
	const char *name;
	int code;
	const char *addresses[3];
};

static const struct fake_name fake_names[] = {
	{"both", 0, {"127.0.0.2", "::1", NULL}},
	{"sixth-first", 0, {"::1", "127.0.0.2", NULL}},
	{"dead-first", 0, {"255.255.255.255", "127.0.0.3", NULL}},
	{"only-dead", 0, {"255.255.255.255", NULL, NULL}},
	{"later", EAI_AGAIN, {NULL}},
	{"node-7.example.com", 0, {"127.0.0.7", NULL, NULL}},
	{"4gpu-17", 0, {"127.0.0.17", NULL, NULL}},
};

static uint32_t resolver_calls;

static struct addrinfo *fake_info(const char *address) {
	struct addrinfo *info = calloc(1, sizeof(*info) + sizeof(struct sockaddr_storage));
	struct sock_addr addr;

	assert_non_null(info);
	assert_int_equal(sock_addr_parse_host(address, strlen(address), NULL, &addr), 0);
	info->ai_addr = (struct sockaddr *)(info + 1);
	info->ai_addrlen =
		sock_addr_to_sockaddr(&addr, (struct sockaddr_storage *)(void *)info->ai_addr);
	info->ai_family = info->ai_addr->sa_family;
	return info;
}

int getaddrinfo(
	const char *name,
	const char *service,
	const struct addrinfo *hints,
	struct addrinfo **ret_list
) {
	struct addrinfo **tail = ret_list;

	assert_null(service);
	assert_int_equal(hints->ai_family, AF_UNSPEC);
	resolver_calls++;
	for (size_t i = 0; i < COUNT_OF(fake_names); i++) {
		if (strcmp(fake_names[i].name, name) != 0)
			continue;
		for (const char *const *at = fake_names[i].addresses; *at != NULL; at++) {
			*tail = fake_info(*at);
			tail = &(*tail)->ai_next;
		}
		return fake_names[i].code;
	}
	return EAI_NONAME;
}

void freeaddrinfo(struct addrinfo *list) {
	while (list != NULL) {
		struct addrinfo *next = list->ai_next;

		free(list);
		list = next;
	}
}

static struct sock_addr addr_of(const char *text) {
	struct sock_addr addr;
	struct parse_error error;

	if (sock_addr_parse(text, strlen(text), 0, &error, &addr) != 0)
		fail_msg("%s", error.text);
	return addr;
}

static void parse_refuses_what_is_not_an_address_with_a_port(void **state) {
	static const struct error_text rows[] = {
		{TEXT(""), -EINVAL},
		{TEXT(":"), -EINVAL},
		{TEXT(":80"), -EINVAL},
		{TEXT("1.2.3.4"), -EINVAL}, // the port is missing
		{TEXT("1.2.3.4:"), -EINVAL},
		{TEXT("1.2.3.4:65536"), -ERANGE},
		{TEXT("1.2.3.4:99999999999999999999999"), -ERANGE},
		{TEXT("1.2.3.4:99999999999999999999999x"), -EINVAL},
		{TEXT("1.2.3.4:-1"), -EINVAL},
		{TEXT("1.2.3.4:+1"), -EINVAL},
		{TEXT("1.2.3.4:0x50"), -EINVAL},
		{TEXT("1.2.3.4:80 "), -EINVAL},
		{TEXT(" 1.2.3.4:80"), -EINVAL},
		{TEXT("1.2.3.4\0:80"), -EINVAL},
		{TEXT("1.2.3.4:80\0"), -EINVAL},
		{TEXT("1.2.3:80"), -EINVAL},
		{TEXT("1.2.3.256:80"), -EINVAL},
		{TEXT("01.2.3.4:80"), -EINVAL},
		{TEXT("1.2.3.4%lo:80"), -EINVAL},
		{TEXT("[1.2.3.4]:80"), -EINVAL},
		{TEXT("host:80"), -EINVAL},
		{TEXT("\xff\xfe:80"), -EINVAL},
		{TEXT("::1"), -EINVAL}, // a bare address without a port
		{TEXT("[::1]"), -EINVAL},
		{TEXT("[::1]:"), -EINVAL},
		{TEXT("[::1]:65536"), -ERANGE},
		{TEXT("[::1]80"), -EINVAL},
		{TEXT("[::1]x:80"), -EINVAL},
		{TEXT("[::1]:80x"), -EINVAL},
		{TEXT("[::1]]:80"), -EINVAL},
		{TEXT("[::1"), -EINVAL},
		{TEXT("[]:80"), -EINVAL},
		{TEXT("[:::1]:80"), -EINVAL},
		{TEXT("[[::1]]:80"), -EINVAL},
		{TEXT("[fe80::1%]:80"), -ENODEV},
		{TEXT("[fe80::1%no-such-if]:80"), -ENODEV},
		{TEXT("[fe80::1%a-name-of-more-than-15-bytes]:80"), -ENODEV},
		{TEXT("[fe80::1%lo\0x]:80"), -ENODEV},
		{TEXT("[fe80::1%0]:80"), -ENODEV},
		{TEXT("[fe80::1%4294967295]:80"), -ENODEV},
		{TEXT("[fe80::1%4294967297]:80"), -ENODEV}, // would be 1 if truncated to 32 bits
		{TEXT("[2001:db8::1%lo]:80"), -EINVAL},	    // this address cannot have a scope
		{TEXT("[::ffff:1.2.3.4%lo]:80"), -EINVAL},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct sock_addr addr = {.port = 7};
		struct parse_error error = {""};
		int err = sock_addr_parse(
			rows[i].text, rows[i].length, SOCK_ADDR_PORT_NEEDED, &error, &addr
		);

		if (err != rows[i].err)
			fail_msg("%s: got %d: %s", rows[i].text, err, error.text);
		assert_int_equal(addr.port, 7);
		assert_int_equal(addr.family, SOCK_ADDR_NONE);
		assert_int_equal(error.text[0], '"');
	}
}

static void parse_error_names_the_part_that_is_wrong(void **state) {
	static const struct {
		const char *text;
		const char *sentence;
	} rows[] = {
		{"1.2.3.4",
		 "\"1.2.3.4\" has no port: HOST:PORT is needed, with an IPv6 address in brackets"},
		{"1.2.3.4:70000", "\"1.2.3.4:70000\" has no valid port: 0 to 65535 is allowed"},
		{":80", "\":80\" has no host: HOST:PORT is needed"},
		{"[::1]x", "\"[::1]x\" has something other than :PORT after the ]"},
		{"[::1", "\"[::1\" has no closing ]"},
		{"[fe80::1%nope]:1",
		 "\"[fe80::1%nope]:1\" names an interface after the % that does not exist on this machine"},
		{"[::1%lo]:1",
		 "\"[::1%lo]:1\" has a % scope, which only a link-local address can have"},
		{"300.1.2.3:1",
		 "\"300.1.2.3:1\" is not an address such as 192.0.2.1, 2001:db8::1 or "
		 "fe80::1%eth0"},
	};
	struct parse_error error;
	struct sock_addr addr;

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		sock_addr_parse(
			rows[i].text, strlen(rows[i].text), SOCK_ADDR_PORT_NEEDED, &error, &addr
		);
		assert_string_equal(error.text, rows[i].sentence);
	}
}

static void parse_and_format_are_each_other_s_inverse(void **state) {
	static const struct {
		const char *text;
		const char *printed; // expected output; NULL: `text`
	} rows[] = {
		{"1.2.3.4:80", NULL},
		{"0.0.0.0:0", NULL},
		{"255.255.255.255:65535", NULL},
		{"1.2.3.4:00080", "1.2.3.4:80"},
		{"1.2.3.4", "1.2.3.4:5000"},
		{"[::]:80", NULL},
		{"[::1]", "[::1]:5000"},
		{"::1", "[::1]:5000"},
		// A bare address: its last group is not a port.
		{"2001:db8::1:80", "[2001:db8::1:80]:5000"},
		{"[2001:DB8:0:0::1]:80", "[2001:db8::1]:80"},
		{"[fe80::1]:80", NULL},
		{"[fe80::1%lo]:80", NULL},
		{"[fe80::1%1]:80", "[fe80::1%lo]:80"},
		{"fe80::1%lo", "[fe80::1%lo]:5000"},
		{"[ff02::1%lo]:80", NULL},
		{"[ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff]:65535", NULL},
		{"[::ffff:192.0.2.1]:80", "192.0.2.1:80"}, // a mapped address is printed as IPv4
		{"[::192.0.2.1]:80", NULL},		   // the obsolete compatible form is not
	};
	char text[SOCK_ADDR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct parse_error error;
		struct sock_addr addr;

		if (sock_addr_parse(rows[i].text, strlen(rows[i].text), 5000, &error, &addr) != 0)
			fail_msg("%s", error.text);
		sock_addr_format(&addr, text);
		assert_string_equal(text, rows[i].printed != NULL ? rows[i].printed : rows[i].text);
	}
}

static void parse_host_takes_no_port_and_no_brackets(void **state) {
	static const char *const bad[] = {"",	"1.2.3.4:80", "[::1]",
					  "lo", "300.1.2.3",  "1.2.3.4/8"};
	struct sock_addr addr = {.port = 7};
	char text[SOCK_ADDR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(
			sock_addr_parse_host(bad[i], strlen(bad[i]), NULL, &addr), -EINVAL
		);
	assert_int_equal(addr.port, 7);
	assert_int_equal(sock_addr_parse_host(TEXT("fe80::1%lo"), NULL, &addr), 0);
	assert_int_equal(addr.port, 0);
	sock_addr_format_host(&addr, text);
	assert_string_equal(text, "fe80::1%lo");
}

static void format_prints_a_scope_that_is_gone_as_its_index(void **state) {
	struct sock_addr addr = addr_of("[fe80::1]:80");
	struct sock_addr none = {0};
	char text[SOCK_ADDR_TEXT_BYTES];

	(void)state;
	addr.scope_id = UINT32_MAX;
	sock_addr_format(&addr, text);
	assert_string_equal(text, "[fe80::1%4294967295]:80");
	sock_addr_format(&none, text);
	assert_string_equal(text, "none");
}

static void conversion_refuses_short_and_foreign_addresses(void **state) {
	struct sockaddr_storage storage = {.ss_family = AF_INET};
	const struct sockaddr *sockaddr = (const struct sockaddr *)&storage;
	struct sock_addr addr = {.port = 7};

	(void)state;
	assert_int_equal(sock_addr_from_sockaddr(sockaddr, 0, &addr), -EINVAL);
	assert_int_equal(sock_addr_from_sockaddr(sockaddr, 1, &addr), -EINVAL);
	assert_int_equal(
		sock_addr_from_sockaddr(sockaddr, sizeof(struct sockaddr_in) - 1, &addr), -EINVAL
	);
	storage.ss_family = AF_INET6;
	assert_int_equal(
		sock_addr_from_sockaddr(sockaddr, sizeof(struct sockaddr_in6) - 1, &addr), -EINVAL
	);
	storage.ss_family = AF_UNIX;
	assert_int_equal(sock_addr_from_sockaddr(sockaddr, sizeof(storage), &addr), -EAFNOSUPPORT);
	assert_int_equal(addr.port, 7);
}

static void conversion_there_and_back_changes_nothing(void **state) {
	static const char *const texts[] = {"1.2.3.4:80", "[2001:db8::1]:65535", "[fe80::1%lo]:1"};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(texts); i++) {
		struct sock_addr addr = addr_of(texts[i]);
		struct sockaddr_storage storage;
		struct sock_addr back;
		socklen_t length = sock_addr_to_sockaddr(&addr, &storage);

		assert_int_equal(
			sock_addr_from_sockaddr((struct sockaddr *)&storage, length, &back), 0
		);
		assert_memory_equal(&back, &addr, sizeof(addr));
	}
}

static void conversion_folds_mapped_addresses_and_drops_meaningless_scopes(void **state) {
	struct sockaddr_in6 in6 = {.sin6_family = AF_INET6, .sin6_port = htons(80)};
	struct sock_addr expected = addr_of("192.0.2.1:80");
	struct sock_addr addr;

	(void)state;
	in6.sin6_scope_id = 3;
	in6.sin6_flowinfo = 99;
	assert_int_equal(inet_pton(AF_INET6, "::ffff:192.0.2.1", &in6.sin6_addr), 1);
	assert_int_equal(sock_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in6), &addr), 0);
	assert_memory_equal(&addr, &expected, sizeof(addr));
	assert_int_equal(inet_pton(AF_INET6, "2001:db8::1", &in6.sin6_addr), 1);
	assert_int_equal(sock_addr_from_sockaddr((struct sockaddr *)&in6, sizeof(in6), &addr), 0);
	assert_int_equal(addr.scope_id, 0);
}

static void order_is_family_then_address_then_port_then_scope(void **state) {
	struct sock_addr sorted[] = {
		addr_of("1.2.3.4:1"),	 addr_of("1.2.3.4:256"),  addr_of("1.2.3.5:1"),
		addr_of("200.0.0.0:1"),	 addr_of("[::1]:1"),	  addr_of("[2001:db8::1]:1"),
		addr_of("[fe80::1]:80"), addr_of("[fe80::1]:81"), {.family = SOCK_ADDR_NONE},
	};
	struct sock_addr scoped = addr_of("[fe80::1%lo]:80");

	(void)state;
	for (size_t i = 0; i < COUNT_OF(sorted); i++) {
		for (size_t j = 0; j < COUNT_OF(sorted); j++) {
			int order = sock_addr_compare(&sorted[i], &sorted[j]);

			assert_int_equal((order > 0) - (order < 0), (i > j) - (i < j));
			assert_int_equal(sock_addr_equal(&sorted[i], &sorted[j]), i == j);
		}
	}
	assert_true(sock_addr_compare(&sorted[6], &scoped) < 0);
	assert_true(sock_addr_compare(&scoped, &sorted[7]) < 0);
}

// The values are fixed, because agents of different versions compare them.
static void digest_is_the_same_everywhere_and_blind_to_the_scope(void **state) {
	struct sock_addr v4 = addr_of("192.0.2.1:4850");
	struct sock_addr mapped = addr_of("[::ffff:192.0.2.1]:4850");
	struct sock_addr v6 = addr_of("[fe80::1]:4850");
	struct sock_addr scoped = addr_of("[fe80::1%lo]:4850");
	struct sock_addr other_port = addr_of("192.0.2.1:4851");

	(void)state;
	assert_int_equal(sock_addr_digest(&v4), UINT64_C(0xbd9acbd1577aa368));
	assert_int_equal(sock_addr_digest(&v6), UINT64_C(0x36719bd5937f0be4));
	assert_int_equal(sock_addr_digest(&v4), sock_addr_digest(&mapped));
	assert_int_equal(sock_addr_digest(&v6), sock_addr_digest(&scoped));
	assert_int_not_equal(sock_addr_digest(&v4), sock_addr_digest(&other_port));
}

static void addresses_are_told_apart_by_what_they_are_for(void **state) {
	static const struct {
		const char *text;
		bool loopback, link_local, any;
	} rows[] = {
		{"127.0.0.1", true, false, false},    {"127.255.0.1", true, false, false},
		{"128.0.0.1", false, false, false},   {"169.254.1.1", false, true, false},
		{"169.255.1.1", false, false, false}, {"0.0.0.0", false, false, true},
		{"::1", true, false, false},	      {"::", false, false, true},
		{"fe80::1", false, true, false},      {"febf::1", false, true, false},
		{"fec0::1", false, false, false},     {"::2", false, false, false},
	};
	struct sock_addr none = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct sock_addr addr = addr_of(rows[i].text);

		assert_int_equal(sock_addr_is_loopback(&addr), rows[i].loopback);
		assert_int_equal(sock_addr_is_link_local(&addr), rows[i].link_local);
		assert_int_equal(sock_addr_is_any(&addr), rows[i].any);
	}
	assert_false(sock_addr_is_loopback(&none));
	assert_false(sock_addr_is_link_local(&none));
	assert_false(sock_addr_is_any(&none));
}

static void subnet_matches_by_netmask_family_and_scope(void **state) {
	static const struct {
		const char *a, *b, *netmask; // netmask NULL: the kernel reported none
		bool same;
	} rows[] = {
		{"10.0.0.1", "10.0.0.2", NULL, false},
		{"10.0.0.1", "10.0.0.2", "255.255.255.0", true},
		{"10.0.0.1", "10.0.1.2", "255.255.255.0", false},
		{"10.0.0.1", "10.0.1.2", "255.255.254.0", true},
		{"10.0.0.1", "203.0.113.9", "0.0.0.0", true},	   // /0
		{"10.0.0.1", "10.0.0.1", "255.255.255.255", true}, // /32
		// point-to-point: the address of the peer.
		{"10.0.0.1", "10.0.0.0", "255.255.255.255", false},
		{"10.0.0.1", "2001:db8::1", "0.0.0.0", false}, // another family
		{"10.0.0.1", "10.0.0.1", "ffff::", false},     // netmask of the other family
		{"2001:db8::1", "2001:db8::2", "ffff:ffff:ffff:ffff::", true},
		{"2001:db8::1", "2001:db8:0:1::1", "ffff:ffff:ffff:ffff::", false},
		{"2001:db8::1", "fd00::1", "::", true}, // /0
		{"2001:db8::1", "2001:db8::1", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", true},
		{"2001:db8::1", "2001:db8::", "ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff", false},
		{"fe80::1%lo", "fe80::2%lo", "ffff:ffff:ffff:ffff::", true},
		{"fe80::1%lo", "fe80::2", "ffff:ffff:ffff:ffff::", false}, // another scope
	};
	struct sock_addr none = {0};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct sock_addr a = addr_of(rows[i].a);
		struct sock_addr b = addr_of(rows[i].b);
		struct sock_addr netmask =
			addr_of(rows[i].netmask != NULL ? rows[i].netmask : "::");
		const struct sock_addr *given = rows[i].netmask != NULL ? &netmask : NULL;

		b.port = 80;
		assert_int_equal(sock_addr_same_subnet(&a, &b, given), rows[i].same);
		assert_int_equal(sock_addr_same_subnet(&b, &a, given), rows[i].same);
	}
	assert_false(sock_addr_same_subnet(&none, &none, &none));
}

static void prefix_matches_bit_by_bit(void **state) {
	struct sock_addr a = addr_of("10.0.0.1");
	struct sock_addr b = addr_of("10.0.0.2");
	struct sock_addr six = addr_of("2001:db8::1");
	struct sock_addr scoped = addr_of("fe80::1%lo");
	struct sock_addr other_scope = addr_of("fe80::1");
	struct sock_addr none = {0};

	(void)state;
	for (uint32_t bits = 0; bits <= 30; bits++)
		assert_true(sock_addr_same_prefix(&a, &b, bits));
	assert_false(sock_addr_same_prefix(&a, &b, 31));
	assert_false(sock_addr_same_prefix(&a, &b, 32));
	assert_true(sock_addr_same_prefix(&a, &a, 32));
	assert_false(sock_addr_same_prefix(&a, &a, 33));
	assert_true(sock_addr_same_prefix(&six, &six, 128));
	assert_false(sock_addr_same_prefix(&six, &six, 129));
	assert_false(sock_addr_same_prefix(&a, &six, 0));
	assert_false(sock_addr_same_prefix(&scoped, &other_scope, 64));
	assert_false(sock_addr_same_prefix(&none, &none, 0));
}

static void resolve_asks_nobody_about_numbers_and_nonsense(void **state) {
	static const char *const bad[] = {
		"300.1.2.3:80",	  "10.1:80",	"0x7f000001:80", "1:80",
		"[both]:80",	  "-both:80",	".both:80",	 "bo th:80",
		"b\xc3\xb6th:80", "both%lo:80", "a.b.0xAf:1",
	};
	struct sock_addr addr = {.port = 7};
	struct parse_error error;
	char text[300];

	(void)state;
	resolver_calls = 0;
	for (size_t i = 0; i < COUNT_OF(bad); i++)
		assert_int_equal(
			sock_addr_resolve(bad[i], strlen(bad[i]), 1, SOCK_ADDR_NONE, &error, &addr),
			-EINVAL
		);
	memset(text, 'a', sizeof(text));
	assert_int_equal(sock_addr_resolve(text, 254, 1, SOCK_ADDR_NONE, NULL, &addr), -EINVAL);
	assert_int_equal(addr.port, 7);
	assert_int_equal(sock_addr_resolve(TEXT("[::1]:80"), 1, SOCK_ADDR_V4, NULL, &addr), 0);
	assert_int_equal(addr.family, SOCK_ADDR_V6);
	assert_int_equal(resolver_calls, 0);
}

static void resolve_takes_the_first_usable_address_of_the_preferred_family(void **state) {
	static const struct {
		const char *text;
		enum sock_addr_family prefer;
		const char *found;
	} rows[] = {
		{"both:80", SOCK_ADDR_NONE, "127.0.0.2:80"},
		{"both:80", SOCK_ADDR_V4, "127.0.0.2:80"},
		{"sixth-first:80", SOCK_ADDR_V4, "127.0.0.2:80"},
		{"both", SOCK_ADDR_V4, "127.0.0.2:5000"},
		{"dead-first:80", SOCK_ADDR_NONE, "127.0.0.3:80"},
		// No address of the preferred family: any is used.
		{"dead-first:80", SOCK_ADDR_V6, "127.0.0.3:80"},
		{"node-7.example.com:80", SOCK_ADDR_NONE, "127.0.0.7:80"},
		{"4gpu-17:80", SOCK_ADDR_NONE, "127.0.0.17:80"},
	};
	char text[SOCK_ADDR_TEXT_BYTES];

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct parse_error error;
		struct sock_addr addr;

		if (sock_addr_resolve(
			    rows[i].text, strlen(rows[i].text), 5000, rows[i].prefer, &error, &addr
		    ) != 0)
			fail_msg("%s", error.text);
		sock_addr_format(&addr, text);
		assert_string_equal(text, rows[i].found);
	}
}

static void resolve_prefers_ipv6_where_the_machine_has_it(void **state) {
	struct sockaddr_in6 loopback = {.sin6_family = AF_INET6};
	struct sock_addr addr;
	int fd = socket(AF_INET6, SOCK_DGRAM | SOCK_CLOEXEC, 0);
	bool has_v6;

	(void)state;
	loopback.sin6_addr = in6addr_loopback;
	has_v6 = fd >= 0 && bind(fd, (struct sockaddr *)&loopback, sizeof(loopback)) == 0;
	if (fd >= 0)
		close(fd);
	assert_int_equal(sock_addr_resolve(TEXT("both:80"), 1, SOCK_ADDR_V6, NULL, &addr), 0);
	assert_int_equal(addr.family, has_v6 ? SOCK_ADDR_V6 : SOCK_ADDR_V4);
}

static void resolve_says_why_a_name_gave_nothing(void **state) {
	static const struct {
		const char *text;
		int err;
		const char *part;
	} rows[] = {
		{"nobody:80", -ENOENT, "\"nobody:80\" does not resolve: "},
		{"later:80", -EAGAIN, "\"later:80\" does not resolve: "},
		{"only-dead:80", -ENETUNREACH,
		 "\"only-dead:80\" resolves, but this machine has no route"},
		{"both", -EINVAL, "\"both\" has no port"},
		{"both:65536", -ERANGE, "\"both:65536\" has no valid port"},
	};

	(void)state;
	for (size_t i = 0; i < COUNT_OF(rows); i++) {
		struct sock_addr addr = {.port = 7};
		struct parse_error error;
		int err = sock_addr_resolve(
			rows[i].text, strlen(rows[i].text), SOCK_ADDR_PORT_NEEDED, SOCK_ADDR_NONE,
			&error, &addr
		);

		assert_int_equal(err, rows[i].err);
		assert_non_null(strstr(error.text, rows[i].part));
		assert_int_equal(addr.port, 7);
	}
}

UNIT_GROUP(sockaddr) {
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(parse_refuses_what_is_not_an_address_with_a_port),
		cmocka_unit_test(parse_error_names_the_part_that_is_wrong),
		cmocka_unit_test(parse_and_format_are_each_other_s_inverse),
		cmocka_unit_test(parse_host_takes_no_port_and_no_brackets),
		cmocka_unit_test(format_prints_a_scope_that_is_gone_as_its_index),
		cmocka_unit_test(conversion_refuses_short_and_foreign_addresses),
		cmocka_unit_test(conversion_there_and_back_changes_nothing),
		cmocka_unit_test(conversion_folds_mapped_addresses_and_drops_meaningless_scopes),
		cmocka_unit_test(order_is_family_then_address_then_port_then_scope),
		cmocka_unit_test(digest_is_the_same_everywhere_and_blind_to_the_scope),
		cmocka_unit_test(addresses_are_told_apart_by_what_they_are_for),
		cmocka_unit_test(subnet_matches_by_netmask_family_and_scope),
		cmocka_unit_test(prefix_matches_bit_by_bit),
		cmocka_unit_test(resolve_asks_nobody_about_numbers_and_nonsense),
		cmocka_unit_test(resolve_takes_the_first_usable_address_of_the_preferred_family),
		cmocka_unit_test(resolve_prefers_ipv6_where_the_machine_has_it),
		cmocka_unit_test(resolve_says_why_a_name_gave_nothing),
	};

	return cmocka_run_group_tests_name("sockaddr", tests, NULL, NULL);
}
