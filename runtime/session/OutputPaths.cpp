//===- OutputPaths.cpp - results never overwrite what a run reads ---------===//
#include "runtime/session/OutputPaths.h"

#include "core/Overwriting.h"
#include "runtime/plan/plan.pb.h"
#include "runtime/session/Training.h"

#include <filesystem>
#include <string>
#include <vector>

namespace ds::runtime {

void refuseOverwriting(const TrainingOptions &options, const plan::proto::Plan &plan) {
  std::vector<NamedPath> taken = {{"the plan", options.planPath}};
  for (const plan::proto::WeightFile &file : plan.weight_files())
    taken.push_back({"the plan's weight file", std::filesystem::path(options.planPath).parent_path() / file.path()});
  for (const std::string &path : options.data)
    taken.push_back({"the data file", path});
  for (const std::string &path : options.evaluationData)
    taken.push_back({"the evaluation data", path});
  const std::vector<NamedPath> outputs = {
      {"--export", options.exportPath}, {"--metrics", options.metrics}, {"--trace", options.trace}};
  for (const NamedPath &output : outputs) {
    ds::refuseOverwriting(output, taken);
    taken.push_back(output);
    if (&output == &outputs.front())
      taken.push_back({"the weights", options.weights}); // which --export may replace
  }
}

} // namespace ds::runtime
