//===- RecomputeSteps.cpp - which layer computes more again, in which order ---===//
//
// At the end of the forward each layer has provided its bytes b, and the link has taken C(l) at most since layer l
// began. What stays in device memory is the largest sum of b over the layers from some l on, less C(l): tensors leave
// in the order of the layers, so of sets of layers that the link limits each holds the next. Only work in those from
// the largest such l on lowers that maximum, and there the cheapest comes first. In prices: a byte of a late layer
// costs as much as one of device memory, and one of an early layer as much as one on the link, which is nothing as long
// as it hides. Greedy steps are best for such nested limits (A. Federgruen and H. Groenevelt, "The greedy procedure for
// resource allocation problems", 1986).
//
//===----------------------------------------------------------------------===//
#include "compiler/scheduling/MinCut.h"
#include "compiler/scheduling/Recompute.h"

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace ds::scheduling {
namespace {

/// How much is kept, and the last layer from which on it is.
struct Tightest {
  int64_t bytes = 0;
  size_t layer = 0;
};

Tightest tightest(std::span<const LinkedLayer> layers, std::span<const int64_t> provided) {
  Tightest most;
  int64_t sum = 0;
  for (size_t l = provided.size(); l-- > 0;) {
    sum += provided[l];
    if (const int64_t kept = sum - (layers.empty() ? 0 : layers[l].linkBytes); kept > most.bytes)
      most = {kept, l};
  }
  return most;
}

/// The steps of a layer that are left.
struct Layer {
  const std::vector<RecomputeChoice> *frontier = nullptr;
  size_t next = 1;

  bool done() const { return next >= frontier->size(); }
  int64_t bytes() const { return (*frontier)[next - 1].bytes - (*frontier)[next].bytes; }
  int64_t time() const { return (*frontier)[next].time - (*frontier)[next - 1].time; }
  bool isBetterThan(const Layer &other) const {
    return MinCut::Capacity(bytes()) * other.time() > MinCut::Capacity(other.bytes()) * time();
  }
};

/// From `first` on, the layer whose next step frees most bytes for its time.
std::optional<size_t> bestFrom(size_t first, std::span<const Layer> layers) {
  std::optional<size_t> best;
  for (size_t l = first; l < layers.size(); ++l)
    if (!layers[l].done() && (!best || layers[l].isBetterThan(layers[*best])))
      best = l;
  return best;
}

} // namespace

std::optional<std::string> verifyAway(std::span<const LinkedLayer> layers, std::span<const int64_t> provided,
                                      std::span<const int64_t> away) {
  if (layers.size() != provided.size() || layers.size() != away.size())
    return "there are " + std::to_string(layers.size()) + " layers, but bytes of " + std::to_string(provided.size()) +
           " and " + std::to_string(away.size());
  int64_t left = 0; // of this layer and those behind it
  for (size_t l = layers.size(); l-- > 0;) {
    left += away[l];
    if (away[l] < 0 || away[l] > provided[l])
      return "layer " + std::to_string(l) + " has " + std::to_string(provided[l]) + " bytes, of which " +
             std::to_string(away[l]) + " cannot leave";
    if (left > layers[l].linkBytes)
      return "from layer " + std::to_string(l) + " on " + std::to_string(left) +
             " bytes leave, but the link moves only " + std::to_string(layers[l].linkBytes);
  }
  return std::nullopt;
}

int64_t keptBytes(std::span<const LinkedLayer> layers, std::span<const int64_t> provided) {
  return tightest(layers, provided).bytes;
}

std::vector<RecomputeStep> recomputeSteps(std::span<const std::vector<RecomputeChoice>> frontiers,
                                          std::span<const LinkedLayer> links) {
  std::vector<Layer> layers;
  std::vector<int64_t> provided;
  for (size_t l = 0; l < frontiers.size(); ++l) {
    layers.push_back({.frontier = &frontiers[l]});
    provided.push_back(frontiers[l].front().bytes + (links.empty() ? 0 : links[l].fixedBytes));
  }
  std::vector<RecomputeStep> order;
  for (;;) {
    std::optional<size_t> taken = bestFrom(tightest(links, provided).layer, layers);
    if (!taken)
      taken = bestFrom(0, layers);
    if (!taken)
      return order;
    Layer &layer = layers[*taken];
    provided[*taken] -= layer.bytes();
    order.push_back({int32_t(*taken), int32_t(layer.next++)});
  }
}

} // namespace ds::scheduling
