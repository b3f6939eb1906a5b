//===- AutoValues.cpp - what "auto" stands for ----------------------------===//
//
// The Hugging Face Trainer fills in "auto" from its own arguments and the model. Here flags and the graph say what they
// can, and the Trainer's defaults stand for the rest.
//
//===----------------------------------------------------------------------===//
#include "compiler/config/AutoValues.h"

#include "compiler/config/Config.h"
#include "compiler/config/Hjson.h"
#include "compiler/config/KnownKeys.h"
#include "compiler/config/Resolver.h"

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace ds::config {
namespace {

constexpr std::string_view whole = "train_batch_size", micro = "train_micro_batch_size_per_gpu",
                           steps = "gradient_accumulation_steps", lr = "optimizer.params.lr",
                           most = "scheduler.params.warmup_max_lr", warmup = "scheduler.params.warmup_num_steps",
                           total = "scheduler.params.total_num_steps", stage = "zero_optimization.stage",
                           reduce = "zero_optimization.reduce_bucket_size",
                           prefetch = "zero_optimization.stage3_prefetch_bucket_size",
                           persist = "zero_optimization.stage3_param_persistence_threshold", bf16 = "bf16.enabled",
                           fp16 = "fp16.enabled", offloadRatio = "zero_optimization.offload_optimizer.ratio";

constexpr std::string_view trainersLr = "5e-5", trainersMicroBatch = "8";

constexpr AutoRule rules[] = {
    {whole, "micro-batch x accumulation steps x data-parallel ranks"},
    {micro, "`--dim batch=N`; else what the other two leave, and refused where they say nothing"},
    {steps, "what the other two leave, else 1"},
    {lr, "5e-5, the Trainer's default"},
    {most, "`optimizer.params.lr`"},
    {warmup, "0, the Trainer's default"},
    {total, "refused: nothing says how long a run will be"},
    {stage, "2, Accelerate's default"},
    {reduce, "h x h"},
    {prefetch, "0.9 x h x h"},
    {persist, "10 x h"},
    {bf16, "whether the model's parameters are bfloat16"},
    {fp16, "whether the model's parameters are float16"},
    {offloadRatio,
     "1, or less where a link cannot hide so much and the device has room: the share with which a step is "
     "shortest by the machine file (`docs/offload.md`)"},
};

bool isBySize(std::string_view path) { return path == reduce || path == prefetch || path == persist; }

/// As transformers derives it from the hidden size, with its arithmetic.
AutoValue bySize(std::string_view path, int64_t hidden) {
  const std::string size = "the model's hidden size " + std::to_string(hidden);
  if (path == reduce)
    return {"", std::to_string(hidden * hidden), size + " squared"};
  if (path == prefetch)
    return {"", std::to_string(std::max<int64_t>(1, int64_t(0.9 * double(hidden) * double(hidden)))),
            "0.9 x " + size + " squared"};
  return {"", std::to_string(10 * hidden), "10 x " + size};
}

bool saysAuto(const Node &node) { return node.kind == Node::Kind::String && node.text == "auto"; }

} // namespace

std::span<const AutoRule> autoRules() { return rules; }

bool isAuto(const Node &value, const KnownKey &key) {
  const bool ownsIt =
      key.fallback == R"("auto")" || key.path == "deepstatic.offload" || key.path == "deepstatic.pipeline.schedule";
  return saysAuto(value) && !key.removed && !ownsIt && (key.type != "str" || !key.values.empty());
}

AutoRefusal refusalOfAuto(std::string_view path) {
  if (path == micro)
    return {"nothing says how many samples a micro-batch has; write the number", trainersMicroBatch};
  if (path == total)
    return {"nothing says after how many updates the decay ends; write the number", "1000"};
  if (isBySize(path))
    return {"no trained parameter is a matrix that would say the model's hidden size; write the number of elements",
            findKey(path)->fallback};
  return {"nothing says what it stands for; write the value itself", ""};
}

/// Nothing where nothing says it. Without a model, what it would say is DeepSpeed's default for now.
std::optional<AutoValue> Resolver::valueOfAuto(std::string_view path, const ConfigOverrides &overrides) const {
  const std::optional<ModelFacts> &model = overrides.model;
  if (path == total || (path == micro && !number(whole)) || (model && isBySize(path) && model->hiddenSize == 0))
    return std::nullopt;
  if (path == whole)
    return AutoValue{"", "null", "micro-batch x accumulation x data-parallel ranks"};
  if (path == micro || path == steps)
    return AutoValue{"", "null", "what the other batch sizes leave"};
  if (path == lr)
    return AutoValue{"", std::string(trainersLr), "the Trainer's default"};
  if (path == most) {
    const Node *rate = find(lr);
    return AutoValue{"",
                     rate == nullptr   ? toJson(defaultOf(lr))
                     : saysAuto(*rate) ? std::string(trainersLr)
                                       : toJson(*rate),
                     "optimizer.params.lr"};
  }
  if (path == warmup)
    return AutoValue{"", "0", "the Trainer's default"};
  if (path == stage)
    return AutoValue{"", "2", "Accelerate's default"};
  if (path == offloadRatio && overrides.offloadRatio)
    return overrides.offloadRatio;
  if (model && isBySize(path))
    return bySize(path, model->hiddenSize);
  if (model && (path == bf16 || path == fp16))
    return AutoValue{"", model->dtype == (path == bf16 ? "bfloat16" : "float16") ? "true" : "false",
                     "the model's parameters are " + model->dtype};
  return AutoValue{"", toJson(defaultOf(path)), "DeepSpeed's default"};
}

void Resolver::replaceAutos(Node &object, const std::string &section, const ConfigOverrides &overrides) {
  for (Member &m : object.members) {
    const std::string path = section.empty() ? printable(m.key) : section + "." + printable(m.key);
    if (m.value.kind == Node::Kind::Object)
      replaceAutos(m.value, path, overrides);
    const KnownKey *key = saysAuto(m.value) ? findKey(path) : nullptr;
    std::optional<AutoValue> value = key && isAuto(m.value, *key) ? valueOfAuto(path, overrides) : std::nullopt;
    if (!value)
      continue;
    value->path = path;
    const int line = m.value.line;
    m.value = parseHjsonValue(value->valueJson, "auto");
    m.value.line = line;
    value->valueJson = toJson(m.value);
    autos_.push_back(*std::move(value));
  }
}

void Resolver::nameAuto(std::string_view path, int64_t value) {
  for (AutoValue &one : autos_)
    if (one.path == path)
      one.valueJson = value > 0 ? std::to_string(value) : "\"auto\""; // 0: what was refused says nothing of it
}

bool Resolver::wasAuto(std::string_view path) const {
  return std::ranges::find(autos_, path, &AutoValue::path) != autos_.end();
}

} // namespace ds::config
