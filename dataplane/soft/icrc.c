// SPDX-License-Identifier: BSD-3-Clause
#include "icrc.h"

#include <dataplane/dpdk.h>
#include <lib/must.h>

#include <pthread.h>

// Registers are reflected: bit 31 is the coefficient of x^0, a byte more is a shift to the right.
#define POLYNOMIAL UINT32_C(0xedb88320)
#define ONE UINT32_C(0x80000000)

// Of each `after`: x^-8(after + 2) modulo the polynomial.
static uint32_t back[ICRC_AFTER_MAX + 1];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static bool has(enum rte_cpu_flag_t flag) {
	return rte_cpu_get_flag_enabled(flag) == 1;
}

static enum rte_net_crc_alg best(void) {
#if defined(RTE_ARCH_X86)
	if (!has(RTE_CPUFLAG_PCLMULQDQ))
		return RTE_NET_CRC_SCALAR;
	return has(RTE_CPUFLAG_AVX512F) && has(RTE_CPUFLAG_AVX512BW) && has(RTE_CPUFLAG_AVX512VL) &&
			       has(RTE_CPUFLAG_VPCLMULQDQ)
		       ? RTE_NET_CRC_AVX512
		       : RTE_NET_CRC_SSE42;
#elif defined(RTE_ARCH_ARM64)
	return has(RTE_CPUFLAG_PMULL) ? RTE_NET_CRC_NEON : RTE_NET_CRC_SCALAR;
#else
	return RTE_NET_CRC_SCALAR;
#endif
}

// librte_net takes the wide registers only with leave, of which it knows none before EAL was
// started, and 256 bits after; left alone it settles for the scalar way: 20 us for 4 KiB instead
// of 0.2. The leave is for this choice only: a later start of EAL would keep it, for its drivers.
// What the processor lacks is not asked for: librte_net would say so on stderr.
static void choose(void) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wdeprecated-declarations" // these two are experimental
	const uint16_t before = rte_vect_get_max_simd_bitwidth();

	rte_vect_set_max_simd_bitwidth(RTE_VECT_SIMD_512);
	rte_net_crc_set_alg(best());
	rte_vect_set_max_simd_bitwidth(before != 0 ? before : RTE_VECT_DEFAULT_SIMD_BITWIDTH);
#pragma GCC diagnostic pop
}

// One bit back: what the register was before a bit 0 went in.
static uint32_t bit_back(uint32_t value) {
	return (value & ONE) != 0 ? (value ^ POLYNOMIAL) << 1 | 1 : value << 1;
}

static void prepare(void) {
	uint32_t value = ONE;

	choose();
	for (uint32_t n = 0; n < 2 + ICRC_AFTER_MAX + 1; n++) {
		if (n >= 2)
			back[n - 2] = value;
		for (uint32_t bit = 0; bit < 8; bit++)
			value = bit_back(value);
	}
}

uint32_t icrc_crc(const uint8_t *bytes, size_t size) {
	pthread_once(&once, prepare);
	return rte_net_crc_calc(bytes, (uint32_t)size, RTE_NET_CRC32_ETH);
}

static uint32_t multiply(uint32_t a, uint32_t b) {
	uint32_t product = 0;

	for (uint32_t bit = 0; bit < 32; bit++) {
		product ^= b & -(a >> (31 - bit) & 1);
		b = b >> 1 ^ (POLYNOMIAL & -(b & 1));
	}
	return product;
}

// The difference is what a register of zeros becomes by the two differing bytes and `after` zeros.
// Rolled back over all of them, these bytes are what is left in it.
bool icrc_explained(uint32_t difference, size_t after, uint16_t *ret_bits) {
	uint32_t before;

	must(after <= ICRC_AFTER_MAX);
	pthread_once(&once, prepare);
	before = multiply(difference, back[after]);
	if (before > UINT16_MAX)
		return false;
	*ret_bits = (uint16_t)before;
	return true;
}
