//===- FirstValues.h - whether training begins with the model's weights ---===//
#pragma once

#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::sources {

/// Whether a first value comes from a safetensors file (--weights), which wins over what the model has.
bool isGiven(const plan::proto::Plan &plan, const plan::proto::Variable &variable);

/// Whether an initializer of the model has the elements of a given value.
bool holdsGiven(const plan::proto::Plan &plan, const plan::proto::Variable &variable, const ModelFile &model,
                const std::string &planFolder);

/// That each parameter's and buffer's first value is what the model says it is, down to the bytes of the file.
/// Throws ds::Error.
Claim requireFirstValues(const plan::proto::Plan &plan, const ModelFile &model, const Places &places,
                         const std::string &planFolder);

} // namespace ds::sources
