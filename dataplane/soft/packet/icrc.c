// SPDX-License-Identifier: BSD-3-Clause
// The invariant CRC of RoCEv2. Uses carry-less multiplication where the processor has it.
#include "packet/icrc.h"

#include <lib/must.h>

#include <pthread.h>
#include <stdbool.h>

#ifdef __x86_64__
#include <immintrin.h>
#endif

// Registers are reflected: bit 31 is the coefficient of x^0, and appending a byte shifts to the
// right.
#define POLYNOMIAL UINT32_C(0xedb88320)
#define ONE UINT32_C(0x80000000)
#define LANES 8 // bytes that the table processes in one step

// Inverse shifts by `after`: x^-8(after + 2) modulo the polynomial.
static uint32_t back[ICRC_AFTER_MAX + 1];
// Register value that a byte leaves when n zero bytes follow it.
static uint32_t table[LANES][256];
static enum icrc_way way; // best method of this processor
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t bit_on(uint32_t value) {
	return (value & 1) != 0 ? value >> 1 ^ POLYNOMIAL : value >> 1;
}

static void table_make(void) {
	for (uint32_t byte = 0; byte < 256; byte++) {
		uint32_t value = byte;

		for (uint32_t bit = 0; bit < 8; bit++)
			value = bit_on(value);
		table[0][byte] = value;
	}
	for (uint32_t lane = 1; lane < LANES; lane++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			uint32_t value = table[lane - 1][byte];

			table[lane][byte] = value >> 8 ^ table[0][value & 0xff];
		}
	}
}

// Return the register after these bytes.
static uint32_t table_run(uint32_t value, const uint8_t *bytes, size_t size) {
	for (; size >= LANES; size -= LANES, bytes += LANES) {
		uint32_t next = 0;

		for (uint32_t n = 0; n < 4; n++)
			next ^= table[7 - n][bytes[n] ^ (uint8_t)(value >> 8 * n)];
		for (uint32_t n = 4; n < LANES; n++)
			next ^= table[7 - n][bytes[n]];
		value = next;
	}
	for (; size > 0; size--, bytes++)
		value = value >> 8 ^ table[0][(uint8_t)(value ^ *bytes)];
	return value;
}

#ifdef __x86_64__
// A message is a polynomial. A block may be shifted over the blocks behind it, modulo the
// polynomial, and added to one of them. One block remains in the end.
#define BLOCK ((size_t)16)
#define STRIDE (4 * BLOCK) // bytes per step; the products of one step are independent
#define WIDE_STRIDE (4 * STRIDE)

// Factors that shift the first and the second half of a block: by one block, by a stride, by a wide
// stride.
struct mover {
	uint64_t first, second;
};
static struct mover by_block, by_stride, by_wide;
static uint64_t by_half;

// Return x^bits modulo the polynomial, in the position for a product of two reflected halves.
static uint64_t crc_power(uint32_t bits) {
	uint32_t value = ONE;

	for (uint32_t bit = 0; bit < bits; bit++)
		value = bit_on(value);
	return (uint64_t)value << 1;
}

static struct mover mover_of(uint32_t bytes) {
	return (struct mover
	){.first = crc_power(8 * bytes + 32), .second = crc_power(8 * bytes - 32)};
}

// Choose the method: older processors lack carry-less products, newer ones compute four blocks at
// once.
static enum icrc_way way_best(void) {
	if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("ssse3"))
		return ICRC_BY_TABLE;
	return __builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f")
		       ? ICRC_BY_WIDE_BLOCKS
		       : ICRC_BY_BLOCKS;
}

static void fold_prepare(void) {
	by_half = crc_power(64);
	by_block = mover_of(BLOCK);
	by_stride = mover_of(STRIDE);
	by_wide = mover_of(WIDE_STRIDE);
	way = way_best();
}

#define NARROW __attribute__((target("pclmul,ssse3")))
#define WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,ssse3")))
#define INSIDE static inline __attribute__((always_inline))

NARROW INSIDE __m128i load(const uint8_t *bytes) {
	return _mm_loadu_si128((const __m128i_u *)bytes);
}

NARROW INSIDE __m128i mover_load(struct mover by) {
	return _mm_set_epi64x((long long)by.second, (long long)by.first);
}

NARROW INSIDE __m128i fold(__m128i block, __m128i by, __m128i next) {
	__m128i first = _mm_clmulepi64_si128(block, by, 0x00);
	__m128i second = _mm_clmulepi64_si128(block, by, 0x11);

	return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

// Reduce one block to the register.
NARROW INSIDE uint32_t reduce(__m128i block) {
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i value = _mm_xor_si128(
		_mm_clmulepi64_si128(block, mover_load(by_block), 0x10), _mm_srli_si128(block, 8)
	);
	uint64_t rest;
	uint32_t next = 0;

	value = _mm_xor_si128(
		_mm_clmulepi64_si128(
			_mm_and_si128(value, low), _mm_cvtsi64_si128((long long)by_half), 0
		),
		_mm_srli_si128(value, 4)
	);
	rest = (uint64_t)_mm_cvtsi128_si64(value);
	for (uint32_t n = 0; n < 4; n++)
		next ^= table[3 - n][(uint8_t)(rest >> 8 * n)];
	return next ^ (uint32_t)(rest >> 32);
}

// Fold the blocks at `bytes`, of which there may be none, into `a`, the block before them.
NARROW INSIDE __m128i narrow_run(__m128i a, const uint8_t *bytes, size_t size) {
	const __m128i stride = mover_load(by_stride), block = mover_load(by_block);

	if (size >= 2 * STRIDE) {
		__m128i b = load(bytes), c = load(bytes + BLOCK), d = load(bytes + 2 * BLOCK);

		for (bytes += 3 * BLOCK, size -= 3 * BLOCK; size >= STRIDE;
		     bytes += STRIDE, size -= STRIDE) {
			a = fold(a, stride, load(bytes));
			b = fold(b, stride, load(bytes + BLOCK));
			c = fold(c, stride, load(bytes + 2 * BLOCK));
			d = fold(d, stride, load(bytes + 3 * BLOCK));
		}
		a = fold(fold(fold(a, block, b), block, c), block, d);
	}
	for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK)
		a = fold(a, block, load(bytes));
	return a;
}

// Begin a message of at least one block, padded in front with zeros to whole blocks; leading zeros
// change nothing. *ret_head is the first block, *ret_next the second. If the first block has fewer
// than four message bytes, the initial register extends into the second.
NARROW INSIDE void
begin(uint32_t value, const uint8_t *bytes, size_t odd, __m128i *ret_head, __m128i *ret_next) {
	// Loaded from offset n: n lanes that the shuffle keeps at the end, after lanes that it
	// clears.
	static const uint8_t lanes[2 * BLOCK] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,	  2,	3,    4,    5,
		6,    7,    8,	  9,	10,   11,   12,	  13,	14,   15,
	};
	uint32_t over = odd < 4 ? value >> 8 * odd : 0;

	*ret_head = _mm_shuffle_epi8(
		_mm_xor_si128(load(bytes), _mm_cvtsi32_si128((int)value)), load(lanes + odd)
	);
	*ret_next = _mm_xor_si128(load(bytes + odd), _mm_cvtsi32_si128((int)over));
}

NARROW static uint32_t fold_blocks(uint32_t value, const uint8_t *bytes, size_t size) {
	const size_t odd = size % BLOCK;
	__m128i head, next;

	begin(value, bytes, odd, &head, &next);
	next = fold(head, mover_load(by_block), next);
	return reduce(narrow_run(next, bytes + odd + BLOCK, size - odd - BLOCK));
}

WIDE INSIDE __m512i wide_load(const uint8_t *bytes, size_t stride) {
	return _mm512_loadu_si512(bytes + stride * STRIDE);
}

WIDE INSIDE __m512i wide_fold(__m512i blocks, __m512i by, __m512i next) {
	__m512i first = _mm512_clmulepi64_epi128(blocks, by, 0x00);
	__m512i second = _mm512_clmulepi64_epi128(blocks, by, 0x11);

	return _mm512_ternarylogic_epi64(first, second, next, 0x96); // exclusive or of all three
}

// The message has at least WIDE_STRIDE and two blocks.
WIDE static uint32_t fold_wide(uint32_t value, const uint8_t *bytes, size_t size) {
	const __m512i by = _mm512_broadcast_i32x4(mover_load(by_wide));
	const __m512i by_one = _mm512_broadcast_i32x4(mover_load(by_stride));
	const __m128i block = mover_load(by_block);
	const size_t odd = size % BLOCK;
	__m128i head, next;
	__m512i a, b, c, d;

	begin(value, bytes, odd, &head, &next);
	bytes += odd;
	size -= odd;
	a = _mm512_inserti32x4(wide_load(bytes, 0), fold(head, block, next), 0);
	b = wide_load(bytes, 1), c = wide_load(bytes, 2), d = wide_load(bytes, 3);
	for (bytes += WIDE_STRIDE, size -= WIDE_STRIDE; size >= WIDE_STRIDE;
	     bytes += WIDE_STRIDE, size -= WIDE_STRIDE) {
		a = wide_fold(a, by, wide_load(bytes, 0));
		b = wide_fold(b, by, wide_load(bytes, 1));
		c = wide_fold(c, by, wide_load(bytes, 2));
		d = wide_fold(d, by, wide_load(bytes, 3));
	}
	a = wide_fold(wide_fold(wide_fold(a, by_one, b), by_one, c), by_one, d);
	for (; size >= STRIDE; bytes += STRIDE, size -= STRIDE)
		a = wide_fold(a, by_one, wide_load(bytes, 0));
	head = fold(_mm512_extracti32x4_epi32(a, 0), block, _mm512_extracti32x4_epi32(a, 1));
	head = fold(head, block, _mm512_extracti32x4_epi32(a, 2));
	head = fold(head, block, _mm512_extracti32x4_epi32(a, 3));
	return reduce(narrow_run(head, bytes, size));
}

static uint32_t way_run(enum icrc_way by, uint32_t value, const uint8_t *bytes, size_t size) {
	if (size < BLOCK || by == ICRC_BY_TABLE)
		return table_run(value, bytes, size);
	if (size >= 2 * WIDE_STRIDE && by == ICRC_BY_WIDE_BLOCKS)
		return fold_wide(value, bytes, size);
	return fold_blocks(value, bytes, size);
}
#else
static void fold_prepare(void) {
}

static uint32_t way_run(enum icrc_way by, uint32_t value, const uint8_t *bytes, size_t size) {
	(void)by;
	return table_run(value, bytes, size);
}
#endif

// Undo one step: return the register before a bit 0 was appended.
static uint32_t bit_back(uint32_t value) {
	return (value & ONE) != 0 ? (value ^ POLYNOMIAL) << 1 | 1 : value << 1;
}

static void tables_prepare(void) {
	uint32_t value = ONE;

	table_make();
	fold_prepare();
	for (uint32_t n = 0; n < 2 + ICRC_AFTER_MAX + 1; n++) {
		if (n >= 2)
			back[n - 2] = value;
		for (uint32_t bit = 0; bit < 8; bit++)
			value = bit_back(value);
	}
}

uint32_t icrc_crc(const uint8_t *bytes, size_t size) {
	pthread_once(&once, tables_prepare);
	return ~way_run(way, UINT32_MAX, bytes, size);
}

bool icrc_crc_by(enum icrc_way by, const uint8_t *bytes, size_t size, uint32_t *ret_crc) {
	pthread_once(&once, tables_prepare);
	if (by > way)
		return false;
	*ret_crc = ~way_run(by, UINT32_MAX, bytes, size);
	return true;
}

static uint32_t crc_multiply(uint32_t a, uint32_t b) {
	uint32_t product = 0;

	for (uint32_t bit = 0; bit < 32; bit++) {
		product ^= b & -(a >> (31 - bit) & 1);
		b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
	}
	return product;
}

// The difference is the register that starts at zero and processes the two differing bytes and
// `after` zeros. Shifted back over all of them, the register contains these bytes.
bool icrc_explained(uint32_t difference, size_t after, uint16_t *ret_bits) {
	uint32_t before;

	must(after <= ICRC_AFTER_MAX);
	pthread_once(&once, tables_prepare);
	before = crc_multiply(difference, back[after]);
	if (before > UINT16_MAX)
		return false;
	*ret_bits = (uint16_t)before;
	return true;
}
