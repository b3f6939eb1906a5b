//===- Weights.h - whether a plan trains the parameters of its model ------===//
#pragma once

#include "compiler/sources/ModelFile.h"
#include "compiler/sources/Sources.h"
#include "runtime/plan/plan.pb.h"

#include <string>
#include <vector>

namespace ds::sources {

/// Names, kinds, types, shapes, ties, what is trained, first values; and the inputs. `planFolder`: where weight files
/// are looked for. Throws ds::Error.
std::vector<Claim> requireWeights(const plan::proto::Plan &plan, const ModelFile &model, const Places &places,
                                  const std::string &planFolder);

} // namespace ds::sources
