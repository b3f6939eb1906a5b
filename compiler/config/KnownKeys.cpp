//===- KnownKeys.cpp - look-ups in the table of keys ----------------------===//
#include "compiler/config/KnownKeys.h"

#include "core/NearestName.h"

#include <algorithm>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::config {
namespace {

constexpr KnownKey deepSpeedKeys[] = {
#define DS_KEY(path, type, fallback, values, alias, removed) {path, type, fallback, values, alias, removed},
#include "compiler/config/KnownKeys.inc"
#undef DS_KEY
};

/// What DeepSpeed has no key for.
constexpr KnownKey ownKeys[] = {
    {"deepstatic.checkpoint.buffer", "int|str", R"("256MiB")", "", "", false},
    {"deepstatic.checkpoint.snapshot", "str", R"("buffered")", R"(["buffered", "blocking"])", "", false},
    {"deepstatic.delayed_update", "bool", "false", "", "", false},
    {"deepstatic.device_memory", "int|str|null", "null", "", "", false},
    {"deepstatic.fp8", "str", R"("off")", R"(["off", "tensor", "block"])", "", false},
    {"deepstatic.loss", "str|object|null", "null", "", "", false},
    {"deepstatic.loss_normalization", "str", R"("microbatch")", R"(["microbatch", "tokens"])", "", false},
    {"deepstatic.nvme_path", "str|null", "null", "", "", false},
    {"deepstatic.offload", "str|object", R"("none")", "", "", false},
    {"deepstatic.parameter_groups", "list", "[]", "", "", false},
    {"deepstatic.pipeline.chunks", "int", "1", "", "", false},
    {"deepstatic.pipeline.partition", "str", R"("best")", "", "", false},
    {"deepstatic.pipeline.schedule", "str", R"("1f1b")",
     R"(["gpipe", "1f1b", "interleaved", "zb-h1", "accumulate-by-layer", "auto"])", "", false},
    {"deepstatic.pipeline.stages", "int", "1", "", "", false},
    {"deepstatic.recompute", "str|int|object", R"("auto")", "", "", false},
    {"deepstatic.tensor_parallel.size", "int", "1", "", "", false},
    {"deepstatic.tf32", "bool", "false", "", "", false},
};

/// What tutorials and other trainers write, and the key that does it.
constexpr std::pair<std::string_view, std::string_view> wellKnownMistakes[] = {
    {"aio.thread_count", "aio.intra_op_parallelism"},
    {"batch_size", "train_batch_size"},
    {"clip_grad_norm", "gradient_clipping"},
    {"compress_communication", "zero_optimization.zero_quantized_gradients"},
    {"learning_rate", "optimizer.params.lr"},
    {"max_grad_norm", "gradient_clipping"},
    {"micro_batch_size", "train_micro_batch_size_per_gpu"},
    {"optimizer.learning_rate", "optimizer.params.lr"},
    {"pipeline_parallel.micro_batches", "gradient_accumulation_steps"},
    {"pipeline_parallel.pp_size", "deepstatic.pipeline.stages"},
};

std::vector<KnownKey> sortedKeys() {
  std::vector<KnownKey> keys(std::begin(deepSpeedKeys), std::end(deepSpeedKeys));
  keys.insert(keys.end(), std::begin(ownKeys), std::end(ownKeys));
  std::sort(keys.begin(), keys.end(), [](const KnownKey &a, const KnownKey &b) { return a.path < b.path; });
  return keys;
}

std::string_view popFront(std::string_view &path) {
  const size_t dot = path.find('.');
  const std::string_view key = path.substr(0, dot);
  path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  return key;
}

enum class Match { No, Exact, Below };

/// Whether `path` is the key `pattern`, or a section that the key lies below.
Match match(std::string_view pattern, std::string_view path) {
  while (!pattern.empty() && !path.empty()) {
    const std::string_view expected = popFront(pattern), key = popFront(path);
    if (expected != "*" && expected != key)
      return Match::No;
  }
  return !path.empty() ? Match::No : pattern.empty() ? Match::Exact : Match::Below;
}

std::string_view lastKey(std::string_view path) { return path.substr(path.rfind('.') + 1); }
std::string_view sectionOf(std::string_view path) { return path.substr(0, path.size() - lastKey(path).size()); }

size_t lengthGap(std::string_view a, std::string_view b) {
  return std::max(a.size(), b.size()) - std::min(a.size(), b.size());
}

constexpr size_t longestGuess = 200; // bytes; what is longer resembles nothing

} // namespace

std::span<const KnownKey> knownKeys() {
  static const std::vector<KnownKey> keys = sortedKeys();
  return keys;
}

const KnownKey *findKey(std::string_view path) {
  const std::span<const KnownKey> keys = knownKeys();
  const auto place = std::lower_bound(keys.begin(), keys.end(), path,
                                      [](const KnownKey &key, std::string_view p) { return key.path < p; });
  if (place != keys.end() && place->path == path)
    return &*place;
  for (const KnownKey &key : keys)
    if (key.path.find('*') != std::string_view::npos && match(key.path, path) == Match::Exact)
      return &key;
  return nullptr;
}

bool isSection(std::string_view path) {
  return std::any_of(knownKeys().begin(), knownKeys().end(),
                     [&](const KnownKey &key) { return match(key.path, path) == Match::Below; });
}

std::string nearestKey(std::string_view path) {
  for (const auto &[wrong, right] : wellKnownMistakes)
    if (path == wrong)
      return std::string(right);
  path = path.substr(0, longestGuess);
  std::string_view best;
  size_t bestDistance = 0;
  for (const KnownKey &key : knownKeys()) {
    if (key.removed || !key.alias.empty())
      continue;
    if (!best.empty() &&
        std::min(lengthGap(path, key.path), lengthGap(lastKey(path), lastKey(key.path))) >= bestDistance)
      continue; // no distance is smaller than the difference in length
    // A slip of the pen anywhere, or the right name in the wrong section.
    const size_t whole = editDistance(path, key.path);
    const size_t misplaced =
        editDistance(lastKey(path), lastKey(key.path)) + (sectionOf(path) == sectionOf(key.path) ? 0 : 2);
    const size_t distance = std::min(whole, misplaced);
    if (best.empty() || distance < bestDistance) {
      best = key.path;
      bestDistance = distance;
    }
  }
  return std::string(best);
}

} // namespace ds::config
