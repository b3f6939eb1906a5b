//===- LowRankAdapters.cpp - adapters beside the weights that they add to -===//
#include "runtime/checkpoint/LowRankAdapters.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <map>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace ds::runtime {
namespace {

using Tensor = SavedWeights::Tensor;

/// Whose linear layers are Conv1D.
bool hasTransposedLayers(const std::string &modelType) {
  static const std::set<std::string> types = {"gpt2", "openai-gpt", "imagegpt", "decision_transformer"};
  return types.contains(modelType);
}

bool isFloat(const Tensor &tensor) { return tensor.dtype == "F32" || tensor.dtype == "F64"; }

template <typename T> void widen(std::span<const std::byte> bytes, std::vector<double> &into) {
  for (size_t at = 0; at < bytes.size(); at += sizeof(T)) {
    T value;
    std::memcpy(&value, &bytes[at], sizeof(T));
    into.push_back(double(value));
  }
}

std::vector<double> elementsOf(const SavedWeights &weights, const Tensor &tensor) {
  std::vector<double> elements;
  weights.read(tensor, 0, uint64_t(elementCount(tensor.shape)), [&](std::span<const std::byte> bytes) {
    tensor.dtype == "F64" ? widen<double>(bytes, elements) : widen<float>(bytes, elements);
  });
  return elements;
}

} // namespace

std::map<std::string, LowRankAdapter> findAdapters(const SavedWeights &weights, const std::string &modelType) {
  std::map<std::string, const Tensor *> byName;
  for (const Tensor &tensor : weights.tensors()) {
    byName[tensor.name] = &tensor;
    for (const std::string &alias : tensor.aliases)
      byName[alias] = &tensor;
  }
  const auto find = [&](const std::string &name) {
    const auto found = byName.find(name);
    const bool isMatrix = found != byName.end() && found->second->shape.size() == 2 && isFloat(*found->second);
    return isMatrix ? found->second : nullptr;
  };
  std::map<std::string, LowRankAdapter> adapters;
  for (const auto &[name, tensor] : byName) {
    const std::string ending = ".lora_A";
    if (!name.ends_with(ending))
      continue;
    const std::string stem = name.substr(0, name.size() - ending.size()), last = ".weight"; // a layer, or its weight
    const std::string layer = stem.ends_with(last) ? stem.substr(0, stem.size() - last.size()) : stem;
    const Tensor *down = find(name), *up = find(stem + ".lora_B"), *weight = find(layer + last);
    if (down == nullptr || up == nullptr || weight == nullptr || up->shape[1] != down->shape[0])
      continue;
    const Shape plain = {up->shape[0], down->shape[1]}, transposed = {plain[1], plain[0]};
    const bool isTransposed = weight->shape == transposed && (plain != transposed || hasTransposedLayers(modelType));
    if (isTransposed || weight->shape == plain)
      adapters[layer] = {weight, down, up, isTransposed};
  }
  return adapters;
}

AdapterSum::AdapterSum(const SavedWeights &weights, const LowRankAdapter &adapter)
    : isDouble_(adapter.weight->dtype == "F64"), isTransposed_(adapter.isTransposed), rank_(uint64_t(adapter.rank())),
      inputs_(uint64_t(adapter.down->shape[1])), outputs_(uint64_t(adapter.up->shape[0])),
      down_(elementsOf(weights, *adapter.down)), up_(elementsOf(weights, *adapter.up)) {}

void AdapterSum::add(std::span<std::byte> bytes) { isDouble_ ? addAs<double>(bytes) : addAs<float>(bytes); }

template <typename T> void AdapterSum::addAs(std::span<std::byte> bytes) {
  const uint64_t columns = isTransposed_ ? outputs_ : inputs_;
  for (size_t i = 0; i < bytes.size(); i += sizeof(T), ++at_) {
    const uint64_t row = at_ / columns, column = at_ % columns;
    const uint64_t output = isTransposed_ ? column : row, input = isTransposed_ ? row : column;
    T value;
    std::memcpy(&value, &bytes[i], sizeof(T));
    double sum = double(value);
    for (uint64_t k = 0; k < rank_; ++k)
      sum += up_[output * rank_ + k] * down_[k * inputs_ + input];
    value = T(sum);
    std::memcpy(&bytes[i], &value, sizeof(T));
  }
}

std::string adapterConfig(const std::map<std::string, LowRankAdapter> &adapters, const std::string &base,
                          const std::string &architecture) {
  nlohmann::ordered_json config, layers = nlohmann::ordered_json::array();
  for (const auto &[layer, adapter] : adapters)
    layers.push_back(layer);
  const LowRankAdapter &first = adapters.begin()->second;
  const bool isCausal = architecture.ends_with("ForCausalLM") || architecture.ends_with("LMHeadModel");
  config["peft_type"] = "LORA";
  config["task_type"] = isCausal ? nlohmann::ordered_json("CAUSAL_LM") : nlohmann::ordered_json();
  config["base_model_name_or_path"] = base;
  config["r"] = first.rank();
  config["lora_alpha"] = first.rank(); // B A as it is
  config["lora_dropout"] = 0.0;
  config["target_modules"] = layers;
  config["fan_in_fan_out"] = first.isTransposed;
  config["bias"] = "none";
  config["inference_mode"] = true;
  return config.dump(2) + "\n";
}

} // namespace ds::runtime
