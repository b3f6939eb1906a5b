//===- ExportVariables.cpp - --export -------------------------------------===//
#include "runtime/session/ExportVariables.h"

#include "core/AtomicFile.h"
#include "core/DType.h"
#include "core/Error.h"
#include "core/Shape.h"
#include "runtime/comm/Transport.h"
#include "runtime/data/SafetensorsWriter.h"
#include "runtime/executor/Executor.h"
#include "runtime/executor/HeldParts.h"
#include "runtime/plan/Ranks.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/LocalRanks.h"

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <numeric>
#include <span>
#include <string>
#include <utility>
#include <vector>

namespace ds::runtime {
namespace {

bool isExported(const plan::proto::Variable &variable) {
  return variable.kind() == plan::proto::Variable::PARAMETER ||
         (variable.kind() == plan::proto::Variable::BUFFER && variable.persistent());
}

std::vector<uint32_t> allRanks(const plan::proto::Plan &plan) {
  std::vector<uint32_t> ranks(plan::worldSize(plan));
  std::iota(ranks.begin(), ranks.end(), 0);
  return ranks;
}

uint64_t elementsOf(const plan::proto::Variable &variable) {
  return uint64_t(elementCount({variable.shape().data(), size_t(variable.shape_size())}));
}

} // namespace

void checkExport(const plan::proto::Plan &plan, const LocalRanks &ranks, const std::string &path) {
  if (ranks.hasRankZero())
    requireWritableFolder(path);
  if (!ranks.first().device().executes())
    throw Error("--export needs a device that computes; the null device has no weights");
  const auto covering = coverings(plan, allRanks(plan));
  for (int i = 0; i < plan.variables_size(); ++i)
    if (isExported(plan.variables(i)) && coveredElements(covering[size_t(i)]) < elementsOf(plan.variables(i)))
      throw Error("variable " + plan.variables(i).name() + " cannot be exported: no buffer of the plan holds " +
                  (covering[size_t(i)].empty() ? "it" : "all of it"));
}

void exportVariables(const plan::proto::Plan &plan, const LocalRanks &ranks, Transport &transport,
                     const std::string &path, const std::atomic<bool> &stop) {
  const auto covering = coverings(plan, allRanks(plan));
  const auto read = [&](const RankPart &part, uint64_t first, std::span<std::byte> bytes) {
    if (stop)
      throw Error("stopped by a signal during the export; " + path + " was not written");
    if (const Executor *executor = ranks.find(part.rank))
      executor->read(part.part, first, bytes);
    transport.copy(part.rank, 0, bytes);
  };
  std::vector<TensorToWrite> tensors;
  std::map<std::string, std::string> metadata = {{"format", "pt"}}; // transformers refuses files without it
  for (int i = 0; i < plan.variables_size(); ++i) {
    const plan::proto::Variable &variable = plan.variables(i);
    if (!isExported(variable))
      continue;
    for (const std::string &alias : variable.aliases())
      metadata[alias] = variable.name();
    const DType dtype = DType(variable.dtype());
    tensors.push_back({variable.name(), dtype, Shape(variable.shape().begin(), variable.shape().end()),
                       [&read, &parts = covering[size_t(i)], dtype](const auto &sink) {
                         readCovering(parts, uint64_t(byteSize(dtype)), read, sink);
                       }});
  }
  // The order in which the file takes them, so that every process sends in it.
  std::sort(tensors.begin(), tensors.end(), [](const auto &a, const auto &b) { return a.name < b.name; });
  if (ranks.hasRankZero())
    return writeSafetensors(path, std::move(tensors), metadata);
  for (const TensorToWrite &tensor : tensors)
    tensor.produce([](std::span<const std::byte>) {});
}

} // namespace ds::runtime
