//===- RankFile.h - what one rank writes of a checkpoint ------------------===//
#pragma once

#include "runtime/checkpoint/Manifest.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

/// Hands over the next bytes of the parts, which follow each other in their order: at least one and at most `most`.
using NextBytes = std::function<std::span<const std::byte>(uint64_t most)>;

/// Writes the parts, counted in the rank's pieces, as a safetensors file, whole and flushed or not at all. Throws
/// ds::Error that names the file.
Manifest::File writeRankFile(const std::string &folder, uint32_t rank, const plan::proto::Plan &plan,
                             std::span<const HeldPart> parts, const NextBytes &next);

} // namespace ds::runtime
