//===- TensorSettings.cpp - tensor_parallel and deepstatic.tensor_parallel -===//
#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/Resolver.h"

#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr std::string_view size = "deepstatic.tensor_parallel.size", autoSize = "tensor_parallel.autotp_size",
                           groupSize = "tensor_parallel.tp.tp_size",
                           partitioned = "activation_checkpointing.partition_activations";

constexpr int64_t mostRanks = int64_t(1) << 20;

std::string text(int64_t number) { return std::to_string(number); }

std::string set(std::string_view path, int64_t value) { return "--set " + std::string(path) + "=" + text(value); }

/// What was written at a path. DeepSpeed's autotp_size 0 is one rank.
int64_t countAt(const Resolver &resolver, std::string_view path) {
  const int64_t count = resolver.integerOrDefault(path);
  return path == autoSize && count == 0 ? 1 : count;
}

/// The one of the keys with the same meaning that holds: what was written, --set before the file.
std::string_view whichHolds(Resolver &resolver) {
  std::string_view holds;
  for (const bool bySet : {true, false})
    for (const std::string_view path : {size, autoSize, groupSize}) {
      const Node *written = resolver.find(path);
      if (!written || !resolver.integer(path) || (written->line == 0) != bySet)
        continue;
      if (holds.empty())
        holds = path;
      else if (countAt(resolver, path) == countAt(resolver, holds))
        continue;
      else if ((resolver.find(holds)->line == 0) == bySet)
        resolver.refuse(path, std::string(holds) + ", which means the same, is " + shortJson(*resolver.find(holds)) +
                                  "; write one of them, or the same in both");
      else
        resolver.subsume(path, "--set " + std::string(holds) + " wins");
    }
  return holds.empty() ? size : holds;
}

/// Ranks that share a tensor, if they are what they can be.
int64_t readSize(Resolver &resolver, const Config &config) {
  const std::string_view path = whichHolds(resolver);
  const int64_t count = countAt(resolver, path), stages = config.pipeline.stages, ranks = config.ranks;
  const std::string those = stages > 1 ? "the " + text(ranks) + " ranks of a stage, of --ranks " +
                                             text(config.worldRanks) + " and " + text(stages) + " stages"
                                       : "--ranks, which is " + text(ranks);
  if (count < 1)
    resolver.refuse(path, "it is the number of ranks that share each layer and must be at least 1", set(path, 1));
  else if (count > ranks)
    resolver.refuse(path,
                    "so many ranks share each layer, and --ranks is " + text(config.worldRanks) +
                        (stages > 1 ? " for " + text(stages) + " stages" : ""),
                    count <= mostRanks / stages ? "--ranks " + text(count * stages) : "");
  else if (ranks % count != 0) {
    const auto [below, above] = divisorsBeside(ranks, count);
    resolver.refuse(path, "it must divide " + those + ": " + text(below) + " and " + text(above) + " do",
                    set(path, above));
  } else
    return count;
  return 1;
}

} // namespace

void resolveTensor(Resolver &resolver, Config &config) {
  config.tensor.size = readSize(resolver, config);
  config.ranks /= config.tensor.size;
  if (config.tensor.size > 1 && resolver.boolean(partitioned).value_or(false))
    resolver.refuse(partitioned,
                    "tensor ranks keep whole what they have in common for the backward; shares of it are not "
                    "available yet",
                    "--set " + std::string(partitioned) + "=false");
}

} // namespace ds::config
