//===- FilePage.h - what reads and writes of a rank's file are made of ----===//
#pragma once

#include <cstdint>

namespace ds {

/// Bytes. Offsets and lengths of O_DIRECT are multiples of the drive's block, 512 or 4096; cf. statx's
/// stx_dio_offset_align. Plans are made on other machines, so they take the larger one.
constexpr int64_t filePage = 4096;

constexpr int64_t mostFileBlock = int64_t(1) << 30; ///< bytes of one read or write; a system call moves a little more
constexpr int64_t mostFileDepth = 1024;             ///< reads or writes that are under way at once

/// Whether a file can be read in blocks of so many bytes, whole pages.
constexpr bool isFileBlock(uint64_t bytes) {
  return bytes > 0 && bytes % filePage == 0 && bytes <= uint64_t(mostFileBlock);
}

} // namespace ds
