//===- RankFile.cpp - what one rank writes of a checkpoint ----------------===//
#include "runtime/checkpoint/RankFile.h"

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Sha256.h"
#include "core/Shape.h"
#include "runtime/checkpoint/CheckpointFolder.h"
#include "runtime/checkpoint/Manifest.h"
#include "runtime/checkpoint/StateShares.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/plan/world/Placement.h"

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

Manifest::File writeRankFile(const std::string &folder, uint32_t rank, const plan::proto::Plan &plan,
                             std::span<const HeldPart> parts, const NextBytes &next) {
  std::vector<TensorToWrite> tensors;
  for (const HeldPart &part : parts) {
    const plan::proto::Variable &variable = plan.variables(int(part.variable));
    const auto dtype = DType(variable.dtype());
    const Shape piece = plan::pieceShape(variable.placement(), Shape(variable.shape().begin(), variable.shape().end()));
    tensors.push_back({tensorName(plan, rank, part), dtype,
                       isWholePiece(plan, part) ? piece : Shape{int64_t(part.count)},
                       [&next, bytes = part.count * uint64_t(byteSize(dtype))](const auto &sink) {
                         for (uint64_t given = 0; given < bytes;) {
                           const std::span<const std::byte> piece = next(bytes - given);
                           sink(piece);
                           given += piece.size();
                         }
                       }});
  }
  const std::string name = rankFileName(rank);
  Sha256 digest;
  const auto digestAlso = [&](std::span<const std::byte> bytes) { digest.add(bytes); };
  writeSafetensors(folder + "/" + name, tensors, {}, digestAlso, AtomicFile::Cache::Uncached);
  const uint64_t bytes = digest.bytes();
  return {name, bytes, hexOf(digest.finish())};
}

} // namespace ds::runtime
