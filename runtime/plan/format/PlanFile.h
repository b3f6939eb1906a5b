//===- PlanFile.h - how a plan lies in a file -----------------------------===//
//
//   bytes 0..7    "DSPLAN\r\n": a text-mode transfer or a truncated download damages it visibly
//         8..15   u64, little-endian: bytes of the message
//        16..19   u32, little-endian: CRC-32C of the message
//        20..23   zero
//        24..     the message, ds.plan.proto.Plan
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <span>
#include <string>

namespace ds::plan {

/// The newest format that this build reads, and the one it writes.
inline constexpr uint32_t formatVersion = 2;

inline constexpr size_t frameHeaderBytes = 24;

/// Protobuf's own limit, less the frame.
inline constexpr uint64_t maxMessageBytes = (uint64_t(1) << 31) - 1;

/// The bytes of a plan file. The same plan always gives the same bytes.
std::string framePlan(const proto::Plan &plan);

/// Writes a plan file whole or not at all.
void writePlanFile(const std::string &path, const proto::Plan &plan);

/// Undoes framePlan; throws ds::Error about magic, length, checksum, message or version. Trusts nothing and checks no
/// field but format_version: that is PlanReader's part.
proto::Plan unframePlan(std::span<const std::byte> file);

} // namespace ds::plan
