//===- ConfigFile.cpp - what a ds_config.json asks for, read a second time ===//
#include "compiler/sources/ConfigFile.h"

#include "compiler/config/Hjson.h"
#include "compiler/sources/LearningRate.h"
#include "core/Error.h"

#include <nlohmann/json.hpp>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace ds::sources {
namespace {

using Json = nlohmann::json;

Json fromNode(const config::Node &node) { return Json::parse(config::toJson(node)); }

std::string lower(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char byte) { return char(std::tolower(byte)); });
  return text;
}

class Reader {
public:
  Reader(std::string_view text, const std::string &name, const std::vector<std::string> &overrides)
      : name_(name), document_(fromNode(config::parseHjson(text, name))) {
    for (const std::string &override : overrides)
      set(override);
    if (document_.contains("bfloat16") && !document_.contains("bf16"))
      document_["bf16"] = document_["bfloat16"];
  }

  /// The value at "a.b.c"; null where there is none, or one that others say.
  const Json *find(std::string_view path) const {
    const Json *value = written(path);
    return value == nullptr || saysAuto(*value) ? nullptr : value;
  }
  bool isAuto(std::string_view path) const {
    const Json *value = written(path);
    return value != nullptr && saysAuto(*value);
  }

  double number(std::string_view path, double otherwise) const {
    const Json *value = find(path);
    if (value == nullptr)
      return otherwise;
    if (!value->is_number())
      refuse(path, *value, "a number");
    return value->get<double>();
  }
  uint64_t count(std::string_view path, uint64_t otherwise) const {
    const double value = number(path, double(otherwise));
    if (!(value >= 0 && value <= 9e15) || value != double(uint64_t(value)))
      refuse(path, *find(path), "a whole number");
    return uint64_t(value);
  }
  bool flag(std::string_view path, bool otherwise) const {
    const Json *value = find(path);
    if (value != nullptr && !value->is_boolean())
      refuse(path, *value, "true or false");
    return value == nullptr ? otherwise : value->get<bool>();
  }
  std::string text(std::string_view path, const std::string &otherwise) const {
    const Json *value = find(path);
    if (value != nullptr && !value->is_string())
      refuse(path, *value, "a text");
    return value == nullptr ? otherwise : value->get<std::string>();
  }

private:
  static bool saysAuto(const Json &value) { return value.is_string() && value == "auto"; }
  const Json *written(std::string_view path) const {
    const Json *at = &document_;
    while (!path.empty()) {
      const std::string key(path.substr(0, path.find('.')));
      path.remove_prefix(std::min(path.size(), key.size() + 1));
      const auto found = at->is_object() ? at->find(key) : at->end();
      if (!at->is_object() || found == at->end())
        return nullptr;
      at = &*found;
    }
    return at->is_null() ? nullptr : at;
  }
  [[noreturn]] void refuse(std::string_view path, const Json &value, const char *expected) const {
    throw Error(name_ + ": " + std::string(path) + " is " + value.dump() + ", which is not " + expected);
  }
  void set(const std::string &override) {
    const size_t equals = override.find('=');
    if (equals == std::string::npos)
      throw Error(name_ + ": the plan says that it was compiled with --set " + override + ", which is not KEY=VALUE");
    Json *at = &document_;
    for (std::string_view path = std::string_view(override).substr(0, equals); !path.empty();) {
      const std::string key(path.substr(0, path.find('.')));
      path.remove_prefix(std::min(path.size(), key.size() + 1));
      if (!at->is_object())
        *at = Json::object();
      at = &(*at)[key];
    }
    *at = fromNode(config::parseHjsonValue(override.substr(equals + 1), "--set " + override));
  }

  const std::string &name_;
  Json document_;
};

/// Two of the three give the third; the batch or the micro-batch alone means one micro-batch a step.
void readBatches(const Reader &reader, uint64_t dataRanks, ConfigFile &config) {
  const uint64_t batch = reader.count("train_batch_size", 0), micro = reader.count("train_micro_batch_size_per_gpu", 0),
                 steps = reader.count("gradient_accumulation_steps", 0);
  config.accumulation = steps > 0 ? steps : micro > 0 && batch > 0 ? batch / (micro * dataRanks) : 1;
  config.microBatch = micro > 0 ? micro : batch / std::max<uint64_t>(1, config.accumulation * dataRanks);
  config.trainBatch = config.microBatch * config.accumulation * dataRanks;
}

std::array<double, 2> readBetas(const Reader &reader, std::array<double, 2> betas) {
  if (const Json *written = reader.find("optimizer.params.betas"); written && written->size() == 2)
    for (size_t i = 0; i < 2; ++i)
      betas[i] = (*written)[i].is_number() ? (*written)[i].get<double>() : betas[i];
  return betas;
}

void readOptimizer(const Reader &reader, ConfigFile &config) {
  const auto parameter = [&](const std::string &key, double otherwise) {
    return reader.number("optimizer.params." + key, otherwise);
  };
  const std::string type = lower(reader.text("optimizer.type", ""));
  auto &settings = config.settings;
  if (type == "adam" || type == "adamw") { // DeepSpeed's FusedAdam
    config.optimizer = "adamw";
    const std::array<double, 2> betas = readBetas(reader, {0.9, 0.999});
    settings = {{"beta1", betas[0]},
                {"beta2", betas[1]},
                {"epsilon", parameter("eps", 1e-8)},
                {"weight_decay", parameter("weight_decay", 0)},
                {"adam_w_mode", type == "adamw" || reader.flag("optimizer.params.adam_w_mode", true) ? 1 : 0}};
  } else if (type == "sgd") {
    config.optimizer = type;
    settings = {{"momentum", parameter("momentum", 0)},
                {"weight_decay", parameter("weight_decay", 0)},
                {"nesterov", reader.flag("optimizer.params.nesterov", false) ? 1 : 0}};
  } else if (type == "lion") {
    config.optimizer = type;
    const std::array<double, 2> betas = readBetas(reader, {0.9, 0.99});
    settings = {{"beta1", betas[0]}, {"beta2", betas[1]}, {"weight_decay", parameter("weight_decay", 0)}};
  } else if (type == "lamb") { // DeepSpeed's FusedLamb
    config.optimizer = type;
    const std::array<double, 2> betas = readBetas(reader, {0.9, 0.999});
    settings = {{"beta1", betas[0]},
                {"beta2", betas[1]},
                {"epsilon", parameter("eps", 1e-8)},
                {"weight_decay", parameter("weight_decay", 0)},
                {"max_coeff", parameter("max_coeff", 10)},
                {"min_coeff", parameter("min_coeff", 0.01)},
                {"bias_correction", reader.flag("optimizer.params.bias_correction", true) ? 1 : 0}};
  } else if (type == "adagrad") {
    config.optimizer = type;
    settings = {{"epsilon", parameter("eps", 1e-10)},
                {"weight_decay", parameter("weight_decay", 0)},
                {"lr_decay", parameter("lr_decay", 0)}};
  }
  const bool trainers = reader.isAuto("optimizer.params.lr"); // whose default is not DeepSpeed's
  config.schedule.lr = parameter("lr", trainers ? 5e-5 : type == "adagrad" ? 0.01 : 0.001);
}

/// The second half is as the first unless written. Optimizers without betas keep their momentum.
void readOneCycle(const Reader &reader, ConfigFile &config) {
  const auto count = [&](const std::string &key, uint64_t otherwise) {
    return int64_t(reader.count("scheduler.params." + key, otherwise));
  };
  const auto number = [&](const std::string &key, double otherwise) {
    return reader.number("scheduler.params." + key, otherwise);
  };
  Cycle cycle;
  cycle.up = std::max<int64_t>(1, count("cycle_first_step_size", 2000));
  cycle.down = count("cycle_second_step_size", uint64_t(cycle.up));
  cycle.upStairs = count("cycle_first_stair_count", 0);
  cycle.downStairs = count("cycle_second_stair_count", uint64_t(cycle.upStairs));
  cycle.decay = count("decay_step_size", 0);
  config.schedule.least = number("cycle_min_lr", 0);
  config.schedule.most = number("cycle_max_lr", 0);
  config.schedule.slope = number("decay_lr_rate", 0);
  config.schedule.cycle = cycle;
  const bool hasBetas = config.optimizer == "adamw" || config.optimizer == "lion" || config.optimizer == "lamb";
  if (!hasBetas || !reader.flag("scheduler.params.cycle_momentum", true))
    return;
  config.momentum = {.on = true,
                     .least = number("cycle_min_mom", 0.8),
                     .most = number("cycle_max_mom", 0.9),
                     .slope = number("decay_mom_rate", 0),
                     .cycle = cycle};
  for (auto &[name, value] : config.settings)
    if (name == "beta2")
      value = 0.99; // beside a momentum that is cycled
}

void readSchedule(const Reader &reader, ConfigFile &config) {
  const std::string type = lower(reader.text("scheduler.type", ""));
  Schedule &schedule = config.schedule;
  for (const char *known : {"WarmupLR", "WarmupDecayLR", "WarmupCosineLR", "LRRangeTest", "OneCycle"})
    if (type == lower(known))
      schedule.type = known;
  const std::string params = "scheduler.params.";
  schedule.linear = reader.text(params + "warmup_type", "log") == "linear";
  schedule.least = reader.number(params + "warmup_min_lr", 0);
  schedule.most =
      reader.number(params + "warmup_max_lr",
                    schedule.type == "WarmupLR" || reader.isAuto(params + "warmup_max_lr") ? schedule.lr : 0.001);
  schedule.leastRatio = reader.number(params + "warmup_min_ratio", 0);
  schedule.cosineRatio = reader.number(params + "cos_min_ratio", 0.0001);
  schedule.warmup =
      int64_t(reader.count(params + "warmup_num_steps", reader.isAuto(params + "warmup_num_steps") ? 0 : 1000));
  schedule.total = int64_t(reader.count(params + "total_num_steps", 0));
  if (schedule.type == "LRRangeTest") {
    schedule.least = reader.number(params + "lr_range_test_min_lr", 0.001);
    schedule.slope = reader.number(params + "lr_range_test_step_rate", 1);
    schedule.length = std::max<int64_t>(1, int64_t(reader.count(params + "lr_range_test_step_size", 2000)));
    schedule.stairs = reader.flag(params + "lr_range_test_staircase", false);
  } else if (schedule.type == "OneCycle")
    readOneCycle(reader, config);
}

/// Of deepstatic.parameter_groups; a group that does not say its decay has the optimizer's.
std::vector<Group> readGroups(const Reader &reader) {
  std::vector<Group> groups;
  const Json *list = reader.find("deepstatic.parameter_groups");
  const double decay = reader.number("optimizer.params.weight_decay", 0);
  const auto number = [](const Json &one, const char *key, double otherwise) {
    return one.contains(key) && one[key].is_number() ? one[key].get<double>() : otherwise;
  };
  if (list != nullptr && list->is_array())
    for (const Json &one : *list)
      if (one.contains("match") && one["match"].is_string())
        groups.push_back(
            {one["match"].get<std::string>(), number(one, "weight_decay", decay), number(one, "lr_factor", 1)});
  return groups;
}

/// "auto" asks whether parameters are float16; those of plans never are.
void readFp16(const Reader &reader, ConfigFile &config) {
  if (!reader.flag("fp16.enabled", false))
    return;
  const double fixed = reader.number("fp16.loss_scale", 0);
  config.fp16 = Fp16{.isDynamic = fixed == 0,
                     .firstScale = fixed != 0 ? fixed : std::exp2(reader.number("fp16.initial_scale_power", 16)),
                     .least = reader.number("fp16.min_loss_scale", 1),
                     .window = reader.number("fp16.loss_scale_window", 1000),
                     .hysteresis = reader.number("fp16.hysteresis", 2),
                     .consecutive = reader.flag("fp16.consecutive_hysteresis", false)};
}

/// After the type that is computed in: keys of a section that is off ask for nothing.
void readMasters(const Reader &reader, ConfigFile &config) {
  if (config.bf16 && reader.flag("bf16.bf16_master_weights_and_grads", false)) {
    config.masters = "bf16";
    config.narrowMoments = reader.flag("bf16.bf16_optimizer_states", false);
  } else if (config.fp16 && reader.flag("fp16.fp16_master_weights_and_grads", false)) {
    config.masters = "fp16";
  }
}

/// What is reduced is gathered in one piece, so the smallest limit holds. transformers derives what says "auto" from
/// the hidden size.
uint64_t readBucket(const Reader &reader, uint64_t hidden) {
  const auto limit = [&](const std::string &key, uint64_t otherwise, double automatic) {
    const std::string path = "zero_optimization." + key;
    return reader.count(path, reader.isAuto(path) ? uint64_t(automatic) : otherwise);
  };
  const double square = double(hidden) * double(hidden);
  uint64_t most = std::min(limit("reduce_bucket_size", 500000000, square), //
                           reader.count("zero_optimization.allgather_bucket_size", 500000000));
  if (reader.count("zero_optimization.stage", reader.isAuto("zero_optimization.stage") ? 2 : 0) == 3)
    most = std::min(
        most, limit("stage3_prefetch_bucket_size", 50000000, std::max(1.0, 0.9 * double(hidden) * double(hidden))));
  return most;
}

} // namespace

AttachedLoss lossFromJson(const Json &value) {
  const Json object = value.is_object() ? value : Json{{"kind", value}};
  try {
    if (object.contains("file"))
      return {.file = object.at("file").get<std::string>(), .sha256 = object.value("sha256", "")};
    const std::optional<LossKind> kind = lossKindFromName(object.at("kind").get<std::string>());
    if (kind)
      return {.kind = *kind,
              .labelSmoothing = object.value("label_smoothing", 0.0),
              .ignoreIndex = object.value("ignore_index", int64_t(-100)),
              .logits = object.value("logits", ""),
              .classWeights = object.value("class_weights", std::vector<double>()),
              .posWeight = object.value("pos_weight", std::vector<double>())};
  } catch (const Json::exception &) { // said below
  }
  throw Error("deepstatic.loss is " + value.dump() + ", which is no loss to attach");
}

ConfigFile readConfig(std::string_view text, const std::string &name, const std::vector<std::string> &overrides,
                      uint64_t dataRanks, const Trained &trained) {
  const Reader reader(text, name, overrides);
  ConfigFile config;
  readBatches(reader, dataRanks, config);
  readOptimizer(reader, config);
  readSchedule(reader, config);
  config.groups = readGroups(reader);
  if (const Json *loss = reader.find("deepstatic.loss"))
    config.loss = lossFromJson(*loss);
  config.clip = reader.number("gradient_clipping", 1.0); // 1.0 since DeepSpeed 0.19
  config.tokens = reader.text("deepstatic.loss_normalization", "microbatch") == "tokens";
  config.delayed = reader.flag("deepstatic.delayed_update", false);
  config.bf16 = reader.flag("bf16.enabled", reader.isAuto("bf16.enabled") && trained.bf16);
  config.fp8 = reader.text("deepstatic.fp8", "off");
  readFp16(reader, config);
  readMasters(reader, config);
  config.sums = reader.text("data_types.grad_accum_dtype", config.masters);
  config.reductionType = reader.text("communication_data_type", config.sums);
  config.bucket = readBucket(reader, trained.hidden);
  return config;
}

} // namespace ds::sources
