//===- ConfigFile.h - what a ds_config.json asks for, read a second time --===//
#pragma once

#include "compiler/sources/LearningRate.h"
#include "core/AttachedLoss.h"

#include <nlohmann/json_fwd.hpp>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace ds::sources {

/// Of the parameters whose names match, and no group's before.
struct Group {
  std::string match;
  double decay = 0, rate = 1; ///< weight decay, and the factor of the learning rate
};

/// Of the section fp16.
struct Fp16 {
  bool isDynamic = true;
  double firstScale = 0, least = 0;
  double window = 0, hysteresis = 0; ///< steps
  bool consecutive = false;
};

/// DeepSpeed's meaning of the keys that decide what is computed, defaults included
/// (https://www.deepspeed.ai/docs/config-json/, torch.optim).
struct ConfigFile {
  uint64_t microBatch = 0, accumulation = 0, trainBatch = 0; ///< samples, micro-batches, samples
  std::string optimizer; ///< "adamw", "sgd", "adagrad", "lion", "lamb"; "": the model brings its own
  /// By the names of the reference program's attributes; flags are 0 or 1.
  std::vector<std::pair<std::string, double>> settings;
  double clip = 0;      ///< largest global norm; 0: none
  bool delayed = false; ///< updates are of the gradients of the step before
  bool tokens = false;  ///< losses are weighed by the targets of the whole batch
  bool bf16 = false;
  std::string fp8 = "off";      ///< deepstatic.fp8; else "tensor" or "block"
  std::string reductionType;    ///< communication_data_type, what `sums` is where it is left out
  std::string sums;             ///< data_types.grad_accum_dtype, likewise
  std::string masters = "fp32"; ///< what trained parameters are kept in: "bf16" or "fp16", which `sums` then is, too
  bool narrowMoments = false;   ///< and so is their state
  std::optional<Fp16> fp16;
  uint64_t bucket = 0; ///< most elements of a bucket of several parameters
  Schedule schedule;
  CycledMomentum momentum;
  std::vector<Group> groups;
  std::optional<AttachedLoss> loss; ///< deepstatic.loss
};

/// What the values "auto" rest on.
struct Trained {
  uint64_t hidden = 0; ///< the hidden size; 0: nothing says it
  bool bf16 = false;   ///< parameters are bfloat16
};

/// Of a text, or of an object with "kind"; throws ds::Error for what is neither.
AttachedLoss lossFromJson(const nlohmann::json &value);

/// `text` is HJSON; `overrides` are `key.path=value`, the last wins; `dataRanks` share a batch. Throws ds::Error.
ConfigFile readConfig(std::string_view text, const std::string &name, const std::vector<std::string> &overrides,
                      uint64_t dataRanks, const Trained &trained);

} // namespace ds::sources
