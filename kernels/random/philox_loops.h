// Included by other loops into a namespace per instruction set; not a header of its own.

/// One 32-bit word of several Philox blocks, in the low half of each lane; the high halves hold anything.
typedef uint64_t Words __attribute__((vector_size(DS_VECTOR_BYTES)));
inline constexpr int wordLanes = DS_VECTOR_BYTES / 8;
/// Philox blocks drawn side by side, in two vectors: one's multiplications hide the other's latency.
inline constexpr int philoxBlocks = 2 * wordLanes;

/// The 64-bit products of the low halves.
DS_INLINE Words multiplyHalves(Words a, uint32_t b) {
  const Words factor = Words{} + uint64_t(b);
#if !defined(__x86_64__)
  return (a & 0xffffffffu) * factor;
#elif DS_VECTOR_BYTES == 64
  return Words(_mm512_maskz_mul_epu32(0xff, __m512i(a), __m512i(factor))); // unmasked, GCC 12 warns of its own header
#elif DS_VECTOR_BYTES == 32
  return Words(_mm256_mul_epu32(__m256i(a), __m256i(factor)));
#else
  return Words(_mm_mul_epu32(__m128i(a), __m128i(factor)));
#endif
}

/// words[4 * b + w] = word w of block first + b, as philoxElements gives it.
DS_INLINE void drawWords(uint64_t key, uint32_t microbatch, uint32_t opId, uint64_t first, uint32_t *words) {
  Words c0[2], c1[2], c2[2], c3[2];
  for (int v = 0; v < 2; ++v) {
    uint64_t numbers[wordLanes];
    for (int lane = 0; lane < wordLanes; ++lane)
      numbers[lane] = first + uint64_t(v * wordLanes + lane);
    __builtin_memcpy(&c0[v], numbers, sizeof(numbers));
    c1[v] = c0[v] >> 32;
    c2[v] = Words{} + uint64_t(microbatch);
    c3[v] = Words{} + uint64_t(opId);
  }
  uint32_t k0 = uint32_t(key), k1 = uint32_t(key >> 32);
  for (int round = 0; round < 10; ++round) {
    for (int v = 0; v < 2; ++v) {
      const Words p0 = multiplyHalves(c0[v], 0xD2511F53u), p1 = multiplyHalves(c2[v], 0xCD9E8D57u);
      c0[v] = (p1 >> 32) ^ c1[v] ^ uint64_t(k0);
      c2[v] = (p0 >> 32) ^ c3[v] ^ uint64_t(k1);
      c1[v] = p1;
      c3[v] = p0;
    }
    k0 += 0x9E3779B9u;
    k1 += 0xBB67AE85u;
  }
  for (int v = 0; v < 2; ++v)
    for (int lane = 0; lane < wordLanes; ++lane) {
      uint32_t *block = words + 4 * (v * wordLanes + lane);
      block[0] = uint32_t(c0[v][lane]);
      block[1] = uint32_t(c1[v][lane]);
      block[2] = uint32_t(c2[v][lane]);
      block[3] = uint32_t(c3[v][lane]);
    }
}
