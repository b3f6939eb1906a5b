//===- Crc32c.h - the checksum of plans and weight files ------------------===//
#pragma once

#include <cstdint>
#include <span>

namespace ds {

/// CRC-32C (Castagnoli, RFC 3720 appendix B.4) of `bytes`, continuing from the CRC of what came before them.
uint32_t crc32c(std::span<const std::byte> bytes, uint32_t before = 0);

} // namespace ds
