//===- LowRankAdapters.h - adapters beside the weights that they add to ---===//
//
// A layer with an adapter computes x W^T + x A^T B^T, where a run's tensors are
//   LAYER.weight   W [outputs, inputs], or of transformers' Conv1D [inputs, outputs]
//   LAYER.lora_A   A [rank, inputs]
//   LAYER.lora_B   B [outputs, rank]
// as models/export.py --lora names them; ds-opt compile --lora calls the latter two LAYER.weight.lora_A and
// LAYER.weight.lora_B. Merged, W becomes W + B A.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/checkpoint/SavedWeights.h"

#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {

struct LowRankAdapter {
  const SavedWeights::Tensor *weight = nullptr, *down = nullptr, *up = nullptr; ///< W, A, B
  bool isTransposed = false;                                                    ///< W is [inputs, outputs]

  int64_t rank() const { return down->shape[0]; }
};

/// By the layer's name. Tensors of other shapes are no adapter. `modelType` of transformers' config.json tells how a
/// square W is meant.
std::map<std::string, LowRankAdapter> findAdapters(const SavedWeights &weights, const std::string &modelType);

/// B A, added to elements of W in the order in which they lie.
class AdapterSum {
public:
  AdapterSum(const SavedWeights &weights, const LowRankAdapter &adapter);
  /// `bytes`: the next elements of W.
  void add(std::span<std::byte> bytes);

private:
  template <typename T> void addAs(std::span<std::byte> bytes);

  const bool isDouble_, isTransposed_;
  const uint64_t rank_, inputs_, outputs_;
  std::vector<double> down_, up_;
  uint64_t at_ = 0; // elements that were there before
};

/// What peft keeps in adapter_config.json: of adapters of one rank, beside a model that lies in `base`, of classes
/// `architecture`.
std::string adapterConfig(const std::map<std::string, LowRankAdapter> &adapters, const std::string &base,
                          const std::string &architecture);

} // namespace ds::runtime
