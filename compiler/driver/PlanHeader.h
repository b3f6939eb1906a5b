//===- PlanHeader.h - what a plan says of how it was made -----------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/Machine.h"
#include "compiler/driver/Compile.h"
#include "runtime/plan/plan.pb.h"

#include "mlir/IR/BuiltinOps.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ds::driver {

plan::proto::Machine describedMachine(const config::Machine &machine);

/// The parts of a plan that come from configuration and machine.
void describe(const CompileRequest &request, const config::Config &config, const config::Machine &machine,
              mlir::ModuleOp module, plan::proto::Plan &plan);

/// What `ds-opt verify --model --config` compares later. `model`: the digest of its file before it was imported. Throws
/// ds::Error where a file was changed since.
void recordSources(const CompileRequest &request, const std::vector<std::string> &sets, const std::string &model,
                   const std::string &configuration, const std::filesystem::path &planFolder, plan::proto::Plan &plan);

} // namespace ds::driver
