//===- BatchSizes.cpp - train_batch_size = micro-batch x accumulation x ranks //
#include "compiler/config/Config.h"
#include "compiler/config/Resolver.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr int64_t largestCount = int64_t(1) << 40; // samples
constexpr int64_t largestMicro = int64_t(1) << 31; // samples of a micro-batch
constexpr int64_t maxSteps = int64_t(1) << 16;     // micro-batches; each is several calls, of which a plan has 2^18

constexpr std::string_view whole = "train_batch_size", micro = "train_micro_batch_size_per_gpu",
                           steps = "gradient_accumulation_steps";

/// A count that the user wrote; refuses what is not in [1, most].
std::optional<int64_t> count(Resolver &resolver, std::string_view path, int64_t most, const char *range) {
  const auto value = resolver.integer(path);
  if (value && (*value < 1 || *value > most)) {
    resolver.refuse(path, std::string("it must be ") + range);
    return std::nullopt;
  }
  return value;
}

/// Of the data-parallel width.
std::string ranksInWords(const Config &config) {
  return std::to_string(config.ranks) + (config.sharesModel() ? " data-parallel" : "") +
         (config.ranks == 1 ? " rank" : " ranks");
}

// DeepSpeed: two of the three give the third; train_batch_size or the micro-batch alone sets accumulation to 1. What is
// floored there and then found unequal is refused here with the values.
void readBatchSizes(Resolver &resolver, Config &config) {
  const bool anyWritten = resolver.find(whole) || resolver.find(micro);
  const auto t = count(resolver, whole, largestCount, "from 1 to 2^40 samples");
  const auto m = count(resolver, micro, largestMicro, "from 1 to 2^31 samples");
  const auto g = count(resolver, steps, maxSteps, "from 1 to 2^16 micro-batches");
  const int64_t n = config.ranks;
  if (!anyWritten)
    return resolver.refuseWhole(std::string(whole) + " or " + std::string(micro) +
                                    " must be given: how many samples an optimizer step, or a micro-batch, has",
                                "--set train_micro_batch_size_per_gpu=8");
  if ((!t && resolver.find(whole)) || (!m && resolver.find(micro)) || (!g && resolver.find(steps)))
    return; // refused above, or not a number
  const std::string ranks = ranksInWords(config);
  if (m) {
    const int64_t accumulation = g ? *g : t ? std::max<int64_t>(1, *t / *m / n) : 1;
    int64_t product = 0;
    if (__builtin_mul_overflow(*m, accumulation, &product) || __builtin_mul_overflow(product, n, &product) ||
        product > largestCount)
      return resolver.refuse(g ? steps : micro, "the samples of a step would be more than 2^40");
    if (t && *t != product)
      return resolver.refuse(whole,
                             (g ? "it must be " : "it must be a multiple of ") + std::string(micro) + " " +
                                 std::to_string(*m) + (g ? " x " + std::string(steps) + " " + std::to_string(*g) : "") +
                                 " x " + ranks + " = " + std::to_string(g ? product : *m * n) +
                                 (g ? "; write that, or leave one of the three out" : ""),
                             !config.sharesModel() && *t % (*m * g.value_or(1)) == 0
                                 ? "--ranks " + std::to_string(*t / (*m * g.value_or(1)))
                                 : "");
    if (accumulation > maxSteps)
      return resolver.refuse(whole, "it makes " + std::to_string(accumulation) +
                                        " gradient accumulation steps; there are at most 2^16");
    config.microBatchSize = *m;
    config.accumulationSteps = accumulation;
    config.trainBatchSize = product;
    return;
  }
  const int64_t accumulation = g.value_or(1);
  int64_t parts = 0;
  if (__builtin_mul_overflow(accumulation, n, &parts) || *t % parts != 0)
    return resolver.refuse(whole, "it must be a multiple of " +
                                      (g ? std::string(steps) + " " + std::to_string(*g) + " x " : "") + ranks);
  config.microBatchSize = *t / parts;
  config.accumulationSteps = accumulation;
  config.trainBatchSize = *t;
}

} // namespace

void resolveBatchSizes(Resolver &resolver, Config &config) {
  readBatchSizes(resolver, config);
  resolver.nameAuto(whole, config.trainBatchSize);
  resolver.nameAuto(micro, config.microBatchSize);
  resolver.nameAuto(steps, config.accumulationSteps);
}

} // namespace ds::config
