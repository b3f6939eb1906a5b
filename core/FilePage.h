//===- FilePage.h - what direct reads and writes of files are multiples of ===//
#pragma once

#include <cstdint>

namespace ds {

/// Bytes. Offsets and lengths of O_DIRECT are multiples of the drive's block, 512 or 4096; cf. statx's
/// stx_dio_offset_align. Plans are made on other machines, so they take the larger one.
constexpr int64_t filePage = 4096;

} // namespace ds
