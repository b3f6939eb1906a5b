//===- Compile.h - from a model and a configuration to a plan -------------===//
//
// What `ds-opt compile` does, as a function: configuration, machine, import, the pipelines of compiler/passes, export.
//
//===----------------------------------------------------------------------===//
#pragma once

#include "compiler/config/Config.h"
#include "compiler/config/Machine.h"
#include "compiler/import/Import.h"
#include "runtime/plan/plan.pb.h"

#include <functional>
#include <optional>
#include <string>
#include <vector>

namespace ds::driver {

/// How far to go, in the words of `ds-opt compile --emit`.
enum class Emit { Train, Grad, Dist, Schedule, Plan, PlanText, PlanFile };

/// Throws ds::Error for a word that is none of them.
Emit emitFromName(std::string_view name);

/// Several sizes of one symbolic dimension, ascending; one plan has programs for each. Nothing: none was asked for.
struct Lengths {
  std::string dimension;
  std::vector<int64_t> sizes;
};

struct CompileRequest {
  import::ImportOptions model; // `dims["batch"]` is set from the configuration
  Lengths lengths;
  std::string configPath; // ds_config.json
  config::ConfigOverrides overrides;
  std::string machine;              // name or path; empty: the built-in cpu
  std::vector<std::string> without; // passes to leave out, of ds::optionalPasses
  std::vector<std::string> flags;   // what else `model` was made from, for Sources.flags: "--dim=seq=128"
  Emit emit = Emit::PlanFile;
  std::string output; // where the plan will lie, for relative paths of weights; empty: the current folder
  /// Told the name of each phase as it begins.
  std::function<void(const char *)> progress = [](const char *) {};
  /// Told each warning and remark once, a whole line; by default it goes to stderr.
  std::function<void(const std::string &)> warn = {};
};

struct CompileResult {
  std::string text;       // MLIR or protobuf text, where asked for
  plan::proto::Plan plan; // where asked for
  std::vector<config::AutoValue> autos = {};
};

/// Throws ds::Error; what MLIR diagnosed on the way is the error's sentence, its notes are lines after it.
CompileResult compile(const CompileRequest &request);

/// Names of variables and the reference program of the plan that `request` asks for: what is the same for any
/// number of ranks, stages and places, up to their effect on the program itself. `device`: Machine.device. Plans
/// nothing. Throws ds::Error.
plan::proto::Plan programOf(const CompileRequest &request, const std::string &device);

/// Throws ds::Error where the machine or the configuration's file cannot be read.
void requireReadable(const CompileRequest &request);

/// `ds-opt import`: the train dialect as text. Throws ds::Error.
std::string importToText(const import::ImportOptions &options);

/// A table of a model's parameters: what each is for, and whether it would be trained. Throws ds::Error.
std::string parametersOf(import::ImportOptions options);

} // namespace ds::driver
