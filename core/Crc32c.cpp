//===- Crc32c.cpp - the checksum of plans and weight files ----------------===//
#include "core/Crc32c.h"

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <span>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace ds {
namespace {

constexpr std::array<uint32_t, 256> makeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit)
      crc = crc & 1 ? crc >> 1 ^ 0x82F63B78u : crc >> 1;
    table[i] = crc;
  }
  return table;
}

uint32_t updateByTable(uint32_t crc, std::span<const std::byte> bytes) {
  static constexpr std::array<uint32_t, 256> table = makeTable();
  for (std::byte byte : bytes)
    crc = table[(crc ^ uint32_t(byte)) & 0xFF] ^ crc >> 8;
  return crc;
}

#if defined(__x86_64__)
__attribute__((target("sse4.2"))) uint32_t updateByInstruction(uint32_t crc, std::span<const std::byte> bytes) {
  while (bytes.size() >= sizeof(uint64_t)) {
    uint64_t word;
    std::memcpy(&word, bytes.data(), sizeof word);
    crc = uint32_t(_mm_crc32_u64(crc, word));
    bytes = bytes.subspan(sizeof word);
  }
  for (std::byte byte : bytes)
    crc = _mm_crc32_u8(crc, uint8_t(byte));
  return crc;
}
#endif

} // namespace

uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before) {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("sse4.2"))
    return ~updateByInstruction(~before, bytes);
#endif
  return ~updateByTable(~before, bytes);
}

} // namespace ds
