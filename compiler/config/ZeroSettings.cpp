//===- ZeroSettings.cpp - the section zero_optimization -------------------===//
#include "compiler/config/Config.h"
#include "compiler/config/Resolver.h"

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

std::string zeroPath(std::string_view key) { return "zero_optimization." + std::string(key); }

/// A count of elements, at least `least`.
int64_t readCount(Resolver &resolver, std::string_view key, int64_t least) {
  const std::string path = zeroPath(key);
  const int64_t count = resolver.integerOrDefault(path);
  if (count < least)
    resolver.refuse(path, "it is a number of elements and must be at least " + std::to_string(least));
  return count;
}

constexpr std::string_view stage3Keys[] = {"stage3_prefetch_bucket_size", "stage3_max_live_parameters",
                                           "stage3_max_reuse_distance", "stage3_param_persistence_threshold",
                                           "stage3_model_persistence_threshold"};
constexpr std::string_view otherKeys[] = {"reduce_bucket_size", "allgather_bucket_size", "overlap_comm"};

/// DeepSpeed's default is the type that is computed in; ours rounds nothing that one rank would not.
void resolveReductions(Resolver &resolver, Config &config) {
  static constexpr std::string_view path = "communication_data_type";
  const std::string_view type = resolver.string(path).value_or("fp32");
  config.zero.reductionType = type == "bf16" ? "bf16" : type == "fp16" ? "f16" : "";
  if (config.ranks == 1)
    resolver.subsume(path, "one rank has nobody to sum with");
}

} // namespace

int64_t Zero::bucketElements() const {
  const int64_t limit = std::min(reduceBucketSize, allgatherBucketSize);
  return stage == 3 ? std::min(limit, prefetchBucketSize) : limit;
}

void resolveZero(Resolver &resolver, Config &config) {
  Zero &zero = config.zero;
  zero.stage = resolver.integerOrDefault(zeroPath("stage"));
  zero.reduceBucketSize = readCount(resolver, "reduce_bucket_size", 1);
  zero.allgatherBucketSize = readCount(resolver, "allgather_bucket_size", 1);
  zero.prefetchBucketSize = readCount(resolver, stage3Keys[0], 1);
  zero.maxLiveParameters = readCount(resolver, stage3Keys[1], 0);
  zero.maxReuseDistance = readCount(resolver, stage3Keys[2], 0);
  zero.paramPersistenceThreshold = readCount(resolver, stage3Keys[3], 0);
  zero.modelPersistenceThreshold = readCount(resolver, stage3Keys[4], 0);
  zero.overlapComm = resolver.boolean(zeroPath("overlap_comm")).value_or(zero.stage == 3);
  resolveReductions(resolver, config);
  const std::string partition = zeroPath("zero_hpz_partition_size");
  if (const auto group = resolver.integer(partition); group && (*group < 1 || config.ranks % *group != 0))
    resolver.refuse(partition, "it is the ranks of a group and must divide the " + std::to_string(config.ranks) +
                                   (config.sharesModel() ? " data-parallel ranks" : " ranks of --ranks"));
  if (zero.stage < 3)
    for (std::string_view key : stage3Keys)
      resolver.subsume(zeroPath(key), "has no effect below stage 3");
  if (config.ranks > 1)
    return;
  const char *alone =
      config.sharesModel() ? "one data-parallel rank has nobody to share with" : "one rank has nobody to share with";
  if (zero.stage > 0)
    resolver.subsume(zeroPath("stage"), alone);
  for (std::string_view key : stage3Keys)
    resolver.subsume(zeroPath(key), alone);
  for (std::string_view key : otherKeys)
    resolver.subsume(zeroPath(key), alone);
}

} // namespace ds::config
