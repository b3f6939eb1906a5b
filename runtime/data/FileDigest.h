//===- FileDigest.h - whether two processes read the same file ------------===//
#pragma once

#include "runtime/data/ReadOnlyFile.h"

#include <cstdint>

namespace ds::runtime {

/// Of size and content, after `before`: of all bytes up to 256 MiB; of a larger file its first and last 64 KiB and
/// pieces of 64 KiB at equal distances, 256 MiB in all, so that a run of any size starts within a second. Throws
/// ds::Error.
uint64_t fileDigest(const ReadOnlyFile &file, uint64_t before = 0);

} // namespace ds::runtime
