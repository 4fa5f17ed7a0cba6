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
static uint32_t back[ICRC_TRAILING_MAX + 1];
// Register value that a byte leaves when n zero bytes follow it.
static uint32_t table[LANES][256];
static enum icrc_method way; // best method of this processor
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t crc_shift_bit(uint32_t value) {
	return (value & 1) != 0 ? value >> 1 ^ POLYNOMIAL : value >> 1;
}

// Return the register after these bytes.
static uint32_t crc_by_table(uint32_t value, const uint8_t *bytes, size_t size) {
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
struct fold_factors {
	uint64_t first, second;
};
static struct fold_factors by_block, by_stride, by_wide;
static uint64_t by_half;

// Return x^bits modulo the polynomial, in the position for a product of two reflected halves.
static uint64_t crc_power(uint32_t bits) {
	uint32_t value = ONE;

	for (uint32_t bit = 0; bit < bits; bit++)
		value = crc_shift_bit(value);
	return (uint64_t)value << 1;
}

static struct fold_factors fold_factors_for(uint32_t bytes) {
	return (struct fold_factors
	){.first = crc_power(8 * bytes + 32), .second = crc_power(8 * bytes - 32)};
}

static void fold_factors_init(void) {
	by_half = crc_power(64);
	by_block = fold_factors_for(BLOCK);
	by_stride = fold_factors_for(STRIDE);
	by_wide = fold_factors_for(WIDE_STRIDE);
	// Older processors lack carry-less products; newer ones compute four blocks at once.
	if (!__builtin_cpu_supports("pclmul") || !__builtin_cpu_supports("ssse3"))
		way = ICRC_BY_TABLE;
	else if (__builtin_cpu_supports("vpclmulqdq") && __builtin_cpu_supports("avx512f"))
		way = ICRC_BY_WIDE_BLOCKS;
	else
		way = ICRC_BY_BLOCKS;
}

#define NARROW __attribute__((target("pclmul,ssse3")))
#define WIDE __attribute__((target("avx512f,vpclmulqdq,pclmul,ssse3")))
#define INSIDE static inline __attribute__((always_inline))

NARROW INSIDE __m128i block_load(const uint8_t *bytes) {
	return _mm_loadu_si128((const __m128i_u *)bytes);
}

NARROW INSIDE __m128i fold_factors_load(struct fold_factors by) {
	return _mm_set_epi64x((long long)by.second, (long long)by.first);
}

NARROW INSIDE __m128i block_fold(__m128i block, __m128i by, __m128i next) {
	__m128i first = _mm_clmulepi64_si128(block, by, 0x00);
	__m128i second = _mm_clmulepi64_si128(block, by, 0x11);

	return _mm_xor_si128(_mm_xor_si128(first, second), next);
}

// Reduce one block to the register.
NARROW INSIDE uint32_t block_reduce(__m128i block) {
	const __m128i low = _mm_set_epi32(0, 0, 0, -1);
	__m128i value = _mm_xor_si128(
		_mm_clmulepi64_si128(block, fold_factors_load(by_block), 0x10),
		_mm_srli_si128(block, 8)
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
NARROW INSIDE __m128i blocks_fold(__m128i a, const uint8_t *bytes, size_t size) {
	const __m128i stride = fold_factors_load(by_stride), block = fold_factors_load(by_block);

	if (size >= 2 * STRIDE) {
		__m128i b = block_load(bytes), c = block_load(bytes + BLOCK),
			d = block_load(bytes + 2 * BLOCK);

		for (bytes += 3 * BLOCK, size -= 3 * BLOCK; size >= STRIDE;
		     bytes += STRIDE, size -= STRIDE) {
			a = block_fold(a, stride, block_load(bytes));
			b = block_fold(b, stride, block_load(bytes + BLOCK));
			c = block_fold(c, stride, block_load(bytes + 2 * BLOCK));
			d = block_fold(d, stride, block_load(bytes + 3 * BLOCK));
		}
		a = block_fold(block_fold(block_fold(a, block, b), block, c), block, d);
	}
	for (; size >= BLOCK; bytes += BLOCK, size -= BLOCK)
		a = block_fold(a, block, block_load(bytes));
	return a;
}

// Begin a message of at least one block, padded in front with zeros to whole blocks; leading zeros
// change nothing. *ret_head is the first block, *ret_next the second. If the first block has fewer
// than four message bytes, the initial register extends into the second.
NARROW INSIDE void message_first_blocks(
	uint32_t value, const uint8_t *bytes, size_t odd, __m128i *ret_head, __m128i *ret_next
) {
	// Loaded from offset n: n lanes that the shuffle keeps at the end, after lanes that it
	// clears.
	static const uint8_t lanes[2 * BLOCK] = {
		0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80, 0x80,
		0x80, 0x80, 0x80, 0x80, 0x80, 0,    1,	  2,	3,    4,    5,
		6,    7,    8,	  9,	10,   11,   12,	  13,	14,   15,
	};
	uint32_t over = odd < 4 ? value >> 8 * odd : 0;

	*ret_head = _mm_shuffle_epi8(
		_mm_xor_si128(block_load(bytes), _mm_cvtsi32_si128((int)value)),
		block_load(lanes + odd)
	);
	*ret_next = _mm_xor_si128(block_load(bytes + odd), _mm_cvtsi32_si128((int)over));
}

NARROW static uint32_t fold_blocks(uint32_t value, const uint8_t *bytes, size_t size) {
	const size_t odd = size % BLOCK;
	__m128i head, next;

	message_first_blocks(value, bytes, odd, &head, &next);
	next = block_fold(head, fold_factors_load(by_block), next);
	return block_reduce(blocks_fold(next, bytes + odd + BLOCK, size - odd - BLOCK));
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
	const __m512i by = _mm512_broadcast_i32x4(fold_factors_load(by_wide));
	const __m512i by_one = _mm512_broadcast_i32x4(fold_factors_load(by_stride));
	const __m128i block = fold_factors_load(by_block);
	const size_t odd = size % BLOCK;
	__m128i head, next;
	__m512i a, b, c, d;

	message_first_blocks(value, bytes, odd, &head, &next);
	bytes += odd;
	size -= odd;
	a = _mm512_inserti32x4(wide_load(bytes, 0), block_fold(head, block, next), 0);
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
	head = block_fold(_mm512_extracti32x4_epi32(a, 0), block, _mm512_extracti32x4_epi32(a, 1));
	head = block_fold(head, block, _mm512_extracti32x4_epi32(a, 2));
	head = block_fold(head, block, _mm512_extracti32x4_epi32(a, 3));
	return block_reduce(blocks_fold(head, bytes, size));
}

static uint32_t
crc_by_method(enum icrc_method by, uint32_t value, const uint8_t *bytes, size_t size) {
	if (size < BLOCK || by == ICRC_BY_TABLE)
		return crc_by_table(value, bytes, size);
	if (size >= 2 * WIDE_STRIDE && by == ICRC_BY_WIDE_BLOCKS)
		return fold_wide(value, bytes, size);
	return fold_blocks(value, bytes, size);
}
#else
static void fold_factors_init(void) {
}

static uint32_t
crc_by_method(enum icrc_method by, uint32_t value, const uint8_t *bytes, size_t size) {
	(void)by;
	return crc_by_table(value, bytes, size);
}
#endif

// Undo one step: return the register before a bit 0 was appended.
static uint32_t crc_unshift_bit(uint32_t value) {
	return (value & ONE) != 0 ? (value ^ POLYNOMIAL) << 1 | 1 : value << 1;
}

static void crc_tables_init(void) {
	uint32_t value;

	for (uint32_t byte = 0; byte < 256; byte++) {
		value = byte;
		for (uint32_t bit = 0; bit < 8; bit++)
			value = crc_shift_bit(value);
		table[0][byte] = value;
	}
	for (uint32_t lane = 1; lane < LANES; lane++) {
		for (uint32_t byte = 0; byte < 256; byte++) {
			value = table[lane - 1][byte];
			table[lane][byte] = value >> 8 ^ table[0][value & 0xff];
		}
	}
	fold_factors_init();
	value = ONE;
	for (uint32_t n = 0; n < 2 + ICRC_TRAILING_MAX + 1; n++) {
		if (n >= 2)
			back[n - 2] = value;
		for (uint32_t bit = 0; bit < 8; bit++)
			value = crc_unshift_bit(value);
	}
}

uint32_t icrc_crc32(const uint8_t *bytes, size_t size) {
	pthread_once(&once, crc_tables_init);
	return ~crc_by_method(way, UINT32_MAX, bytes, size);
}

bool icrc_crc32_by(enum icrc_method by, const uint8_t *bytes, size_t size, uint32_t *ret_crc) {
	pthread_once(&once, crc_tables_init);
	if (by > way)
		return false;
	*ret_crc = ~crc_by_method(by, UINT32_MAX, bytes, size);
	return true;
}

// The difference is the register that starts at zero and processes the two differing bytes and
// `after` zeros. Multiplied by the inverse shift over all of them, it is these bytes.
bool icrc_find_changed_bytes(uint32_t difference, size_t after, uint16_t *ret_bits) {
	uint32_t before = 0, shift;

	must(after <= ICRC_TRAILING_MAX);
	pthread_once(&once, crc_tables_init);
	shift = back[after];
	for (uint32_t bit = 0; bit < 32; bit++) {
		before ^= shift & -(difference >> (31 - bit) & 1);
		shift = shift >> 1 ^ (POLYNOMIAL & -(shift & 1));
	}
	if (before > UINT16_MAX)
		return false;
	*ret_bits = (uint16_t)before;
	return true;
}
