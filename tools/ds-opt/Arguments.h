//===- Arguments.h - options that several commands of ds-opt have ---------===//
#pragma once

#include "compiler/driver/Compile.h"
#include "compiler/sources/Sources.h"
#include "core/Overwriting.h"
#include "runtime/plan/plan.pb.h"

#include <CLI/CLI.hpp>

#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <vector>

namespace ds::tool {

/// The files of a model that a path names: the graph, and beside it what begins with its name, as model.onnx.data.
std::vector<NamedPath> filesOfModel(const std::filesystem::path &path);

/// The options of everything that reads a model.
struct ModelArguments {
  std::string path, attachLoss, weights, batchNorm = "refuse", dropout = "refuse";
  std::vector<std::string> dims, constants, trainable, frozen, losses;

  void add(CLI::App &app);
  import::ImportOptions options() const;
  /// The sizes of `--dim seq=128,512`; nothing where all dimensions have one.
  driver::Lengths lengths() const;
  /// Those that a plan records as they were given, for `requestOf` (Sources.flags).
  std::vector<std::string> flags() const;
};

/// The options of everything that plans.
struct PlanningArguments {
  ModelArguments model;
  std::string config, machine, deviceMemory, hostMemory, loraTargets;
  std::optional<int64_t> lora;
  std::vector<std::string> sets, without;

  void add(CLI::App &app);
  std::vector<NamedPath> inputs() const;
  driver::CompileRequest request() const;
};

/// What a plan, of one size, says it was asked for, of the sources that verify was given. Throws ds::Error where its
/// record is damaged.
driver::CompileRequest requestOf(const plan::proto::Plan &plan, const sources::Places &places);

} // namespace ds::tool
