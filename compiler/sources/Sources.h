//===- Sources.h - whether a plan is of its model and configuration -------===//
//
// The checker proves that a plan computes its own reference program. Here what that program takes from outside is
// derived a second time, from the model's file and the configuration's, by code that shares nothing with the importer's
// and the passes' decisions: sizes, settings, scales, learning rates, names, ties, first values.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "runtime/plan/plan.pb.h"

#include <string>
#include <vector>

namespace ds::sources {

/// One thing that holds of a plan, and what that rests on.
struct Claim {
  std::string id;           ///< "optimizer"
  std::string sentence;     ///< "each of 28 trained parameters is updated by adamw, beta1 0.9, ..."
  std::string restsOn = {}; ///< "the plan", "the model", "the configuration"; of what is trusted: who else looks at it
};

/// Where the sources are; an empty one is not compared.
struct Places {
  std::string plan;    ///< the plan's file, beside which weights are looked for
  std::string model;   ///< MODEL.onnx or its folder
  std::string config;  ///< ds_config.json
  std::string weights; ///< a safetensors file or its folder, where first values were asked from there
};

/// What holds of the plan by its sources. Throws ds::Error, one sentence, for the first thing that does not: a model or
/// a configuration that is not the plan's, or a value in the plan that does not follow from them.
std::vector<Claim> requireSources(const plan::proto::Plan &plan, const Places &places);

/// The ids and sentences of what nobody has compared where `places` leaves the model or the configuration out.
std::vector<Claim> trustedWithout(const Places &places);

} // namespace ds::sources
