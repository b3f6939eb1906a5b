//===- FirstValues.h - whether training begins with the model's weights ---===//
#pragma once

#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <string>

namespace ds::sources {

/// That each parameter's and buffer's first value is what the model says it is, down to the bytes of the file.
/// Throws ds::Error.
Claim requireFirstValues(const plan::proto::Plan &plan, const ModelFile &model, const std::string &planFolder);

} // namespace ds::sources
